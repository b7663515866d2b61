"""Where sentences begin, as character positions in the original text, for English and Chinese."""

from __future__ import annotations

import re

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_CLOSING, _OPENING = "\"'”’」』）)\\]", "\"'“‘「『（(《【\\["
_ENGLISH_END = re.compile(r"[.!?]+[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[A-Z0-9À-ÖØ-Þ])")
_CHINESE_END = re.compile(r"[。！？；…]+[\"'”’」』）]*\s*(?=[^\s\"'”’」』）])")
_HALF_WIDTH_END = re.compile(  # after Chinese and not before another mark, or before Chinese
    rf"(?<=[{_HAN}”’」』）》】％])([.!?;]+)[{_CLOSING}]*[^\S\n]*(?=[^\s{_CLOSING}=》】。！？；…，、：])"
    rf"|([.!?;]+)([{_CLOSING}]*)[^\S\n]*(?=[{_OPENING}]*[{_HAN}])"
)
_ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof st jr sr vs etc e.g i.e al fig figs eq no vol pp cf ca inc ltd co corp gen col lt sgt capt rev hon "
    "jan feb mar apr jun jul aug sep sept oct nov dec approx dept est".split()
)
_LAST_WORD = re.compile(r"([\w.]+)$")
_LAST_RUN = re.compile(r"[!-~]+$")  # the last run of ASCII characters without spaces
_ADDRESS = re.compile(r"[/@&]|www\.", re.IGNORECASE)
_SHORT_NUMBER = re.compile(r"(?<![\d.])\d{1,2}$")
_INITIAL = re.compile(r"(?<![A-Za-z])[A-Za-z]$")


def sentence_starts(text: str, *, chinese: bool = True) -> list[int]:
    """Positions where a sentence begins: after a mark that ends a sentence, and at the start of every line.

    `chinese`: whether to look for marks next to Chinese characters, which takes time."""
    starts = [0]
    starts += [match.end() for match in _ENGLISH_END.finditer(text) if not _abbreviation(text, match.start())]
    starts += [match.end() for match in _CHINESE_END.finditer(text)]
    if chinese:
        starts += [match.end() for match in _HALF_WIDTH_END.finditer(text) if _ends_chinese(text, match)]
    starts += [match.end() for match in re.finditer("\n", text)]
    return sorted(set(starts))


def _abbreviation(text: str, stop: int) -> bool:
    """Whether the full stop at `stop` ends an abbreviation or an initial, not a sentence."""
    word = _LAST_WORD.search(text, max(0, stop - 12), stop)
    if word is None or text[stop] != ".":
        return False
    last = word.group(1)
    return last.lower() in _ABBREVIATIONS or (len(last) == 1 and last.isupper() and last != "I")


def _ends_chinese(text: str, match: re.Match[str]) -> bool:
    """Whether half-width marks next to Chinese end a sentence: not in 3.14, an address, an initial, 1.苹果 or 百度.com."""
    after_chinese, after_other, closing = match.groups()
    dots = set(after_chinese or after_other) == {"."}
    if after_chinese:
        behind = text[match.end()]
        return not (dots and behind.isascii() and behind.isalnum() and not text[match.end() - 1].isspace())
    run = _LAST_RUN.search(text, max(0, match.start() - 100), match.start())
    before = run.group() if run is not None else ""
    if not before or not (before[-1].isalnum() or before[-1] in "%+)]\"'") or _ADDRESS.search(before):
        return False
    short = _INITIAL.search(before) or _SHORT_NUMBER.search(before) or before.lower() in _ABBREVIATIONS
    return not (dots and (short or set(closing) & set("）)]")))
