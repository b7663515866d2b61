"""Contract 2: hiding is a pure function that touches only what it chose."""

import importlib
from dataclasses import replace
from operator import attrgetter

import pytest
import torch

from tests.contracts.conftest import KIND, Case, some_rows
from unmask import recipes
from unmask.hide import Mask, Next, Shuffle
from unmask.settings import override
from unmask.system import hides


def test_only_targets_change_and_targets_hold_the_original_ids(case):
    system = case.system()
    batch = case.batch(8)
    hidden, counts = system.prepare(batch)
    targets = hidden.targets
    used = targets.weight > 0
    changed = (hidden.ids != batch.ids).flatten()
    allowed = torch.zeros_like(changed)
    allowed[targets.where[used]] = True
    assert not (changed & ~allowed).any()
    assert int(used.sum()) == int(counts["tokens"]) > 0
    follows = isinstance(case.recipe.hide, Next)  # what is predicted stands after where it is predicted
    original = batch.ids.flatten()[(targets.start if follows else targets.where)[used]]
    assert torch.equal(targets.ids[used], original)


def test_special_tokens_and_padding_are_never_hidden_nor_drawn(case):
    system = case.system()
    special = torch.tensor(case.tokenizer.vocabulary.special)
    for visit in range(5):
        batch = case.batch(8)
        batch = batch.replace(visit=batch.visit + visit)
        hidden, _ = system.prepare(batch)
        changed = hidden.ids != batch.ids
        assert not torch.isin(batch.ids[changed], special).any()
        assert not (changed & ~batch.real).any()
        drawn = hidden.ids[changed]
        drawn = drawn[drawn != case.tokenizer.vocabulary.mask]
        assert not torch.isin(drawn, special).any()


def test_the_budget_is_kept_per_row(case):
    system = case.system()
    batch = case.batch(8, length=256)  # of which XLNet has a budget for either half
    hidden, _ = system.prepare(batch)
    per_row = hidden.targets.weight.view(8, -1).sum(1)
    candidates = (batch.word >= 0).sum(1)
    if isinstance(case.recipe.hide, Next):  # every token but the first of an example is predicted
        assert torch.equal(per_row.long(), batch.real.sum(1) - (batch.example.amax(1) + 1))
        return
    hide = case.recipe.hide
    limit = (candidates * hide.budget).round().clamp(min=1) + (candidates * hide.shuffle.budget).round()
    assert (per_row <= limit).all()
    # a unit that no longer fits is left out: in a short row a single word may be as long as all that is left
    longest = torch.zeros_like(batch.word).scatter_add(1, batch.word.clamp(min=0), (batch.word >= 0).long()).amax(1)
    assert ((per_row >= 0.6 * candidates * case.recipe.hide.share) | (limit - per_row < longest)).all()
    exact = override(case.recipe, ["hide.units=Tokens", "hide.shuffle.budget=0.0"])
    hidden, _ = exact.system.build(exact, case.tokenizer.vocabulary, 0).prepare(batch)
    per_row = hidden.targets.weight.view(8, -1).sum(1)
    assert torch.equal(per_row, (candidates * exact.hide.budget).round().clamp(min=1))


def test_the_same_row_gives_the_same_result_in_any_batch(case):
    system = case.system()
    batch = case.batch(6)
    together, _ = system.prepare(batch)
    order = [4, 1]
    part, _ = system.prepare(some_rows(batch, order))
    assert torch.equal(part.ids, together.ids[order])
    assert torch.equal(part.targets.ids, together.targets.ids.view(6, -1)[order].flatten())


def test_another_visit_hides_other_tokens_unless_masking_is_static(case):
    if not hasattr(case.recipe.hide, "copies"):
        return
    batch = case.batch(4, length=128)
    later = batch.replace(visit=batch.visit + 1)
    tenth = batch.replace(visit=batch.visit + 10)
    dynamic = case.system()
    assert not torch.equal(dynamic.prepare(batch)[0].targets.where, dynamic.prepare(later)[0].targets.where)
    static_recipe = override(case.recipe, ["hide.copies=10"])
    static = static_recipe.system.build(static_recipe, case.tokenizer.vocabulary, 0)
    for name in ("ids", "targets.where"):
        first, after, same = (_of(static.prepare(b)[0], name) for b in (batch, later, tenth))
        assert torch.equal(first, same)
        assert not torch.equal(first, after) or not case.recipe.hide.needs_mask
    assert not torch.equal(
        _of(static.prepare(batch)[0], "targets.where"), _of(static.prepare(later)[0], "targets.where")
    )


