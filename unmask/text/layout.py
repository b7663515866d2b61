"""Layouts: the order of texts and special tokens in one example, such as "[CLS] a [SEP] b [SEP]"."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from unmask.errors import require

TEXTS = ("a", "b")
SPECIALS = {
    "[CLS]": "cls", "[SEP]": "sep", "[MASK]": "mask",
    "[START]": "start", "[DELIMITER]": "delimiter", "[EXTRACT]": "extract",
}  # fmt: skip
OWN_SEGMENT = 2  # the segment of a [CLS] that comes after the texts and belongs to neither (XLNet)


@dataclass(frozen=True)
class Item:
    """One piece of an example: a text or a special token, and its segment."""

    name: str  # "a", "b", or a role
    segment: int

    @property
    def is_text(self) -> bool:
        return self.name in TEXTS


@lru_cache
def items(layout: str, texts: int) -> tuple[Item, ...]:
    """The items of a layout for one text or two. With one text, `b` and its special tokens are left out."""
    words = layout.split()
    between = {"[DELIMITER]"} if texts == 1 else set()  # it only separates two texts
    for word in words:
        require(
            word in TEXTS or word in SPECIALS,
            "a layout may hold a, b, {specials}; got {word!r} in {layout!r}",
            specials=", ".join(SPECIALS),
            word=word,
            layout=layout,
        )
    require(
        words.count("a") == 1 and words.count("b") <= 1,
        ("a layout must have a once and b at most once, got {layout!r}"),
        layout=layout,
    )
    require(
        texts == 1 or "b" in words,
        ("the layout {layout!r} has no place for a second text: use a layout with b"),
        layout=layout,
    )
    found: list[Item] = []
    segment, after_a = 0, 0
    for place, word in enumerate(words):
        before, after = "a" in words[:place], "b" in words[place:]
        opens = word == "[CLS]" and before and after  # it begins the second text, as another one begins the first
        if word in between or (opens and texts == 1):
            continue
        if word == "b" or opens:
            segment = 1
        after_a += word not in TEXTS and before
        # with one text, keep the items up to the first special token after it, and the tokens that summarise the example
        if texts == 2 or segment == 0 and after_a <= 1 or word in ("[CLS]", "[EXTRACT]"):
            own = word == "[CLS]" and before and not opens
            found.append(Item(SPECIALS.get(word, word), OWN_SEGMENT if own else segment if texts == 2 else 0))
    return tuple(found)


def apart(layout: str) -> str:
    """The layout for two texts of which each is laid out as a text alone, for an encoder and a decoder."""
    names = {role: word for word, role in SPECIALS.items()}
    alone = [names.get(item.name, item.name) for item in items(layout, 1)]
    return " ".join([*alone, *("b" if word == "a" else word for word in alone)])


def overhead(layout: str, texts: int) -> int:
    """The number of special tokens that the layout adds."""
    return sum(not item.is_text for item in items(layout, texts))


def summary(layout: str, texts: int) -> int:
    """The index of the item that represents the whole example: [CLS] if there is one, otherwise the last item."""
    names = [item.name for item in items(layout, texts)]
    return names.index("cls") if "cls" in names else len(names) - 1
