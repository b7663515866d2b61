"""Adapt a pretrained model to a task."""

from unmask.adapt.finetune import few, finetune

__all__ = ["few", "finetune"]
