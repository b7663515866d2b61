"""The labels of ERNIE 2.0's tasks, checked on documents made by hand."""

from __future__ import annotations

import re
from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from tests.command import mistake, works
from unmask import chance, recipes, stages, text
from unmask.data import Discourse, Distance, Elsewhere, Reordered, Texts, TitlePairs, TitleRelevance
from unmask.data.arrange import ROLES, special_ids
from unmask.data.pack import pack
from unmask.data.prepare import prepare
from unmask.data.shards import Collection, Shards
from unmask.errors import UserError
from unmask.pretraining import Mixture, pretrain
from unmask.text.columns import BEGINS
from unmask.text.connectives import RELATIONS, table
from unmask.text.encode import CAPITAL, encode_documents

LAYOUT = "[CLS] a [SEP] b [SEP]"
FIRST = "Old bridges stand. Rivers rise fast. However, stones hold well. Bridges fall late. People build again."
SECOND = "Cold winters bite. Snow covers roads. Trains stop often. Therefore drivers wait. Old bridges freeze."
ONE = "Alone here."


@pytest.fixture(scope="module")
def tokenizer() -> text.Tokenizer:
    return text.train(
        text.WordPiece(vocab=600, lowercase=True), [FIRST, SECOND, ONE, "because example for people"] * 20, at_most=True
    )


@pytest.fixture(scope="module")
def texts(tokenizer) -> Texts:
    return Texts.of(encode_documents([FIRST, SECOND, ONE], tokenizer, "spaces", capitals=True))


def examples(arrange, texts: Texts, tokenizer, *, length: int = 40, seed: int = 0):
    """Each example as its texts in words, and its label; and the notes."""
    runs = arrange.ready(tokenizer).runs(texts, LAYOUT, length, chance.generator(seed))
    found = []
    for example in range(len(runs.label)):
        mine = (runs.example == example) & (runs.start < len(texts.ids))
        pieces = [
            (segment, tokenizer.decode(texts.ids[start : start + size].tolist()))
            for start, size, segment in zip(runs.start[mine], runs.length[mine], runs.segment[mine], strict=True)
        ]
        sides = [[words for segment, words in pieces if segment == side] for side in (0, 1)]
        found.append((sides, int(runs.label[example])))
    return found, runs.notes


def sentences(document: str) -> list[str]:
    return [f"{one.lower()}." for one in document.rstrip(".").split(". ")]


def test_words_that_begin_with_a_capital_letter_are_marked_at_their_first_token():
    letters = text.train(text.Characters(vocab=60), ["The old Bridge, 12 Étages in 巴黎."] * 3, at_most=True)
    (document,) = encode_documents(["The old Bridge, 12 Étages in 巴黎."], letters, "spaces", capitals=True)
    begins = document.columns["word"].values == BEGINS
    marks = document.columns[CAPITAL].values
    assert marks[begins].tolist()[:7] == [1, 0, 1, -1, -1, 1, 0]  # The old Bridge , 12 Étages in
    assert set(marks[begins].tolist()[7:]) == {-1}  # Chinese and the full stop
    assert set(marks[~begins].tolist()) == {-1}


def test_a_token_occurs_elsewhere_if_another_part_of_its_document_has_it(texts, tokenizer):
    arrange = Elsewhere()
    runs = arrange.runs(texts, LAYOUT, 40, chance.generator(0))
    marks = runs.columns["elsewhere"].values
    parts = [(s, s + n) for s, n in zip(runs.start.tolist(), runs.length.tolist(), strict=True) if s < len(texts.ids)]
    edges = texts.sentence[texts.document]
    firsts = [int(np.searchsorted(edges, begin, side="right")) for begin, _ in parts]
    assert min(Counter(firsts)[number] for number in (1, 2)) >= 2  # of each document that has two sentences or more
    for begin, end in parts:
        number = int(np.searchsorted(edges, begin, side="right")) - 1
        own = range(int(edges[number]), int(edges[number + 1]))
        for place in range(begin, end):
            others = {int(texts.ids[i]) for i in own if not begin <= i < end}
            assert marks[place] == (int(texts.ids[place]) in others)
    assert runs.notes["documents with too few sentences, skipped by elsewhere"] == 1
    rows = pack(texts, runs, special_ids(tokenizer, LAYOUT), 0, 40, packed=True)
    special = np.isin(rows.ids, [tokenizer.role(role) for role in ("cls", "sep")])
    assert set(rows.columns["elsewhere"].values[special].tolist()) == {-1}


