"""`unmask tokenizer --extend RUN`: a run with new words, which training goes on from."""

from __future__ import annotations

import json

import pytest

import unmask
from tests.command import mistake, pretrain, works
from tests.test_write import base_of
from tests.text.test_extend import WORDS, medical
from unmask.errors import Notice
from unmask.infer import save_run
from unmask.text import Tokenizer


@pytest.fixture
def home(tokenizers, tmp_path, monkeypatch):
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))
    save_run(base_of("bert", tokenizers, tmp_path / "bert", "schedule.*.rows=2"), tmp_path / "bert")
    (tmp_path / "medical.txt").write_text("\n\n".join(medical()))
    return tmp_path


def test_words_are_added_then_learned_then_filled_in(home):
    words = ("tokenizer", home / "medical.txt", "--extend", home / "bert", "--vocab", "+4", "--out", home / "new")
    assert "4 tokens were added, such as" in works(*words).err
    tokenizer = Tokenizer.load(home / "new")
    assert tokenizer.vocabulary.size == Tokenizer.load(home / "bert").vocabulary.size + 4
    pretrain(
        "bert", home / "medical.txt", home / "run", "--from", home / "new", "--set", "schedule.1.length=32", steps=1
    )
    assert Tokenizer.load(home / "run").checksum == tokenizer.checksum
    found = unmask.load(home / "run", device="cpu").fill("the [MASK] examined the case.", top=tokenizer.vocabulary.size)
    assert set(WORDS) & {guess.token for guess in found[0]}
    assert "exists already" in mistake(*words)
    result = json.loads(works(*words, "--overwrite", "--json").out)
    assert result["vocabulary"] == tokenizer.vocabulary.size


def test_text_of_old_words_is_embedded_as_before(home):
    old = unmask.load(home / "bert", device="cpu")
    with pytest.warns(Notice, match="all that this text is worth"):
        new = old.extend(home / "medical.txt", home / "new", tokens=500)
    text = "The doctor opened the case."
    assert new.tokenizer.encode(text) == old.tokenizer.encode(text)
    assert (new.embed(text) == old.embed(text)).all()


@pytest.mark.parametrize("words, said", [
    (("--vocab", "2000"), "such as --vocab +2000, got 2000"), ((), "such as --vocab +2000"),
    (("--vocab", "+2", "--kind", "bpe"), "--kind has no effect with --extend"),
    (("--vocab", "+0"), "1 or more, got 0"),
])  # fmt: skip
def test_options_that_do_not_fit_are_refused(words, said, home):
    given = ("tokenizer", home / "medical.txt", "--extend", home / "bert", "--out", home / "new")
    assert said in mistake(*given, *words)
    assert not (home / "new").exists()


def test_a_run_does_not_replace_itself_and_plus_needs_a_run(home):
    words = ("tokenizer", home / "medical.txt", "--vocab", "+4", "--overwrite")
    assert "choose another --out" in mistake(*words, "--extend", home / "bert", "--out", home / "bert")
    assert "is for --extend RUN" in mistake(*words, "--out", home / "t.json")
