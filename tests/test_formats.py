"""Runs of earlier formats open, and give the numbers that they gave then."""

import json
from pathlib import Path

import numpy as np
import pytest

import unmask
from unmask import formats
from unmask.backbone import Learned, Sinusoidal
from unmask.errors import UserError
from unmask.run import from_json, to_json
from unmask.tasks.choose import Question

RUNS = sorted(path for path in (Path(__file__).parent / "runs").glob("format_*/*") if path.is_dir())
GAP = "the doctor [MASK] the report."
TEXTS = ["the doctor examined an open wound.", "the river"]


@pytest.mark.parametrize("run", RUNS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_run_of_an_earlier_format_gives_what_it_gave(run):
    model = unmask.load(run, device="cpu")
    expected = json.loads((run / "expected.json").read_text(encoding="utf-8"))
    assert np.allclose(model.embed(TEXTS), expected["embed"], atol=1e-5)
    if "predict" in expected:
        found = model.predict(TEXTS[:1])[0].probabilities
        assert found == pytest.approx(expected["predict"][0], abs=1e-5)
    if "choose" in expected:
        found = model.predict([Question("the river", ("is long", "is old", "is blue"))])[0].probabilities
        assert list(found.values()) == pytest.approx(expected["choose"][0], abs=1e-5)
    if "fill" in expected:
        found = [[guess.probability for guess in place] for place in model.fill(GAP, top=3)]
        assert np.allclose(found, expected["fill"], atol=1e-5)
    if "generate" in expected:
        tokens = 5 if run.name.endswith("-write") else 6
        assert model.generate("the river", tokens=tokens, greedy=True) == expected["generate"]
    assert json.loads(to_json(model.recipe))["format"] == formats.NEWEST


def test_there_are_runs_of_every_earlier_format():
    assert {path.parent.name for path in RUNS} >= {f"format_{number}" for number in range(1, formats.NEWEST)}


def test_rows_of_a_stage_come_from_the_tokens_of_a_step():
    recipe = unmask.load(Path(__file__).parent / "runs" / "format_1" / "bert", device="cpu").recipe
    assert [(stage.rows, stage.length) for stage in recipe.schedule] == [(16, 16), (8, 32)]


@pytest.mark.parametrize(
    ("word", "every", "part"),
    [("learned", False, Learned()), ("learned", True, Learned(every=True)), ("sinusoidal", False, Sinusoidal()),
     ("sinusoidal", True, Sinusoidal(every=True))],
)  # fmt: skip
def test_positions_were_a_word_and_are_a_part(word, every, part):
    data = json.loads(
        (Path(__file__).parent / "runs" / "format_2" / "gpt2" / "recipe.json").read_text(encoding="utf-8")
    )
    data["system"]["backbone"] |= {"positions": word, "every": every}
    assert from_json(json.dumps(data)).system.backbone.positions == part


@pytest.mark.parametrize("value", ["unknown", 5, None, ["learned"], {}])
def test_positions_that_never_were_are_refused(value):
    data = json.loads(
        (Path(__file__).parent / "runs" / "format_2" / "gpt2" / "recipe.json").read_text(encoding="utf-8")
    )
    data["system"]["backbone"] |= {"positions": value}
    with pytest.raises(UserError):
        from_json(json.dumps(data))


def test_a_format_of_the_future_is_refused():
    data = json.loads(to_json(unmask.load(RUNS[0], device="cpu").recipe)) | {"format": formats.NEWEST + 1}
    data["written_by"] = "9.8.7"
    with pytest.raises(UserError, match=f"reads formats 1 to {formats.NEWEST}: unmask 9.8.7 wrote it: install that"):
        from_json(json.dumps(data))
    del data["written_by"]
    with pytest.raises(UserError, match=f"reads formats 1 to {formats.NEWEST}: install a newer unmask"):
        from_json(json.dumps(data))


def test_a_recipe_says_which_version_wrote_it():
    recipe = unmask.load(RUNS[0], device="cpu").recipe
    assert json.loads(to_json(recipe))["written_by"] == unmask.__version__
    assert from_json(to_json(recipe)) == recipe
