"""BART's corruptions: each can be undone from where the tokens came from, and has the share and the lengths of its paper."""

from __future__ import annotations

import math

import pytest
import torch

from tests.small import random_batch, vocabulary
from unmask.errors import UserError
from unmask.hide import (
    Delete,
    Infill,
    Mask,
    Masked,
    PermuteSentences,
    Poisson,
    Rewrite,
    Rotate,
    Spans,
    Tokens,
    apply_rules,
)  # fmt: skip

WORDS = vocabulary()


def noise(replace, budget: float = 0.3) -> Masked:
    return Masked(units=Spans(of=Tokens(), lengths=Poisson(3.0)), budget=budget, replace=replace, at="none")


def rows(count: int = 6, length: int = 90, examples: int = 3, padding: int = 5):
    batch = random_batch(count, length, examples=examples, padding=padding)
    text = batch.columns["word"] >= 0
    begins = text & (torch.rand(text.shape, generator=torch.Generator().manual_seed(1)) < 0.2)
    begins |= text & ~torch.roll(text, 1, 1)
    sentence = torch.where(text, begins.cumsum(1) - 1, -1)
    return batch.replace(columns=batch.columns | {"sentence": sentence})


def test_infilling_undone_gives_the_text_back():
    """Each [MASK] is replaced by the chosen tokens of its span, and an inserted one by nothing."""
    batch, rule = rows(), noise(Infill(empty=0.2))
    after, source, chosen = (f(batch, WORDS, 3) for f in (rule.apply, rule.source, rule.chosen))
    inserted = 0
    for row in range(len(batch.ids)):
        written, place = [], 0
        real = int(after.real[row].sum())
        assert not after.real[row, real:].any()
        assert (after.ids[row, real:] == WORDS.pad).all()
        for now in range(real):
            came, like = int(source.place[row, now]), int(source.like[row, now])
            assert after.example[row, now] == batch.example[row, like]
            if came >= 0:
                assert came == place
                assert after.ids[row, now] == batch.ids[row, came]
                written.append(int(after.ids[row, now]))
                place += 1
                continue
            assert after.ids[row, now] == WORDS.mask
            before = place
            while place < 90 and chosen[row, place] and (place == before or not _begins(batch, rule, row, place)):
                written.append(int(batch.ids[row, place]))
                place += 1
            inserted += place == before
        assert written == batch.ids[row, batch.real[row]].tolist()
    assert inserted > 0


def _begins(batch, rule, row, place) -> bool:
    """Whether a unit begins at this place."""
    units = rule.units.label(batch, 3, batch.visit)
    return bool(units[row, place] != units[row, place - 1])


def test_infilling_hides_its_share_in_spans_of_the_paper_s_mean_length_and_inserts_masks():
    batch = rows(300, 202, 1, 0)
    rule = noise(Infill(empty=0.05))
    after, chosen = rule.apply(batch, WORDS, 0), rule.chosen(batch, WORDS, 0)
    masks = (after.ids == WORDS.mask).sum()
    removed = batch.real.sum() - (after.real.sum() - masks)
    assert int(removed) == int(chosen.sum())
    assert float(removed / (batch.columns["word"] >= 0).sum()) == pytest.approx(0.3, abs=0.002)
    assert float(removed / masks) == pytest.approx(3.0, rel=0.03)  # with the empty spans, as in the paper
    mean = sum(n * share for n, share in enumerate(Poisson(3.0).shares, 1))
    assert mean == pytest.approx(3.0 / (1 - math.exp(-3.0)), rel=1e-3)


def test_a_full_row_has_no_room_for_inserted_masks_and_loses_no_token():
    batch = rows(50, 60, 1, 0)
    rule = Masked(units=Tokens(), budget=0.3, replace=Infill(empty=0.9), at="none")
    after, source = rule.apply(batch, WORDS, 0), rule.source(batch, WORDS, 0)
    assert after.shape == batch.shape
    assert torch.equal((source.place >= 0).sum(1) + rule.chosen(batch, WORDS, 0).sum(1), batch.real.sum(1))


def test_some_masks_are_random_tokens():
    batch = rows(200, 90, 1)
    rule = noise(Infill(random=0.1))
    after, source = rule.apply(batch, WORDS, 0), rule.source(batch, WORDS, 0)
    new = after.ids[(source.place < 0) & after.real]
    assert float((new != WORDS.mask).float().mean()) == pytest.approx(0.1, abs=0.02)
    assert not torch.isin(new[new != WORDS.mask], torch.tensor(WORDS.special)).any()


def test_deleted_tokens_are_gone_and_the_others_keep_their_order():
    batch, rule = rows(), Masked(units=Tokens(), budget=0.3, replace=Delete(), at="none")
    after, chosen = rule.apply(batch, WORDS, 0), rule.chosen(batch, WORDS, 0)
    for row in range(len(batch.ids)):
        kept = batch.real[row] & ~chosen[row]
        for name in ("ids", "example"):
            assert torch.equal(getattr(after, name)[row, after.real[row]], getattr(batch, name)[row, kept])
        for number in range(3):  # positions count from the first token of each example
            mine = after.position[row, after.example[row] == number]
            assert torch.equal(mine, torch.arange(len(mine)))
    assert torch.equal(after.ids.flatten()[after.summary], batch.ids.flatten()[batch.summary])


