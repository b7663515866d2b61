"""A small real corpus, its tokenizers and its shards, made once for all tests."""

from __future__ import annotations

import gc
import os
import random
from pathlib import Path

import pytest

from tests.browser import MISSING
from unmask.threads import wait_without_spinning

wait_without_spinning()  # before torch is loaded

import torch  # noqa: E402

from unmask import text  # noqa: E402
from unmask.data.prepare import prepare  # noqa: E402

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
torch.set_num_threads(1)  # tests run in two processes

SUBJECTS = [
    "the doctor",
    "a patient",
    "the old engine",
    "our server",
    "the judge",
    "a small company",
    "the river",
    "my teacher",
]
VERBS = ["examined", "repaired", "ignored", "described", "followed", "measured", "sold", "opened"]
OBJECTS = [
    "the report",
    "an open wound",
    "three valves",
    "the case",
    "a long bridge",
    "the data",
    "no evidence",
    "every window",
]
TAILS = ["in the morning", "without delay", "after the storm", "for the third time", "near London", "despite the rain"]


def sentence(dice: random.Random) -> str:
    words = " ".join(dice.choice(part) for part in (SUBJECTS, VERBS, OBJECTS, TAILS))
    return words[0].upper() + words[1:] + dice.choice([".", ".", "!", "?"])


def documents(count: int = 120, seed: int = 0) -> list[str]:
    """Documents of a few paragraphs of a few sentences; real enough to have words, sentences and repetition."""
    dice = random.Random(seed)
    made = []
    for _ in range(count):
        lines = [" ".join(sentence(dice) for _ in range(dice.randint(1, 6))) for _ in range(dice.randint(1, 4))]
        made.append("\n".join(lines))
    return made


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "text.txt"
    path.write_text("\n\n".join(documents()), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def tokenizers() -> dict[str, text.Tokenizer]:
    """One of each kind that the recipes use."""
    return {
        "wordpiece": text.train(text.WordPiece(vocab=200), documents()),
        "byte-bpe": text.train(text.ByteBPE(vocab=330), documents()),
        "unigram": text.train(text.Unigram(vocab=114), documents()),
        "word-bpe": text.train(text.WordBPE(vocab=200), documents()),
        "bytes": text.train(text.Bytes(), documents()),
    }


@pytest.fixture(scope="session")
def shards(
    corpus: Path, tokenizers: dict[str, text.Tokenizer], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Prepared data for each tokenizer, with phrases and entities."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "lexicon.tsv").write_text("open wound\tphrase\nthird time\tphrase\nlong bridge\tphrase\nLondon\tentity\n")
    lexicon = text.Lexicon.load([folder / "lexicon.tsv"])
    for kind, tokenizer in tokenizers.items():
        for _ in prepare(text.Corpus([corpus]), tokenizer, folder / kind, holdout=0.05, workers=1, lexicon=lexicon):
            pass
    return {kind: folder / kind for kind in tokenizers}


@pytest.fixture(scope="session")
def plain_shards(
    corpus: Path, tokenizers: dict[str, text.Tokenizer], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """The same of WordPiece, prepared without a lexicon."""
    folder = tmp_path_factory.mktemp("plain") / "wordpiece"
    for _ in prepare(text.Corpus([corpus]), tokenizers["wordpiece"], folder, holdout=0.05, workers=1):
        pass
    return {"wordpiece": folder}


def pytest_collection_finish() -> None:
    """What the libraries and the list of tests hold stays to the end: the garbage collector need not look at it again."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if MISSING:
        terminalreporter.write_line(f"not collected: tests/serving/test_page.py, which needs {MISSING}")