def test_reordered_pieces_are_whole_sentences_and_the_class_is_their_order(texts, tokenizer):
    arrange, known = Reordered(pieces=3), (sentences(FIRST), sentences(SECOND))
    orders = [order for count in (1, 2, 3) for order in permutations(range(count))]
    assert arrange.classes == len(orders) == 1 + 2 + 6
    assert arrange.answers[-1] == "3 2 1"
    seen: Counter[int] = Counter()
    for seed in range(60):
        found, notes = examples(arrange, texts, tokenizer, seed=seed)
        assert notes["documents with too few sentences, skipped by reordering"] == 1
        for ((pieces, _), label), whole in zip(found, known, strict=True):
            order = orders[label]
            assert len(pieces) == len(order)
            back = [pieces[order.index(number)] for number in range(len(order))]
            assert " ".join(back) == " ".join(whole)
            assert all(any(piece.startswith(one) for one in whole) for piece in pieces)
            seen[label] += 1
    assert set(seen) == set(range(9))
    assert abs(seen[0] / seen.total() - 1 / 3) < 0.15  # 1, 2 and 3 pieces are equally frequent


def test_distance_says_whether_texts_are_neighbours_of_one_document_or_of_two(texts, tokenizer):
    whole = [" ".join(sentences(document)) for document in (FIRST, SECOND)]
    seen: Counter[int] = Counter()
    for seed in range(20):
        found, notes = examples(Distance(), texts, tokenizer, seed=seed)
        assert notes["documents with too few sentences, skipped by distance"] == 1
        for ((a,), (b,)), label in ((sides, label) for sides, label in found):
            (document,) = (one for one in whole if a in one)
            distance = 0 if f"{a} {b}" in document else 1 if b in document else 2
            assert label == distance
            seen[label] += 1
    assert min(seen.values()) > 0.2 * seen.total()


def test_a_connective_is_removed_with_its_comma_and_its_relation_is_the_class(texts, tokenizer):
    found, _ = examples(Discourse(), texts, tokenizer)
    assert found == [
        ([["rivers rise fast."], ["stones hold well."]], RELATIONS.index("contrast")),
        ([["trains stop often."], ["drivers wait."]], RELATIONS.index("result")),
    ]


def test_a_connective_after_a_comma_joins_the_two_parts_of_its_sentence(tokenizer):
    joined = encode_documents(
        ["Roads freeze, because winters bite. Therefore. Stones, example for."], tokenizer, "spaces"
    )
    found, _ = examples(Discourse(), Texts.of(joined), tokenizer)
    assert found == [([["roads freeze"], ["winters bite."]], RELATIONS.index("cause"))] or found[0][1] == 2
    assert [label for _, label in found][:1] == [RELATIONS.index("cause")]


def test_a_connective_is_a_whole_word():
    pieces = text.train(text.Characters(vocab=60), ["So Some stones hold. but button, so x S"] * 5, at_most=True)
    one, two = ("Stones hold. So x hold.", "Stones hold. Some x hold.")
    made = [Texts.of(encode_documents([document], pieces, "spaces")) for document in (one, two)]
    ready = Discourse().ready(pieces)
    assert [len(ready.pairs(each)) for each in made] == [1, 0]


def test_chinese_connectives_are_found():
    document = "河水上涨很快。因此，石桥倒塌了。人们重建它，但是冬天很冷。"
    pieces = text.train(text.Characters(vocab=100), [document] * 3, at_most=True)
    made = Texts.of(encode_documents([document], pieces, "spaces"))
    found, _ = examples(Discourse(language="zh"), made, pieces)
    spelled = [([side[0].replace(" ", "") for side in sides], RELATIONS[label]) for sides, label in found]
    assert spelled == [
        (["河水上涨很快。", "石桥倒塌了。"], "result"),
        (["人们重建它", "冬天很冷。"], "contrast"),
    ]  # fmt: skip
    with pytest.raises(UserError, match="no connective of the language 'en' joins two texts"):
        examples(Discourse(language="en"), made, pieces)


