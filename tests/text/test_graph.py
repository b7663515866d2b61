"""The names of a knowledge graph, and the lexicon file that is made of them and of mined phrases."""

from __future__ import annotations

import gzip
import json

import pytest

from unmask.errors import UserError
from unmask.text import Corpus, Lexicon, Mining, make_lexicon
from unmask.text.knowledge_graph import names_in

TRIPLES = [
    ("New York", "in", "United  States"),
    ("Paris", "in", "France"),
    ("x", "is", "7"),
    ("2024", "is", "New York"),
]


def as_json(path, triples=TRIPLES):
    lines = [json.dumps({"head": h, "relation": r, "tail": t}) for h, r, t in triples]
    path.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    return path


def as_columns(path, triples=TRIPLES):
    path.write_text("".join("\t".join(triple) + "\n" for triple in triples), encoding="utf-8")
    return path


@pytest.mark.parametrize("write,name", [(as_json, "g.jsonl"), (as_columns, "g.tsv")])
def test_names_are_heads_and_tails_with_their_number_of_triples(tmp_path, write, name):
    names, notes = names_in([write(tmp_path / name)])
    assert names == [("New York", 2), ("France", 1), ("Paris", 1), ("United States", 1)]
    assert notes == {"names of one character, left out": 2, "names of digits only, left out": 1}


def test_several_graphs_also_compressed_are_one(tmp_path):
    with gzip.open(tmp_path / "b.tsv.gz", "wt", encoding="utf-8") as file:
        file.write("北京\tin\t中国\nParis\tin\tFrance\n")
    names, _ = names_in([as_columns(tmp_path / "a.tsv"), tmp_path / "b.tsv.gz"])
    assert dict(names) == {"New York": 2, "France": 2, "Paris": 2, "United States": 1, "北京": 1, "中国": 1}


@pytest.mark.parametrize(
    "name,line",
    [
        ("g.jsonl", "no json"), ("g.jsonl", '{"head": "a b"}'), ("g.jsonl", '{"head": 3, "tail": "x y"}'), ("g.jsonl", "[1]"),
        ("g.jsonl", '{"head": "", "tail": "x y"}'), ("g.jsonl", r'{"head": "\ud800 b", "tail": "x y"}'),
        ("g.tsv", "Paris\tin"), ("g.tsv", "Paris\tin\tFrance\tmore"), ("g.tsv", " \tin\tFrance"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_triple_is_named(tmp_path, name, line):
    good = '{"head": "A B", "relation": "r", "tail": "C D"}' if name == "g.jsonl" else "A B\tr\tC D"
    (tmp_path / name).write_text(f"{good}\n{line}\n", encoding="utf-8")
    with pytest.raises(UserError, match=rf"{name}, line 2: the line must be a triple with two names"):
        names_in([tmp_path / name])


def test_a_graph_that_is_not_there_or_of_another_format_is_a_mistake(tmp_path):
    with pytest.raises(UserError, match="no knowledge graph at"):
        names_in([tmp_path / "none.tsv"])
    (tmp_path / "g.csv").write_text("a,b,c")
    with pytest.raises(UserError, match="give .jsonl or .tsv"):
        names_in([tmp_path / "g.csv"])


def made(*arguments, **options):
    *_, last = make_lexicon(*arguments, **options)
    return last


@pytest.fixture
def corpus(tmp_path):
    lines = [f"a{i % 9} hot dog b{i % 7}" for i in range(60)]
    (tmp_path / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    return Corpus([tmp_path / "text.txt"])


def test_a_lexicon_of_both_levels_can_be_loaded(corpus, tmp_path):
    graph, out = as_columns(tmp_path / "g.tsv"), tmp_path / "new" / "lexicon.tsv"
    found = made(corpus, out, graph=[graph])
    assert found["phrases"] == 1
    assert found["entities"] == 4
    assert found["notes"]["names of one character, left out"] == 2
    lines = [line.split("\t") for line in out.read_text(encoding="utf-8").splitlines()]
    assert lines[0][:3] == ["hot dog", "phrase", "60"]
    assert float(lines[0][3]) == 1
    assert float(lines[0][4]) > 2
    assert lines[1] == ["New York", "entity", "2"]
    assert Lexicon.load([out]).record[0] | {"sha256": ""} == {
        "file": "lexicon.tsv", "sha256": "", "phrase": 1, "entity": 4,
    }  # fmt: skip


def test_one_of_corpus_and_graph_is_enough_and_none_is_a_mistake(corpus, tmp_path):
    assert made(None, tmp_path / "a.tsv", graph=[as_json(tmp_path / "g.jsonl")])["entities"] == 4
    assert made(corpus, tmp_path / "b.tsv")["phrases"] == 1
    with pytest.raises(UserError, match="give a corpus, or --graph, or both"):
        made(None, tmp_path / "c.tsv")
    with pytest.raises(UserError, match="options of mining need a corpus"):
        made(None, tmp_path / "c.tsv", graph=[tmp_path / "g.jsonl"], mining=Mining(least_count=3))


def test_an_existing_file_is_kept_unless_told_and_a_failure_leaves_nothing_behind(corpus, tmp_path):
    out = tmp_path / "out.tsv"
    out.write_text("before")
    with pytest.raises(UserError, match="exists already.*--overwrite"):
        made(corpus, out)
    (tmp_path / "bad.txt").write_bytes(b"fine\n\nbad \xff")
    with pytest.raises(UserError, match="not UTF-8"):
        made(Corpus([tmp_path / "bad.txt"]), out, overwrite=True)
    with pytest.raises(UserError, match="no phrase was found: give more text, or lower --least-count"):
        made(corpus, out, mining=Mining(least_count=100), overwrite=True)
    assert out.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.txt", "out.tsv", "text.txt"]
    made(corpus, out, overwrite=True)
    assert out.read_text().startswith("hot dog\tphrase\t60\t")
    with pytest.raises(UserError, match="written without compression"):
        made(corpus, tmp_path / "out.tsv.gz")
