"""Rules: a recipe's `hide` is one rule or a tuple of them, applied in order."""

from __future__ import annotations

from unmask.axes import Hide, rules
from unmask.batch import Batch, Vocabulary


def apply_rules(hide: Hide | tuple[Hide, ...], batch: Batch, vocabulary: Vocabulary, seed: int) -> Batch:
    """The batch with all rules applied. A later rule does not change tokens that an earlier rule hides."""
    for rule in rules(hide):
        batch = rule.apply(batch, vocabulary, seed)
    return batch
