"""Fonts for pictures: find one that can draw Chinese, and report characters that no font can draw."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

from unmask.errors import UserError, require

LETTERS: Final = "DejaVu Sans"  # part of matplotlib
# Font families with Chinese characters; free ones first.
CHINESE: Final = (
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN", "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei", "Droid Sans Fallback", "PingFang SC", "Hiragino Sans GB", "Heiti SC", "Microsoft YaHei",
    "SimHei", "Arial Unicode MS", "Noto Sans CJK JP", "IPAexGothic",
)  # fmt: skip
NO_GLYPH: Final = "□"


@dataclass(frozen=True)
class Fonts:
    """The font families of one picture; each draws the characters that the families before it lack."""

    families: tuple[str, ...]

    def of(self, text: str) -> list[str]:
        """The families to draw a text with."""
        return [LETTERS] if text.isascii() else list(self.families)

    def lacking(self, text: str) -> str:
        """The characters that no font draws, each once."""
        found = (c for c in dict.fromkeys(text) if not c.isspace() and not self._has(c))
        return "" if text.isascii() else "".join(found)

    def drawable(self, text: str) -> str:
        """The text with a box for every character that no font draws."""
        lacking = self.lacking(text)
        return "".join(NO_GLYPH if c in lacking else c for c in text) if lacking else text

    def _has(self, character: str) -> bool:
        return any(font.get_char_index(ord(character)) for font in self._opened)

    @cached_property
    def _opened(self) -> list[Any]:
        from matplotlib import font_manager

        return [font_manager.get_font(font_manager.findfont(family)) for family in self.families]


def fonts(file: str | Path | None = None) -> Fonts:
    """The default font and one for Chinese: from a file if it is given, otherwise an installed one."""
    return Fonts((LETTERS, *((_added(Path(file)),) if file is not None else _installed())))


def notice(lacking: str) -> str:
    """A notice about characters that no font draws, and what to do."""
    shown = lacking if len(lacking) <= 10 else f"{lacking[:10]}…"
    return (
        f"no font here can draw {len(lacking)} characters of the picture ({shown}), so it shows {NO_GLYPH} for them: install "
        "a font (on Debian and Ubuntu: apt install fonts-noto-cjk), or name a font file with --font"
    )


def _added(file: Path) -> str:
    """Add a font file to matplotlib; returns its family."""
    from matplotlib import font_manager

    require(file.is_file(), "no font at {file}: give a .ttf, .otf or .ttc file", file=file)
    try:
        font_manager.fontManager.addfont(file)
        return font_manager.get_font(file).family_name  # type: ignore[no-any-return]
    except (RuntimeError, OSError) as error:
        raise UserError(
            "{file} is not a font that can be read ({error}): give a .ttf, .otf or .ttc file", file=file, error=error
        ) from None


@cache
def _installed() -> tuple[str, ...]:
    """The first installed family that draws Chinese, if there is one."""
    from matplotlib import font_manager

    def known() -> tuple[str, ...]:
        installed = {font.name for font in font_manager.fontManager.ttflist}
        return tuple(name for name in CHINESE if name in installed)[:1]

    if not known():  # matplotlib caches its list of fonts and does not find newly installed ones
        listed = {font.fname for font in font_manager.fontManager.ttflist}
        for path in set(font_manager.findSystemFonts()) - listed:
            with contextlib.suppress(RuntimeError, OSError):  # a file that matplotlib cannot read as a font
                font_manager.fontManager.addfont(path)
    return known()