def _of(batch, name):
    return attrgetter(name)(batch)


def test_whole_words_are_hidden_whole(case):
    if not hasattr(case.recipe.hide, "units"):
        return
    recipe = override(case.recipe, ["hide.units=Words", "hide.budget=0.3", "hide.shuffle.budget=0.0"])
    system = recipe.system.build(recipe, case.tokenizer.vocabulary, 0)
    for visit in range(4):
        batch = case.batch(8, length=64)
        batch = batch.replace(visit=batch.visit + visit)
        hidden, _ = system.prepare(batch)
        chosen = torch.zeros(batch.ids.numel(), dtype=torch.bool)
        chosen[hidden.targets.where[hidden.targets.weight > 0]] = True
        chosen = chosen.view(batch.shape)
        for row in range(8):
            words = batch.word[row][chosen[row]].unique()
            assert torch.equal(torch.isin(batch.word[row], words), chosen[row])
            assert int(chosen[row].sum()) <= round(0.3 * 64)


def _hides() -> list[tuple[str, str, int]]:
    """Name, variant and stage of everything that a recipe masks."""
    found = []
    for name in recipes.names():
        for variant in importlib.import_module(f"unmask.recipes.{name.replace('-', '_')}").VARIANTS:
            stages = hides(recipes.get(name, size="tiny", variant=variant))
            found += [(name, variant, stage) for stage, hide in enumerate(stages) if isinstance(hide, Mask)]
    return found


@pytest.fixture(params=_hides(), ids=lambda given: "-".join(map(str, given)))
def masking(request, tokenizers, shards):
    """What is hidden, the vocabulary, and rows in which some tokens of the text are unknown or special."""
    name, variant, stage = request.param
    recipe = recipes.get(name, size="tiny", variant=variant)
    case = Case(recipe, tokenizers[KIND[type(recipe.tokenizer)]], shards[KIND[type(recipe.tokenizer)]])
    batch, words = case.batch(16, length=128), case.tokenizer.vocabulary
    assert words.unknown in words.special
    dice = torch.rand(batch.shape, generator=torch.Generator().manual_seed(0))
    text = batch.word >= 0
    ids = torch.where(text & (dice < 0.05), words.unknown, batch.ids)
    ids = torch.where(text & (dice > 0.98), words.special[-1], ids)
    return hides(recipe)[stage], words, batch.replace(ids=ids)


def test_unknown_and_special_tokens_and_padding_are_never_targets_nor_touched(masked):
    hide, words, batch = masked
    special = torch.isin(batch.ids, torch.tensor(words.special)) | ~batch.real
    for visit in range(4):
        after = hide.apply(batch.replace(visit=batch.visit + visit), words, 0)
        where = after.targets.where[after.targets.weight > 0]
        assert len(where) > 0
        assert not special.flatten()[where].any()
        assert torch.equal(after.ids[special], batch.ids[special])
        drawn = after.ids[(after.ids != batch.ids) & (after.ids != words.mask)]
        assert not torch.isin(drawn, torch.tensor(words.special)).any()


def test_each_hidden_token_or_each_run_of_them_is_masked_replaced_or_kept(masked):
    hide, words, batch = masked
    hide = replace(hide, shuffle=Shuffle(), copies=None)
    several = mixed = count = hidden = 0
    for visit in range(30):
        after = hide.apply(batch.replace(visit=batch.visit + visit), words, 0)
        chosen = torch.zeros(batch.ids.numel(), dtype=torch.bool)
        chosen[after.targets.where[after.targets.weight > 0]] = True
        covered = chosen & (after.ids == words.mask).flatten()
        hidden, count = hidden + int(chosen.sum()), count + int(covered.sum())
        ends = (torch.arange(len(chosen)) + 1) % batch.shape[1] == 0
        pairs = chosen[:-1] & chosen[1:] & ~ends[:-1]  # two hidden tokens side by side
        several += int(pairs.sum())
        mixed += int((pairs & (covered[:-1] != covered[1:])).sum())
    assert several > 100
    assert count / hidden == pytest.approx(hide.mask, abs=0.04)
    if hide.draw == "span":
        assert mixed == 0
    else:
        assert mixed / several == pytest.approx(2 * hide.mask * (1 - hide.mask), abs=0.06)
