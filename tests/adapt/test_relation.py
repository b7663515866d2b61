"""Relations between two marked entities of a text."""

import json

import numpy as np
import pytest
import torch

import unmask
from tests.adapt.made import base_of, loud
from tests.command import works
from unmask.adapt import adapt
from unmask.data.examples import rows_of_task
from unmask.data.pack_examples import batch_of
from unmask.errors import UserError
from unmask.infer import open_run
from unmask.infer.model import save_run
from unmask.tasks.relation import Related, Relation

TEXT = {"text": "The doctor slept near London.", "head": [4, 10], "tail": {"start": 22, "end": 28}, "label": "near"}
WORDS = {"tokens": ["The", "doctor", "slept", "near", "London"], "head": {"name": "doctor", "positions": [[0, 1]]}, "tail": [4, 5], "label": 3}  # fmt: skip


def test_entities_are_given_by_characters_or_by_words(tmp_path):
    file = tmp_path / "t.jsonl"
    file.write_text("\n".join(map(json.dumps, [TEXT, WORDS])))
    found, _ = Relation().read(file, None)
    assert [(one.text[slice(*one.head)], one.text[slice(*one.tail)], one.label) for one in found] == [
        ("doctor", "London", "near"), ("The doctor", "London", "3"),
    ]  # fmt: skip
    assert unmask.tasks.kind_of(file) == "relation"


def test_a_blank_word_keeps_its_number(tmp_path):
    row = {"tokens": ["The", "star", "(", " ", "Chi", ")"], "head": [1, 2], "tail": {"positions": [[4]]}, "label": "is"}
    (tmp_path / "t.jsonl").write_text(json.dumps(row))
    (found,), _ = Relation().read(tmp_path / "t.jsonl", None)
    assert (found.text[slice(*found.head)], found.text[slice(*found.tail)]) == ("star", "Chi")


@pytest.mark.parametrize(
    "change,expected",
    [
        ({"head": [10, 4]}, r'"head" must be \[start, end\].*got \[10, 4\]'),
        ({"tail": [0, 99]}, '"tail" must be .* in 0 to 29; got'),
        ({"tail": None}, '"tail" must be .*got None'),
        ({"tail": [3, 4]}, r'"tail" is \[3, 4\], where the text has only spaces: give the characters of the entity'),
        ({"text": ""}, 'an example needs "text"'),
        ({"label": 0.5}, 'needs "label", a word or a whole number, got 0.5'),
    ],
)
def test_a_wrong_row_is_named_with_its_file_and_line(tmp_path, change, expected):
    (tmp_path / "t.jsonl").write_text(json.dumps(TEXT | change))
    with pytest.raises(UserError, match=expected) as raised:
        Relation().read(tmp_path / "t.jsonl", None)
    assert str(raised.value).startswith(f"{tmp_path / 't.jsonl'}, line 1: ")


SOME = [
    Related("the doctor slept near the river", (4, 10), (26, 31), "x"),
    Related("a river near the doctor", (2, 7), (17, 23), "y"),
]


def test_the_scores_are_those_of_an_explicit_loop(tokenizers, tmp_path):
    base = base_of("bert", tokenizers["wordpiece"], tmp_path / "base")
    task = Relation().learn(SOME)
    recipe = task.recipe(base)
    system = recipe.system.build(recipe, base.tokenizer.vocabulary, 0).eval()
    head = system.predict["relation"]
    loud(head)
    rows, _ = rows_of_task(task.lay_out(SOME), base.tokenizer, recipe.layout, 48)
    batch, _ = system.hide(batch_of(rows, np.arange(2)))
    with torch.no_grad():
        hidden, _ = system.backbone(batch, None)
        found = head.decode(hidden, batch)
        for i, one in enumerate(SOME):
            places = batch.columns["characters"][i].tolist()
            parts = [head.dense(torch.tanh(hidden.last[i, 0]))]
            for begin, end in (one.head, one.tail):
                own = [hidden.last[i, t] for t, (a, b) in enumerate(places) if a < end and b > begin]
                parts.append(head.entity(torch.tanh(sum(own) / len(own))))
            torch.testing.assert_close(found[i], head.out(torch.cat(parts)))


def test_a_model_learns_from_which_entities_are_marked(tokenizers, tmp_path):
    base = base_of("bert", tokenizers["wordpiece"], tmp_path / "base")
    text = "the doctor slept near the river"
    some = [Related(text, (4, 10), (26, 31), "x"), Related(text, (26, 31), (4, 10), "y")] * 4  # only the marks differ
    records = list(adapt(base, some, tmp_path / "run", task=Relation(epochs=20, examples=8, rate=5e-3), dev=some))
    assert records[-1]["kept_epoch"]["dev_macro_f1"] == 1.0
    assert open_run(tmp_path / "run", device="cpu").labels == ("x", "y")


def test_relations_from_the_command_line(tokenizers, tmp_path):
    save_run(base_of("gpt2", tokenizers["byte-bpe"], tmp_path / "base"), tmp_path / "base")
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, [TEXT, WORDS])))
    works("adapt", tmp_path / "base", tmp_path / "t.jsonl", "--out", tmp_path / "run", "--set", "epochs=1")
    assert "macro F1" in works("evaluate", tmp_path / "run", tmp_path / "t.jsonl").out
    out = works("predict", tmp_path / "run", tmp_path / "t.jsonl", "--top", 2).out
    assert "[doctor / London]" in out


def test_entities_that_are_cut_off_are_counted(tokenizers, tmp_path):
    base = base_of("bert", tokenizers["wordpiece"], tmp_path / "base")
    rows, notes = rows_of_task(Relation().learn(SOME).lay_out(SOME), base.tokenizer, base.recipe.layout, 8)
    seen = [(rows.columns[name].values >= 0).any(1).tolist() for name in ("head", "tail")]
    assert notes["texts whose tail was cut off"] == seen[1].count(False) > 0
    assert notes["texts whose head was cut off"] == seen[0].count(False)