def test_the_table_of_connectives_grows_by_a_file_and_unknown_languages_are_refused(tmp_path):
    file = tmp_path / "more.tsv"
    file.write_text("deshalb\tresult\nhowever\ttime\n")
    assert table("de", str(file)) == {"deshalb": "result", "however": "time"}
    assert table("en", str(file))["however"] == "time"
    assert table("en")["however"] == "contrast"
    with pytest.raises(UserError, match="no table of connectives for the language 'de', only for en and zh"):
        Discourse(language="de")
    for line, words in (("deshalb\n", "line 1: a line must be a connective"), ("x\treslt\n", "did you mean result")):
        file.write_text(line)
        with pytest.raises(UserError, match=words):
            Discourse(language="de", file=str(file))


def test_a_title_is_that_of_its_document_of_a_near_one_or_of_any_other(tokenizer):
    """The first two titles share the word 'bridges', the third shares none."""
    documents = [FIRST, "Bridges freeze. Snow covers roads. Trains stop often.", "Cold winters bite. Drivers wait."]
    made = Texts.of(encode_documents(documents, tokenizer, "spaces"))
    titles = [sentences(document)[0] for document in documents]
    bodies = [" ".join(sentences(document)[1:]) for document in documents]
    seen: Counter[tuple[int, int]] = Counter()
    for seed in range(40):
        for ((title,), (body,)), label in examples(TitleRelevance(), made, tokenizer, length=48, seed=seed)[0]:
            (number,) = (i for i, one in enumerate(bodies) if body in one)
            expected = {0: [number], 1: [1 - number] if number < 2 else [], 2: {0, 1, 2} - {number}}[label]
            assert titles.index(title) in expected
            seen[number, label] += 1
    assert set(seen) == {(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (2, 2)}


def test_queries_and_titles_may_come_from_a_file(tmp_path, tokenizer, texts):
    file = tmp_path / "pairs.tsv"
    lines = [
        ("old bridges", "Bridges fall late.", 0),
        ("snow roads", "Trains stop. Drivers wait.", 1),
        ("people", "Snow.", 2),
    ]
    file.write_text("".join(f"{query}\t{title}\t{label}\n" for query, title, label in [("held out", "x", 0), *lines]))
    reader = TitlePairs(file=str(file)).open(Collection([]), tokenizer, LAYOUT, 24, 0)
    made = reader.collection.gather(np.arange(3))
    assert examples(TitlePairs(file=str(file)), made, tokenizer)[0] == [
        ([[query], [title.lower()]], label) for query, title, label in lines
    ]
    with pytest.raises(UserError, match="come from .*pairs.tsv, not from a text"):
        examples(TitlePairs(file=str(file)), texts, tokenizer)
    for few in ("", "a query\ta title\t1\n"):  # the only line is held out
        file.write_text(few)
        with pytest.raises(UserError, match="pairs.tsv has no pair to train on: give two lines or more"):
            TitlePairs(file=str(file)).open(Collection([]), tokenizer, LAYOUT, 24, 0)
    file.write_text("a query\ta title\t3\n")
    with pytest.raises(UserError, match="line 1: a line must be a query, a tab, a title, a tab and 0, 1 or 2"):
        TitlePairs(file=str(file)).open(Collection([]), tokenizer, LAYOUT, 24, 0)


@pytest.mark.parametrize(
    "arrange", [Elsewhere(), Reordered(), Distance(), TitleRelevance()], ids=lambda a: type(a).__name__
)
def test_a_text_without_documents_of_two_sentences_is_refused(arrange, tokenizer):
    made = Texts.of(encode_documents([ONE, ONE], tokenizer, "spaces"))
    with pytest.raises(UserError, match=r"sentences.*turns.TRACK=0"):
        arrange.runs(made, LAYOUT, 40, chance.generator(0))


@pytest.mark.parametrize(
    "arrange", [Elsewhere(), Reordered(), Distance(), TitleRelevance()], ids=lambda a: type(a).__name__
)
def test_no_example_is_longer_than_its_row(arrange, texts, tokenizer):
    for length in (12, 17, 30):
        runs = arrange.runs(texts, LAYOUT, length, chance.generator(1))
        assert np.bincount(runs.example, weights=runs.length).max() <= length
        assert (runs.length > 0).all()
        assert runs.start.max() < len(texts.ids) + len(ROLES)


def test_continual_stages_give_every_task_the_same_number_of_steps_and_earlier_ones_fewer_later():
    """The table of the paper for four tasks, in 10,000 steps: 2 1 1 1, 3 1 1, 4 1, 5."""
    found = stages.continual("abcd", rows=1, length=8)
    steps = [{name: 20 * s.share * turn / sum(s.turns.values()) for name, turn in s.turns.items()} for s in found]
    assert [{name: pytest.approx(count) for name, count in each.items()} for each in steps] == [
        {"a": 2}, {"a": 1, "b": 3}, {"a": 1, "b": 1, "c": 4}, {"a": 1, "b": 1, "c": 1, "d": 5},
    ]  # fmt: skip


@pytest.mark.parametrize("variant", ["paper", "sequential", "joint", "chinese", "chinese-sequential", "chinese-joint"])
def test_every_schedule_gives_each_task_the_same_share(variant):
    tracks = recipes.get("ernie-2", size="tiny", variant=variant).all_tracks()
    read = [name for name, track in tracks.items() if track.share]
    assert len(read) == (6 if "chinese" in variant else 7)
    assert all(tracks[name].share == pytest.approx(1 / len(read)) for name in read)


def test_data_without_capitals_is_refused_with_the_command_that_makes_them(tmp_path, tokenizer):
    (tmp_path / "text.txt").write_text(f"{FIRST}\n\n{SECOND}")
    for capitals in (False, True):
        corpus = text.Corpus([tmp_path / "text.txt"])
        for _ in prepare(corpus, tokenizer, tmp_path / f"{capitals}", holdout=0, workers=1, capitals=capitals):
            pass
    recipe = recipes.get("ernie-2", size="tiny", settings=["hide.units=Words"])
    with pytest.raises(UserError, match=r"needs the column capital, .* --capitals --out FOLDER.*turns\.capital=0"):
        Mixture.open([tmp_path / "False"]).check(recipe)
    Mixture.open([tmp_path / "True"]).check(recipe)
    assert CAPITAL in Shards(tmp_path / "True").columns


def trained(tmp_path, tokenizer, documents: list[str], *, holdout: float = 0.0) -> list[dict]:
    """The records of a training that reads its text many times, in all stages."""
    (tmp_path / "text.txt").write_text("\n\n".join(documents))
    list(prepare(text.Corpus([tmp_path / "text.txt"]), tokenizer, tmp_path / "data", holdout=holdout, workers=1, capitals=True))  # fmt: skip
    settings = ["hide.units=Words", "schedule.*.rows=2", "schedule.*.length=40"]
    recipe = recipes.get("ernie-2", size="tiny", settings=settings)
    return list(pretrain(recipe, [tmp_path / "data"], tmp_path / "run", budget="56steps", device="cpu"))


def test_a_document_of_one_sentence_is_counted_once_however_often_it_is_read(tmp_path, tokenizer):
    notes = next(
        one["notes"] for one in trained(tmp_path, tokenizer, [FIRST, ONE, SECOND]) if one.get("event") == "read"
    )
    tasks = ("elsewhere", "reordering", "distance", "title relevance")
    assert {name: notes[f"documents with too few sentences, skipped by {name}"] for name in tasks} == dict.fromkeys(
        tasks, 1
    )


def test_tasks_without_held_out_rows_are_named(tmp_path, tokenizer):
    notices = [one["text"] for one in trained(tmp_path, tokenizer, [FIRST, SECOND] * 20, holdout=0.02) if "text" in one]
    assert any(
        one.startswith("the held-out loss is without the tracks reorder, distance, discourse, title: ")
        for one in notices
    )


def test_what_a_late_task_lacks_is_said_before_anything_is_trained(tmp_path, monkeypatch):
    """Continual: the task of connectives begins after most of the training."""
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))
    russian = "\n\n".join(f"Это первое предложение {n}.\nЭто второе предложение.\nИ третье другое." for n in range(60))
    (tmp_path / "text.txt").write_text(russian, encoding="utf-8")
    words = (
        "--set",
        "tokenizer.vocab=200",
        "--set",
        "hide.units=Words",
        "--set",
        "schedule.*.length=32",
        "--size",
        "tiny",
    )
    said = mistake(
        "pretrain", "ernie-2", tmp_path / "text.txt", *words, "--budget", "2steps", "--out", tmp_path / "run"
    )
    assert "the track 'discourse': no connective of the language 'en'" in said
    assert not (tmp_path / "run" / "log.jsonl").exists()
    (advice,) = re.findall(r"leave the task out with (\S+)$", said)
    works("pretrain", "ernie-2", tmp_path / "text.txt", *words, "--set", advice, "--budget", "7steps", "--out", tmp_path / "run")  # fmt: skip
