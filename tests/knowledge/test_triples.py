"""Triples as text: pairs of two parts of a triple and the third, and a track of pretraining that predicts the third."""

from __future__ import annotations

import json

import pytest
import torch

from tests.command import mistake, settings, works
from tests.knowledge.made import CITIES, PEOPLE, triples, write
from unmask.knowledge.as_text import words_of
from unmask.pretraining.mixture import Mixture
from unmask.recipes import get

TRACK = (
    "tracks.triples=Track(data=('{data}',), arrange=SourceTarget, hide=Masked(units=Second, budget=1.0, "
    "replace=Mask(mask=1.0, random=0.0)), predict=(tokens,))"
)
SHORT = [
    "schedule.0.length=32",
    "schedule.1.length=32",
    "schedule.*.rows=8",
    "system.backbone.width=32",
    "system.backbone.feedforward=64",
    "optimise.rate=0.005",
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Text and triples, prepared with one tokenizer."""
    place = tmp_path_factory.mktemp("triples")
    lines = [f"{PEOPLE[i % 24]} lives in {CITIES[i % 6]}. That is from Land {i % 3}, not far." for i in range(80)]
    (place / "text.txt").write_text("\n\n".join(f"{a}\n{b}" for a, b in zip(lines, lines[1:], strict=False)))
    works("triples", write(place / "g.tsv", triples()), "--ask", "both", "--out", place / "t.jsonl")
    works("tokenizer", place / "text.txt", "--vocab", 70, "--out", place / "tok.json")
    for name, file in (("text", "text.txt"), ("pairs", "t.jsonl")):
        works("prepare", place / file, "--tokenizer", place / "tok.json", "--out", place / name, "--workers", 1)
    return place


def train(place, out, steps, *turns):
    """The log of a short run of BERT whose stages take these turns."""
    more = [f"schedule.{stage}.turns={some}" for stage, some in enumerate(turns)]
    works("pretrain", "bert", place / "text", "--size", "tiny", "--budget", f"{steps}steps", "--device", "cpu", "--out", out,
          *settings([*SHORT, "schedule.0.share=0.5", "schedule.1.share=0.5", TRACK.format(data=place / "pairs"), *more]))  # fmt: skip
    return [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]


def test_two_parts_of_a_triple_are_the_source_and_the_third_is_the_target(tmp_path):
    known = write(tmp_path / "g.tsv", [("/m/1", "/people/person/place_of_birth", "/m/2")])
    (tmp_path / "names.tsv").write_text("/m/1\tMarie Curie\n/m/2\tWarsaw\n")
    said = works(
        "triples", known, "--names", tmp_path / "names.tsv", "--ask", "both", "--out", tmp_path / "t.jsonl", "--json"
    )
    assert json.loads(said.out) == {"file": str(tmp_path / "t.jsonl"), "triples": 1, "pairs": 2, "notes": {}}
    assert [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()] == [
        {"source": "Marie Curie, people person place of birth", "target": "Warsaw"},
        {"source": "Marie Curie, Warsaw", "target": "people person place of birth"},
    ]
    assert words_of("_") == "_"
    assert "did you mean tail" in mistake("triples", known, "--ask", "tails", "--out", tmp_path / "x.jsonl")
    assert "written as JSON lines" in mistake("triples", known, "--out", tmp_path / "x.txt")
    assert "exists already" in mistake("triples", known, "--out", tmp_path / "t.jsonl")


def test_the_track_hides_the_whole_second_text_and_nothing_else(place):
    turns = "schedule.*.turns={'triples': 1}"
    recipe = get("bert", size="tiny", settings=[*SHORT, TRACK.format(data=place / "pairs"), turns])
    mixture = Mixture.open([place / "text"])
    batch = mixture.loader(recipe, 32, 0, None, 8, stage=recipe.schedule[0]).batch(8)
    system = recipe.system.build(recipe, mixture.tokenizer.vocabulary, 0)
    hidden, counts = system.hide(batch)
    second = batch.real & (batch.segment == 1)  # with the token that ends it
    found = hidden.targets["tokens"]
    assert sorted(found.where[found.weight > 0].tolist()) == second.flatten().nonzero()[:, 0].tolist()
    assert (hidden.ids[second] == mixture.tokenizer.vocabulary.mask).all()
    assert torch.equal(hidden.ids[~second], batch.ids[~second])
    assert int(counts["tokens"]) == int(second.sum()) > 8


def test_triples_are_learned_alone_mixed_with_text_before_it_and_after_it(place, tmp_path):
    alone = train(place, tmp_path / "alone", 40, "{'triples': 1}", "{'triples': 1}")
    assert alone[-1]["turns"] == {"triples": 40}
    assert alone[-1]["loss_tokens"] < 0.7 * alone[0]["loss_tokens"]
    mixed = train(place, tmp_path / "mixed", 3, "{'main': 2, 'triples': 1}", "{'main': 2, 'triples': 1}")
    assert mixed[-1]["turns"] == {"main": 2, "triples": 1}
    before = train(place, tmp_path / "before", 4, "{'triples': 1}", "{'main': 1}")
    after = train(place, tmp_path / "after", 4, "{'main': 1}", "{'triples': 1}")
    for log in (before, after):
        assert log[-1]["turns"] == {"main": 2, "triples": 2}
    assert [record["stage"] for record in before if "loss_sentence" not in record] == [0, 0]
    assert [record["stage"] for record in after if "loss_sentence" not in record] == [1, 1]
