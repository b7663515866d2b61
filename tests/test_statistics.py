"""Statistics are what loops over the same rows count."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from unmask import recipes, text
from unmask.axes import rules
from unmask.batch import Batch, Vocabulary
from unmask.data.prepare import prepare
from unmask.errors import UserError
from unmask.explanation.statistics import Statistics, measure
from unmask.hide import apply_rules
from unmask.hide.choice import places
from unmask.pretraining import Mixture
from unmask.recipe import FullTrack, Recipe
from unmask.system.tracks import rows_of

TOKENS, LENGTH = 6_000, 64
LEXICON = "an open wound\tphrase\nwithout delay\tphrase\nLondon\tentity\nold engine\tentity\n"


def tiny(name: str, variant: str = "paper") -> Recipe:
    stages = len(recipes.get(name, size="tiny", variant=variant).schedule)
    short = [f"schedule.{stage}.length={LENGTH}" for stage in range(stages)]
    return recipes.get(name, size="tiny", variant=variant, settings=short)


def kind(recipe: Recipe) -> str:
    return {text.WordPiece: "wordpiece", text.ByteBPE: "byte-bpe", text.Unigram: "unigram"}[type(recipe.tokenizer)]  # type: ignore[index]


@pytest.fixture(scope="module")
def known(corpus: Path, tokenizers: dict[str, text.Tokenizer], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prepared data with phrases and entities."""
    folder = tmp_path_factory.mktemp("known")
    (folder / "lexicon.tsv").write_text(LEXICON, encoding="utf-8")
    lexicon = text.Lexicon.load([folder / "lexicon.tsv"])
    for _ in prepare(text.Corpus([corpus]), tokenizers["wordpiece"], folder / "data", lexicon=lexicon, workers=1):
        pass
    return folder / "data"


