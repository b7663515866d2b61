"""Components of characters in runs: a character that is in no text is embedded as the sum of its parts, and no run needs the file again."""

from __future__ import annotations

import json
import random
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import unmask
from tests.command import mistake, pretrain, run, works
from unmask import text
from unmask.errors import UserError
from unmask.train import checkpoint
from unmask.vectors.components import ComponentTable

TABLE = {
    "河": "⿰氵可", "海": "⿰氵每", "何": "⿰亻可", "江": "氵工", "侮": "亻每", "洂": "氵亻", "溰": "亻 氵", "林": "木木", "龘": "龍龍龍",
}  # fmt: skip
IN_TEXT, UNSEEN = "河海何江林", "侮洂溰"
PLAIN = "人大一不在有水山天日"  # they are in the text and not in the table
COMPONENTS = "system.backbone.components"


def documents(characters: str, count: int = 80) -> str:
    dice = random.Random(0)
    lines = ("".join(dice.choice(characters) for _ in range(20)) + "。" for _ in range(2 * count))
    return "\n\n".join(f"{one}\n{other}" for one, other in zip(lines, lines, strict=True))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A table, data with a tokenizer that knows characters which are in no text, and a run whose table was deleted."""
    place = tmp_path_factory.mktemp("components")
    table = place / "parts.tsv"
    table.write_text("".join(f"{one}\t{parts}\n" for one, parts in TABLE.items()), encoding="utf-8")
    (place / "text.txt").write_text(documents(IN_TEXT + PLAIN), encoding="utf-8")
    (place / "more.txt").write_text("\n".join(UNSEEN), encoding="utf-8")
    tokenizer = place / "tok.json"
    works(
        "tokenizer", place / "text.txt", place / "more.txt", "--kind", "characters", "--vocab", 60, "--out", tokenizer
    )
    prepare(place, "text.txt", "data")
    shutil.copy(table, place / "kept.tsv")
    ran = train(place, place / "run")
    table.unlink()
    return SimpleNamespace(folder=place, run=place / "run", data=place / "data", said=ran.err)


def prepare(place, file, out):
    works("prepare", place / file, "--tokenizer", place / "tok.json", "--out", place / out, "--workers", 1)


def train(place, out, *words, recipe="bert", **options):
    given = ["--set", f"{COMPONENTS}=Components(file='{place / 'parts.tsv'}')", "--set", "optimise.rate=0.01"]
    return pretrain(recipe, place / "data", out, *given, *words, **options)


def table_of(run):
    """The embeddings of a run, and the ids of some characters."""
    model = unmask.load(run, device="cpu")
    backend = model.tokenizer.backend
    return model.system.backbone.embed.token, lambda several: torch.tensor(
        [backend.token_to_id(one) for one in several]
    )


def test_a_character_that_is_in_no_text_gets_the_vector_of_its_parts(place):
    table, ids = table_of(place.run)
    names = ComponentTable.load(place.folder / "kept.tsv").only(IN_TEXT + UNSEEN).names
    vector = dict(zip(names, table.component, strict=False))
    for one in UNSEEN:
        parts = [part for part in TABLE[one] if part in names]
        expected = sum(vector[part] for part in parts)
        assert torch.equal(table(ids(one))[0], expected)
        assert expected.abs().max() > 1e-3  # its parts have learned from other characters
        assert table.weight[ids(one)].any()  # its own vector is an output, and is not read
    assert torch.equal(*table(ids("洂溰")))  # equal parts
    assert not torch.equal(*table(ids("侮洂")))
    for one in IN_TEXT:
        parts = [part for part in TABLE[one] if part in names]
        torch.testing.assert_close(table(ids(one))[0], table.weight[ids(one)[0]] + sum(vector[part] for part in parts))
    assert torch.equal(table(ids(PLAIN)), table.weight[ids(PLAIN)])


def test_pretraining_says_which_characters_have_components_and_which_do_not(place):
    assert "8 of 25 tokens of the vocabulary have components in " in place.said
    assert "parts.tsv, 6 different ones" in place.said
    assert f"{len(PLAIN)} characters of the vocabulary are not in the table of components, such as 一" in place.said
    assert "note: 1 character of " in place.said
    assert (
        "parts.tsv is not in the vocabulary, such as 龘: a character without a token is read as unknown" in place.said
    )
    assert "3 tokens with components are not in the training text" in place.said


def test_the_model_is_used_and_adapted_without_the_file(place, tmp_path):
    assert not (place.folder / "parts.tsv").exists()
    model = unmask.load(place.run, device="cpu")
    assert model.fill("河海[MASK]江。")
    same, other = model.embed(["一侮一", "一洂一", "一溰一"])[1:], model.embed(["一侮一"])[0]
    assert np.allclose(*same, atol=1e-6)
    assert not np.allclose(same[0], other, atol=1e-3)
    rows = [{"text": f"河{one}海", "label": str(i % 2)} for i, one in enumerate(PLAIN + UNSEEN)]
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    options = ("--set", "epochs=1", "--set", "length=16", "--device", "cpu")
    for tune in ("full", "lora"):
        works("adapt", place.run, tmp_path / "train.jsonl", "--out", tmp_path / tune, "--tune", tune, *options)
        table, ids = table_of(tmp_path / tune)
        assert torch.equal(table(ids(UNSEEN)), table.sums(ids(UNSEEN)))


@pytest.mark.parametrize("lost", ["nothing", "weights"])
def test_an_interrupted_run_resumes_to_the_same_bytes_without_the_file(place, tmp_path, lost):
    folder, file = place.folder, place.folder / "parts.tsv"
    shutil.copy(folder / "kept.tsv", file)
    seen = []
    recipe = unmask.recipes.get("bert", size="tiny", settings=[f"{COMPONENTS}=Components(file='{file}')", "schedule.*.length=32",
                                                              "schedule.*.rows=8"])  # fmt: skip
    options = {"budget": "6steps", "device": "cpu", "seed": 0}
    steps = unmask.pretraining.pretrain
    for _ in steps(recipe, [place.data], tmp_path / "whole", **options):
        pass
    for record in steps(recipe, [place.data], tmp_path / "parts", **options, stop=lambda: len(seen) >= 3):
        seen.extend(["step"] if "step" in record else [])
    file.unlink()
    if lost == "weights":  # killed before the first checkpoint
        shutil.rmtree(tmp_path / "parts" / "state")
        (tmp_path / "parts" / "weights.safetensors").unlink(missing_ok=True)
    works("pretrain", "--resume", "--out", tmp_path / "parts", "--device", "cpu")
    whole, parts = ((tmp_path / one / checkpoint.WEIGHTS).read_bytes() for one in ("whole", "parts"))
    assert whole == parts


def test_a_run_that_continues_gives_own_vectors_to_the_characters_of_its_text(place, tmp_path):
    (place.folder / "new.txt").write_text(documents(PLAIN + "侮"), encoding="utf-8")
    prepare(place.folder, "new.txt", "new")
    pretrain("bert", place.folder / "new", tmp_path / "run", "--from", place.run, steps=1)
    table, ids = table_of(tmp_path / "run")
    assert table.own[ids(IN_TEXT + "侮洂溰")].tolist() == [True] * 6 + [False] * 2
    said = train(place.folder, tmp_path / "x", "--from", place.run, call=mistake)
    assert "would have no effect, because the network comes from a run" in said


@pytest.mark.parametrize(
    "table, said",
    [
        (None, "components.file is none"),
        ("none.tsv", "no table of components at"),
        ("河\t氵可\n海氵每\n", "line 2: '海氵每' has no character with components"),
        ("河\t氵可\n河\t可\n", "line 2: 河 is given a second time"),
        ("龘\t龍\n", "has none of the characters of the tokenizer"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(place, tmp_path, table, said):
    value = "Components"
    if table is not None:
        file = tmp_path / "parts.tsv"
        if "\t" in table:
            file.write_text(table, encoding="utf-8")
        value = f"Components(file='{file}')"
    got = pretrain("bert", place.data, tmp_path / "run", "--set", f"{COMPONENTS}={value}", call=mistake)
    assert said in got
    assert not (tmp_path / "run").exists()
    if "龘" not in str(table):
        source = place.folder / "text.txt"
        ran = pretrain("bert", source, tmp_path / "run", "--set", f"{COMPONENTS}={value}", call=run)
        assert said in ran.err
        assert ran.err.count("\n") == 1  # no tokenizer was trained


def test_a_trained_recipe_that_is_trained_again_reads_the_file_again(place, tmp_path):
    """Its sizes are known, but a new network has no table."""
    recipe = unmask.load(place.run, device="cpu").recipe
    assert recipe.system.backbone.components.count == 6
    with pytest.raises(UserError, match="no table of components at"):
        list(unmask.pretraining.pretrain(recipe, [place.data], tmp_path / "run", budget="1steps", device="cpu"))


def test_no_architecture_of_hugging_face_reads_components(place, tmp_path):
    assert "adds the components of characters to its embeddings" in mistake("export", place.run, tmp_path / "hf")


def test_tokens_of_several_characters_have_the_components_of_all_of_them(tmp_path):
    (tmp_path / "a.txt").write_text("ab ba abab baba " * 50)
    tokenizer = text.train(text.kind_named("wordpiece", 12), text.Corpus([tmp_path / "a.txt"]), at_most=True)
    texts = dict(zip(map(tokenizer.token, range(tokenizer.vocabulary.size)), tokenizer.texts(), strict=True))
    assert texts["[MASK]"] == ""
    assert texts["##b"] == "b"
    table = ComponentTable({"a": ("x", "y"), "b": ("y",), "#": ("z",)})
    assert (
        table.numbers(["ab", "##b".removeprefix("##"), "", "c"]).tolist()
        == [[0, 1, 1], [1, -1, -1], [-1] * 3, [-1] * 3][:4]
    )
