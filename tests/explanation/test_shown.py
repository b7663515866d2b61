"""An explanation as JSON, on the screen, and by its verb."""

import dataclasses
import json
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.command import mistake, works
from tests.explanation.given import CHINESE, LEXICON, NAMES, PAIR, screen, tiny
from unmask.explanation import Explanation, explain, statistics, to_json
from unmask.explanation.records import shown
from unmask.settings import override
from unmask.text import Tokenizer


def test_an_explanation_is_plain_json(trained: dict[str, Tokenizer]) -> None:
    explanation = explain(tiny("bert"), PAIR, tokenizer=trained["bert"])
    record = to_json(explanation)
    assert json.loads(json.dumps(record)) == record
    assert record["recipe"] == "bert"
    assert len(record["visible"]) == len(record["tokens"]) == len(explanation.tokens)
    assert set(record) == {field.name for field in dataclasses.fields(Explanation)}


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("name", NAMES)
def test_the_screen_is_never_wider_than_the_terminal(name: str, width: int, trained: dict[str, Tokenizer]) -> None:
    for text in (PAIR, CHINESE, f"{PAIR} " * 20):
        lines = screen(explain(tiny(name), text, tokenizer=trained[name]), width).splitlines()
        assert max(map(cell_len, lines)) <= width


def test_the_screen_shows_what_was_hidden_without_colours(trained: dict[str, Tokenizer]) -> None:
    explanation = explain(tiny("bert"), PAIR, tokenizer=trained["bert"], visit=1)
    text = " ".join(screen(explanation, 200).split())
    for token in explanation.tokens:
        if token.hidden:
            assert "{" + shown(token.original) + "→" + shown(token.text) + "}" in text
    assert "##" not in text


def test_settings_of_the_recipe_show_in_its_choices(trained: dict[str, Tokenizer]) -> None:
    recipe = override(tiny("bert"), ["hide.budget=0.3", "arrange=Blocks"])
    explanation = explain(recipe, PAIR, tokenizer=trained["bert"])
    parts = {choice.axis: choice.part for choice in explanation.choices}
    assert "budget 0.3" in parts["hide"]
    assert parts["arrange"].startswith("Blocks")
    assert "predict sentence" not in parts


def test_the_verb_takes_a_lexicon_a_stage_and_a_variant(tmp_path: Path) -> None:
    (tmp_path / "lexicon.tsv").write_text(LEXICON, encoding="utf-8")
    words = ("explain", "ernie", CHINESE, "--lexicon", tmp_path / "lexicon.tsv", "--stage", 2, "--json")
    record = json.loads(works(*words).out)
    assert record["drawn"][0]["name"] == "phrase"
    assert [entry["level"] for entry in record["found"]][:3] == ["phrase", "entity", "entity"]
    assert json.loads(works("explain", "bert", PAIR, "--variant", "code", "--json").out)["variant"] == "code"


def test_the_verb_takes_a_track(shards: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(statistics.measure.__kwdefaults__, "tokens", 20_000)
    words = ("explain", "unilm", PAIR, "--size", "tiny")
    record = json.loads(works(*words, "--track", "prefix", "--json").out)
    assert (record["track"], record["drawn"][0]["name"]) == ("prefix", "prefix")
    assert json.loads(works(*words, "--json").out)["track"] == "main"
    assert "33% of the rows are of this track" in " ".join(works(*words, "--track", "prefix").out.split())
    assert "main, prefix, left, right" in mistake(*words, "--track", "both")
    measured = (
        "explain",
        "unilm",
        "--size",
        "tiny",
        "--set",
        "schedule.0.length=64",
        "--statistics",
        shards["wordpiece"],
    )
    assert "rows of view prefix" in works(*measured).out
    assert "rows of view" not in works(*measured, "--track", "main").out
    assert "main, prefix, left, right" in mistake(*measured, "--track", "both")


def test_the_verb_measures_prepared_data(shards: dict[str, Path]) -> None:
    words = (
        "explain",
        "spanbert",
        "--size",
        "tiny",
        "--set",
        "schedule.0.length=64",
        "--statistics",
        shards["wordpiece"],
    )
    assert json.loads(works(*words, "--json").out)["recipe"] == "spanbert"
    assert "words in a unit, on average" in works(*words).out
    assert "one of them" in mistake(*words[:2], "a text", *words[2:])
    assert "one of them" in mistake("explain", "bert")
    assert "leave --tokenizer" in mistake(*words, "--picture", "x.png")
