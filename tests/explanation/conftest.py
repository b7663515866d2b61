"""Tokenizers, a lexicon, and what the parts made."""

from pathlib import Path
from typing import Any

import pytest

from tests.explanation.given import CHINESE, LEXICON, NAMES, PAIR, tiny
from unmask import explanation as module
from unmask.explanation import text_row as row_module
from unmask.explanation.hidden_units import Made
from unmask.text import Lexicon, Tokenizer


@pytest.fixture(scope="session")
def trained() -> dict[str, Tokenizer]:
    text = f"{PAIR}\n{CHINESE}"
    return {name: row_module.small_tokenizer(tiny(name).tokenizer, text) for name in NAMES}


@pytest.fixture
def lexicon(tmp_path: Path) -> Lexicon:
    (tmp_path / "lexicon.tsv").write_text(LEXICON, encoding="utf-8")
    return Lexicon.load([tmp_path / "lexicon.tsv"])


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Made]:
    """What the parts made, in order of the explanations asked for."""
    found: list[Made] = []
    make = module.make

    def watched(*given: Any) -> Made:
        found.append(make(*given))
        return found[-1]

    monkeypatch.setattr(module, "make", watched)
    return found
