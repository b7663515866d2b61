"""The files of the page, and the routes of data that it needs."""

import json
import re
import urllib.request

import numpy as np
import pytest

import unmask
from tests.serving.conftest import get, post, running, service_of
from unmask import recipes
from unmask.axes import rules
from unmask.recipe import Recipe
from unmask.serving.app import PAGE
from unmask.serving.page_routes import MOST_POINTS, MOST_TOKENS
from unmask.settings import override


@pytest.fixture(scope="module")
def logged(runs, tmp_path_factory):
    """A service of one run with a folder of runs, one of which has a log; clients need a key."""
    folder = tmp_path_factory.mktemp("logged")
    (folder / "bert").symlink_to(runs / "bert")
    (folder / "killed").mkdir()
    (folder / "killed" / "recipe.json").write_text("{}")
    records = [{"step": step, "loss": 9 / step} for step in range(1, 2_001)]
    records[99]["validation_loss"] = 0.5
    (folder / "killed" / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records) + '{"step": 2')
    with running(service_of(runs, "bert", runs=folder), keys=["first-key"]) as url:
        yield url


def test_the_page_is_open_and_loads_nothing_from_elsewhere(logged):
    names = ["index.html"]
    for name in names:  # it grows by what the files name
        with urllib.request.urlopen(f"{logged}/{name}") as answer:
            text = answer.read().decode()
        assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)|@import|url\(", text), name
        names += [one for one in re.findall(r'(?:from "\./|href="|src=")([^"#]+)"', text) if one not in names]
    assert sorted(names) == sorted(path.name for path in PAGE.iterdir())
    assert get(logged, "/")[1] == (PAGE / "index.html").read_text()
    assert "Content-Security-Policy\" content=\"default-src 'self'" in get(logged, "/")[1]
    assert get(logged, "/choices")[0] == 401


def test_every_setting_that_the_page_offers_exists(url):
    _, choices = get(url, "/choices")
    assert [one["name"] for one in choices["models"]] == [one["id"] for one in get(url, "/v1/models")[1]["data"]]
    assert [one["name"] for one in choices["models"] if one["continues"]] == ["gpt2"]
    assert [one["name"] for one in choices["models"] if one["pairs"]] == ["pairs"]
    assert {one["name"] for one in choices["recipes"]} == set(recipes.names())
    assert {"Tokens", "Words"} < {one["name"] for one in choices["units"]}
    new = {"budget": "0.3", "units": "Words", "view": "LeftToRight"}
    for recipe in choices["recipes"]:
        own = recipes.get(recipe["name"])
        for track, settings in recipe["tracks"].items():
            for word, known in settings.items():
                changed = override(own, [f"{known['setting']}={new[word]}"])
                assert isinstance(changed, Recipe)
                assert new[word] in str(_chosen(changed, track)[word]), (recipe["name"], track, word)
    tracks = {recipe["name"]: recipe["tracks"] for recipe in choices["recipes"]}
    assert tracks["bert"]["main"]["budget"] == {"setting": "hide.budget", "value": 0.15}
    assert tracks["gpt2"]["main"] == {"view": {"setting": "see", "value": "LeftToRight"}}
    assert tracks["structbert"]["main"]["units"]["setting"] == "hide.0.units"
    assert tracks["bart"]["main"]["budget"]["setting"] == "hide.2.budget"


def test_nearly_all_that_a_visitor_chooses_from_has_chinese_words(url):
    """Those that have none are shown in English."""
    _, choices = get(url, "/choices")
    known = (PAGE / "chinese.js").read_text(encoding="utf-8")
    texts = [one["idea"] for one in choices["recipes"]] + [one["about"] for one in choices["units"] + choices["views"]]
    sentences = [one for text in texts for one in text.removesuffix(".").split(". ")]
    lacking = [one for one in sentences if f'"{one}"' not in known]
    assert len(lacking) < len(sentences) / 4, lacking


def _chosen(recipe, track):
    """The budget, the units and the view of a track."""
    found = recipe.all_tracks(recipe.schedule[-1])[track]
    hide = next((rule for rule in rules(found.hide) if hasattr(rule, "budget")), None)
    return {"budget": getattr(hide, "budget", None), "units": getattr(hide, "units", None), "view": found.see}


def test_words_are_whole_and_have_their_characters(url, service):
    text = "The doctor opened 医院 near London."
    _, found = post(url, "/models/tags/words", {"text": text})
    assert [one["text"] for one in found] == [
        service.models.get("tags").model.tokenizer.readable(i)
        for i in service.models.get("tags").model.tokenizer.encode(text)
    ]
    spans = {}
    for one in found:
        start, _ = spans.get(one["word"], (one["start"], 0))
        spans[one["word"]] = start, one["end"]
    words = [text[start:end] for start, end in spans.values()]
    assert [word for word in words if word.isascii()] == ["The", "doctor", "opened", "near", "London", "."]
    assert "".join(words) == text.replace(" ", "")


def test_attention_is_that_of_the_python_api(url, runs):
    model = unmask.load(runs / "gpt2", device="cpu")
    expected = model.attention("the cat sat")
    for layer, weights in enumerate(expected.layers, 1):
        status, found = post(url, "/models/gpt2/attention", {"text": "the cat sat", "layer": layer})
        assert status == 200
        assert (found["layers"], found["heads"]) == (len(expected.layers), len(weights))
        assert tuple(found["tokens"]) == expected.tokens
        np.testing.assert_allclose(found["weights"], weights.numpy(), atol=6e-5)


def test_a_layer_that_is_not_there_and_a_long_text_are_refused(url):
    status, said = post(url, "/models/bert/attention", {"text": "the cat", "layer": 9})
    assert status == 422
    assert "layer must be between 1 and" in said["error"]
    status, said = post(url, "/models/tags/attention", {"text": "a " * (MOST_TOKENS + 1)})
    assert status == 422
    assert "send a shorter" in said["error"]
    assert post(url, "/models/none/attention", {"text": "a"})[0] == 404


def test_losses_of_all_runs_of_the_folder_are_read_also_of_a_killed_one(logged):
    _, found = get(logged, "/losses", headers={"authorization": "Bearer first-key"})
    curves = {one["name"]: one for one in found}
    assert curves["bert"] == {"name": "bert", "training": [], "held_out": [], "done": False}
    killed = curves["killed"]
    assert len(killed["training"]) == MOST_POINTS
    assert killed["training"][0] == [1, 9.0]
    assert killed["training"][-1] == [2_000, 9 / 2_000]
    assert killed["held_out"] == [[100, 0.5]]
