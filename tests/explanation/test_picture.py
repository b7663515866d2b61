"""An explanation as a picture."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.explanation.given import CHINESE, PAIR, tiny
from unmask.errors import Mistake
from unmask.explanation import explain
from unmask.text import Lexicon, Tokenizer


@pytest.mark.parametrize(
    ("name", "text"),
    [("spanbert", PAIR), ("gpt2", f"{PAIR} " * 3), ("albert", CHINESE), ("electra", PAIR), ("unilm", f"{PAIR} " * 9)],
)
def test_a_picture_is_written_and_small(name: str, text: str, tmp_path: Path, trained: dict[str, Tokenizer]) -> None:
    pytest.importorskip("matplotlib")
    from unmask.explanation.picture import draw

    draw(explain(tiny(name), text, tokenizer=trained[name], visit=1), tmp_path / "out.png")
    written = (tmp_path / "out.png").read_bytes()
    assert written.startswith(b"\x89PNG")
    assert 10_000 < len(written) < 150_000


def test_a_picture_of_what_no_font_can_draw_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained: dict[str, Tokenizer], lexicon: Lexicon
) -> None:
    pytest.importorskip("matplotlib")
    from unmask.explanation import page, picture

    said: list[str] = []
    text = page.Page.text

    def heard(self: Any, x: float, y: float, words: str, **style: Any) -> Any:
        said.append(words)
        return text(self, x, y, words, **style)

    for function in (page._chinese, page._fonts):
        function.cache_clear()
    monkeypatch.setattr(page, "CHINESE", ())
    monkeypatch.setattr(page.Page, "text", heard)
    found = explain(tiny("ernie"), CHINESE, tokenizer=trained["ernie"], lexicon=lexicon)
    picture.draw(found, tmp_path / "out.png")
    for function in (page._chinese, page._fonts):
        function.cache_clear()
    assert any("no installed font can draw" in words for words in said)


def test_a_picture_that_cannot_be_drawn_is_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained: dict[str, Tokenizer]
) -> None:
    from unmask.explanation.picture import draw

    explanation = explain(tiny("gpt2"), "Snow fell.", tokenizer=trained["gpt2"])
    with pytest.raises(Mistake, match="ends in .png"):
        draw(explanation, tmp_path / "out.jpg")
    with pytest.raises(Mistake, match="does not exist"):
        draw(explanation, tmp_path / "missing" / "out.png")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(Mistake, match=r"pip install 'unmask\[pictures\]'"):
        draw(explanation, tmp_path / "out.png")
