"""A tokenizer, data and runs to make mistakes with, made once."""

from pathlib import Path

import pytest

from tests.bad_input.made import examples
from tests.command import pretrain, works


@pytest.fixture(scope="session")
def tok(tokenizers, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("tok") / "tok.json"
    tokenizers["wordpiece"].save(path)
    return path


@pytest.fixture(scope="session")
def data(shards) -> Path:
    return shards["wordpiece"]


@pytest.fixture(scope="session")
def bert(data, tmp_path_factory) -> Path:
    """A run that reads 64 tokens at most."""
    folder = tmp_path_factory.mktemp("runs") / "bert"
    pretrain("bert", data, folder, "--set", "system.backbone.length=64", steps=2)
    return folder


@pytest.fixture(scope="session")
def gpt2(shards, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "gpt2"
    pretrain("gpt2", shards["byte-bpe"], folder, steps=2)
    return folder


@pytest.fixture(scope="session")
def adapted(bert, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    works("adapt", bert, examples(folder / "train.jsonl"), "--out", folder / "adapted", "--set", "epochs=1")
    return folder / "adapted"
