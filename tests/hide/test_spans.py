"""Spans and n-grams follow their laws, are whole words, and are chosen and replaced as one; each against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from tests.hide.test_choose import batch_of_units
from tests.small import masking, random_batch, vocabulary
from unmask import chance, recipes
from unmask.batch import Batch
from unmask.hide import Geometric, Harmonic, Levels, Listed, Spans, Tokens, Words
from unmask.hide.choice import _ROUNDS, choose, places

LAWS = {
    "spanbert": Spans(of=Words(), lengths=Geometric(stop=0.2, most=10)),
    "albert": Spans(of=Words(), lengths=Harmonic(most=3)),
    "unilm": Spans(of=Tokens(), lengths=Listed(of=(0.8, 0.1, 0.1))),
}


def groups(labels: list[int]) -> list[list[int]]:
    """The places of each unit, in order of number."""
    found: dict[int, list[int]] = {}
    for place, unit in enumerate(labels):
        found.setdefault(unit, []).append(place)
    return [found[unit] for unit in sorted(found) if unit >= 0]


def with_lexicon(batch: Batch, seed: int = 0) -> Batch:
    """The batch with phrases of two words and entities of three, here and there, none across a special token."""
    dice = np.random.default_rng(seed)
    columns = {}
    for name, size in (("phrase", 2), ("entity", 3)):
        column = torch.full_like(batch.columns["word"], -1)
        for row, words in enumerate(batch.columns["word"].tolist()):
            number, first = 0, 0
            while first + size <= max(words) + 1:
                at = [p for p, word in enumerate(words) if first <= word < first + size]
                if at[-1] - at[0] + 1 == len(at) and dice.random() < 0.4:
                    column[row, at] = number
                    number, first = number + 1, first + size
                else:
                    first += 1
        columns[name] = column
    return batch.replace(columns=batch.columns | columns)


def lengths_of_tiles(spans: Spans, tiles: int, rows: int = 200) -> list[int]:
    """The words, or tokens, in the first so many tiles of each row: a fixed number, so that no length is preferred."""
    batch = random_batch(rows=rows, length=256)
    units, parts = spans.label(batch, 0, batch.visit), spans.of.label(batch, 0, batch.visit)
    found = []
    for row in range(rows):
        for at in groups(units[row].tolist())[:tiles]:
            found.append(len(set(parts[row, at].tolist())))
    assert len(found) == rows * tiles
    return found


@pytest.mark.parametrize("name, tiles", [("spanbert", 10), ("albert", 30), ("unilm", 60)])
def test_the_lengths_of_spans_follow_their_law(name, tiles):
    shares = np.array(LAWS[name].lengths.shares)
    found = lengths_of_tiles(LAWS[name], tiles)
    counts = np.bincount(found, minlength=len(shares) + 1)
    assert counts[0] == 0
    expected = shares * len(found)
    assert ((counts[1:] - expected) ** 2 / expected).sum() < chi2.ppf(0.9999, len(shares) - 1)


def test_the_recipes_have_the_laws_of_their_papers():
    assert recipes.get("spanbert").hide.units == LAWS["spanbert"]
    assert recipes.get("albert").hide.units == LAWS["albert"]
    assert recipes.get("unilm").hide.units == LAWS["unilm"]
    assert recipes.get("spanbert", variant="code").hide.units.lengths.stop == 0.3
    mean = sum(n * share for n, share in enumerate(LAWS["spanbert"].lengths.shares, 1))
    assert round(mean, 1) == 3.8
    assert LAWS["albert"].lengths.shares == pytest.approx((6 / 11, 3 / 11, 2 / 11))
    assert Harmonic(most=5).shares == pytest.approx([60 / 137 / n for n in range(1, 6)])
    assert Listed().shares == (0.8, 0.1, 0.1)


@given(
    rows=st.integers(1, 3), length=st.integers(24, 48), examples=st.integers(1, 3), padding=st.integers(0, 6),
    seed=st.integers(0, 1 << 30), stop=st.floats(0.1, 0.9), most=st.integers(1, 12), words=st.booleans(),
    visit=st.integers(0, 9),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_any_span_is_a_run_of_whole_words_of_one_text(rows, length, examples, padding, seed, stop, most, words, visit):
    batch = random_batch(rows, length, examples, seed=seed, padding=padding)
    part = Words() if words else Tokens()
    units = Spans(of=part, lengths=Geometric(stop=stop, most=most)).label(batch, seed, batch.visit + visit)
    parts = part.label(batch, seed, batch.visit)
    for row in range(rows):
        labels, of = units[row].tolist(), parts[row].tolist()
        special = [int(i) < 5 or int(e) < 0 for i, e in zip(batch.ids[row], batch.example[row], strict=True)]
        assert [label < 0 for label in labels] == special
        assert sorted(set(labels) - {-1}) == list(range(len(set(labels) - {-1})))
        for at in groups(labels):
            assert at == list(range(at[0], at[-1] + 1))  # unbroken, so that no special token is within
            assert len(set(batch.example[row, at].tolist())) == 1
            inside = {of[p] for p in at}
            assert len(inside) <= most
            assert [p for p in range(length) if of[p] in inside] == at  # every word that it touches, whole


def test_another_visit_cuts_the_row_anew_and_static_masking_comes_round():
    batch = random_batch(rows=4, length=64)
    spans = LAWS["spanbert"]
    cuts = [spans.label(batch, 0, batch.visit + visit) for visit in range(3)]
    assert torch.equal(cuts[0], spans.label(batch, 0, batch.visit))
    assert not torch.equal(cuts[0], cuts[1])
    assert not torch.equal(cuts[0], spans.label(batch, 1, batch.visit))
    hide = masking(units=spans, copies=3)
    after = [hide.apply(batch.replace(visit=batch.visit + v), vocabulary(), 0) for v in range(6)]
    for v in range(3):
        assert torch.equal(after[v].ids, after[v + 3].ids)
        assert torch.equal(after[v].targets["tokens"].start, after[v + 3].targets["tokens"].start)
    assert not torch.equal(after[0].ids, after[1].ids)


def test_a_row_is_cut_the_same_in_any_batch():
    batch = random_batch(rows=6, length=48, examples=2)
    together = LAWS["spanbert"].label(batch, 5, batch.visit)
    some = [4, 1]
    names = ("ids", "example", "row", "visit")
    columns = {name: column[some] for name, column in batch.columns.items()}
    alone = batch.replace(**{name: getattr(batch, name)[some] for name in names}, columns=columns)
    assert torch.equal(LAWS["spanbert"].label(alone, 5, alone.visit), together[some])


UNITS = {"tokens": Tokens(), "words": Words(), "spans": LAWS["spanbert"], "ngrams": LAWS["unilm"], "levels": Levels()}


@pytest.mark.parametrize("units", UNITS.values(), ids=UNITS)
def test_units_are_hidden_whole_and_80_percent_of_their_tokens_are_masked_10_drawn_10_kept(units):
    batch, words = random_batch(rows=200, length=128), vocabulary()
    batch = with_lexicon(batch) if units == Levels() else batch
    labels = units.label(batch, 0, batch.visit)
    after = masking(units=units, budget=0.3).apply(batch, words, 0)
    chosen = torch.zeros(batch.ids.numel(), dtype=torch.bool)
    chosen[after.targets["tokens"].where[after.targets["tokens"].weight > 0]] = True
    fates, mixed = {"masked": 0, "drawn": 0, "kept": 0}, 0
    for row in range(200):
        now, before, mine = after.ids[row].tolist(), batch.ids[row].tolist(), chosen.view(batch.shape)[row].tolist()
        cut = 0
        for whole in groups(labels[row].tolist()):
            at = [p for p in whole if mine[p]]
            if not at:
                continue
            cut += at != whole
            assert at == whole[: len(at)]  # all of it, or its beginning
            fate = ["masked" if now[p] == words.mask else "kept" if now[p] == before[p] else "drawn" for p in at]
            mixed += len(set(fate)) > 1
            for name in fate:
                fates[name] += 1
            assert all(now[p] == words.mask or now[p] not in words.special for p in at)
        assert cut <= isinstance(units, Spans)  # one at most, and only what is made of parts
    count = sum(fates.values())
    for name, share in (("masked", 0.8), ("drawn", 0.1), ("kept", 0.1)):
        error = (share * (1 - share) / count) ** 0.5
        assert abs(fates[name] / count - share) < 4 * error + 0.1 / 195, name  # a drawn token may be the same by chance
    assert (mixed > 100) == (units != Tokens())


def test_a_span_ends_at_a_word_with_an_unknown_token_and_a_larger_unit_is_left_out():
    """[CLS] a [UNK] b ##b c d [UNK] ##e f [SEP], with a phrase "b c" and an entity "d [UNK]e"."""
    ids = torch.tensor([[2, 9, 1, 9, 9, 9, 9, 1, 9, 9, 3]])
    word = torch.tensor([[-1, 0, 1, 2, 2, 3, 4, 5, 5, 6, -1]])
    zero = torch.zeros_like(word)
    batch = Batch(
        ids=ids, example=zero, segment=zero, position=zero, row=zero[:, 0], visit=zero[:, 0], summary=zero[:, 0],
        label=zero[:, 0], counted=zero[:, 0].float(),
        columns={
            "word": word, "sentence": zero,
            "phrase": torch.tensor([[-1, -1, -1, 0, 0, 0, -1, -1, -1, -1, -1]]),
            "entity": torch.tensor([[-1, -1, -1, -1, -1, -1, 0, 0, 0, -1, -1]]),
        },
    )  # fmt: skip
    long = Listed(of=(0.0,) * 7 + (1.0,))  # spans of eight: what ends them is the text
    expected = {
        Tokens(): [[1], [3], [4], [5], [6], [8], [9]],
        Words(): [[1], [3, 4], [5], [6], [9]],
        Spans(of=Words(), lengths=long): [[1], [3, 4, 5, 6], [9]],
        Spans(of=Tokens(), lengths=long): [[1], [3, 4, 5, 6], [8, 9]],
        Levels(token=0.0, phrase=0.0): [[1], [3, 4, 5], [9]],
    }
    for units, wanted in expected.items():
        after = masking(units=units, budget=1.0).apply(batch, vocabulary(), 0)
        used = after.targets["tokens"].weight > 0
        ends = set(
            zip(after.targets["tokens"].start[used].tolist(), after.targets["tokens"].end[used].tolist(), strict=True)
        )
        assert ends == {(unit[0], unit[-1]) for unit in wanted}, units
        assert after.targets["tokens"].where[used].tolist() == sum(wanted, [])


