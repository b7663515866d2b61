"""Training: optimiser, budget, loop, checkpoints, log."""

from unmask.train.budget import Budget
from unmask.train.lamb import LAMB
from unmask.train.loop import Diverged, Leg, Machine, Pace, Trainer, train
from unmask.train.optimise import AdamW

__all__ = ["LAMB", "AdamW", "Budget", "Diverged", "Leg", "Machine", "Pace", "Trainer", "train"]