@pytest.mark.parametrize("rule", [PermuteSentences(), Rotate()])
def test_a_new_order_keeps_every_token_in_its_example_and_special_tokens_in_their_places(rule):
    batch = rows()
    after, place = rule.apply(batch, WORDS, 0), rule.source(batch, WORDS, 0).place
    assert not torch.equal(after.ids, batch.ids)
    assert torch.equal(place.sort(1).values, torch.arange(90).expand(6, -1))
    assert torch.equal(after.example, batch.example)
    assert torch.equal(after.position[after.real], batch.position[batch.real])
    assert torch.equal(after.ids[batch.columns["word"] < 0], batch.ids[batch.columns["word"] < 0])


def test_sentences_change_places_as_a_whole_and_all_orders_come_equally_often():
    batch = rows(1, 40, 1, 0)
    text = batch.columns["word"] >= 0
    sentence = torch.where(text, (torch.arange(40) > 12).long() + (torch.arange(40) > 20), -1)
    many = 1200
    batch = batch.replace(columns={"sentence": sentence, "word": batch.columns["word"]})
    batch = batch.replace(
        **{n: getattr(batch, n).expand(many, 40) for n in ("ids", "example", "segment", "position")},
        columns={n: column.expand(many, 40) for n, column in batch.columns.items()},
        row=torch.arange(many), visit=torch.zeros(many, dtype=torch.long),
    )  # fmt: skip
    place = PermuteSentences().source(batch, WORDS, 0).place[:, 1:-1]
    orders: dict[tuple[int, ...], int] = {}
    for row in place.tolist():
        starts = [p for before, p in zip([0, *row], row, strict=False) if p != before + 1 or before == 0]
        pieces = [sorted(range(a, b)) for a, b in ((1, 13), (13, 21), (21, 39))]
        assert sum((p for p in sorted(pieces, key=lambda p: row.index(p[0]))), []) == row
        orders[tuple(starts)] = orders.get(tuple(starts), 0) + 1
    counts = list(orders.values())
    assert len(counts) == 6
    assert all(abs(count - many / 6) < 60 for count in counts)


def test_a_rotated_text_begins_anywhere():
    batch = rows(400, 24, 1, 0)
    place = Rotate().source(batch, WORDS, 0).place[:, 1:-1]
    assert torch.equal((place[:, 1:] - place[:, :-1]) % 22, torch.ones(400, 21, dtype=torch.long))
    assert set(place[:, 0].tolist()) == set(range(1, 23))


def test_the_decoder_writes_the_text_as_it_was_and_reads_it_one_place_later():
    batch = rows()
    hidden = apply_rules((Rewrite(), PermuteSentences(), noise(Infill())), batch, WORDS, 0)
    decoder, targets = hidden.decoder, hidden.decoder.targets["tokens"]
    assert torch.equal(targets.ids.view(batch.shape)[batch.real], batch.ids[batch.real])
    assert torch.equal(targets.weight.view(batch.shape), batch.real.float())
    first = batch.real & (batch.position == 0)
    assert (decoder.ids[first] == WORDS.end).all()
    later = batch.real & ~first
    assert torch.equal(decoder.ids[:, 1:][later[:, 1:]], batch.ids[:, :-1][later[:, 1:]])
    ends = batch.real & (torch.roll(batch.example, -1, 1) != batch.example)
    assert torch.equal(decoder.summary, ends.flatten().nonzero()[:, 0])
    assert not hidden.targets


def test_corruptions_alone_and_together():
    for rules in (
        (Masked(replace=Mask(mask=1.0, random=0.0), at="none"),), (Rotate(),), (PermuteSentences(),),
        (Masked(units=Tokens(), budget=0.2, replace=Delete(), at="none"), noise(Infill()), PermuteSentences(), Rotate()),
    ):  # fmt: skip
        hidden = apply_rules((Rewrite(), *rules), rows(), WORDS, 0)
        assert torch.equal(hidden.decoder.targets["tokens"].ids.view(6, 90), rows().ids)
        assert not torch.equal(hidden.ids, rows().ids)


def test_a_shorter_row_without_a_decoder_is_refused_with_what_to_set():
    with pytest.raises(
        UserError, match=r"Infill removes tokens.*got at=same: set at=none, after a rule.*hide=\(Rewrite, Masked"
    ):
        Masked(replace=Infill())


def test_the_rows_for_one_token_are_those_of_the_whole_text_and_only_this_token_is_a_target():
    batch, place = rows(), torch.tensor([3, 14, 15, 9, 26, 5])
    usual, found = Rewrite().apply(batch, WORDS, 0).decoder, Rewrite().rows_for_token(batch, place, WORDS)
    for name in ("ids", "position", "example", "rank"):
        assert torch.equal(getattr(found, name), getattr(usual, name))
    targets = found.targets["tokens"]
    assert torch.equal(targets.at, torch.arange(6) * 90 + place)
    assert torch.equal(targets.ids, batch.ids.flatten()[targets.at])
    assert torch.equal(targets.where, targets.at)