@given(
    rows=st.integers(1, 3), length=st.integers(20, 40), examples=st.integers(1, 2), seed=st.integers(0, 1 << 30),
    budget=st.floats(0.1, 1.0), kind=st.sampled_from(sorted(UNITS)),
)  # fmt: skip
@settings(max_examples=50, deadline=None)
def test_targets_know_the_ends_of_their_unit(rows, length, examples, seed, budget, kind):
    batch = with_lexicon(random_batch(rows, length, examples, seed=seed), seed)
    labels = UNITS[kind].label(batch, seed, batch.visit)
    found = masking(units=UNITS[kind], budget=budget).apply(batch, vocabulary(), seed).targets["tokens"]
    assert len(found.where) == rows * places(budget, length)
    for where, ids, start, end, weight in zip(
        *(t.tolist() for t in (found.where, found.ids, found.start, found.end, found.weight)), strict=True
    ):
        row, place = divmod(where, length)
        if not weight:
            continue
        hidden = {
            w % length
            for w, used in zip(found.where.tolist(), found.weight, strict=True)
            if used and w // length == row
        }
        at = [p for p in sorted(hidden) if labels[row, p] == labels[row, place]]
        assert (start, end) == (row * length + at[0], row * length + at[-1])
        assert ids == int(batch.ids[row, place])


