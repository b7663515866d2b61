"""The vectors of a graph: scores by formula, gradients by autograd, ranks by brute force, and the command."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import unmask
from tests.command import mistake, works
from tests.knowledge.made import CITIES, PEOPLE, triples, write
from unmask.errors import UserError
from unmask.knowledge import DistMult, Training, TransE, Vectors, ranks, scores_of
from unmask.knowledge.graph import hold_out, read_graph
from unmask.knowledge.learn import _Learner

MODELS = [TransE(1), TransE(2), DistMult()]


def explicit(model, head, relation, tail):
    """The score of one triple, number by number."""
    if isinstance(model, DistMult):
        return sum(h * r * t for h, r, t in zip(head, relation, tail, strict=True))
    return -(
        sum(abs(h + r - t) ** model.norm for h, r, t in zip(head, relation, tail, strict=True)) ** (1 / model.norm)
    )


@pytest.mark.parametrize("model", MODELS)
def test_scores_are_the_formulas_and_slopes_their_gradients(model):
    torch.manual_seed(0)
    head, relation, tail = (torch.randn(5, 7, dtype=torch.float64, requires_grad=True) for _ in range(3))
    scores, weight = model.score(head, relation, tail), torch.rand(5, 1, dtype=torch.float64)
    wanted = [explicit(model, *(x[i].tolist() for x in (head, relation, tail))) for i in range(5)]
    torch.testing.assert_close(scores, torch.tensor(wanted, dtype=torch.float64))
    (scores * weight[:, 0]).sum().backward()
    with torch.no_grad():
        for slope, vector in zip(model.slope(head, relation, tail, weight), (head, relation, tail), strict=True):
            torch.testing.assert_close(slope, vector.grad)
        everything = torch.randn(9, 7, dtype=torch.float64)
        for entity in range(9):
            same = everything[entity].expand(5, 7)
            torch.testing.assert_close(
                model.tails(head, relation, everything)[:, entity], model.score(head, relation, same)
            )
            torch.testing.assert_close(
                model.heads(relation, tail, everything)[:, entity], model.score(same, relation, tail)
            )


@pytest.mark.parametrize("as_head", [True, False])
@pytest.mark.parametrize("model", MODELS)
def test_a_step_follows_the_gradient_of_the_margin_loss(model, as_head):
    torch.manual_seed(1)
    entities, relations = torch.nn.functional.normalize(torch.randn(8, 6)), torch.randn(2, 6)
    known, wrong = torch.tensor([[0, 0, 1], [2, 1, 3]]), torch.tensor([[4, 5], [6, 7]])
    old = [table.clone().requires_grad_() for table in (entities, relations)]
    loss = torch.zeros(())
    for (head, relation, tail), others in zip(known.tolist(), wrong.tolist(), strict=True):
        true = model.score(old[0][head], old[1][relation], old[0][tail])
        for other in others:
            false = model.score(
                old[0][other if as_head else head], old[1][relation], old[0][tail if as_head else other]
            )
            loss = loss + (3.0 - true + false).clamp(min=0) / 2
    loss.backward()
    learner = _Learner(Vectors(entities, relations), Training(model, 6, negatives=2, margin=3.0, rate=0.1))
    torch.testing.assert_close(learner._step(known, wrong, as_head=as_head), loss.detach())
    moved = [x.detach() - 0.1 * x.grad / (1e-10 + x.grad.square().mean(1, keepdim=True)).sqrt() for x in old]
    torch.testing.assert_close(relations, moved[1])
    torch.testing.assert_close(entities, torch.nn.functional.normalize(moved[0]))


@pytest.mark.parametrize("model", MODELS)
def test_ranks_are_those_of_brute_force(model):
    random = np.random.default_rng(0)
    # few different numbers, so that there are ties
    tables = [torch.from_numpy(random.integers(-1, 2, size=(count, 3))).double() for count in (9, 2)]
    vectors = Vectors(*tables)
    known = np.unique(random.integers(0, [9, 2, 9], size=(40, 3)), axis=0)
    facts, asked, wanted = set(map(tuple, known.tolist())), known[::3], []
    for side in (2, 0):
        for triple in asked.tolist():
            scores = {}
            for entity in range(9):
                other = [*triple[:side], entity, *triple[side + 1 :]]
                if entity == triple[side] or tuple(other) not in facts:
                    head, relation, tail = tables[0][other[0]], tables[1][other[1]], tables[0][other[2]]
                    scores[entity] = round(explicit(model, head.tolist(), relation.tolist(), tail.tolist()), 9)
            own = scores.pop(triple[side])
            wanted.append(1 + sum(s > own for s in scores.values()) + sum(s == own for s in scores.values()) / 2)
    found = ranks(model, vectors, asked, known)
    assert found.tolist() == wanted
    assert scores_of(found)["mean_rank"] == pytest.approx(sum(wanted) / len(wanted))
    assert scores_of(found)["hits_3"] == pytest.approx(sum(rank <= 3 for rank in wanted) / len(wanted))


def test_the_order_of_lines_does_not_matter_and_repeated_triples_are_counted(tmp_path):
    lines = triples()
    first, notes = read_graph({"train": [write(tmp_path / "a.tsv", lines)], "test": []})
    assert not notes
    mixed = write(tmp_path / "b.jsonl", [*reversed(lines), lines[0]])
    again, notes = read_graph(
        {"train": [mixed], "test": [write(tmp_path / "t.tsv", [lines[3], ("X", "lies in", "Y")])]}
    )
    assert notes == {
        "train triples that repeat another line, left out": 1,
        "test triples that an earlier split has too, left out": 1,
    }
    assert again.entities == tuple(sorted({*first.entities, "X", "Y"}))
    assert first.fingerprint != again.fingerprint
    assert sorted(map(tuple, first.known.tolist())) == sorted(
        (first.entities.index(h), first.relations.index(r), first.entities.index(t)) for h, r, t in lines
    )


def test_every_entity_keeps_a_training_triple_when_some_are_held_out(tmp_path):
    graph, _ = read_graph({"train": [write(tmp_path / "a.tsv", triples())]})
    held = hold_out(graph, 0.3, 0)
    assert len(held.splits["test"]) == int(0.3 * len(triples()))
    assert set(held.splits["train"][:, [0, 2]].ravel().tolist()) == set(range(len(graph.entities)))
    assert len(held.known) == len(graph.known)


@pytest.mark.parametrize("model,margin", [("transe", 3), ("distmult", 1)])
def test_vectors_learn_a_rule_of_the_graph(tmp_path, model, margin):
    """Where eight people are from is held out: it follows from the city where they live."""
    lines = triples()
    asked = [line for line in lines if line[1] == "is from" and line[0] in PEOPLE[:8]]
    train = write(tmp_path / "train.tsv", [line for line in lines if line not in asked])
    test = write(tmp_path / "test.tsv", asked)
    words = ("--dims", 16, "--epochs", 60, "--rows", 16, "--model", model, "--margin", margin, "--device", "cpu")
    said = works("graph", train, "--test", test, "--out", tmp_path / "v", *words, "--json")
    about = json.loads(said.out)
    made = unmask.open_graph(tmp_path / "v")
    tails = made.vectors.entities[[made.entities.index(name) for name in CITIES]]
    assert tails.norm(dim=1).tolist() == pytest.approx([1.0] * 6, abs=1e-5)
    tail_ranks = ranks(
        TransE() if model == "transe" else DistMult(),
        made.vectors,
        np.array([[made.entities.index(h), made.relations.index(r), made.entities.index(t)] for h, r, t in asked]),
        read_graph({"train": [train, test]})[0].known,
    )[: len(asked)]
    assert np.mean(tail_ranks <= 3) >= 0.9  # of 33 entities
    assert about["scores"]["hits_10"] > 10 / 33
    assert about["tested"] == 8


def test_the_command_refuses_what_has_no_effect_and_names_the_line_of_a_mistake(tmp_path):
    path = write(tmp_path / "g.tsv", triples())
    out = tmp_path / "v"
    assert "--norm 2 has no effect with --model distmult" in mistake(
        "graph", path, "--out", out, "--model", "distmult", "--norm", 2
    )
    assert "has no effect with --test" in mistake("graph", path, "--out", out, "--test", path, "--holdout", "5%")
    assert "did you mean transe" in mistake("graph", path, "--out", out, "--model", "transh")
    assert "--dims must be 1 or more, got 0" in mistake("graph", path, "--out", out, "--dims", 0)
    names = tmp_path / "names.jsonl"
    names.write_text('{"id": "City 0", "label": "Rome"}\n{"id": "City 1"}\n')
    assert "names.jsonl, line 2" in mistake("graph", path, "--out", out, "--names", names)
    path.write_text("Paris\tin\tFrance\nParis\tFrance\n")
    assert "g.tsv, line 2: the line must be a triple" in mistake("graph", path, "--out", out)
    path.write_text("Paris,in,France\n")
    assert "NAME, a tab, relation, a tab, NAME; got 'Paris,in,France'" in mistake("graph", path, "--out", out)
    assert not out.exists()


def test_a_graph_of_which_nothing_can_be_held_out_is_said_to_have_no_scores(tmp_path):
    words = ("--out", tmp_path / "v", "--dims", 4, "--epochs", 1, "--device", "cpu", "--overwrite")
    small = write(tmp_path / "g.tsv", [("Paris", "in", "France")])
    said = "0 triples are left to rank, so there are no scores"
    assert said in " ".join(works("graph", small, *words).err.split())
    assert said in " ".join(works("graph", small, "--test", small, *words).err.split())
    assert said not in works("graph", small, "--holdout", 0, *words).err


def test_a_folder_of_vectors_that_was_changed_is_refused(tmp_path):
    names = tmp_path / "names.tsv"
    names.write_text("City 0\tRome\nCity 0\tRoma\nNowhere\tNo\n")
    ran = works(
        "graph", write(tmp_path / "g.tsv", triples()), "--out", tmp_path / "v", "--dims", 4, "--epochs", 1, "--names", names,
        "--device", "cpu",
    )  # fmt: skip
    assert "hits@10" in ran.out
    log: list[dict] = []
    unmask.graph(
        tmp_path / "g.tsv", tmp_path / "w", dims=4, epochs=20, device="cpu", progress=log.append,
        dev=write(tmp_path / "dev.tsv", [("Person 0", "is from", "Land 1")]),
    )  # fmt: skip
    assert [record["epochs"] for record in log if "dev_mrr" in record] == list(range(2, 21, 2))
    assert "1 line of --names about an entity that no triple has" in ran.err
    made = unmask.open_graph(tmp_path / "v")
    assert made.names[made.entities.index("City 0")] == ("Rome", "Roma")
    assert made.names[made.entities.index("City 1")] == ("City 1",)
    entities = tmp_path / "v" / "entities.jsonl"
    entities.write_text(entities.read_text().replace("City 5", "City 7"))
    with pytest.raises(UserError, match="do not belong together"):
        unmask.open_graph(tmp_path / "v")
