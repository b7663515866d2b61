"""Counts in messages: "2 texts longer than 64 tokens", but "1 text longer than 64 tokens"."""

from __future__ import annotations

import re

_VERBS = {"are": "is", "were": "was", "have": "has", "contain": "contains", "end": "ends", "repeat": "repeats"}
_NOUN = re.compile(r"((?:\S+ ){0,2}?)([A-Za-z]+[^\Ws])s\b(.*)", re.DOTALL)
_VERB = re.compile(rf"(?<! that)(?<! which)(^ that)? ({'|'.join(_VERBS)})\b")


def counted(count: float, what: str) -> str:
    """A count and what is counted. `what`: in the plural, such as "texts longer than 64 tokens, cut". For 1, the first plural word
    and its verbs become singular; what follows a colon or a semicolon stays as it is."""
    shown = f"{count:,}" if isinstance(count, int) else f"{count:g}"
    head = re.split("[:;]", what, maxsplit=1)[0]
    found = _NOUN.match(head)
    if count != 1 or found is None:
        return f"{shown} {what}"
    before, noun, rest = found.groups()
    rest = _VERB.sub(lambda verb: f"{verb[1] or ''} {_VERBS[verb[2]]}", rest)
    one = re.sub("(ss|x|ch|sh)e$", r"\1", re.sub("ie$", "y", noun)) + re.sub(r"\btheir\b", "its", rest)
    return f"{shown} {before}{one}{what[len(head) :]}"
