"""Mined phrases: their numbers against explicit loops, their memory against its limit, their text against the matcher."""

from __future__ import annotations

import math
import random
import re
from collections import Counter, defaultdict

import numpy as np
import pytest
import rjieba

from unmask.errors import UserError
from unmask.text import Corpus, Lexicon, Mining, make_lexicon
from unmask.text import phrases as phrases_module
from unmask.text.boundaries import classes_of, codes_of
from unmask.text.ngram_counts import Counts
from unmask.text.phrases import Miner

ALL = Mining(least_count=2, least_pmi=-1, least_entropy=0)


def corpus_of(tmp_path, *documents: str) -> Corpus:
    (tmp_path / "text.txt").write_text("\n\n".join(documents), encoding="utf-8")
    return Corpus([tmp_path / "text.txt"])


def mined(corpus: Corpus, mining: Mining = ALL) -> dict[str, phrases_module.Phrase]:
    miner = Miner(corpus, mining)
    for _ in miner.read():
        pass
    found = miner.phrases()
    assert len({phrase.text for phrase in found}) == len(found)
    return {phrase.text: phrase for phrase in found}


def made_up(seed: int = 0, sentences: int = 60) -> list[str]:
    """Two languages, marks and numbers; some words keep together."""
    dice = random.Random(seed)
    english = ["a", "of", "red", "New York", "New York City", "hot dog", "sat", "Paris", "ran", "12", "x2"]
    chinese = ["北京", "大学", "研究", "的", "人民", "计算机 科学", "了", "机器学习", "3"]
    made = []
    for _ in range(sentences):
        pool, gap = (english, " ") if dice.random() < 0.6 else (chinese, "")
        words = [dice.choice(pool) for _ in range(dice.randint(1, 9))]
        made.append(gap.join(w + dice.choice(["", "", "", ",", "。"]) for w in words))
    return ["\n".join(made[i : i + 7]) for i in range(0, sentences, 7)]


def words_of(line: str) -> list[tuple[int, int]]:
    """Spans of the words of a line: the segmenter's where there is Han, else runs of letters and digits, and marks."""
    if not re.search("[一-鿿]", line):
        return [m.span() for m in re.finditer(r"\w+|[^\w\s]", line)]
    spans, at = [], 0
    for word in rjieba.cut(line):
        spans.append((at, at + len(word)))
        at += len(word)
    return [(a, b) for a, b in spans if not line[a:b].isspace()]


def runs_of(texts: list[str]) -> list[list[tuple[str, str]]]:
    """Stretches of words without a mark, a number or more than a space between them: (word, what follows it)."""
    runs: list[list[tuple[str, str]]] = []
    for line in [line for text in texts for line in text.splitlines()]:
        before = None
        for a, b in words_of(line):
            if not line[a:b].isalnum() or line[a:b].isdigit():
                before = None
                continue
            if before is None or line[before:a] not in ("", " "):
                runs.append([])
            else:
                runs[-1][-1] = (runs[-1][-1][0], line[before:a])
            runs[-1].append((line[a:b], ""))
            before = b
    return runs


