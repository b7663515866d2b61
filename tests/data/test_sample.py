"""A sample of the training text."""

from __future__ import annotations

import numpy as np
import pytest

import unmask
from unmask.data import sample as sampling
from unmask.data.shards import Shards


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two data sets of words: one of 3,000 tokens in 30 documents, one of 400 in 4."""
    home = tmp_path_factory.mktemp("sample")
    words = [chr(97 + i) * 3 for i in range(20)]
    made = []
    for name, documents in (("many", 30), ("few", 4)):
        dice = np.random.default_rng(documents)
        (home / f"{name}.txt").write_text("\n\n".join(" ".join(dice.choice(words, 100)) for _ in range(documents)))
    unmask.train_tokenizer([home / "many.txt"], home / "tok.json", kind="whole-words", vocab=100)
    for name in ("many", "few"):
        unmask.prepare([home / f"{name}.txt"], home / name, tokenizer=home / "tok.json", holdout=0)
        made.append(Shards(home / name))
    return made


def test_a_small_text_is_read_whole_with_the_document_of_each_token(folders, monkeypatch):
    monkeypatch.setattr(sampling, "PIECE", 250)
    shards = folders[0]
    ids, documents = map(np.concatenate, zip(*sampling.sample([shards], [1.0], 10_000), strict=True))
    assert np.array_equal(ids, np.concatenate([shard.ids for shard in shards.split("train")]))
    assert documents.tolist() == [1 + i // 100 for i in range(3_000)]


def test_a_part_of_a_text_comes_from_everywhere(folders, monkeypatch):
    monkeypatch.setattr(sampling, "PIECE", 50)
    found = list(sampling.sample([folders[0]], [1.0], 1_000))
    assert sum(len(ids) for ids, _ in found) == 1_000
    documents = [number for _, numbers in found for number in numbers.tolist()]
    assert documents == sorted(documents)
    assert (documents[0], documents[-1]) == (1, 30)
    assert len({tuple(ids.tolist()) for ids, _ in found}) == len(found)


def test_data_sets_give_shares_by_their_weights(folders, monkeypatch):
    monkeypatch.setattr(sampling, "PIECE", 50)
    read = list(sampling.sample(folders, [1.0, 0.5], 600))
    assert sum(len(ids) for ids, _ in read) == 600
    assert sum(len(ids) for ids, _ in sampling.sample(folders[1:], [0.5], 200)) == 200
