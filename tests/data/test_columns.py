"""A column that no code knows by name travels from documents through prepare, shards and rows into batches."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch

from tests.conftest import SUBJECTS, TAILS, documents
from tests.data.made import collection_of, loader_of, random_texts
from unmask import recipes
from unmask.axes import Need
from unmask.batch import Batch, Document
from unmask.data import Blocks, Collection, ContinuingPairs, ContinuingRows, FullRows, NextSentence, Shards
from unmask.data import prepare as prepare_module
from unmask.data.examples import Text, rows_of
from unmask.data.pack_examples import batch_of
from unmask.data.prepare import prepare
from unmask.data.shard_writer import Writer
from unmask.errors import UserError
from unmask.hide.source import moved, same
from unmask.hide.units import Tokens
from unmask.pretraining import Mixture
from unmask.text import Characters, Corpus, Lexicon, encode_documents, train
from unmask.text.columns import BEGINS, CONTINUES, OUTSIDE, Column

FILL = 9
CASES = {
    "pairs": (NextSentence(), "[CLS] a [SEP] b [SEP]"),
    "blocks": (Blocks(), "[CLS] a [SEP]"),
    "documents": (Blocks(cross=False), "[CLS] a [SEP]"),
    "full rows": (FullRows(), "a [SEP]"),
    "continuing rows": (ContinuingRows(), "a [SEP]"),
    "continuing pairs": (ContinuingPairs(), "a [SEP] b [SEP] [CLS]"),  # every other row is read backward
}


def letters(ids: np.ndarray) -> np.ndarray:
    """The made-up value of each token: T C."""
    return np.stack((ids, 2 * ids + 1, ids % 7, ids // 3), -1).astype(np.int16)


def with_columns(document: Document) -> Document:
    """A column of values with a trailing shape; and one of runs with the units of the phrases."""
    made = {"letters": Column(letters(document.ids), "value", FILL), "links": Column(document.columns["phrase"].values)}
    return dataclasses.replace(document, columns=document.columns | made)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("columns")


@pytest.fixture(scope="module")
def tokenizer():
    return train(Characters(vocab=80), documents(60))


@pytest.fixture(scope="module")
def shards(folder, tokenizer):
    """Data with the made-up columns, and the same without them."""
    (folder / "text.txt").write_text("\n\n".join(documents(60)), encoding="utf-8")
    entries = [f"{entry}\tphrase" for entry in (*SUBJECTS, *TAILS)]
    (folder / "known.tsv").write_text("\n".join([*entries, "London\tentity"]))
    options = {"lexicon": Lexicon.load([folder / "known.tsv"]), "holdout": 0.1, "workers": 1}
    list(prepare(Corpus([folder / "text.txt"]), tokenizer, folder / "plain", **options))

    def encoded(*given, **named):
        return [with_columns(document) for document in encode_documents(*given, **named)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepare_module, "encode_documents", encoded)
        list(prepare(Corpus([folder / "text.txt"]), tokenizer, folder / "more", **options))
    return Shards(folder / "more"), Shards(folder / "plain")


def reader(shards: Shards, case: str, tokenizer, split: str = "train"):
    arrange, layout = CASES[case]
    return arrange.open(Collection(shards.split(split)), tokenizer, layout, 48, 0)


def check(batch: Batch, rows: slice = slice(None)) -> None:
    """The values are those of the tokens, and the fill value elsewhere; links are numbered as phrases are."""
    text, found = batch.text[rows], batch.columns["letters"][rows]
    assert found.dtype == torch.int64
    assert found.shape == (*batch.ids[rows].shape, 4)
    assert torch.equal(found[text], torch.from_numpy(letters(batch.ids[rows][text].numpy())).long())
    assert (found[~text] == FILL).all()
    assert torch.equal(batch.columns["links"][rows], batch.columns["phrase"][rows])


def test_the_manifest_says_what_a_column_is(shards):
    more, plain = shards
    assert more.manifest["columns"]["letters"] == {"kind": "value", "dtype": "int16", "shape": [4], "fill": FILL}
    assert more.manifest["columns"]["links"] == {"kind": "run", "dtype": "uint8", "shape": [], "fill": -1}
    assert more.columns == (*plain.columns, "letters", "links")


@pytest.mark.parametrize("split", ["train", "holdout"])
@pytest.mark.parametrize("case", CASES)
def test_new_columns_arrive_in_batches(shards, tokenizer, case, split):
    loader = loader_of([reader(shards[0], case, tokenizer, split)], [1.0], 4)
    for _ in range(3):
        batch = loader.batch(4)
        check(batch)
        assert batch.text.any()
    assert (batch.columns["links"] >= 0).any()
    assert ("backward" in batch.per_row) == (case == "continuing pairs")


@pytest.mark.parametrize("case", CASES)
def test_rows_of_a_set_without_the_columns_hold_the_fill_value(shards, tokenizer, case):
    for order in ((0, 1), (1, 0)):
        readers = [reader(shards[number], case, tokenizer) for number in order]
        loader = loader_of(readers, [1.0, 1.0], 4)
        batch = [loader.batch(4) for _ in range(3)][-1]
        has, lacks = (slice(0, 2), slice(2, 4)) if order == (0, 1) else (slice(2, 4), slice(0, 2))
        check(batch, has)
        assert (batch.columns["letters"][lacks] == FILL).all()
        assert (batch.columns["links"][lacks] == -1).all()
        assert (batch.columns["phrase"] >= 0).any()
    small = loader_of(readers, [1.0, 1.0], 4)
    assert {frozenset(small.batch(1).columns) for _ in range(4)} == {frozenset(batch.columns)}


def test_sets_that_disagree_about_a_column_are_refused():
    one, two = random_texts(20, 6, 9), random_texts(20, 6, 9)
    one.columns["marks"] = Column(np.zeros(len(one.ids), np.uint8), "value", 0)
    two.columns["marks"] = Column(np.zeros(len(two.ids), np.uint8), "value", 1)
    tokenizer = train(Characters(vocab=20), ["some text"])
    readers = [Blocks().open(collection_of(texts), tokenizer, "[CLS] a [SEP]", 32, 0) for texts in (one, two)]
    with pytest.raises(UserError, match="the data sets differ in the column 'marks'"):
        loader_of(readers, [1.0, 1.0])


@dataclasses.dataclass(frozen=True)
class Lettered(Tokens):
    """Units that need a column of the data."""

    column: str = "letters"

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need(f"column:{self.column}", "it reads letters"),)


def test_data_without_a_column_that_a_part_needs_is_refused(shards, tokenizer):
    recipe = recipes.get("bert", size="tiny")

    def check(data: Shards, column: str) -> None:
        hide = dataclasses.replace(recipe.hide, units=Lettered(column))
        Mixture((data,), (1.0,), tokenizer).check(recipe.replace(hide=hide))

    check(shards[0], "letters")
    check(shards[1], "sentence")
    with pytest.raises(
        UserError, match="bert needs the columns letters, but .*plain has word, phrase, entity: prepare it"
    ):
        check(shards[1], "letters")


def test_a_column_follows_tokens_that_change_places(shards, tokenizer):
    batch = loader_of([reader(shards[0], "blocks", tokenizer)], [1.0]).batch(4)
    source = torch.stack([torch.randperm(48) for _ in range(4)])
    check(moved(batch, batch.ids.gather(1, source), same(source), 0))


def test_columns_of_a_task_are_padded_with_their_fill_value(tokenizer, monkeypatch):
    monkeypatch.setattr(
        "unmask.data.examples.encode_documents",
        lambda texts, *given, **named: [
            dataclasses.replace(d, columns=d.columns | {"letters": Column(letters(d.ids), "value", FILL)})
            for d in encode_documents(texts, *given, **named)
        ],
    )
    texts = [(Text("abc"), Text("abcdef")), (Text("a long text"),)]
    rows, _ = rows_of(texts, [0, 1], tokenizer, "[CLS] a [SEP]", 32)
    batch = batch_of(rows, np.array([1, 0]))
    text = batch.text
    assert torch.equal(batch.columns["letters"][text], torch.from_numpy(letters(batch.ids[text].numpy())).long())
    assert (batch.columns["letters"][~text] == FILL).all()


def test_documents_with_other_columns_or_a_name_that_is_taken_are_refused(tmp_path):
    ids, sentences = np.arange(4), np.array([0])
    one = Document(ids, sentences, {"word": Column(np.ones(4, np.uint8))})
    writer = Writer(tmp_path, "train", "uint16")
    writer.add([one])
    with pytest.raises(UserError, match="all documents must have the same columns"):
        writer.add([dataclasses.replace(one, columns={})])
    with pytest.raises(
        UserError, match="a column may not be called sentence, because a file of every shard has this name"
    ):
        Writer(tmp_path, "other", "uint16").add([dataclasses.replace(one, columns={"sentence": one.columns["word"]})])


def test_a_fill_value_must_fit_its_column():
    with pytest.raises(UserError, match="the fill value -1 does not fit into a column of uint8"):
        Column(np.zeros(3, np.uint8), "value", -1)
    with pytest.raises(UserError, match="use the kind 'value'"):
        Column(np.zeros((3, 2), np.uint8))


def test_data_of_format_1_gives_the_same_rows(shards, folder, tokenizer):
    """There the manifest has no columns, and the file of words holds 1 where a word begins and 0 elsewhere."""
    old = folder / "old"
    old.mkdir()
    manifest = json.loads((folder / "plain" / "manifest.json").read_text())
    for file in (folder / "plain").iterdir():
        raw = file.read_bytes()
        if file.suffix == ".word":
            marks = np.frombuffer(raw, np.uint8)
            assert set(np.unique(marks)) == {BEGINS, CONTINUES}
            raw = (marks == BEGINS).astype(np.uint8).tobytes()
        (old / file.name).write_bytes(raw)
    del manifest["columns"]
    (old / "manifest.json").write_text(json.dumps(manifest | {"version": 1}))
    opened = Shards(old, verify=False)  # the checksums are those of the other format
    assert opened.columns == ("word", "phrase", "entity")
    for case in CASES:
        for split in ("train", "holdout"):
            one, two = (loader_of([reader(s, case, tokenizer, split)], [1.0], 4) for s in (opened, shards[1]))
            for _ in range(4):
                a, b = one.batch(4), two.batch(4)
                assert torch.equal(a.ids, b.ids)
                assert a.columns.keys() == b.columns.keys() == {"word", "sentence", "phrase", "entity"}
                assert all(torch.equal(a.columns[name], b.columns[name]) for name in a.columns)
    assert OUTSIDE in opened.split("train")[0].columns["phrase"].values