def expected(texts: list[str], mining: Mining) -> dict[str, tuple[int, float, float]]:
    """Count, normalised PMI and entropy of every sequence, by the book."""
    counts: Counter[tuple[str, ...]] = Counter()
    sides: dict[tuple[str, ...], tuple[list, list]] = defaultdict(lambda: ([], []))
    lone = iter(range(10**9))
    for run in runs_of(texts):
        for i in range(len(run)):
            for n in range(1, mining.longest + 1):
                if i + n > len(run):
                    break
                parts = tuple(piece for word, gap in run[i : i + n] for piece in (word, gap))[:-1]
                counts[parts] += 1
                sides[parts][0].append(run[i - 1][0] if i else next(lone))
                sides[parts][1].append(run[i + n][0] if i + n < len(run) else next(lone))
    total = sum(count for parts, count in counts.items() if len(parts) == 1)
    found: dict[str, tuple[int, float, float]] = {}
    for parts, count in counts.items():
        if len(parts) == 1 or count < mining.least_count:
            continue
        splits = [(parts[:k], parts[k + 1 :]) for k in range(1, len(parts), 2)]
        best = max(counts[a] / total * counts[b] / total for a, b in splits)
        pmi = math.log(count / total / best) / -math.log(count / total)
        entropies = []
        for side in sides[parts]:
            shares = [c / count for c in Counter(side).values()]
            entropies.append(-sum(share * math.log2(share) for share in shares))
        text = "".join(parts)
        if pmi >= mining.least_pmi and min(entropies) >= mining.least_entropy and found.get(text, (0,))[0] < count:
            found[text] = (count, pmi, min(entropies))
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "mining", [ALL, Mining(least_count=3, least_pmi=0.4, least_entropy=1.0), Mining(longest=2, least_count=2)]
)
def test_counts_pmi_and_entropy_are_those_of_explicit_loops(tmp_path, seed, mining):
    texts = made_up(seed)
    found, wanted = mined(corpus_of(tmp_path, *texts), mining), expected(texts, mining)
    assert set(found) == set(wanted)
    assert len(wanted) >= 3
    for text, (count, pmi, entropy) in wanted.items():
        assert found[text].count == count
        assert found[text].pmi == pytest.approx(pmi)
        assert found[text].entropy == pytest.approx(entropy, abs=1e-9)


def test_reading_in_small_pieces_gives_the_same(tmp_path, monkeypatch):
    corpus = corpus_of(tmp_path, *made_up())
    whole = mined(corpus)
    monkeypatch.setattr(phrases_module, "CHUNK", 50)
    assert mined(corpus) == whole


def test_a_piece_of_a_longer_phrase_is_none_and_an_accident_is_none(tmp_path):
    dice = random.Random(0)
    fill = [f"w{i}" for i in range(30)]
    lines = [
        f"{dice.choice(fill)} the New York Stock Exchange {dice.choice(fill)} of {dice.choice(fill)}" for _ in range(60)
    ]
    found = mined(corpus_of(tmp_path, "\n".join(lines)), Mining(least_count=5, least_pmi=0.3))
    assert "the New York Stock Exchange" not in found  # longer than four words
    assert not any(text in found for text in ("New York", "York Stock", "Stock Exchange", "New York Stock"))
    short = mined(corpus_of(tmp_path, "\n".join(line.replace("the ", "") for line in lines)), Mining(least_count=5))
    assert list(short) == ["New York Stock Exchange"]
    assert short["New York Stock Exchange"].pmi == pytest.approx(1)


def test_no_phrase_holds_punctuation_a_number_a_line_end_or_two_spaces(tmp_path):
    text = "\n".join(
        ["red, dog", "hot", "dog", "big  dog", "dog 7", "well-fed dog", "3.5 dogs", "don't stop", "ice cream's"] * 9
    )
    assert set(mined(corpus_of(tmp_path, text))) == {"ice cream"}


def test_entries_are_found_again_by_the_matcher_as_often_as_they_were_counted(tmp_path):
    dice = random.Random(1)
    parts = ["hot dogs", "深度学习", "naïve café", "x", "run", "的", "研究", "co-op"]
    texts = ["\n".join("".join(dice.choice(parts) + dice.choice([" ", ", "]) for _ in range(8)) for _ in range(60))]
    found = mined(corpus_of(tmp_path, *texts), Mining(least_count=5, least_pmi=0.3, longest=2))
    assert {"hot dogs", "深度学习"} <= set(found)
    for phrase in found.values():
        (tmp_path / "one.tsv").write_text(f"{phrase.text}\tphrase\n", encoding="utf-8")
        lexicon = Lexicon.load([tmp_path / "one.tsv"])
        assert len(lexicon.matches(texts[0], classes_of(codes_of(texts[0])), "phrase")) >= phrase.count