def greedy(row: list[int], budget: float, number: int, seed: int, most: int) -> tuple[set[int], int]:
    """Units in the order of their keys, each taken if it fits, the first in any case; and how many rounds that took.

    A round ends at a unit that would have fitted its beginning but not what is left."""
    sizes = {unit: row.count(unit) for unit in set(row) - {-1}}
    limit = min(most, max(1, round(float(torch.tensor(sum(sizes.values())) * budget))))
    purpose = chance.purpose("choose")
    order = sorted(
        (unit for unit, size in sizes.items() if size <= most),
        key=lambda unit: int(chance.draw(np.array([unit]), seed, number, 0, purpose)[0]),
    )
    if not order:
        return set(), 0
    taken, room = {order[0]}, limit - sizes[order[0]]
    began, rounds = room, 1
    for unit in order[1:]:
        if sizes[unit] <= room:
            taken.add(unit)
            room -= sizes[unit]
        elif sizes[unit] <= began:
            began, rounds = room, rounds + 1
    return taken, rounds


@given(
    rows=st.lists(st.lists(st.integers(0, 7), min_size=1, max_size=40), min_size=1, max_size=4),
    budget=st.floats(0.01, 1.0), seed=st.integers(0, 1 << 40),
)  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_units_are_chosen_as_by_a_walk_that_takes_what_fits(rows, budget, seed):
    batch = batch_of_units(rows)
    chosen = choose(batch, batch.columns["word"], budget, budget, seed, batch.visit)
    most = places(budget, batch.shape[1])
    for number in range(len(rows)):
        labels = batch.columns["word"][number].tolist()
        taken, rounds = greedy(labels, budget, number, seed, most)
        found = {labels[p] for p in range(len(labels)) if chosen[number, p]}
        assert found == taken if rounds <= _ROUNDS else found <= taken


