"""Minimal pairs: the file decides, ties are wrong, the table is by paradigm, and every mistake names its line."""

import json
import lzma

import pytest
import torch

import unmask
from tests.command import mistake, works
from tests.convert.in_transformers import classifier
from tests.convert.parts import SENTENCES
from tests.evaluate.test_sentence_scores import WAYS, made
from unmask import evaluate
from unmask.errors import Notice, UserError
from unmask.evaluate.minimal_pairs import Pair, evaluate_pairs, read_pairs
from unmask.evaluate.sentence_scores import score_sentences
from unmask.infer.model import save_run

ROWS = [
    {"good": "The cat sat on the mat.", "bad": "The cat sat the mat on.", "paradigm": "order", "field": "syntax"},
    {"good": "A dog ran.", "bad": "A dog ran ran.", "paradigm": "verbs"},
    {"good": "the old boat", "bad": "the boat old", "paradigm": "order"},
    {"good": "Nobody knows why.", "bad": "Nobody know why.", "paradigm": "verbs"},
    {"good": "rain", "bad": "sun", "paradigm": "a noun"},
]


def written(path, rows=ROWS):
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(lzma.compress(text.encode()) if path.suffix == ".xz" else text.encode())
    return path


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    home = tmp_path_factory.mktemp("pairs")
    save_run(made("gpt2", home / "made"), home / "run")
    return unmask.load(home / "run", device="cpu")


@pytest.mark.parametrize("name", WAYS)
def test_every_recipe_is_scored_on_pairs_and_a_pair_does_not_depend_on_the_others(name, tmp_path):
    model = made(name, tmp_path)
    found = evaluate.evaluate_file(model, written(tmp_path / "pairs.jsonl"))
    good, bad = (score_sentences(model, [row[side] for row in ROWS]).value for side in ("good", "bad"))
    right = [float(a > b) for a, b in zip(good, bad, strict=True)]
    assert (found["pairs"], found["way"]) == (5, WAYS[name])
    assert found["track"] == {
        "ernie-2": "main",
        "gpt-bert": "left + main",
        "unilm": "left",
        "unmask": "left + main",
    }.get(name)
    assert found["accuracy"] == pytest.approx(sum(right) / 5)
    by_name = {"a noun": [right[4]], "order": [right[0], right[2]], "verbs": [right[1], right[3]]}
    expected = [{"paradigm": n, "pairs": len(v), "accuracy": sum(v) / len(v)} for n, v in by_name.items()]
    assert found["paradigms"] == expected
    assert found["mean_over_paradigms"] == pytest.approx(sum(one["accuracy"] for one in expected) / 3)
    alone = [evaluate_pairs(model, [Pair(row["good"], row["bad"])])["accuracy"] for row in ROWS]
    assert alone == right


def test_good_and_bad_exchanged_give_the_opposite(gpt2, tmp_path):
    turned = [row | {"good": row["bad"], "bad": row["good"]} for row in ROWS]
    one, other = (gpt2.evaluate(written(tmp_path / f"{n}.jsonl", rows)) for n, rows in enumerate((ROWS, turned)))
    assert one["accuracy"] + other["accuracy"] == pytest.approx(1)


def test_ties_are_wrong_and_counted(tmp_path):
    model = made("bert", tmp_path)
    found = evaluate_pairs(
        model, [Pair("The cat", "the CAT"), Pair("the 今天", "the 雨雨"), Pair("the cat", "the dog")]
    )
    assert found["accuracy"] in (0.0, 1 / 3)
    assert found["notes"]["pairs have different sentences with equal scores, so they count as wrong"] == 2
    with torch.no_grad():
        for parameter in model.system.parameters():
            parameter.zero_()
    assert evaluate_pairs(model, [Pair("the cat", "cat the")])["accuracy"] == 0


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.xz"])
def test_a_file_without_paradigms_has_no_table(gpt2, tmp_path, suffix):
    rows = [{"good": row["good"], "bad": row["bad"], "paradigm": None} for row in ROWS]
    found = gpt2.evaluate(written(tmp_path / f"pairs{suffix}", rows))
    assert (found["pairs"], found["paradigms"], found["mean_over_paradigms"]) == (5, [], None)
    assert found["accuracy"] == gpt2.evaluate(written(tmp_path / "named.jsonl"))["accuracy"]


