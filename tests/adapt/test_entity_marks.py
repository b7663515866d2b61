"""Special tokens around the entities that a task asks about."""

from __future__ import annotations

import json

import pytest
import torch

from tests.adapt.made import base_of
from unmask import adapt as ways
from unmask.adapt import adapt
from unmask.errors import UserError
from unmask.infer import answer, open_run
from unmask.infer.model import save_run
from unmask.infer.passes import laid_out
from unmask.tasks import Classify, Multi
from unmask.tasks._entity_marks import with_marks
from unmask.tasks.relation import Related, Relation

SOME = [
    Related("the doctor slept near the river", (4, 10), (26, 31), "x"),
    Related("a river near the doctor", (2, 7), (17, 23), "y"),
]


@pytest.mark.parametrize(
    "places,expected",
    [
        ([(2, 7), (17, 23)], "a [HD] river [HD] near the [TL] doctor [TL]"),
        ([(17, 23), (2, 7)], "a [TL] river [TL] near the [HD] doctor [HD]"),
        ([(2, 12), (2, 7)], "a [HD] [TL] river [TL] near [HD] the doctor"),
        ([(0, 7), (8, 12)], "[HD] a river [HD] [TL] near [TL] the doctor"),
    ],
)
def test_marks_are_put_around_entities_and_the_entities_move(places, expected):
    text = "a river near the doctor"
    marked, moved = with_marks(text, list(zip(("[HD]", "[TL]"), places, strict=True)))
    assert marked == expected
    for place, (start, end) in zip(places, moved, strict=True):
        assert marked[start:end].replace("[TL] ", "").replace(" [TL]", "") == text[slice(*place)]


def test_a_model_reads_the_marks_of_relations_and_a_saved_one_too(tokenizers, tmp_path):
    base = base_of("bert", tokenizers["wordpiece"], tmp_path / "base")
    save_run(base, base.folder)
    size = base.tokenizer.vocabulary.size
    for _ in adapt(base, SOME, tmp_path / "run", task=Relation(marks=True, epochs=1)):
        pass
    model = open_run(tmp_path / "run", device="cpu")
    assert base.tokenizer.vocabulary.size == size
    assert model.tokenizer.vocabulary.size == size + 2
    rows, _ = laid_out(model, model.recipe.task.lay_out(SOME))
    shown = [model.tokenizer.token(one) for one in rows.ids[0]]
    assert shown.count("[HD]") == shown.count("[TL]") == 2
    inside = [token for token, value in zip(shown, rows.columns["head"].values[0], strict=True) if value >= 0]
    assert shown[shown.index("[HD]") + 1 : shown.index("[HD]", shown.index("[HD]") + 1)] == inside
    assert len(answer(model, SOME).answers) == 2
    with pytest.raises(UserError, match=r"adds the tokens \[HD\] and \[TL\]"):
        list(adapt(base, SOME, tmp_path / "other", task=Relation(marks=True), tune=ways.get("lora")))


@pytest.mark.parametrize("kind", [Classify, Multi])
def test_the_type_of_an_entity_is_a_label_of_a_text_with_a_mark(kind, tokenizers, tmp_path):
    rows = [
        {"text": one.text, "label": one.label, "labels": [one.label, "z"], "entity": list(one.head)} for one in SOME
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    task = kind(mark="entity")
    examples, _ = task.read(tmp_path / "t.jsonl", None)
    laid = task.learn(examples).lay_out(examples)
    assert laid.readings[1].a == "a [ENT] river [ENT] near the doctor"
    base = base_of("bert", tokenizers["wordpiece"], tmp_path / "base")
    before = base.system.backbone.embed.token.weight.detach().clone()
    for _ in adapt(base, examples, tmp_path / "run", task=kind(mark="entity", epochs=1)):
        pass
    model = open_run(tmp_path / "run", device="cpu")
    assert model.tokenizer.encode("a [ENT] river")[1] == len(before)
    assert model.system.backbone.embed.token.weight.shape[0] == len(before) + 1
    assert torch.equal(before, base.system.backbone.embed.token.weight)
    (tmp_path / "t.jsonl").write_text(json.dumps(rows[0] | {"entity": [4, 99]}))
    broken, _ = task.read(tmp_path / "t.jsonl", None)
    with pytest.raises(UserError, match=r"t.jsonl, line 1: mark=entity needs a column 'entity'.*got \[4, 99\]"):
        task.learn(examples).lay_out(broken)
