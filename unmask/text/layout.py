"""How texts become one example: a layout such as "[CLS] a [SEP] b [SEP]", read left to right."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from unmask.errors import require

TEXTS = ("a", "b")
SPECIALS = {
    "[CLS]": "cls", "[SEP]": "sep", "[MASK]": "mask",
    "[START]": "start", "[DELIMITER]": "delimiter", "[EXTRACT]": "extract",
}  # fmt: skip


@dataclass(frozen=True)
class Item:
    """One piece of an example: a text, or the special token of a role; and the segment it counts to."""

    name: str  # "a", "b", or a role
    segment: int

    @property
    def is_text(self) -> bool:
        return self.name in TEXTS


@lru_cache
def items(layout: str, texts: int) -> tuple[Item, ...]:
    """The items of a layout for one text or two. With one text, `b` and all that belongs to it are left out."""
    words = layout.split()
    between = {"[DELIMITER]"} if texts == 1 else set()  # it stands between two texts alone
    for word in words:
        require(
            word in TEXTS or word in SPECIALS,
            f"a layout is made of a, b, {', '.join(SPECIALS)}; got {word!r} in {layout!r}",
        )
    require(
        words.count("a") == 1 and words.count("b") <= 1, f"a layout names a once and b at most once, got {layout!r}"
    )
    require(texts == 1 or "b" in words, f"the layout {layout!r} has no place for a second text")
    found: list[Item] = []
    segment, after_a = 0, 0
    for word in (word for word in words if word not in between):
        if word == "b":
            segment = 1
        after_a += word not in TEXTS and "a" in [item.name for item in found]
        # with one text: what stands up to and with the first special token after it, and what stands for the whole
        if texts == 2 or segment == 0 and after_a <= 1 or word in ("[CLS]", "[EXTRACT]"):
            found.append(Item(SPECIALS.get(word, word), segment if texts == 2 else 0))
    return tuple(found)


def overhead(layout: str, texts: int) -> int:
    """How many special tokens the layout adds."""
    return sum(not item.is_text for item in items(layout, texts))


def summary(layout: str, texts: int) -> int:
    """Which item stands for the whole example: [CLS] where there is one, otherwise the last."""
    names = [item.name for item in items(layout, texts)]
    return names.index("cls") if "cls" in names else len(names) - 1
