"""Training: optimiser, budget, loop, checkpoints, log."""

from unmask.train.budget import Budget
from unmask.train.loop import Diverged, Leg, Machine, Pace, Trainer, train
from unmask.train.optimise import AdamW

__all__ = ["AdamW", "Budget", "Diverged", "Leg", "Machine", "Pace", "Trainer", "train"]
