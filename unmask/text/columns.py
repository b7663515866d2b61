"""Column: one entry for each token of a text besides its id, such as the word that it belongs to.

A column knows its kind, its trailing shape and its fill value. Code that carries columns needs nothing else, so a new
column takes only the code that makes it.

A column of the kind `run` marks units (words, phrases): OUTSIDE, BEGINS or CONTINUES. In rows it becomes the number of
each token's unit, counted per row, and -1 outside any unit. A column of the kind `value` is copied as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from unmask.errors import UserError

Kind = Literal["run", "value"]
OUTSIDE, BEGINS, CONTINUES = range(3)  # the marks of a column of the kind `run`
NO_UNIT = -1  # in rows: the number of tokens in no unit


@dataclass(frozen=True)
class Column:
    """The entries of a column, and how to carry them."""

    values: np.ndarray  # an entry per token; further dimensions are the trailing shape (characters: T C)
    kind: Kind = "run"
    fill: int = NO_UNIT  # in rows: the entry of special tokens, of padding, and of data without this column

    def __post_init__(self) -> None:
        if self.kind == "run":
            if self.fill != NO_UNIT or self.values.ndim > 1:
                raise UserError(
                    (
                        "a column of the kind 'run' has one mark per token and the fill value {no_unit}, got the "
                        "shape {shape} and the fill value {fill}: use the kind 'value'"
                    ),
                    no_unit=NO_UNIT,
                    shape=self.shape,
                    fill=self.fill,
                )
        elif np.asarray(self.fill).astype(self.values.dtype) != self.fill:
            raise UserError(
                (
                    "the fill value {fill} does not fit into a column of {dtype}: choose another fill value, or a "
                    "signed type"
                ),
                fill=self.fill,
                dtype=self.values.dtype,
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """The trailing shape: that of the entry of one token."""
        return tuple(self.values.shape[1:])

    @property
    def record(self) -> dict[str, Any]:
        """The description of the column in a manifest."""
        return {
            "kind": self.kind, "dtype": self.values.dtype.name, "shape": list(self.shape), "fill": self.fill,
        }  # fmt: skip

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Column:
        """The entries of some tokens."""
        return Column(self.values[index], self.kind, self.fill)


def run_column(begins: np.ndarray) -> Column:
    """The column of units that cover every token, made from one flag per token: whether it begins a unit."""
    return Column(np.where(begins, BEGINS, CONTINUES).astype(np.uint8))


def join_columns(parts: Sequence[dict[str, Column]]) -> dict[str, Column]:
    """Concatenate the columns of several texts. A column that one of the texts lacks is left out."""
    names = [name for name in parts[0] if all(name in part for part in parts)]
    return {
        name: replace(parts[0][name], values=np.concatenate([part[name].values for part in parts])) for name in names
    }


def backward_marks(marks: np.ndarray, following: np.ndarray) -> np.ndarray:
    """The marks of tokens that are read backward; `following`: for each token, the mark of the token after it."""
    return np.where(marks == OUTSIDE, OUTSIDE, np.where(following == CONTINUES, CONTINUES, BEGINS)).astype(marks.dtype)