@pytest.fixture(scope="module")
def strange(corpus: Path, tokenizers: dict[str, text.Tokenizer], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prepared data in which some words are unknown: the tokenizer never saw a "ж"."""
    folder = tmp_path_factory.mktemp("strange")
    words = corpus.read_text(encoding="utf-8").replace(" the ", " же ")
    (folder / "text.txt").write_text(words, encoding="utf-8")
    for _ in prepare(text.Corpus([folder / "text.txt"]), tokenizers["wordpiece"], folder / "data", workers=1):
        pass
    return folder / "data"


def counted(recipe: Recipe, data: Path, stage: int, seed: int) -> dict[str, Counter[Any]]:
    """The same, token by token. What is shuffled has the last places of each row's targets."""
    mixture = Mixture.open([data])
    vocabulary, tracks = mixture.tokenizer.vocabulary, recipe.all_tracks(recipe.schedule[stage - 1])
    step = recipe.schedule[stage - 1].rows if recipe.tracks else 16_384 // LENGTH
    loader = mixture.loader(recipe, LENGTH, seed, None, step)
    found: dict[str, Counter[Any]] = {name: Counter() for name in (
        "rows", "tokens", "text", "unknown", "examples", "targets", "hidden", "moved", "units", "how", "words", "pieces",
        "views", "answers",
    )}  # fmt: skip
    while found["tokens"]["all"] < TOKENS:
        batch, begin = loader.batch(step), 0
        for name, rows in batch.tracks or (("main", step),):
            count_rows(found, tracks[name], rows_of(batch, begin, begin + rows), vocabulary, seed)
            found["views"][name] += rows if recipe.tracks else 0
            begin += rows
    return found


def count_rows(
    found: dict[str, Counter[Any]], track: FullTrack, rows_before: Batch, vocabulary: Vocabulary, seed: int
) -> None:
    """Count the rows of one track."""
    hide = rules(track.hide)
    before = track.see.draw(rows_before, seed)
    batch = track.see.apply(apply_rules(track.hide, before, vocabulary, seed))
    targets, rows = batch.targets["tokens"], len(batch.ids)
    each = len(targets.where) // rows
    shuffled = places(hide[1].share, LENGTH, least=3) if len(hide) > 1 else 0
    units: dict[int, list[tuple[int, int, bool]]] = {}
    for n, (where, i, start, end, weight) in enumerate(zip(*(
        column.tolist() for column in (targets.where, targets.ids, targets.start, targets.end, targets.weight)
    ), strict=True)):  # fmt: skip
        if not weight:
            continue
        found["targets"]["all"] += 1
        if hide[0].in_place is not None:
            assert start <= where <= end
            units.setdefault(start, []).append((where, i, n % each >= each - shuffled))
    ways: dict[int, str] = {}
    for tokens in units.values():
        now = [batch.ids.flatten()[where].item() for where, _, _ in tokens]
        assert len({moved for *_, moved in tokens}) == 1
        if tokens[0][2]:
            found["moved"]["all"] += len(tokens)
            assert sorted(now) == sorted(i for _, i, _ in tokens)
            continue
        found["hidden"]["all"] += len(tokens)
        found["pieces"][len(tokens)] += 1
        found["words"][len({before.columns["word"].flatten()[where].item() for where, _, _ in tokens})] += 1
        found["units"]["all"] += 1
        for (where, i, _), there in zip(tokens, now, strict=True):
            ways[where] = "mask" if there == vocabulary.mask else "keep" if there == i else "random"
    by_run = hide[0].in_place is not None and hide[0].in_place.replace.draw == "span"
    for fate in runs_of(ways, LENGTH) if by_run else [{way} for way in ways.values()]:
        assert fate in ({"mask"}, {"keep"}, {"random"}, {"random", "keep"})  # a random token is the same by chance
        found["how"][min(fate - {"keep"} or fate)] += 1
    for row in range(rows):
        found["rows"]["all"] += 1
        found["tokens"]["all"] += sum(e >= 0 for e in batch.example[row].tolist())
        word = before.columns["word"][row].tolist()
        text = [i for i, w in zip(before.ids[row].tolist(), word, strict=True) if w >= 0]
        found["text"]["all"] += len(text)
        found["unknown"]["all"] += text.count(vocabulary.unknown)
        found["examples"]["all"] += len(set(batch.example[row].tolist()) - {-1})
    asked = track.predict is None or "sentence" in track.predict
    for label, weight in zip(batch.label.tolist(), batch.counted.tolist(), strict=True):
        found["answers"][label] += bool(weight) and asked


def runs_of(ways: dict[int, str], length: int) -> list[set[str]]:
    """The ways of hidden tokens that stand side by side in a row."""
    found: list[set[str]] = []
    for place in sorted(ways):
        if place - 1 not in ways or place % length == 0:
            found.append(set())
        found[-1].add(ways[place])
    return found


@pytest.mark.parametrize("name", ["albert", "bert", "electra", "gpt2", "spanbert", "structbert", "unilm"])
def test_what_is_measured_is_what_loops_count(name: str, shards: dict[str, Path]) -> None:
    recipe = tiny(name)
    compared(recipe, shards[kind(recipe)])


@pytest.mark.parametrize("name", ["bert", "bert-wwm", "spanbert", "structbert"])
def test_what_is_unknown_is_counted_and_not_hidden(name: str, strange: Path) -> None:
    found = compared(tiny(name), strange)
    assert 0.02 < found.unknown < 0.5
    assert found.hidden.value < 0.16
    lines = {line[0]: line[1:] for line in found.table()}
    assert lines["[UNK], of the text's tokens"] == [f"{found.unknown:.2%}", ""]
    assert "hidden, of the other tokens" in lines
    drawn = "runs of hidden tokens" if name == "spanbert" else "hidden tokens"
    assert {f"{drawn}: {way}" for way in ("mask", "random", "keep")} <= set(lines)


def compared(recipe: Recipe, data: Path) -> Statistics:
    """The statistics, after they were compared with the counts of loops."""
    stage = len(recipe.schedule)
    found, counts = measure(recipe, data, tokens=TOKENS, seed=3), counted(recipe, data, stage, 3)
    words, known = counts["text"]["all"], counts["text"]["all"] - counts["unknown"]["all"]
    assert found.rows == counts["rows"]["all"]
    assert found.tokens == counts["tokens"]["all"]
    assert found.text == words
    assert found.padding == pytest.approx(1 - found.tokens / found.rows / LENGTH)
    assert found.examples == pytest.approx(counts["examples"]["all"] / found.rows)
    assert found.predictions == pytest.approx(counts["targets"]["all"] / words)
    assert found.hidden.value == pytest.approx(counts["hidden"]["all"] / known)
    assert found.moved.value == pytest.approx(counts["moved"]["all"] / known)
    assert found.units == counts["units"]["all"]
    assert found.unknown == pytest.approx(counts["unknown"]["all"] / words)
    assert {way: m.value for way, m in found.how.items() if m.value} == shares(counts["how"])
    assert {n: m.value for n, m in found.words.shares.items() if m.value} == shares(counts["words"])
    assert {n: m.value for n, m in found.pieces.shares.items() if m.value} == shares(counts["pieces"])
    assert found.pieces.mean.value == pytest.approx(counts["hidden"]["all"] / max(1, found.units))
    assert {view: m.value for view, m in found.views.items() if m.value} == shares(counts["views"])
    if recipe.arrange.classes:
        named = Counter({recipe.arrange.answers[i]: n for i, n in counts["answers"].items()})
        assert {answer: share for answer, share in found.answers.items() if share} == shares(named)
        assert found.asked == pytest.approx(counts["answers"].total() / counts["examples"]["all"])
    else:
        assert not found.answers
    return found


def shares(counts: Counter[Any]) -> dict[Any, Any]:
    return {key: pytest.approx(count / counts.total()) for key, count in counts.items() if count}


def test_what_the_recipe_asks_for_stands_beside(shards: dict[str, Path]) -> None:
    spans = measure(tiny("spanbert"), shards["wordpiece"], tokens=TOKENS)
    geometric = [0.8**n for n in range(10)]
    mean = sum(n * share for n, share in enumerate(geometric, 1)) / sum(geometric)
    assert spans.words.mean.asked == pytest.approx(mean)
    assert spans.words.shares[1].asked == pytest.approx(1 / sum(geometric))
    assert spans.pieces.mean.asked is None
    assert spans.hidden.asked == 0.15
    assert {way: m.asked for way, m in spans.how.items()} == pytest.approx({"mask": 0.8, "random": 0.1, "keep": 0.1})
    grams = measure(tiny("unilm"), shards["wordpiece"], tokens=TOKENS)
    assert [m.asked for m in grams.pieces.shares.values()] == [0.8, 0.1, 0.1]
    assert grams.words.mean.asked is None
    assert {name: m.asked for name, m in grams.views.items()} == pytest.approx(
        {"main": 1 / 3, "prefix": 1 / 3, "left": 1 / 6, "right": 1 / 6}
    )
    assert measure(tiny("structbert"), shards["wordpiece"], tokens=TOKENS).moved.asked == 0.05


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Batches of 16 rows that tracks share, whatever the loader says."""
    rows, open_loader = {"main": 6, "prefix": 5, "left": 3, "right": 2}, Mixture.loader

    class Shared:
        def __init__(self, loader: Any) -> None:
            self.loader, self.notes = loader, loader.notes

        def batch(self, count: int) -> Batch:
            assert count == sum(rows.values())  # a whole step
            found: Batch = self.loader.batch(count).replace(tracks=tuple(rows.items()))
            return found

    monkeypatch.setattr(Mixture, "loader", lambda *given, **named: Shared(open_loader(*given, **named)))
    return rows


def test_tracks_are_measured_together_or_one_by_one(shards: dict[str, Path], shared: dict[str, int]) -> None:
    recipe, data = tiny("unilm"), shards["wordpiece"]
    found = compared(recipe, data)
    assert found.track is None
    assert {name: m.value for name, m in found.views.items()} == {name: n / 16 for name, n in shared.items()}
    assert 0 < found.asked == pytest.approx(6 / 16, abs=0.1)  # the sentence task is asked in the track main alone
    lines = {line[0]: line[1:] for line in found.table()}
    assert lines["rows of view left"] == ["18.75%", "16.67%"]
    for name, asked in {"main": 1.0, "prefix": 0.0}.items():
        one = measure(recipe, data, track=name, tokens=TOKENS)
        assert (one.track, one.views, one.asked) == (name, {}, asked)
        assert one.rows % shared[name] == 0
        assert one.hidden.asked == pytest.approx(0.15)
    with pytest.raises(UserError, match="the tracks main, prefix, left, right, got 'both'"):
        measure(recipe, data, track="both", tokens=TOKENS)


def test_a_track_without_a_row_in_a_step_is_a_mistake(shards: dict[str, Path], shared: dict[str, int]) -> None:
    shared["main"] += shared.pop("right")
    with pytest.raises(UserError, match="'right' has none of the 16 rows"):
        measure(tiny("unilm"), shards["wordpiece"], track="right", tokens=TOKENS)


def test_levels_are_measured_by_stage_and_by_row(known: Path) -> None:
    by_stage = [measure(tiny("ernie"), known, tokens=TOKENS, stage=stage) for stage in (1, 2, 3)]
    for found, level in zip(by_stage, ("token", "phrase", "entity"), strict=True):
        assert {name: m.value for name, m in found.levels.items()} == {
            name: float(name == level) for name in ("token", "phrase", "entity")
        }
    means = [found.words.mean.value for found in by_stage]
    assert means[0] == 1
    assert means[0] < means[1] < means[2]
    mixed = measure(tiny("ernie", "mixed"), known, tokens=4 * TOKENS)
    assert sum(m.value for m in mixed.levels.values()) == pytest.approx(1)
    assert all(
        m.value == pytest.approx(1 / 3, abs=0.1) and m.asked == pytest.approx(1 / 3) for m in mixed.levels.values()
    )


def test_the_same_seed_measures_the_same_and_another_does_not(shards: dict[str, Path]) -> None:
    first, again, other = (measure(tiny("bert"), shards["wordpiece"], tokens=TOKENS, seed=seed) for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_statistics_are_a_table_and_plain_json(shards: dict[str, Path]) -> None:
    for name in ("gpt2", "structbert"):
        recipe = tiny(name)
        found = measure(recipe, shards[kind(recipe)], tokens=TOKENS)
        record = json.loads(json.dumps(found.as_json()))
        assert record["rows"] == found.rows
        assert set(record) == set(Statistics.__dataclass_fields__)
        lines = {line[0]: line[1:] for line in found.table()}
        assert all(len(line) == 2 for line in lines.values())
        assert ("put in another order" in lines) == (name == "structbert")


def test_data_without_what_the_recipe_hides_is_a_mistake(
    shards: dict[str, Path], plain_shards: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="prepared without them"):
        measure(tiny("ernie"), plain_shards["wordpiece"])
    with pytest.raises(UserError, match="not prepared data"):
        measure(tiny("bert"), tmp_path)
    with pytest.raises(UserError, match="stages 1 to 2"):
        measure(tiny("bert"), shards["wordpiece"], stage=4)
