"""What most of these tests write or call."""

import json
from pathlib import Path

from tests.command import works


def examples(path: Path, *rows: dict) -> Path:
    """A labelled file: a few good examples, then these."""
    good = [{"text": f"The {word} slept.", "label": word} for word in ("doctor", "river") * 4]
    path.write_text("\n".join(json.dumps(row) for row in [*good, *rows]), encoding="utf-8")
    return path


def prepare(corpus: object, tok: Path, out: Path, *words: object, call=works):
    return call("prepare", corpus, "--tokenizer", tok, "--out", out, "--workers", 1, *words)