@pytest.mark.parametrize("name", LAWS)
def test_the_rounds_of_the_choice_lose_next_to_nothing_of_that_walk(name):
    batch = random_batch(rows=30, length=128)
    units = LAWS[name].label(batch, 0, batch.visit)
    chosen = choose(batch, units, 0.15, 0.15, 0, batch.visit)
    for row in range(30):
        labels = units[row].tolist()
        taken, _ = greedy(labels, 0.15, int(batch.row[row]), 0, places(0.15, 128))
        assert sum(label in taken for label in labels) - int(chosen[row].sum()) <= 1


def walked(units: list[int], parts: list[int], budget: float, number: int, seed: int, most: int) -> set[int]:
    """Units in the order of their keys, part by part, up to the part that has no room; the first in any case."""
    limit = min(most, max(1, round(float(torch.tensor(sum(unit >= 0 for unit in units)) * budget))))
    purpose = chance.purpose("choose")
    places_of = {part: [p for p, other in enumerate(parts) if other == part] for part in set(parts) - {-1}}
    parts_of = {
        unit: sorted({parts[p] for p in at}) for unit, at in zip(sorted(set(units) - {-1}), groups(units), strict=True)
    }
    order = sorted(
        (unit for unit, made_of in parts_of.items() if max(len(places_of[part]) for part in made_of) <= most),
        key=lambda unit: int(chance.draw(np.array([unit]), seed, number, 0, purpose)[0]),
    )
    taken: set[int] = set()
    for part in (part for unit in order for part in parts_of[unit]):
        if taken and len(taken) + len(places_of[part]) > limit:
            break
        taken |= set(places_of[part])
    return taken


@given(
    rows=st.integers(1, 3), length=st.integers(12, 48), examples=st.integers(1, 2), padding=st.integers(0, 6),
    seed=st.integers(0, 1 << 30), budget=st.floats(0.02, 1.0), name=st.sampled_from(sorted(LAWS)),
)  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_spans_are_chosen_as_by_a_walk_that_cuts_the_last(rows, length, examples, padding, seed, budget, name):
    batch = random_batch(rows, length, examples, seed=seed, padding=padding)
    units, parts = LAWS[name].label(batch, seed, batch.visit), LAWS[name].parts(batch, seed, batch.visit)
    chosen = choose(batch, units, budget, budget, seed, batch.visit, parts=parts)
    for row in range(rows):
        expected = walked(
            units[row].tolist(), parts[row].tolist(), budget, int(batch.row[row]), seed, places(budget, length)
        )
        assert set(chosen[row].nonzero().flatten().tolist()) == expected


@pytest.mark.parametrize("name", LAWS)
def test_the_spans_that_are_hidden_are_as_long_as_those_there_are(name):
    """Long ones are chosen as often as short ones: but for the one of a row that is cut, of twenty or more, they follow the law."""
    batch = random_batch(rows=120, length=512)
    law, visit = LAWS[name], batch.visit
    units, parts = law.label(batch, 0, visit), law.parts(batch, 0, visit)
    chosen = choose(batch, units, 0.15, 0.15, 0, visit, parts=parts)
    found = [
        len({parts[row, p].item() for p in at if chosen[row, p]})
        for row in range(120)
        for at in groups(units[row].tolist())
        if chosen[row, at].any()
    ]
    shares = np.array(law.lengths.shares)
    counts = np.bincount(found, minlength=len(shares) + 1)[1:]
    expected = shares * len(found)
    assert ((counts - expected) ** 2 / expected).sum() < chi2.ppf(0.9999, len(shares) - 1)


