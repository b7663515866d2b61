"""Speed on one core: matching a lexicon of a million entries, and Chinese word boundaries beside jieba.

    python bench/lexicon.py CORPUS... [--entries 1000000] [--characters 8000000]

Half of the entries are random slices of the corpus, so that real matches happen; half are random strings of its
characters. The goals: 5 MB/s or more of matching, words ten times as fast as jieba in Python (pip install jieba).
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from unmask.text import Corpus, Lexicon
from unmask.text.boundaries import HAN, classes_of, codes_of, word_starts

PIECE = 1 << 19  # characters handed over at a time, as `prepare` does


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("corpus", nargs="+")
    options.add_argument("--entries", type=int, default=1_000_000)
    options.add_argument("--characters", type=int, default=8_000_000, help="of the corpus, at most")
    chosen = options.parse_args()
    pieces = read(chosen.corpus, chosen.characters)
    size = sum(len(piece.encode()) for piece in pieces) / 1e6
    print(json.dumps({"MB of text": size, **matching(pieces, size, chosen.entries), **words(pieces)}, indent=1))


def read(corpus: list[str], most: int) -> list[str]:
    """The first texts of each part of the corpus, equally many characters of each."""
    pieces = []
    for part in corpus:
        text, left = "", most // len(corpus)
        for document in Corpus([part]):
            text += document[:left] + "\n"
            left -= len(document)
            if left <= 0:
                break
        pieces += [text[i : i + PIECE] for i in range(0, len(text), PIECE)]
    return pieces


def entries_of(pieces: list[str], count: int, dice: random.Random) -> set[str]:
    found: set[str] = set()
    while len(found) < count // 2:
        piece = dice.choice(pieces)
        at = dice.randrange(len(piece))
        entry = " ".join(piece[at : at + dice.randint(2, 12)].split())
        if len(entry) > 1 and not entry.startswith("# "):
            found.add(entry)
    alphabet = [c for c in "".join(dice.choice(pieces)[:20_000] for _ in range(4)) if not c.isspace() and c != "#"]
    while len(found) < count:
        found.add("".join(dice.choices(alphabet, k=dice.randint(3, 12))))
    return found


def matching(pieces: list[str], size: float, count: int) -> dict[str, float]:
    """Seconds and memory to load the lexicon; MB/s to find one level of it in the text, character classes included."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "entries.tsv"
        lines = (f"{entry}\tphrase\n" for entry in sorted(entries_of(pieces, count, random.Random(0))))
        file.write_text("".join(lines), encoding="utf-8")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begin = time.perf_counter()
        lexicon = Lexicon.load([file])
        loaded = time.perf_counter() - begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    found = [0]

    def match(piece: str) -> None:
        found[0] += len(lexicon.matches(piece, classes_of(codes_of(piece)), "phrase"))

    seconds = timed(match, pieces)
    return {
        "entries": float(sum(entry["phrase"] for entry in lexicon.record)), "load, seconds": loaded,
        "load, MiB": memory / 1024, "matches": float(found[0]), "matching, MB/s": size / seconds,
    }  # fmt: skip


def words(pieces: list[str]) -> dict[str, float | str]:
    """Word boundaries in auto mode, and jieba's on a part of the same text; lines without Han are left out for both."""
    han = [han_lines(piece) for piece in pieces]
    han = [piece for piece in han if piece]
    if not han:
        return {"words": "the corpus holds no Chinese"}
    ours = timed(lambda piece: word_starts(piece, classes_of(codes_of(piece)), "auto"), han)
    speed = sum(len(piece.encode()) for piece in han) / 1e6 / ours
    try:
        import jieba
    except ImportError:
        return {"words, MB/s": speed, "jieba": "not installed: pip install jieba"}
    jieba.setLogLevel("ERROR")
    jieba.initialize()
    part = han[: max(1, len(han) // 4)]
    theirs = timed(lambda piece: [list(jieba.cut(line)) for line in piece.splitlines(keepends=True)], part)
    peer = sum(len(piece.encode()) for piece in part) / 1e6 / theirs
    return {"words, MB/s": speed, "jieba, MB/s": peer, "words, times jieba": speed / peer}


def han_lines(piece: str) -> str:
    lines = piece.splitlines(keepends=True)
    return "".join(line for line in lines if (classes_of(codes_of(line)) == HAN).any())


def timed(work: Callable[[str], object], pieces: list[str]) -> float:
    work("北京 first call")
    begin = time.perf_counter()
    for piece in pieces:
        work(piece)
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
