"""What the discriminator predicts, by loops with the modules' own weights: replaced or not, and the original itself."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from tests.predict.test_boundary import WIDTH, cross_entropy, dense, gelu, given, normed, shaken
from tests.small import masking, random_batch, shuffled, vocabulary
from unmask.batch import Hidden
from unmask.hide import Tokens, apply_rules
from unmask.init_weights import InitWeights
from unmask.predict import AllTokens, Replaced
from unmask.system.generator_discriminator import filled


def judged(embedding: int = WIDTH):
    """A batch whose hidden tokens were replaced: every third by the original itself."""
    batch, hidden, table = given(Tokens(), WIDTH, embedding)
    targets = batch.targets["tokens"]
    drawn = (targets.ids + 7) % 35 + 5
    drawn = torch.where(torch.arange(len(drawn)) % 3 == 0, targets.ids, drawn)
    return filled(batch, drawn), batch, drawn, hidden, table


def softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def test_the_discriminator_reads_the_drawn_tokens_and_keeps_the_original_beside():
    after, before, drawn, *_ = judged()
    targets = before.targets["tokens"]
    ids, original = before.ids.flatten().tolist(), before.ids.flatten().tolist()
    for where, new, old, used in zip(
        *(t.tolist() for t in (targets.where, drawn, targets.ids, targets.weight)), strict=True
    ):
        if used:
            ids[where], original[where] = new, old
    assert after.ids.flatten().tolist() == ids
    assert after.original.flatten().tolist() == original
    assert vocabulary().mask not in after.ids.flatten()[targets.where[targets.weight > 0]].tolist()


def test_an_unused_place_never_undoes_a_used_one():
    """Masked and shuffled targets stand side by side: a place unused by one may name a token that the other uses."""
    hide = (masking(budget=0.3, mask=1.0, random=0.0), shuffled(0.6))
    for seed in range(10):
        original = random_batch(rows=3, length=40, examples=2, seed=seed, padding=12)
        batch = apply_rules(hide, original, vocabulary(), seed)
        drawn = torch.full_like(batch.targets["tokens"].ids, 199)
        after = filled(batch, drawn)
        used = batch.targets["tokens"].weight > 0
        assert set(batch.targets["tokens"].where[~used].tolist()) & set(batch.targets["tokens"].where[used].tolist())
        assert (after.ids.flatten()[batch.targets["tokens"].where[used]] == 199).all()
        assert torch.equal(after.original, original.ids)
        rest = torch.ones(batch.ids.numel(), dtype=torch.bool)
        rest[batch.targets["tokens"].where[used]] = False
        assert torch.equal(after.ids.flatten()[rest], original.ids.flatten()[rest])


@pytest.mark.parametrize("where", ["all", "hidden"])
def test_each_token_is_told_replaced_or_not_and_one_drawn_right_counts_as_original(where):
    after, before, drawn, hidden, table = judged()
    module = shaken(Replaced(where=where).build(WIDTH, table, InitWeights()))
    targets = before.targets["tokens"]
    hidden_at = {int(w): k for k, (w, u) in enumerate(zip(targets.where, targets.weight, strict=True)) if u}
    vectors, total, count, answers = hidden.last.flatten(0, 1).tolist(), 0.0, 0, []
    for place in range(before.ids.numel()):
        real = before.example.flatten()[place] >= 0
        if not real or (where == "hidden" and place not in hidden_at):
            continue
        label = place in hidden_at and drawn[hidden_at[place]] != targets.ids[hidden_at[place]]
        score = dense(module.out, [gelu(v) for v in dense(module.dense, vectors[place])])[0]
        total, count = total + softplus(-score if label else score), count + 1
        answers.append(bool(label))
    assert {True, False} == set(answers)
    loss = module(hidden, after)
    assert loss.total.item() == pytest.approx(total, rel=1e-5)
    assert loss.count.item() == count == float(module.count(before))


@pytest.mark.parametrize("embedding", [WIDTH, 6])
def test_copy_is_the_chance_to_keep_what_is_right_or_to_write_it_anew(embedding):
    after, before, _, hidden, table = judged(embedding)
    module = shaken(AllTokens().build(WIDTH, table, InitWeights()))
    weights, bias = table.tolist(), module.write.bias.tolist()
    vectors, total, count = hidden.last.flatten(0, 1).tolist(), 0.0, 0
    for place in range(before.ids.numel()):
        if before.example.flatten()[place] < 0:
            continue
        now, old = int(after.ids.flatten()[place]), int(after.original.flatten()[place])
        keep = 1 / (1 + math.exp(-dense(module.keep, vectors[place])[0]))
        x = normed(module.write.norm, [gelu(v) for v in dense(module.write.dense, vectors[place])])
        scores = [sum(a * b for a, b in zip(row, x, strict=True)) + c for row, c in zip(weights, bias, strict=True)]
        chance = (1 - keep) * math.exp(-cross_entropy(scores, old)) + (keep if now == old else 0.0)
        total, count = total - math.log(chance), count + 1
    loss = module(hidden, after)
    assert loss.total.item() == pytest.approx(total, rel=1e-5)
    assert loss.count.item() == count == float(module.count(before))


def test_copy_has_finite_gradients_however_sure_it_is():
    after, _, _, hidden, _ = judged()
    module = AllTokens().build(WIDTH, nn.Parameter(torch.randn(40, WIDTH)), InitWeights())
    for sure in (-80.0, 80.0):
        module.zero_grad()
        nn.init.constant_(module.keep.bias, sure)
        loss = module(Hidden((hidden.last.float(),)), after)
        loss.total.backward()
        assert torch.isfinite(loss.total)
        assert all(torch.isfinite(p.grad).all() for p in module.parameters())


@pytest.mark.parametrize("part", [Replaced(), AllTokens()])
def test_without_a_generator_there_is_nothing_to_judge(part):
    batch, hidden, table = given(Tokens(), WIDTH, WIDTH)
    with pytest.raises(AssertionError, match="no generator has replaced anything"):
        part.build(WIDTH, table, InitWeights()).double()(hidden, batch)
