"""Kinds of downstream task, one file each."""

from unmask.tasks.classify import Classify

__all__ = ["Classify"]
