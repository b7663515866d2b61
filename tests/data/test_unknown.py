"""How much of a text is unknown to the tokenizer is counted, with the characters behind it, and told if it is much."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.command import works
from unmask.data import unknown_tokens as module
from unmask.data.prepare import prepare
from unmask.data.unknown_tokens import Unknown
from unmask.text import ByteBPE, Bytes, Characters, Corpus, Unigram, WholeWords, WordPiece, train
from unmask.text.fold_width import folded

KNOWN = "我们在北京的学校说了很多话。\nThe doctor slept near the river.\n"
STRANGE = "我們在臺北的學校說了很多話，臺臺。\nThe doctor slept.\n"


def prepared(folder, kind, text, **options):
    (folder / "text.txt").write_text(text, encoding="utf-8")
    tokenizer = train(kind, [KNOWN] * 4, at_most=True)
    *_, manifest = prepare(Corpus([folder / "text.txt"]), tokenizer, folder / "data", workers=1, holdout=0, **options)
    return tokenizer, manifest


@pytest.mark.parametrize("kind", [WordPiece(vocab=200, lowercase=False), Characters(), Unigram(vocab=90)])
def test_the_share_of_unknown_tokens_is_that_of_the_ids(tmp_path, kind):
    tokenizer, manifest = prepared(tmp_path, kind, STRANGE)
    ids = [i for line in STRANGE.rstrip().splitlines(keepends=True) for i in tokenizer.encode_many([line])[0].ids]
    wanted = ids.count(tokenizer.role("unk"))
    assert manifest["unknown"]["tokens"] == wanted > 0
    assert manifest["unknown"]["share"] == pytest.approx(wanted / len(ids), abs=1e-6)
    assert next(iter(manifest["unknown"]["most"])) == "臺"
    assert {folded(text) for text in manifest["unknown"]["most"]} == set("們臺學說話,")


@pytest.mark.parametrize("kind", [Bytes(), ByteBPE(vocab=300)])
def test_bytes_are_never_unknown(tmp_path, kind):
    assert prepared(tmp_path, kind, STRANGE)[1]["unknown"] == {"tokens": 0, "share": 0.0, "most": {}}


def test_the_character_behind_an_unknown_word_is_named_and_not_the_word(tmp_path):
    manifest = prepared(tmp_path, WordPiece(vocab=200), "The doctorẞ slept.\nThe riverẞ, ＴHE naïveẞ\n")[1]
    assert manifest["unknown"]["most"]["ß"] == 3


def test_of_whole_words_the_words_are_named(tmp_path):
    manifest = prepared(tmp_path, WholeWords(), "The doctor there near the there doctor there\n")[1]
    assert manifest["unknown"]["most"] == {"there": 3}


@pytest.mark.parametrize(
    "spelled, effect", [(False, "learns nothing about"), (True, "reads their spelling, but never predicts")]
)
def test_of_words_no_character_is_blamed_and_a_larger_vocabulary_is_the_advice(tmp_path, spelled, effect):
    """火 and 山 are in no token, but the words that are unknown are 火山 and 山."""
    kind = WholeWords(split="words", spelled=spelled)
    manifest = prepared(tmp_path, kind, "我们在北京的学校说火山。火山，火山山。\n")[1]
    (note,) = (note for note in manifest["notes"] if "unknown" in note)
    assert f"the model {effect} them. Most often: 火山 (3)" in note
    assert note.endswith("A larger vocabulary (tokenizer.vocab), made from this text, has more of them")


def test_much_that_is_unknown_is_told_and_little_is_only_counted(tmp_path):
    train(Characters(), [KNOWN]).save(tmp_path / "t.json")
    (tmp_path / "much.txt").write_text(STRANGE * 20, encoding="utf-8")
    (tmp_path / "little.txt").write_text(KNOWN * 40 + "臺\n", encoding="utf-8")
    words = ("--tokenizer", tmp_path / "t.json", "--workers", 1)
    much = works("prepare", tmp_path / "much.txt", *words, "--out", tmp_path / "much").err
    assert "% of all, are unknown to the tokenizer" in much
    assert "Most often: 臺 (60)" in much
    little = works("prepare", tmp_path / "little.txt", *words, "--out", tmp_path / "little", "--json")
    result = json.loads(little.out)
    assert result["unknown"]["most"] == {"臺": 1}
    assert 0 < result["unknown"]["share"] < module.NOTED
    assert not any("unknown" in note for note in result["notes"])
    said = works("prepare", tmp_path / "little.txt", *words, "--out", tmp_path / "little", "--overwrite").err
    assert "% of the tokens unknown" in said


def test_only_the_most_frequent_of_very_many_texts_are_remembered(monkeypatch):
    monkeypatch.setattr(module, "_MOST", 10)
    unknown = Unknown()
    for number in range(100):
        unknown.add(Counter({f"{number}": 1, "often": 5}))
    assert len(unknown.texts) <= 20
    assert unknown.texts["often"] == 500
    assert unknown.tokens == 600
