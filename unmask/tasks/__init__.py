"""Kinds of downstream task, one file each."""

from unmask.tasks.classify import Classify
from unmask.tasks.write import Write

__all__ = ["KINDS", "Classify", "Write"]

KINDS: dict[str, type[Classify] | type[Write]] = {"classify": Classify, "write": Write}