def test_the_best_come_first(tmp_path):
    dice = random.Random(2)
    fill = [f"w{i}" for i in range(20)]
    lines = []
    for _ in range(200):
        lines.append(f"{dice.choice(fill)} Los Angeles {dice.choice(fill)}")
        lines.append(
            f"{dice.choice(fill)} {dice.choice(['rare bird', 'rare', 'bird', 'has been', 'has', 'been'])} {dice.choice(fill)}"
        )
    assert list(mined(corpus_of(tmp_path, "\n".join(lines)), Mining(least_count=5)))[0] == "Los Angeles"


@pytest.mark.parametrize("limit", [100, 300, 1000])
def test_the_tables_never_exceed_their_limit_and_frequent_phrases_survive(tmp_path, monkeypatch, limit):
    dice = random.Random(0)
    rare = [f"r{i}" for i in range(3000)]
    lines = [
        f"{dice.choice(rare)} hot dog {dice.choice(rare)}, {dice.choice(rare)} {dice.choice(rare)}" for _ in range(400)
    ]
    monkeypatch.setattr(phrases_module, "CHUNK", 300)
    miner = Miner(corpus_of(tmp_path, *lines), Mining(least_count=20, most_ngrams=limit))
    for _ in miner.read():
        assert len(miner.table) <= limit
        assert not hasattr(miner, "candidates") or len(miner.candidates.neighbours) <= limit
    found = miner.phrases()
    assert [phrase.text for phrase in found] == ["hot dog"]
    assert found[0].count == 400  # counted anew in the second pass
    assert found[0].entropy > 7  # neighbours that were dropped count as each its own
    assert miner.table.floor > 0


def test_a_table_of_counts_is_exact_until_it_is_full_and_short_by_no_more_than_its_floor():
    dice = np.random.default_rng(0)
    keys = dice.zipf(1.5, 20_000).clip(max=5000).astype(np.int64)
    roomy, narrow, truth = Counts(10_000), Counts(200), Counter(keys.tolist())
    for part in np.split(keys, 100):
        roomy.add(part)
        narrow.add(part)
        assert len(narrow) <= 200
    asked = np.arange(5001)
    assert roomy.of(asked).tolist() == [truth[key] for key in asked.tolist()]
    assert roomy.floor == 0
    assert narrow.floor > 0
    kept = narrow.of(asked)
    for key in asked.tolist():
        assert max(0, truth[key] - narrow.floor) <= kept[key] <= truth[key]


def test_an_empty_table_knows_nothing():
    assert Counts(10).of(np.array([1, 2])).tolist() == [0, 0]
    with pytest.raises(UserError, match="room for 2 keys"):
        Counts(1)


@pytest.mark.parametrize(
    "field,value,message",
    [
        ("longest", 1, "2 words or more, got 1"), ("least_count", 1, "least count must be 2 or more, got 1"),
        ("least_pmi", 1.0, r"must be in \[-1, 1\), got 1"), ("least_entropy", -1, "0 bits or more, got -1"),
        ("most_ngrams", 5, "100 n-grams or more, got 5"),
    ],
)  # fmt: skip
def test_thresholds_have_ranges(field, value, message):
    with pytest.raises(UserError, match=message):
        Mining(**{field: value})


def test_a_full_table_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(phrases_module, "CHUNK", 300)
    lines = [f"a{i} hot dog b{i}" for i in range(400)]
    mining = Mining(least_count=2, most_ngrams=100)
    *_, last = make_lexicon(corpus_of(tmp_path, *lines), tmp_path / "out.tsv", mining=mining)
    assert any("raise --most-ngrams" in note for note in last["notes"])


def test_chinese_without_its_segmenter_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(phrases_module, "available", lambda words: "spaces")
    miner = Miner(corpus_of(tmp_path, "北京大学\n" * 20), ALL)
    for _ in miner.read():
        pass
    assert "北京" in {phrase.text for phrase in miner.phrases()}
    assert any("unmask[zh]" in note for note in miner.corpus.notes)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("text", ["12 34, 56", "word", "...", "a b"])
def test_a_text_with_next_to_nothing_in_it_has_no_phrases(tmp_path, text):
    assert mined(corpus_of(tmp_path, text)) == {}
