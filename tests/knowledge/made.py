"""A small graph with a rule: who lives in a city lives in the country of the city."""

from __future__ import annotations

import json
from pathlib import Path

CITIES = [f"City {number}" for number in range(6)]
PEOPLE = [f"Person {number}" for number in range(24)]


def triples() -> list[tuple[str, str, str]]:
    found = [(city, "lies in", f"Land {number % 3}") for number, city in enumerate(CITIES)]
    for number, person in enumerate(PEOPLE):
        found += [(person, "lives in", CITIES[number % 6]), (person, "is from", f"Land {number % 3}")]
    return found


def write(path: Path, lines: list[tuple[str, str, str]]) -> Path:
    if path.suffix == ".jsonl":
        text = "".join(json.dumps({"head": h, "relation": r, "tail": t}) + "\n" for h, r, t in lines)
    else:
        text = "".join("\t".join(line) + "\n" for line in lines)
    path.write_text(text, encoding="utf-8")
    return path