def test_progress_counts_tokens_up_to_the_total(gpt2, tmp_path):
    seen = []
    gpt2.evaluate(written(tmp_path / "pairs.jsonl"), progress=seen.append)
    done = [record["tokens"] for record in seen if "tokens_total" in record]
    assert done == sorted(done)
    assert done[-1] == seen[0]["tokens_total"] > 50


def test_the_command_shows_the_accuracy_and_the_table(gpt2, tmp_path):
    file = written(tmp_path / "pairs.jsonl")
    shown = works("evaluate", gpt2.folder, file, "--device", "cpu").out
    assert all(words in shown for words in ("mean over paradigms", "likelihood", "a noun", "order", "verbs"))
    found = json.loads(works("evaluate", gpt2.folder, file, "--device", "cpu", "--json").out)
    fresh = gpt2.evaluate(file)
    assert {name: found[name] for name in ("accuracy", "paradigms", "way")} == {
        name: fresh[name] for name in ("accuracy", "paradigms", "way")
    }


def test_sentences_are_scored_from_python(gpt2):
    texts = SENTENCES[:2]
    assert gpt2.score_sentences(texts) == pytest.approx([gpt2.score_sentences(text)[0] for text in texts], rel=1e-5)


@pytest.mark.parametrize(
    "row, message",
    [
        ({"good": "", "bad": "x"}, "'good' must be a sentence, got ''"),
        ({"good": "x", "bad": 3}, "'bad' must be a sentence, got 3"),
        ({"good": "x"}, "'bad' must be a sentence, got None"),
        ({"good": "x", "bad": "y", "paradigm": ["order"]}, r"paradigm must be a name, got \['order'\]"),
        ({"good": "x", "bad": "y"}, "the pair has no paradigm, but 5 pairs of the file have one"),
        (
            {"good": "x", "bad": "the cat " * 90, "paradigm": "p"},
            "the sentence has .* tokens, but .* at most 63: shorten",
        ),
    ],
)
def test_a_mistake_names_its_line(gpt2, tmp_path, row, message):
    file = written(tmp_path / "pairs.jsonl", [*ROWS, row])
    with pytest.raises(UserError, match=f"pairs.jsonl, line 6: {message}"):
        gpt2.evaluate(file)


def test_an_empty_file_has_no_pairs(tmp_path):
    (tmp_path / "pairs.jsonl").write_text("")
    with pytest.raises(UserError, match="holds no pairs"):
        read_pairs(tmp_path / "pairs.jsonl")


def test_two_equal_sentences_are_a_tie_and_the_first_such_line_is_named(gpt2, tmp_path):
    file = written(tmp_path / "pairs.jsonl", [{"good": "the cat", "bad": "the cat"}, {"good": "a dog", "bad": "a dog"}])
    with pytest.warns(Notice) as told:
        assert gpt2.evaluate(file)["accuracy"] == 0
    assert [str(one.message) for one in told] == [
        f"2 pairs have two equal sentences, so they count as wrong; the first is {file}, line 1"
    ]


def test_options_of_a_text_and_adapted_models_are_refused(gpt2, tmp_path):
    file = written(tmp_path / "pairs.jsonl")
    assert "is scored on minimal pairs: leave them out" in mistake("evaluate", gpt2.folder, file, "--stride", 4)
    assert "is scored on minimal pairs: leave it out" in mistake(
        "evaluate", gpt2.folder, file, "--curve", tmp_path / "c.json"
    )
    with pytest.raises(UserError, match="holds minimal pairs, which score a pretrained model, but .* was adapted"):
        evaluate.evaluate_file(classifier("bert", tmp_path), file)
