"""An explanation as a picture."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.command import mistake, works
from tests.explanation.given import CHINESE, PAIR, tiny
from unmask.errors import UserError
from unmask.evaluate import write_curve
from unmask.explanation import explain
from unmask.explanation.records import shown
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


def test_a_picture_says_where_a_hidden_token_stands_if_another_place_predicts_it(
    tmp_path: Path, said: list[str], trained: dict[str, Tokenizer]
) -> None:
    from unmask.explanation.picture import draw

    for settings, elsewhere in (((), False), (("hide.at=before",), True)):
        said.clear()
        found = explain(tiny("bert", *settings), PAIR, tokenizer=trained["bert"])
        draw(found, tmp_path / "out.png")
        for target in found.targets:
            assert (f"{shown(target.text)} (place {target.place})" in said) == elsewhere


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All words on pictures."""
    pytest.importorskip("matplotlib")
    from unmask.explanation import page

    found: list[str] = []
    text = page.Page.text

    def heard(self: Any, x: float, y: float, words: str, **style: Any) -> Any:
        found.append(words)
        return text(self, x, y, words, **style)

    monkeypatch.setattr(page.Page, "text", heard)
    return found


@pytest.fixture
def no_chinese(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A machine without a font that draws Chinese."""
    fonts = pytest.importorskip("unmask.fonts")
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(fonts, "CHINESE", ())
    fonts._installed.cache_clear()
    yield
    fonts._installed.cache_clear()


@pytest.fixture
def font(tmp_path: Path) -> Path:
    """A font with a square for every character of the Chinese text."""
    builder = pytest.importorskip("fontTools.fontBuilder")
    pen = pytest.importorskip("fontTools.pens.ttGlyphPen").TTGlyphPen(None)
    for move, corner in zip([pen.moveTo, *[pen.lineTo] * 3], [(0, 0), (0, 800), (800, 800), (800, 0)], strict=True):
        move(corner)
    pen.closePath()
    square, names = pen.glyph(), [".notdef", "square"]
    made = builder.FontBuilder(1000, isTTF=True)
    made.setupGlyphOrder(names)
    made.setupCharacterMap({ord(character): "square" for character in CHINESE})
    made.setupGlyf(dict.fromkeys(names, square))
    made.setupHorizontalMetrics(dict.fromkeys(names, (1000, 0)))
    made.setupHorizontalHeader(ascent=800, descent=-200)
    made.setupNameTable({"familyName": "Squares of a test", "styleName": "Regular"})
    made.setupOS2()
    made.setupPost()
    made.save(tmp_path / "squares.ttf")
    return tmp_path / "squares.ttf"


def test_a_picture_of_what_no_font_can_draw_says_so(
    tmp_path: Path, said: list[str], no_chinese: None, trained: dict[str, Tokenizer], lexicon: Lexicon
) -> None:
    from unmask.explanation import picture

    found = explain(tiny("ernie"), CHINESE, tokenizer=trained["ernie"], lexicon=lexicon)
    assert set(picture.draw(found, tmp_path / "out.png")) <= set(CHINESE)
    assert any("no installed font can draw" in words for words in said)


def test_the_command_line_says_so_too_and_takes_a_font_file(tmp_path: Path, no_chinese: None, font: Path) -> None:
    words = ("explain", "bert", CHINESE, "--size", "tiny", "--picture", tmp_path / "out.png")
    said = works(*words).err
    assert "no font here can draw" in said
    assert "fonts-noto-cjk" in said
    assert "--font" in said
    boxes = (tmp_path / "out.png").read_bytes()
    assert json.loads(works(*words, "--json").err)["event"] == "notice"
    assert "no font" not in works(*words, "--font", font).err
    assert (tmp_path / "out.png").read_bytes() != boxes


def test_a_font_that_is_none_or_has_no_picture_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "no.ttf").write_text("text")
    words = ("explain", "bert", CHINESE, "--size", "tiny")
    assert "no font at" in mistake(*words, "--picture", tmp_path / "out.png", "--font", tmp_path / "none.ttf")
    assert "is not a font" in mistake(*words, "--picture", tmp_path / "out.png", "--font", tmp_path / "no.ttf")
    assert "--font is for a picture" in mistake(*words, "--font", tmp_path / "no.ttf")


def test_the_title_of_a_curve_is_drawn_with_the_font_or_what_lacks_is_returned(
    tmp_path: Path, no_chinese: None, font: Path
) -> None:
    curve = {"tokens": 9, "points": [{"back": 1, "loss": 2.0}, {"back": 2, "loss": 1.0}]}
    assert write_curve(curve, tmp_path / "c.png", CHINESE[:4]) == CHINESE[:4]
    assert write_curve(curve, tmp_path / "c.png", CHINESE[:4], font) == ""
    assert write_curve(curve, tmp_path / "c.json", CHINESE[:4]) == ""


def test_a_picture_that_cannot_be_drawn_is_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained: dict[str, Tokenizer]
) -> None:
    from unmask.explanation.picture import draw

    explanation = explain(tiny("gpt2"), "Snow fell.", tokenizer=trained["gpt2"])
    with pytest.raises(UserError, match="ends in .png"):
        draw(explanation, tmp_path / "out.jpg")
    with pytest.raises(UserError, match="does not exist"):
        draw(explanation, tmp_path / "missing" / "out.png")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UserError, match=r"pip install 'unmask\[pictures\]'"):
        draw(explanation, tmp_path / "out.png")
