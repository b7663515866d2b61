"""Prepared data says back what was put into it, and notices when it was changed."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from tests.conftest import documents
from unmask.batch import Document
from unmask.data import Collection, Shards, Texts, shard_writer
from unmask.data.prepare import prepare
from unmask.errors import UserError
from unmask.text import Bytes, Characters, Corpus, Lexicon, encode_documents, train
from unmask.text import documents as documents_module
from unmask.text.columns import BEGINS

TEXTS = documents(60, seed=5)


@pytest.fixture(scope="module")
def tokenizer():
    return train(Characters(vocab=80), TEXTS)


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "text.txt").write_text("\n\n".join(TEXTS), encoding="utf-8")
    return Corpus([tmp_path / "text.txt"])


@pytest.fixture
def folder(corpus, tokenizer, tmp_path):
    list(prepare(corpus, tokenizer, tmp_path / "data", holdout=0.1, workers=1))
    return tmp_path / "data"


def stored(folder, split) -> list[tuple[list[int], list[int], list[int]]]:
    """Documents as (ids, word, sentences), one by one."""
    collection = Collection(Shards(folder).split(split))
    found = []
    for number in range(len(collection)):
        texts = collection.gather(np.array([number]))
        found.append((texts.ids.tolist(), begins(texts), texts.sentence[:-1].tolist()))
    return found


def begins(texts: Texts | Document) -> list[bool]:
    """Whether each token begins a word."""
    return (texts.columns["word"].values == BEGINS).tolist()


def encoded(texts, tokenizer) -> list[tuple[list[int], list[int], list[int]]]:
    return [(d.ids.tolist(), begins(d), d.sentences.tolist()) for d in encode_documents(texts, tokenizer, "auto")]


def test_every_document_comes_back_in_one_split_or_the_other(folder, tokenizer):
    expected = encoded(TEXTS, tokenizer)
    train_split, held = stored(folder, "train"), stored(folder, "holdout")
    assert len(held) == 6
    assert sorted(train_split + held) == sorted(expected)
    assert train_split == [document for document in expected if document not in held]  # in the order of the corpus


@pytest.mark.parametrize("workers", [1, 2])
def test_small_shards_and_chunks_and_more_workers_give_the_same_documents(
    corpus, tokenizer, tmp_path, monkeypatch, folder, workers
):
    monkeypatch.setattr(shard_writer, "SHARD_TOKENS", 2000)
    monkeypatch.setattr("unmask.data.prepare.CHUNK", 900)
    list(prepare(corpus, tokenizer, tmp_path / "parts", holdout=0.1, workers=workers))
    assert len(Shards(tmp_path / "parts").split("train")) > 2
    for split in ("train", "holdout"):
        assert stored(tmp_path / "parts", split) == stored(folder, split)


def test_gathered_documents_stand_side_by_side_in_the_order_asked(folder):
    collection = Collection(Shards(folder).split("train"))
    texts = collection.gather(np.array([7, 0, 7]))
    one, two = (collection.gather(np.array([n])) for n in (7, 0))
    assert texts.ids.tolist() == [*one.ids, *two.ids, *one.ids]
    shift, again = len(one.ids), len(one.ids) + len(two.ids)
    begins = [
        *one.sentence[:-1],
        *(two.sentence[:-1] + shift),
        *(one.sentence[:-1] + again),
        again + shift,
    ]
    assert texts.sentence.tolist() == begins
    assert texts.document.tolist() == np.cumsum([0, *(len(t.sentence) - 1 for t in (one, two, one))]).tolist()
    assert collection.lengths[[7, 0]].tolist() == [len(one.ids), len(two.ids)]


def test_texts_of_documents_are_the_documents_joined(tokenizer):
    made = encode_documents(TEXTS[:3], tokenizer, "auto")
    texts = Texts.of(made)
    for number, document in enumerate(made):
        first, last = texts.sentence[texts.document[number]], texts.sentence[texts.document[number + 1]]
        assert texts.ids[first:last].tolist() == document.ids.tolist()
        assert texts.columns["word"].values[first:last].tolist() == document.columns["word"].values.tolist()


def test_the_manifest_counts_what_was_written(folder, tokenizer):
    shards = Shards(folder)
    total = sum(len(ids) for split in ("train", "holdout") for ids, *_ in stored(folder, split))
    assert shards.manifest["documents"] == 60
    assert shards.manifest["tokens"] == total
    assert shards.tokens == sum(len(ids) for ids, *_ in stored(folder, "train"))
    assert shards.manifest["tokenizer"] == tokenizer.checksum
    assert shards.manifest["ids_dtype"] == "uint16"
    assert shards.documents("holdout")
    assert not shards.documents("other")


@pytest.mark.parametrize("share", [0.0, 0.05, 0.1, 0.25, 0.3, 0.4, 0.7])
def test_the_holdout_is_the_share_asked_for(tokenizer, tmp_path, share):
    (tmp_path / "text.txt").write_text("\n\n".join(f"a{i}" for i in range(400)), encoding="utf-8")
    list(prepare(Corpus([tmp_path / "text.txt"]), tokenizer, tmp_path / "data", holdout=share, workers=1))
    held = len(stored(tmp_path / "data", "holdout")) if share else 0
    assert held / 400 == pytest.approx(share, abs=0.02)
    assert (Shards(tmp_path / "data").documents("holdout") > 0) == (share > 0)


@pytest.mark.parametrize("share", [-0.1, 1, 5])
def test_a_holdout_outside_its_range_is_an_error(corpus, tokenizer, tmp_path, share):
    with pytest.raises(UserError, match=r"holdout must be in \[0, 1\)"):
        list(prepare(corpus, tokenizer, tmp_path / "data", holdout=share, workers=1))


def test_existing_data_is_kept_unless_told_and_a_failure_leaves_nothing_behind(folder, tokenizer, tmp_path):
    before = (folder / "manifest.json").read_bytes()
    (tmp_path / "bad.txt").write_bytes(b"fine\n\nbad \xff")
    with pytest.raises(UserError, match="exists already.*--overwrite"):
        list(prepare(Corpus([tmp_path / "text.txt"]), tokenizer, folder, workers=1))
    with pytest.raises(UserError, match="not UTF-8"):
        list(prepare(Corpus([tmp_path / "bad.txt"]), tokenizer, folder, workers=1, overwrite=True))
    assert (folder / "manifest.json").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.txt", "data", "text.txt"]
    list(prepare(Corpus([tmp_path / "text.txt"]), tokenizer, folder, holdout=0, workers=1, overwrite=True))
    assert not Shards(folder).documents("holdout")


@pytest.mark.parametrize("column", ["ids", "word", "sentence", "document"])
def test_a_changed_file_fails_its_checksum(folder, column):
    path = folder / f"train-00000.{column}"
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    with pytest.raises(UserError, match=rf"train-00000.{column} is damaged.*prepare .* again"):
        Shards(folder)
    Shards(folder, verify=False)


def test_a_missing_file_is_named(folder):
    (folder / "holdout-00000.word").unlink()
    with pytest.raises(UserError, match="holdout-00000.word is missing"):
        Shards(folder)


def test_another_version_must_be_prepared_again(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"version": 0}))
    with pytest.raises(
        UserError, match="prepared in format 0; this version of unmask reads the formats 1 and 2: prepare it again"
    ):
        Shards(folder)


def test_a_folder_without_a_manifest_is_no_data(tmp_path):
    """It may be the folder of the text itself, so the advice does not write there."""
    with pytest.raises(UserError, match="is not prepared data: make it with 'unmask prepare .* --out FOLDER'"):
        Shards(tmp_path)


def test_a_broken_manifest_is_a_mistake(folder):
    (folder / "manifest.json").write_text("{")
    with pytest.raises(UserError):
        Shards(folder)


@pytest.fixture
def lexicon(tmp_path):
    lines = [
        "the doctor\tphrase",
        "old engine\tphrase",
        "in the morning\tphrase",
        "London\tentity",
        "the judge\tentity",
    ]
    (tmp_path / "made.tsv").write_text("\n".join(lines), encoding="utf-8")
    return Lexicon.load([tmp_path / "made.tsv"])


def levels(texts: Texts | Document) -> tuple[list[int], list[int]]:
    return texts.columns["phrase"].values.tolist(), texts.columns["entity"].values.tolist()


def units(folder, split) -> list[tuple[list[int], list[int]]]:
    collection = Collection(Shards(folder).split(split))
    texts = [collection.gather(np.array([number])) for number in range(len(collection))]
    return [levels(t) for t in texts]


@pytest.mark.parametrize("workers", [1, 2])
def test_phrases_and_entities_come_back_as_they_were_encoded(
    corpus, tokenizer, tmp_path, monkeypatch, folder, lexicon, workers
):
    monkeypatch.setattr(shard_writer, "SHARD_TOKENS", 2000)
    monkeypatch.setattr("unmask.data.prepare.CHUNK", 900)
    out = tmp_path / "known"
    *_, manifest = prepare(corpus, tokenizer, out, holdout=0.1, lexicon=lexicon, workers=workers)
    wanted = [levels(d) for d in encode_documents(TEXTS, tokenizer, "auto", lexicon)]
    assert sorted(units(out, "train") + units(out, "holdout")) == sorted(wanted)
    assert any(1 in phrase for phrase, _ in wanted)
    assert any(2 in entity for _, entity in wanted)
    for split in ("train", "holdout"):
        assert stored(out, split) == stored(folder, split)  # the other columns are the same without a lexicon
    assert manifest["lexicon"] == [lexicon.record[0]]
    assert manifest["lexicon"][0]["file"] == "made.tsv"
    assert Shards(out).columns == ("word", "phrase", "entity")


def test_a_damaged_level_is_noticed(corpus, tokenizer, tmp_path, lexicon):
    list(prepare(corpus, tokenizer, tmp_path / "known", lexicon=lexicon, workers=1))
    (tmp_path / "known" / "train-00000.entity").unlink()
    with pytest.raises(UserError, match="train-00000.entity is missing"):
        Shards(tmp_path / "known")


def test_data_prepared_without_a_lexicon_or_before_there_were_any_opens_and_has_no_levels(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest.pop("lexicon") == []
    assert not list(folder.glob("*.phrase"))
    (folder / "manifest.json").write_text(json.dumps(manifest))
    shards = Shards(folder)
    texts = Collection(shards.split("train")).gather(np.array([1, 2]))
    assert texts.columns.keys() == {"word"}
    assert shards.columns == ("word",)


def test_texts_of_documents_have_levels_only_if_all_documents_have(tokenizer, lexicon):
    known = encode_documents(TEXTS[:3], tokenizer, "auto", lexicon)
    assert levels(Texts.of(known))[0] == [mark for d in known for mark in levels(d)[0]]
    assert levels(Texts.of(known))[1] == [mark for d in known for mark in levels(d)[1]]
    assert Texts.of(known + encode_documents(TEXTS[3:4], tokenizer, "auto")).columns.keys() == {"word"}


def test_a_file_prepared_as_a_whole_comes_back_to_the_last_byte(tmp_path, monkeypatch):
    monkeypatch.setattr(documents_module, "LONGEST_TEXT", 700)
    text = "\n\n" + "\n\n\n".join(TEXTS[:8]) + "\n" + "x" * 2000 + "\r\n\t北京\u2028 \n\n \n"
    (tmp_path / "text.txt").write_bytes(text.encode())
    tokenizer = train(Bytes(), ())
    *_, manifest = prepare(
        Corpus([tmp_path / "text.txt"], whole=True), tokenizer, tmp_path / "data", holdout=0, workers=1
    )
    parts = stored(tmp_path / "data", "train")
    assert manifest["whole"]
    assert manifest["tokens"] == len(text.encode())
    assert "".join(tokenizer.decode(ids) for ids, _, _ in parts) == text
    assert len(parts) > 3
    assert max(len(ids) for ids, _, _ in parts) <= 4 * 700
    words = [sum(word) for _, word, _ in parts]
    assert all(0 < begun < len(ids) for begun, (ids, _, _) in zip(words, parts, strict=True))


def test_a_missing_segmenter_is_found_before_the_text_is_read(corpus, tokenizer, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rjieba", None)
    monkeypatch.setattr(type(corpus), "__iter__", lambda _: pytest.fail("the text was read"))
    with pytest.raises(UserError, match=r"unmask\[zh\]"):
        list(prepare(corpus, tokenizer, tmp_path / "new" / "data", words="rjieba", workers=1))
    assert not (tmp_path / "new").exists()
