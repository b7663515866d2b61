"""Pairs of a source and a target: prepared, arranged and packed so that each side fills at most half of a row."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.command import mistake, works
from unmask import recipes, text
from unmask.data import Collection, Shards, SourceTarget
from unmask.data.prepare import prepare
from unmask.data.source_target import CUT
from unmask.errors import UserError
from unmask.pretraining.mixture import Mixture
from unmask.text.encode import SIDE

LAYOUT = "a [SEP] b [SEP]"
PAIRS = [
    ("the doctor examined", "three valves"),
    ("a river", "near london " * 9),
    ("rain", "no evidence\nat all"),
    ("snow", "ice"),
]


def written(folder, pairs=PAIRS, name="pairs.jsonl", **more):
    path = folder / name
    lines = [json.dumps({"source": source, "target": target} | more) for source, target in pairs]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def prepared(path, tokenizer, out):
    *_, manifest = prepare(text.Corpus([path]), tokenizer, out, holdout=0.0, workers=1)
    return manifest


def test_a_document_is_a_pair_and_its_sides_are_those_of_the_texts_alone(tokenizers, tmp_path):
    for kind in ("byte-bpe", "wordpiece"):
        tokenizer = tokenizers[kind]
        manifest = prepared(written(tmp_path), tokenizer, tmp_path / kind)
        assert (manifest["pairs"], manifest["documents"]) == (True, 4)
        stored = Collection(Shards(tmp_path / kind).split("train")).gather(np.arange(4))
        edges = stored.sentence[stored.document]
        for number, (source, target) in enumerate(PAIRS):
            ids = stored.ids[edges[number] : edges[number + 1]]
            side = stored.columns[SIDE].values[edges[number] : edges[number + 1]]
            assert ids[side == 0].tolist() == tokenizer.encode(source)
            assert ids[side == 1].tolist() == tokenizer.encode(" ".join(target.split()))


def test_rows_have_whole_pairs_and_at_most_half_a_row_of_each_side(tokenizers, tmp_path):
    tokenizer, length = tokenizers["wordpiece"], 32
    dice = np.random.default_rng(0)
    words = "the doctor river london rain snow window bridge".split()
    pairs = [
        (" ".join(dice.choice(words, dice.integers(1, 9))), " ".join(dice.choice(words, dice.integers(1, 9))))
        for _ in range(60)
    ]
    prepared(written(tmp_path, pairs), tokenizer, tmp_path / "data")
    recipe = recipes.get("transformer", size="tiny", settings=["schedule.0.rows=4", f"schedule.0.length={length}"])
    loader = Mixture.open([tmp_path / "data"]).loader(recipe, length, 0, None, 4)
    end, most, found = tokenizer.role("sep"), 0, []
    while loader.visits == 0:
        batch = loader.batch(1)
        for side in (0, 1):
            assert int((batch.real & (batch.segment == side)).sum()) <= length // 2
        most = max(most, int(batch.example.max()) + 1)
        for example in range(int(batch.example.max()) + 1):
            mine = batch.example[0] == example
            sides = [batch.ids[0][mine & (batch.segment[0] == side)].tolist() for side in (0, 1)]
            assert [ids[-1] for ids in sides] == [end, end]
            found.append(tuple(tuple(ids[:-1]) for ids in sides))
    assert most > 1  # several pairs share a row
    room = length // 2 - 1
    expected = [tuple(tuple(tokenizer.encode(side)[:room]) for side in pair) for pair in pairs]
    assert sorted(found) == sorted(expected)


def test_a_pair_that_is_too_long_is_cut_and_counted(tokenizers, tmp_path):
    prepared(written(tmp_path), tokenizers["wordpiece"], tmp_path / "data")
    stored = Collection(Shards(tmp_path / "data").split("train")).gather(np.arange(4))
    runs = SourceTarget().runs(stored, LAYOUT, 24, None)
    assert dict(runs.notes) == {CUT.format(11): 1}
    assert np.bincount(runs.example, weights=runs.length).max() <= 24
    with pytest.raises(UserError, match="rows of 2 tokens leave no room for a source and a target"):
        SourceTarget().runs(stored, LAYOUT, 2, None)


def test_a_rule_gives_the_encoder_the_sources_and_the_decoder_the_targets(tokenizers, tmp_path):
    """By loops: what the encoder reads, what the decoder reads one place later, and what it predicts."""
    tokenizer, end = tokenizers["wordpiece"], tokenizers["wordpiece"].role("sep")
    prepared(written(tmp_path, PAIRS * 5), tokenizer, tmp_path / "data")
    recipe = recipes.get("transformer", size="tiny", settings=["schedule.0.rows=4", "schedule.0.length=64"])
    raw = Mixture.open([tmp_path / "data"]).loader(recipe, 64, 0, None, 4).batch(4)
    batch = recipe.system.build(recipe, tokenizer.vocabulary, 0).hide(raw)[0]
    assert batch.shape == batch.decoder.shape == (4, 32)
    targets = batch.decoder.targets["tokens"]
    answer, weight = (getattr(targets, name).view(4, 32) for name in ("ids", "weight"))
    for row in range(4):
        for example in range(int(raw.example[row].max()) + 1):
            source, target = (
                raw.ids[row][(raw.example[row] == example) & (raw.segment[row] == side)].tolist() for side in (0, 1)
            )
            mine, his = batch.example[row] == example, batch.decoder.example[row] == example
            assert batch.ids[row][mine].tolist() == source
            assert batch.position[row][mine].tolist() == list(range(len(source)))
            assert batch.decoder.ids[row][his].tolist() == [end, *target[:-1]]
            assert answer[row][his].tolist() == target
            assert weight[row][his].tolist() == [1.0] * len(target)
            assert batch.decoder.position[row][his].tolist() == list(range(len(target)))
    assert int(weight.sum()) == int((raw.real & (raw.segment == 1)).sum())


def test_empty_sides_are_left_out_and_counted_and_wrong_files_are_refused(tokenizers, tmp_path):
    path = written(tmp_path, [*PAIRS, ("", "x"), ("y", " \n ")])
    manifest = prepared(path, tokenizers["wordpiece"], tmp_path / "data")
    assert manifest["documents"] == 4
    assert manifest["notes"][f"pairs with an empty source or target, left out; the first is {path}, line 5"] == 2
    (tmp_path / "text.txt").write_text("the doctor\n\na river")
    with pytest.raises(UserError, match=r'pairs.jsonl has "source" and "target", but .*text.txt has not'):
        text.Corpus([path, tmp_path / "text.txt"])
    with path.open("a") as file:
        file.write('\n{"source": "only"}')
    with pytest.raises(UserError, match='line 7: this line is not a JSON object with the fields "source" and "target"'):
        prepared(path, tokenizers["wordpiece"], tmp_path / "more")
    with pytest.raises(UserError, match="--whole is for .txt files, but the corpus holds pairs"):
        text.Corpus([path], whole=True)


def test_from_pairs_to_a_translation_in_three_commands(tmp_path, monkeypatch):
    """Learn eight words by heart, as a check that every step fits the next."""
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))
    words = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier", "five": "fünf", "six": "sechs"}
    pairs = written(tmp_path, list(words.items()) * 20)
    run, small = (
        tmp_path / "run",
        ["width=32", "heads=2", "feedforward=64", "layers=1", "decoder_layers=1", "dropout=0.0"],
    )
    more = [word for value in small for word in ("--set", f"system.backbone.{value}")]
    works(
        "pretrain", "transformer", pairs, "--size", "tiny", "--set", "tokenizer.vocab=60", *more, "--set", "schedule.0.rows=4",
        "--set", "schedule.0.length=32", "--set", "optimise.rate=0.01", "--set", "shrink=false", "--budget", "50steps", "--out", run,
    )  # fmt: skip
    assert works("generate", run, "three", "--beams", 2, "--tokens", 8).out == "drei\n"
    found = json.loads(works("evaluate", run, pairs, "--json").out)
    assert found["exact"] > 0.8
    assert "bleu_signature" in found
    said = mistake("generate", run, "three", "--no-cache")
    assert "writes with a decoder, which always has a cache" in said
    text_only = tmp_path / "text.txt"
    text_only.write_text("the doctor slept. a river froze.\n\n" * 40)
    said = mistake("pretrain", "transformer", text_only, "--size", "tiny", "--out", tmp_path / "no")
    assert "transformer learns from pairs of a source and a target, but" in said
    assert not (tmp_path / "no").exists()
