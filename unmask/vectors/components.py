"""Components of Chinese characters: a table in a file, `character TAB components`, as a second input for their vectors.

Each line has a character, a tab, and its components (or its radical) as characters, with or without spaces: 河<tab>氵可. Signs
for how parts are arranged are left out: 河<tab>⿰氵可 is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unmask.errors import require
from unmask.text.lines import numbered_lines

_SHAPES = "\u2ff0", "\u2fff"  # the first and the last sign for how parts are arranged, as in ⿰氵可: no parts
_FORM = "write a character, a tab and its components, such as 河<tab>氵可"


@dataclass(frozen=True)
class ComponentTable:
    """The components of each character of a table."""

    of: dict[str, tuple[str, ...]]

    @classmethod
    def load(cls, file: str | Path) -> ComponentTable:
        """Read a table. A character that is given twice is an error."""
        found: dict[str, tuple[str, ...]] = {}
        for number, line in numbered_lines(Path(file)):
            if not line.strip():
                continue
            character, _, rest = line.partition("\t")
            parts = tuple(part for part in "".join(rest.split()) if not _SHAPES[0] <= part <= _SHAPES[1])
            require(
                len(character) == 1 and bool(parts),
                "{file}, line {number:,}: {line!r} has no character with components: {form}",
                file=file,
                number=number,
                line=line[:40],
                form=_FORM,
            )
            require(
                character not in found,
                "{file}, line {number:,}: {character} is given a second time: keep one of the two lines",
                file=file,
                number=number,
                character=character,
            )
            found[character] = parts
        require(bool(found), "{file} has no characters: {form}", file=file, form=_FORM)
        return cls(found)

    @property
    def names(self) -> list[str]:
        """Every component once."""
        return sorted({part for parts in self.of.values() for part in parts})

    def parts_of(self, word: str) -> list[str]:
        """The components of all characters of a word; a character that is not in the table has none."""
        return [part for character in word for part in self.of.get(character, ())]

    def numbers(self, words: Sequence[str]) -> np.ndarray:
        """words x most components of a word: the numbers of each word's components, filled up with -1."""
        number = {name: place for place, name in enumerate(self.names)}
        lists = [[number[part] for part in self.parts_of(word)] for word in words]
        table = np.full((len(words), max(1, *map(len, lists))), -1)
        for row, parts in zip(table, lists, strict=True):
            row[: len(parts)] = parts
        return table

    def unseen(self, words: Sequence[str]) -> list[str]:
        """The characters of the table that are in none of these words."""
        seen = {character for word in words for character in word}
        return [character for character in self.of if character not in seen]

    def only(self, characters: Collection[str]) -> ComponentTable:
        """The table of these characters alone."""
        return ComponentTable({one: parts for one, parts in self.of.items() if one in characters})

    def notes(self, words: Sequence[str], where: str = "corpus") -> dict[str, int]:
        """What a user must know about the words of a corpus: which of their characters the table does not have.

        `where`: what the words are of."""
        han = {character for word in words for character in word if "\u4e00" <= character <= "\u9fff"}
        missing = sorted(han - set(self.of))
        if not missing:
            return {}
        return {f"characters of the {where} are not in the table of components, such as {missing[0]}": len(missing)}
