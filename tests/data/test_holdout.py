"""About the share of tokens that was asked for is held out, as documents or in stretches, and nothing is lost."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.command import works
from tests.conftest import documents
from tests.data.test_shards import stored, units
from unmask.batch import Document
from unmask.data.holdout import SHORT, STRETCH, by_document, by_stretch
from unmask.data.prepare import prepare
from unmask.text import Bytes, Characters, Corpus, Lexicon, train
from unmask.text import documents as documents_module
from unmask.text.columns import run_column

TEXT = "\n\n".join(documents(600, seed=3))


@pytest.fixture(scope="module")
def tokenizer():
    return train(Bytes(), ())


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(documents_module, "LONGEST_TEXT", 20_000)
    monkeypatch.setattr("unmask.data.prepare.CHUNK", 10_000)


def prepared(folder, tokenizer, texts, **options):
    for number, text in enumerate(texts):
        (folder / f"{number}.txt").write_bytes(text.encode())
    files = [folder / f"{number}.txt" for number in range(len(texts))]
    *_, manifest = prepare(Corpus(files, whole=True), tokenizer, folder / "data", **({"workers": 1} | options))
    return manifest


def text_of(folder, tokenizer, split) -> list[str]:
    return [tokenizer.decode(ids) for ids, _, _ in stored(folder / "data", split)]


@pytest.mark.parametrize("size", [15_000, 27_000, 41_000])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.1, 0.7])
def test_about_the_share_of_a_whole_text_is_held_out_whatever_its_size(tmp_path, tokenizer, small_parts, size, share):
    manifest = prepared(tmp_path, tokenizer, [TEXT[:size]], holdout=share)
    held = sum(shard["tokens"] for shard in manifest["splits"]["holdout"])
    assert share * size - STRETCH <= held <= share * size
    assert manifest["tokens"] == size


def test_what_is_held_out_is_the_end_of_each_part_and_the_pieces_are_the_text(tmp_path, tokenizer, small_parts):
    texts = [TEXT[:50_000], TEXT[50_000:53_000], TEXT[53_000:75_000]]
    manifest = prepared(tmp_path, tokenizer, texts, holdout=0.1)
    trained, held = (text_of(tmp_path, tokenizer, split) for split in ("train", "holdout"))
    assert manifest["documents"] == len(trained) + len(held)
    assert 3 <= len(held) <= 5
    assert min(map(len, held)) >= STRETCH
    joined = "".join(texts)
    assert sum(map(len, trained + held)) == len(joined)
    places = [joined.index(piece) for piece in held]
    assert places == sorted(places)
    for place, piece in zip(places, held, strict=True):
        assert not (joined[place - 1].isalnum() and piece[0].isalnum())  # no word is torn
    rest = joined
    for piece in held:
        rest = rest.replace(piece, "", 1)
    assert rest == "".join(trained)


def test_short_files_are_held_out_as_whole_files_but_one(tmp_path, tokenizer):
    files = [TEXT[n : n + 300] for n in range(0, 60_000, 300)]
    prepared(tmp_path, tokenizer, files, holdout=0.02)
    held = text_of(tmp_path, tokenizer, "holdout")
    assert len(held) == 4
    assert held[1:] == files[-3:]
    assert files[-4].endswith(held[0])


@pytest.mark.parametrize("workers", [1, 3])
def test_a_small_share_comes_from_fewer_parts_in_longer_stretches(tmp_path, tokenizer, small_parts, workers):
    prepared(tmp_path, tokenizer, [TEXT[:75_000]], holdout=0.015, workers=workers)
    held = text_of(tmp_path, tokenizer, "holdout")
    assert len(held) == 2  # of four parts
    assert min(map(len, held)) > STRETCH - 20


def test_the_pieces_keep_their_sentences_and_units(tmp_path):
    letters = train(Characters(vocab=80), [TEXT])
    (tmp_path / "known.tsv").write_text("the doctor\tphrase\nin the morning\tphrase\nLondon\tentity\n")
    prepared(tmp_path, letters, [TEXT[:30_000]], holdout=0.2, lexicon=Lexicon.load([tmp_path / "known.tsv"]))
    both = [stored(tmp_path / "data", split)[0] for split in ("train", "holdout")]
    cut = len(both[0][0])
    found = units(tmp_path / "data", "train")[0], units(tmp_path / "data", "holdout")[0]
    prepared(tmp_path, letters, [TEXT[:30_000]], holdout=0, lexicon=Lexicon.load([tmp_path / "known.tsv"]),
             overwrite=True)  # fmt: skip
    ids, word, sentences = stored(tmp_path / "data", "train")[0]
    assert both[0][0] + both[1][0] == ids
    assert both[0][1] + both[1][1] == word
    assert both[1][1][0]
    assert both[1][2][0] == 0
    assert sorted({*both[0][2], *(cut + s for s in both[1][2])}) == sorted({*sentences, cut})
    whole = units(tmp_path / "data", "train")[0]
    assert tuple(one + other for one, other in zip(*found, strict=True)) == whole


def test_one_endless_word_is_cut_where_the_share_says():
    document = Document(np.arange(10_000), np.array([0]), {"word": run_column(np.arange(10_000) == 0)})
    ((train_part,), (held,)) = next(by_stretch([[document]], 0.1))
    assert len(held.ids) == 1000
    assert [len(train_part.sentences), len(held.sentences)] == [1, 1]
    assert held.ids.tolist() == list(range(9000, 10_000))


def test_a_real_text_of_several_parts_is_told_in_tokens(tmp_path, tokenizer):
    text = (TEXT * (1_670_000 // len(TEXT) + 1))[:1_670_000]
    (tmp_path / "text.txt").write_text(text)
    tokenizer.save(tmp_path / "bytes.json")
    said = works("prepare", tmp_path / "text.txt", "--tokenizer", tmp_path / "bytes.json", "--whole", "--out",
                 tmp_path / "data", "--workers", 2).err  # fmt: skip
    splits = json.loads((tmp_path / "data" / "manifest.json").read_text())["splits"]
    held = sum(shard["tokens"] for shard in splits["holdout"])
    assert held == pytest.approx(0.005 * 1_670_000, rel=0.05)
    assert f"1,670,000 tokens ({held:,} tokens held out)" in said


def made(sizes) -> list[Document]:
    """Documents of these sizes, in sentences of ten words; each token is one that no other document has."""
    begins = np.cumsum([0, *sizes])
    return [
        Document(np.arange(begin, begin + size), np.arange(0, size, 10), {"word": run_column(np.ones(size, bool))})
        for begin, size in zip(begins[:-1].tolist(), sizes, strict=True)
    ]


def in_chunks(documents, many):
    return [documents[i : i + many] for i in range(0, len(documents), many)]


def held_out(documents, share, many=7):
    """The documents to train on and those held out; nothing is lost, and chunks make no difference."""
    found = [[], []]
    for parts in by_document(in_chunks(documents, many), share):
        for side, part in zip(found, parts, strict=True):
            side += part
    everything = np.sort(np.concatenate([document.ids for side in found for document in side]))
    assert everything.tolist() == list(range(sum(len(document.ids) for document in documents)))
    for document in found[0] + found[1]:
        assert len(document.ids) == len(document.columns["word"])
        assert document.sentences[0] == 0
        assert document.sentences[-1] < len(document.ids)
    return found


SIZES = np.random.default_rng(0)


@pytest.mark.parametrize("share", [0.002, 0.005, 0.05, 0.3])
@pytest.mark.parametrize(
    "sizes",
    [[250_000] * 5, [900_000], [60_000] * 20, SIZES.integers(50_000, 400_000, 6).tolist(), [120] * 20_000,
     np.maximum(SIZES.lognormal(5.5, 1.3, 5000).astype(int), 1).tolist()],
    ids=["no blank line, five parts", "one document", "twenty books", "a few long ones", "many short ones", "articles"],
)  # fmt: skip
def test_the_share_is_of_tokens_whatever_the_sizes_of_documents(sizes, share):
    _, out = held_out(made(sizes), share)
    held = sum(len(document.ids) for document in out)
    assert held == pytest.approx(share * sum(sizes), rel=0.26, abs=SHORT)
    assert held >= 0.7 * share * sum(sizes)


def test_chunks_make_no_difference_to_what_is_held_out():
    documents = made(np.maximum(SIZES.lognormal(6, 1, 2000).astype(int), 1).tolist())
    one, other = (held_out(documents, 0.01, many)[1] for many in (3, 500))
    assert [d.ids.tolist() for d in one] == [d.ids.tolist() for d in other]


def test_short_documents_are_not_preferred():
    sizes = [60, 1500] * 4000
    _, out = held_out(made(sizes), 0.01)
    whole = [len(document.ids) for document in out]
    assert set(whole) == {60, 1500}
    assert whole.count(1500) == pytest.approx(len(whole) / 2, rel=0.3)


def test_documents_that_are_not_long_are_held_out_whole_from_the_second_on():
    documents = made([500] * 100)
    _, out = held_out(documents, 0.05)
    assert [document.ids[0] // 500 for document in out] == [1, 21, 41, 61, 81]
    assert all(len(document.ids) == 500 for document in out)
