"""Every contract can fail: each test breaks one thing on purpose and expects the contract to find it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from tests.contracts import every
from unmask.backbone import lstm
from unmask.backbone.cross_attention import CrossMask
from unmask.backbone.lstm_layer import ReadingOrder
from unmask.backbone.transformer_xl import TransformerXLModule
from unmask.batch import Loss
from unmask.contracts import CONTRACTS, Case, ContractBroken, training
from unmask.data.turns import TurnLoader
from unmask.hide import Masked, Rewrite, Shuffle, Tokens, Words
from unmask.hide.replace import Mask
from unmask.hide.source import same
from unmask.predict.tokens import Tokens as PredictTokens
from unmask.predict.tokens import TokensModule
from unmask.see import Everything, LeftToRight, Prefix, visible
from unmask.settings import override
from unmask.train import checkpoint, loop

CHECKS = {contract.name: contract.check for contract in CONTRACTS}


def changed(name: str, **changes) -> Case:
    """The case of a recipe with other parts."""
    return Case(every.case(name).recipe.replace(**changes), every.SMALL)


def breaks(contract: str, case: Case, words: str) -> None:
    with pytest.raises(ContractBroken, match=words):
        CHECKS[contract](case)


# leak


@dataclass(frozen=True)
class RanksAll(LeftToRight):
    """It declares that the future is hidden, and its ranks show everything."""

    def rank(self, batch):
        return torch.zeros_like(batch.position)


@dataclass(frozen=True)
class SeesLeft(Prefix):
    """It declares a prefix, and shows every token only what stands before it."""

    def rank(self, batch):
        return batch.position


def test_a_network_that_sees_the_future_breaks_the_contract_about_leaks(monkeypatch):
    case = changed("gpt2")
    block = case.system.backbone.blocks[0]
    monkeypatch.setattr(block, "forward", _before(block.forward, lambda x: x + x.roll(-1, 1)))
    breaks("leak", case, "the network system.backbone .* must not change positions that may not see it")


def test_a_network_that_does_not_see_what_it_may_breaks_the_contract_about_leaks(monkeypatch):
    case = changed("bert")
    for block in case.system.backbone.blocks:
        monkeypatch.setattr(block.attention, "forward", lambda x, *_: torch.zeros_like(x))
    breaks("leak", case, "positions that see a changed token must change")


def test_a_generator_that_leaks_breaks_the_contract_about_leaks(monkeypatch):
    case = changed("electra")
    block = case.system.generator.blocks[0]
    monkeypatch.setattr(block, "forward", _before(block.forward, lambda x: x + x.mean((0, 1))))
    breaks("leak", case, "the network system.generator .* must not change positions that may not see it")


def test_a_track_that_leaks_breaks_the_contract_about_leaks():
    tracks = every.case("unilm").recipe.tracks
    leaky = dataclasses.replace(tracks["left"], see=RanksAll())
    breaks(
        "view",
        changed("unilm", tracks=tracks | {"left": leaky}),
        "In the track 'left' the view declares .* tokens see tokens that they may not see",
    )


def test_a_prefix_that_is_not_seen_whole_breaks_the_contract_about_views():
    tracks = every.case("unilm").recipe.tracks
    wrong = dataclasses.replace(tracks["prefix"], see=SeesLeft())
    breaks(
        "view",
        changed("unilm", tracks=tracks | {"prefix": wrong}),
        "'prefix', but .* do not see tokens that they must see",
    )


def _before(forward, change):
    """A layer that reads something else than it is given."""
    return lambda x, *rest: forward(change(x), *rest)


def test_a_view_that_shows_more_than_it_declares_breaks_its_contract():
    breaks("view", changed("gpt2", see=RanksAll()), "declares .* tokens see tokens that they may not see")


@dataclass(frozen=True)
class ReadsWhatItWrites(Rewrite):
    """Its decoder reads each token where it writes it, not one place later."""

    def apply(self, batch, vocabulary, seed):
        after = super().apply(batch, vocabulary, seed)
        return after.replace(decoder=after.decoder.replace(ids=batch.ids))


@pytest.mark.parametrize("contract, words", [
    ("decoder leak", "another token of the decoder must not change positions of the decoder that may not see it"),
    ("decoder packing", "must get the same vectors in the decoder in a packed row"),
])  # fmt: skip
def test_a_decoder_that_sees_the_future_or_another_example_breaks_its_contract(contract, words, monkeypatch):
    case = changed("bart")
    block = case.system.backbone.decoder_blocks[0]
    monkeypatch.setattr(block, "forward", _before(block.forward, lambda x: x + x.mean(1, keepdim=True)))
    breaks(contract, case, words)


def test_a_decoder_that_reads_the_source_of_another_example_breaks_its_contract(monkeypatch):
    monkeypatch.setattr("unmask.backbone.encoder_decoder.cross_mask", _sees_the_whole_row)
    breaks("decoder leak", changed("bart"), "another token of the source must not change positions of the decoder")


def _sees_the_whole_row(decoder, source, dtype, *, dense=False):
    return CrossMask(mask=torch.ones(decoder.shape[0], 1, 1, source.shape[1], dtype=torch.bool))


def test_a_decoder_that_reads_a_token_before_it_writes_it_breaks_its_contract():
    _, *others = every.case("bart").recipe.hide
    breaks("decoder input", changed("bart", hide=(ReadsWhatItWrites(), *others)), "must not read a token before it has")


def test_a_second_stream_that_sees_its_own_token_breaks_its_contract(monkeypatch):
    monkeypatch.setattr("unmask.backbone.relative.visible_before", visible)
    breaks("second stream", changed("xlnet"), "must not change queries of the second stream")


# memory


def test_a_memory_in_the_wrong_order_breaks_its_contract(monkeypatch):
    remember = TransformerXLModule._remember
    monkeypatch.setattr(
        TransformerXLModule,
        "_remember",
        lambda self, batch, layers, before: remember(self, batch, [x.flip(1) for x in layers], before),
    )
    breaks("memory kept", changed("transformer-xl"), "must not change the memory|must depend on that token")


def test_a_memory_that_a_new_text_still_reads_breaks_its_contract(monkeypatch):
    forward = TransformerXLModule.forward
    monkeypatch.setattr(
        TransformerXLModule,
        "forward",
        lambda self, batch, state=None: forward(self, batch.replace(per_row={}), state),
    )
    breaks("memory read", changed("transformer-xl"), "begins a text must not read")


def test_cells_that_are_forgotten_or_kept_too_long_break_their_contracts(monkeypatch):
    monkeypatch.setattr(lstm, "_begun", lambda state, begins: state)
    breaks("memory read", changed("awd-lstm"), "begins a text must not read")
    monkeypatch.setattr(lstm, "_begun", lambda state, begins: [None] * len(state))
    breaks("memory continued", changed("awd-lstm"), "must get the vectors of the row")


def test_a_stack_that_reads_in_the_wrong_direction_breaks_the_contract_about_directions(monkeypatch):
    monkeypatch.setattr(ReadingOrder, "right", ReadingOrder.left)
    breaks("directions", changed("elmo"), "must not change the second half")


# what a loss reads


class ReadsPlace(TokensModule):
    """It reads the vector of the predicted token itself."""

    def vectors_at(self, hidden, batch):
        return hidden.last.flatten(0, 1)[self.targets(batch).where]


class ReadsAnswer(TokensModule):
    """It adds to the score of the answer."""

    def measure(self, vectors, targets):
        scores = self.scores(vectors)
        scores = scores + 3 * nn.functional.one_hot(targets.ids, scores.shape[1])
        losses = nn.functional.cross_entropy(scores, targets.ids, reduction="none")
        return Loss((losses * targets.weight).sum(), targets.weight.sum())


@dataclass(frozen=True)
class Peeks(PredictTokens):
    transform: bool = False
    module: type = ReadsPlace

    def build(self, width, embedding, initial):
        return self.module(self, width, embedding, initial)


@dataclass(frozen=True)
class CoversNothing(Mask):
    """It declares that tokens are covered, and leaves them all as they are."""

    def apply(self, batch, chosen, units, vocabulary, seed, visit):
        return batch.ids, None


@pytest.mark.parametrize("name", ["gpt2", "xlnet"])
def test_an_objective_that_reads_its_token_breaks_the_contract(name):
    breaks("own token", changed(name, predict={"tokens": Peeks()}), "must not depend on the token that it predicts")


def test_a_rule_that_covers_nothing_breaks_the_contract_about_own_tokens():
    breaks(
        "own token", changed("bert", hide=Masked(replace=CoversNothing())), "must no longer show most of the targets"
    )


def test_an_objective_that_reads_its_answer_breaks_the_contract():
    breaks("answers", changed("bert", predict={"tokens": Peeks(module=ReadsAnswer)}), "must add up to 1")


# hiding


@dataclass(frozen=True)
class WrongIds(Masked):
    def apply(self, batch, vocabulary, seed):
        after = super().apply(batch, vocabulary, seed)
        targets = after.targets["tokens"]
        return after.replace(targets={"tokens": targets.replace(ids=targets.ids.roll(1))})


@dataclass(frozen=True)
class OtherExample(Masked):
    def apply(self, batch, vocabulary, seed):
        after = super().apply(batch, vocabulary, seed)
        targets = after.targets["tokens"]
        return after.replace(targets={"tokens": targets.replace(at=(targets.at - 9).clamp(min=0))})


@dataclass(frozen=True)
class TouchesMore(Masked):
    def apply(self, batch, vocabulary, seed):
        after = super().apply(batch, vocabulary, seed)
        return after.replace(ids=torch.where(after.ids == after.ids[0, 1], vocabulary.mask, after.ids))


@dataclass(frozen=True)
class ShufflesTooFar(Shuffle):
    """It exchanges tokens of different units."""

    def apply(self, batch, chosen, units, vocabulary, seed, visit):
        place = torch.arange(batch.shape[1]).expand(batch.shape)
        order = torch.where(chosen, place.flip(1), place)  # any token of the row comes to a chosen place
        return batch.ids.gather(1, order), same(order)


@dataclass(frozen=True)
class HidesSpecial(Masked):
    def apply(self, batch, vocabulary, seed):
        return super().apply(batch, dataclasses.replace(vocabulary, special=()), seed)


@dataclass(frozen=True)
class HidesPieces(Masked):
    """Its units are words, and it hides tokens."""

    units: Words = dataclasses.field(default_factory=Words)

    def apply(self, batch, vocabulary, seed):
        return Masked(units=Tokens(), budget=self.budget).apply(batch, vocabulary, seed)


@dataclass(frozen=True)
class HidesTwice(Masked):
    def apply(self, batch, vocabulary, seed):
        return Masked(budget=0.3).apply(batch, vocabulary, seed)


@dataclass(frozen=True)
class IgnoresProgress(Masked):
    def apply(self, batch, vocabulary, seed):
        return super().apply(batch.replace(progress=None), vocabulary, seed)


@dataclass(frozen=True)
class ByPlaceInBatch(Masked):
    def apply(self, batch, vocabulary, seed):
        return super().apply(batch.replace(row=torch.arange(len(batch.row))), vocabulary, seed)


@dataclass(frozen=True)
class IgnoresVisit(Masked):
    def apply(self, batch, vocabulary, seed):
        return super().apply(batch.replace(visit=torch.zeros_like(batch.visit)), vocabulary, seed)


@pytest.mark.parametrize(
    "contract, rule, words",
    [
        ("targets", WrongIds(), "must be the original tokens"),
        ("targets", OtherExample(), "places before their tokens"),
        ("survival", TouchesMore(), "must stay what it was"),
        ("survival", Masked(replace=ShufflesTooFar()), "occur exactly once|stay in its unit"),
        ("special tokens", HidesSpecial(), "must never be hidden"),
        ("whole units", HidesPieces(budget=0.3), "must be hidden whole"),
        ("budget", HidesTwice(), "must hide 15% of its tokens"),
        ("falling budget", IgnoresProgress(), "must hide 40% of its tokens"),
        ("same anywhere", ByPlaceInBatch(), "in another batch"),
        ("visits", IgnoresVisit(), "two versions of a row must differ"),
    ],
)
def test_a_rule_that_hides_wrongly_breaks_its_contract(contract, rule, words):
    breaks(contract, changed("bert", hide=rule), words)


# packing, saving, training


@dataclass(frozen=True)
class CrossesExamples(Everything):
    def apply(self, batch):
        return super().apply(batch.replace(example=torch.where(batch.real, 0, -1)))


@dataclass(frozen=True)
class Averages(PredictTokens):
    """Its loss is a mean of the micro-batch, not a sum."""

    def build(self, width, embedding, initial):
        return AveragesModule(self, width, embedding, initial)


class AveragesModule(TokensModule):
    def measure(self, vectors, targets):
        loss = super().measure(vectors, targets)
        return Loss(loss.total / loss.count, torch.ones_like(loss.count))


def test_attention_across_examples_breaks_the_contract_about_packing():
    breaks("packing", changed("bert", see=CrossesExamples()), "same vectors in a packed row as alone")


def test_dropout_outside_of_training_breaks_the_contract_about_packing(monkeypatch):
    monkeypatch.setattr(nn.Dropout, "forward", lambda self, x: nn.functional.dropout(x, 0.1, True))
    breaks("packing", changed("bert"), "same vectors in a packed row as alone")


def test_dropout_outside_of_training_breaks_the_contract_about_saved_runs(monkeypatch):
    monkeypatch.setattr(nn.Dropout, "forward", lambda self, x: nn.functional.dropout(x, 0.1, True))
    breaks("round trip", changed("bert"), "an opened run must give")


def test_weights_that_are_not_loaded_break_the_contract_about_saved_runs(monkeypatch):
    monkeypatch.setattr(checkpoint, "load_weights", lambda *_, **__: ([], []))
    breaks("round trip", changed("bert"), "an opened run must give")


def test_randomness_that_is_not_resumed_breaks_the_contract_about_resuming(monkeypatch):
    numbers = iter(range(1000))
    monkeypatch.setattr(loop, "reseed", lambda seed, step: next(numbers))
    breaks("resume", changed("bert"), "must have the same bytes as in an uninterrupted run")


def test_a_recipe_that_does_not_survive_json_breaks_its_contract():
    breaks("JSON", changed("bert", segments=[0, 1]), "it differs in \\['segments'\\]")


def test_a_loss_that_is_a_mean_breaks_the_contract_about_accumulation():
    breaks("accumulation", changed("roberta", predict={"tokens": Averages()}), "must be")


def test_a_recipe_that_learns_nothing_breaks_its_contract(monkeypatch):
    monkeypatch.setattr(training, "TRIES", ((1.0, 8),))
    recipe = override(every.case("bert").recipe, ["optimise.rate=1e-9"])
    breaks("learns", Case(recipe, every.SMALL), "must fall below")


# turns


def test_a_track_with_too_many_steps_breaks_the_contract_about_turns(monkeypatch):
    monkeypatch.setattr(TurnLoader, "_draw", lambda self: next(iter(self.shares)))
    breaks("turns", changed("ernie-2"), "must have had at most one step more than its share")


def test_a_draw_that_forgets_its_step_breaks_the_contract_about_turns(monkeypatch):
    state = TurnLoader.state
    monkeypatch.setattr(TurnLoader, "state", lambda self: state(self) | {"turns": {}})
    breaks("turns", changed("ernie-2"), "must continue with the same rows of the same tracks")


@pytest.mark.parametrize(
    "waits", [lambda x: x.sum().item(), lambda x: x[x > 0], lambda x: x.nonzero()], ids=["number", "mask", "places"]
)
def test_a_step_that_waits_for_the_device_breaks_the_contract_about_recordings(waits, monkeypatch):
    case, real = changed("gpt2"), TokensModule.forward

    def forward(self, hidden, batch):
        waits(hidden.last)
        return real(self, hidden, batch)

    monkeypatch.setattr(TokensModule, "forward", forward)
    breaks("recordable", case, "must not wait for the device")
