"""ERNIE of Tsinghua as a user trains it: from a run of BERT, with the entities of a graph; other graphs are refused."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch

import unmask
from tests.command import ONE_STAGE, mistake, pretrain, settings, works
from tests.knowledge.made import CITIES, PEOPLE, triples, write
from unmask.data.examples import Laid, Text
from unmask.errors import UserError
from unmask.infer.passes import laid_out
from unmask.train import checkpoint


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A tokenizer, the vectors of two graphs, data linked to each, plain data, and a run of BERT."""
    place = tmp_path_factory.mktemp("ernie")
    lines = [f"{PEOPLE[i % 24]} lives in {CITIES[i % 6]}. That is in Land {i % 3}, not far." for i in range(120)]
    corpus = place / "text.txt"
    corpus.write_text("\n\n".join(f"{a}\n{b}" for a, b in zip(lines, lines[1:], strict=False)))
    works("tokenizer", corpus, "--vocab", 80, "--out", place / "tok.json")
    more = [*triples(), ("New", "is from", "Land 1")]
    for name, known in (("g", triples()), ("other", more)):
        works("graph", write(place / f"{name}.tsv", known), "--out", place / f"{name}_vectors", "--dims", 8, "--epochs", 2,
              "--device", "cpu")  # fmt: skip
        prepare(place, place / f"{name}_data", "--graph", place / f"{name}_vectors")
    prepare(place, place / "plain")
    pretrain("bert", place / "plain", place / "bert", steps=2)
    return place


def prepare(place, out, *words):
    return works("prepare", place / "text.txt", "--tokenizer", place / "tok.json", "--out", out, "--workers", 1, *words)


def test_it_continues_a_run_of_bert_and_keeps_the_vectors_of_the_graph(place, tmp_path):
    ran = pretrain("ernie-thu", place / "g_data", tmp_path / "run", "--from", place / "bert", steps=3)
    assert "start with random weights: backbone.blocks.1.entity_attention" in ran.err
    assert "backbone.knowledge" not in ran.err  # the vectors are not random
    weights, graph = checkpoint.read(tmp_path / "run" / "weights.safetensors"), unmask.open_graph(place / "g_vectors")
    assert torch.equal(weights["backbone.knowledge.vectors"], graph.vectors.entities)
    model = unmask.load(tmp_path / "run", device="cpu")
    knowledge = model.recipe.system.backbone.knowledge
    assert (knowledge.entities, knowledge.width, knowledge.graph) == (33, 8, graph.about.fingerprint)
    assert model.fill("Person 1 lives in [MASK] 1.")  # without entities it reads as BERT does
    more = pretrain("ernie-thu", place / "g_data", tmp_path / "more", "--from", tmp_path / "run", steps=1)
    assert "start with random weights" not in more.err
    said = pretrain("ernie-thu", place / "other_data", tmp_path / "x", "--from", tmp_path / "run", call=mistake)
    assert "is linked to another graph" in said
    assert graph.about.fingerprint in said


def test_from_text_the_graph_is_an_option_and_a_bert_that_goes_on_from_it_needs_it_too(place, tmp_path, monkeypatch):
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))
    text, graph = place / "text.txt", ("--graph", place / "g_vectors")
    said = pretrain("ernie-thu", text, tmp_path / "x", "--from", place / "bert", call=mistake)
    assert "give them with --graph FOLDER" in said
    said = pretrain("bert", text, tmp_path / "x", "--from", place / "bert", *graph, call=mistake)
    assert "--graph has no effect, because bert reads no entities" in said
    said = pretrain("ernie-thu", text, tmp_path / "x", "--from", place / "bert", "--graph", tmp_path, call=mistake)
    assert "no vectors of a graph at" in said
    pretrain("ernie-thu", text, tmp_path / "run", "--from", place / "bert", *graph, steps=1)
    assert unmask.load(tmp_path / "run", device="cpu").recipe.system.backbone.knowledge.entities == 33
    assert "give them with --graph" in pretrain("bert", text, tmp_path / "x", "--from", tmp_path / "run", call=mistake)
    pretrain("bert", text, tmp_path / "more", "--from", tmp_path / "run", *graph, steps=1)


def test_a_model_reads_the_entities_of_texts_when_it_is_adapted_and_used(place, tmp_path):
    pretrain("ernie-thu", place / "g_data", tmp_path / "run", steps=1)
    rows = [{"text": f"{PEOPLE[i]} is here", "label": str(i % 2)} for i in range(8)]
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    words = ("--set", "epochs=1", "--set", "length=16", "--device", "cpu")
    works("adapt", tmp_path / "run", tmp_path / "train.jsonl", "--out", tmp_path / "adapted", *words)
    model = unmask.load(tmp_path / "adapted", device="cpu")
    laid = Laid([Text("Person 3 is here"), Text("Nobody is here")])
    links = laid_out(model, laid)[0].columns["links"].values
    person = unmask.open_graph(place / "g_vectors").entities.index("Person 3")
    assert [sorted(set(row.tolist())) for row in links] == [[-1, person], [-1]]
    one, two = (model.embed([text])[0] for text in ("Person 3 is here", "Person 4 is here"))
    assert not np.allclose(one, two)
    table = model.system.backbone.knowledge.vectors
    table[person] += 1.0  # only texts that name this entity change
    again = [model.embed([text])[0] for text in ("Person 3 is here", "Person 4 is here")]
    assert not np.allclose(one, again[0])
    assert np.array_equal(two, again[1])
    shutil.rmtree(tmp_path / "adapted" / "graph")
    with pytest.raises(UserError, match="has no folder graph"):
        unmask.load(tmp_path / "adapted", device="cpu")


def test_a_model_chooses_between_entities_of_one_name_as_its_data_did(place, tmp_path):
    prepare(place, tmp_path / "data", "--graph", place / "g_vectors", "--link-by", "context")
    pretrain("ernie-thu", tmp_path / "data", tmp_path / "first", "--from", place / "bert", steps=1)
    assert unmask.load(tmp_path / "first", device="cpu").linker.by == "context"
    pretrain("ernie-thu", place / "g_data", tmp_path / "second", "--from", tmp_path / "first", steps=1)
    assert unmask.load(tmp_path / "second", device="cpu").linker.by == "prior"


def test_data_without_links_or_of_two_graphs_is_refused(place, tmp_path):
    said = pretrain("ernie-thu", place / "plain", tmp_path / "x", call=mistake)
    assert "was prepared without them: learn vectors with 'unmask graph'" in said
    said = mistake("pretrain", "ernie-thu", place / "g_data", place / "other_data", "--size", "tiny", "--out", tmp_path / "x",
                   "--budget", "1steps", *settings(ONE_STAGE))  # fmt: skip
    assert "is linked to another graph than" in said
    assert not (tmp_path / "x").exists()


def test_a_run_on_text_that_names_no_entity_says_so(place, tmp_path):
    (tmp_path / "text.txt").write_text("\n\n".join(f"Rain fell.\nThe river rose by {n} feet." for n in range(60)))
    works("prepare", tmp_path / "text.txt", "--tokenizer", place / "tok.json", "--graph", place / "g_vectors", "--workers", 1,
          "--out", tmp_path / "data")  # fmt: skip
    said = pretrain("ernie-thu", tmp_path / "data", tmp_path / "run", steps=1).err
    assert "no text of this data names an entity of its graph" in said
    linked = pretrain("ernie-thu", place / "g_data", tmp_path / "linked", steps=1).err
    assert "names an entity" not in linked
