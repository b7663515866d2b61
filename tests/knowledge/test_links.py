"""Linking: names of a graph's entities in text, ambiguous names, mentions that a text brings, and the column in the data."""

from __future__ import annotations

import json
import pickle
from collections import Counter

import numpy as np
import pytest

from tests.command import mistake, works
from tests.knowledge.made import triples, write
from unmask.data.shards import Collection, Shards
from unmask.errors import UserError
from unmask.text import Linker, WordPiece, encode_documents, train
from unmask.text.links import KnownEntities, Mention, mentions_of

IDS = ("e0", "e1", "e2", "e3", "e4")
NAMES = (["New York"], ["York"], ["Jordan"], ["Jordan", "Michael Jordan"], ["basketball", "77", "x"])
VECTORS = np.array([[1, 0], [1, 0], [1, 0.1], [0, 1], [0, 1]], dtype=np.float32)
KNOWN = KnownEntities(IDS, NAMES, np.array([9, 2, 5, 3, 1]), VECTORS, "graph")
TEXTS = [
    "Jordan went from York to New York.\n\nThen 7 newyorkers came.",
    "Jordan likes basketball, Yorkshire does not.",
    "Jordan.",
]


@pytest.fixture(scope="module")
def tokenizer():
    return train(WordPiece(vocab=200), TEXTS, at_most=True)


def links(texts, tokenizer, by="prior", mentions=(), notes=None):
    """Of each text: the linked words with their entities. A word is the text of the first token of the name."""
    documents = encode_documents(texts, tokenizer, "spaces", linker=Linker(KNOWN, by), mentions=mentions, notes=notes,
                                 places=True)  # fmt: skip
    found = []
    for text, document in zip(texts, documents, strict=True):
        values, places = document.columns["links"].values, document.columns["characters"].values
        found.append([(int(places[i, 0]), IDS[values[i]]) for i in np.flatnonzero(values >= 0)])
        assert [text[place].isalpha() for place, _ in found[-1]] == [True] * len(found[-1])
    return found


def test_names_are_linked_at_their_first_token_and_the_longest_name_wins(tokenizer):
    first, second, third = links(TEXTS, tokenizer)
    assert first == [(0, "e2"), (17, "e1"), (25, "e0")]
    assert second == [(0, "e2"), (13, "e4")]  # not the York of Yorkshire
    assert third == [(0, "e2")]


def test_context_decides_between_entities_of_one_name(tokenizer):
    first, second, third = links(TEXTS, tokenizer, "context")
    assert first[0] == (0, "e2")  # among towns
    assert second[0] == (0, "e3")  # with basketball
    assert third[0] == (0, "e2")  # no context: the one with more triples
    with pytest.raises(UserError, match="did you mean context"):
        Linker(KNOWN, "contexts")


def test_a_text_that_brings_mentions_keeps_them(tokenizer):
    place = TEXTS[0].index("newyorkers")
    notes: Counter[str] = Counter()
    given = [(Mention(place, place + 10, "e0"), Mention(0, 6, "unknown"), Mention(1, 3, "e1")), None, ()]
    first, second, third = links(TEXTS, tokenizer, mentions=given, notes=notes)
    assert first == [(place, "e0")]
    assert second == [(0, "e2"), (13, "e4")]
    assert third == []
    assert notes["mentions of an entity that the graph lacks, left out"] == 1
    assert notes["mentions that do not begin and end where tokens do, left out"] == 1


def test_a_linker_can_be_sent_to_another_process_and_names_its_left_out_names():
    again = pickle.loads(pickle.dumps(Linker(KNOWN, "context")))
    assert (again.by, again.record) == ("context", Linker(KNOWN, "context").record)
    assert again.notes == {"names of digits only, never linked": 1, "names of one character, never linked": 1}
    with pytest.raises(UserError, match="no entity of the graph has a name that can be found"):
        Linker(KnownEntities(("a",), (["77"],), np.ones(1), VECTORS[:1], ""))


@pytest.mark.parametrize(
    "value", [3, [{"start": 0}], [{"start": 0, "end": 99, "id": "a"}], [{"start": 2, "end": 2}], [7]]
)
def test_bad_mentions_are_named_with_their_line(value):
    with pytest.raises(UserError, match=r'here: "mentions" must be a list of'):
        mentions_of(value, "some text", "id", "here")


def test_prepare_writes_the_column_and_copies_the_graph(tmp_path):
    graph = tmp_path / "vectors"
    works("graph", write(tmp_path / "g.tsv", triples()), "--out", graph, "--dims", 4, "--epochs", 1, "--device", "cpu")
    rows = [
        {"text": "Person 1 is in City 2, says Person 1."},
        {"text": "He is in Land 0 and here.", "mentions": [{"start": 0, "end": 2, "mid": "Person 3"}, {"start": 20, "end": 24}]},
    ]  # fmt: skip
    corpus = tmp_path / "c.jsonl"
    corpus.write_text("\n".join(map(json.dumps, rows)))
    works("tokenizer", corpus, "--vocab", 40, "--out", tmp_path / "t.json")
    words = (
        "prepare",
        corpus,
        "--tokenizer",
        tmp_path / "t.json",
        "--out",
        tmp_path / "data",
        "--holdout",
        0,
        "--workers",
        1,
    )
    assert "--mention-id has no effect without --graph" in mistake(*words, "--mention-id", "mid")
    said = json.loads(works(*words, "--graph", graph, "--mention-id", "mid", "--json").out)
    about = json.loads((tmp_path / "data" / "graph" / "graph.json").read_text())
    assert said["links"] == {"graph": about["fingerprint"], "entities": 33, "dims": 4, "by": "prior"}
    assert said["notes"]["links to entities of the graph"] == 4
    assert said["notes"]['mentions without "mid", left out: --mention-id names the field of their id'] == 1
    entities = [json.loads(line)["id"] for line in (graph / "entities.jsonl").read_text().splitlines()]
    shards = Shards(tmp_path / "data")
    texts = Collection(shards.split("train")).gather(np.array([0, 1]))
    values = texts.columns["links"].values
    assert [entities[value] for value in values[values >= 0]] == ["Person 1", "City 2", "Person 1", "Person 3"]