def test_masking_cuts_the_last_span_of_a_row():
    batch, spans = random_batch(rows=40, length=128), LAWS["spanbert"]
    found = masking(units=spans).apply(batch, vocabulary(), 0).targets["tokens"]
    units, parts = spans.label(batch, 0, batch.visit), spans.parts(batch, 0, batch.visit)
    cut = choose(batch, units, 0.15, 0.15, 0, batch.visit, parts=parts)
    assert found.where[found.weight > 0].tolist() == cut.flatten().nonzero().flatten().tolist()
    assert not torch.equal(cut, choose(batch, units, 0.15, 0.15, 0, batch.visit))


def halves(labels: list[int], budget: float, reuse: int, most: int) -> list[tuple[set[int], int, int]]:
    """For either half of a row the units that begin there, its limit and its places: XLNet's, which are whole numbers of
    the row's, so that the second half has its share rounded down and the first the rest."""
    begins = {unit: labels.index(unit) for unit in set(labels) - {-1}}
    size = {half: sum(labels.count(u) for u, at in begins.items() if (at < reuse) == half) for half in (True, False)}
    limit = min(most, max(1, round(float(torch.tensor(sum(size.values())) * budget))))
    later = most * (len(labels) - reuse) // len(labels)
    second = min(later, limit * size[False] // max(1, sum(size.values())))
    first = min(most - later, limit - second)
    return [
        ({u for u, at in begins.items() if at < reuse}, first, most - later),
        ({u for u, at in begins.items() if at >= reuse}, second, later),
    ]


@given(
    rows=st.integers(1, 3), length=st.integers(14, 60), padding=st.integers(0, 6), seed=st.integers(0, 1 << 30),
    budget=st.floats(0.02, 1.0), reuse=st.floats(0.1, 0.9), spans=st.booleans(),
)  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_each_half_of_a_row_that_is_reused_spends_its_share_of_the_budget(
    rows, length, padding, seed, budget, reuse, spans
):
    batch = random_batch(rows, length, seed=seed, padding=padding)
    cut = max(1, round(reuse * length))
    law = Spans(lengths=Harmonic(most=5)) if spans else Words()
    units, parts = law.label(batch, seed, batch.visit), law.parts(batch, seed, batch.visit)
    chosen = choose(batch, units, budget, budget, seed, batch.visit, parts=parts, reuse=cut)
    most = places(budget, length)
    assert int(chosen.sum(1).max()) <= most
    for row in range(rows):
        labels, taken = units[row].tolist(), set(chosen[row].nonzero().flatten().tolist())
        assert all(labels[p] >= 0 for p in taken)
        for mine, limit, room in halves(labels, budget, cut, most):
            here = [p for p in taken if labels[p] in mine]
            firsts = {units_of_part(parts, labels, row, p) for p in here}
            assert len(here) <= limit or (len(firsts) == 1 and 0 < limit < len(here) <= room)  # the first alone
            if not spans:
                wanted = [u for u in mine if labels.count(u) <= room]
                assert bool(here) == bool(wanted and limit)
                assert all({p for p, u in enumerate(labels) if u == labels[q]} <= taken for q in here)


def units_of_part(parts: torch.Tensor | None, labels: list[int], row: int, place: int) -> int:
    return labels[place] if parts is None else int(parts[row, place])


def test_xlnet_predicts_43_tokens_of_the_first_half_of_a_row_and_42_of_the_second():
    """Of 512 tokens its released code predicts 85: 85 // 2 of the second half, which has three special tokens."""
    batch = random_batch(rows=40, length=512, padding=0)
    word = torch.where(torch.arange(512) >= 509, -1, torch.arange(512)).expand(40, -1)
    batch = batch.replace(columns=batch.columns | {"word": word}, reuse=256)
    recipe = recipes.get("xlnet", settings=["hide.units=Tokens"])
    found = recipe.hide.apply(batch, vocabulary(), 0).targets["tokens"]
    first = found.where.view(40, -1) % 512 < 256
    used = found.weight.view(40, -1) > 0
    assert (used & first).sum(1).tolist() == [85 - 85 // 2] * 40
    assert (used & ~first).sum(1).tolist() == [85 // 2] * 40
    whole = recipe.hide.apply(batch.replace(reuse=None), vocabulary(), 0).targets["tokens"]
    spread = ((whole.where.view(40, -1) % 512 < 256) & (whole.weight.view(40, -1) > 0)).sum(1)
    assert len(set(spread.tolist())) > 3  # one budget for the whole row
