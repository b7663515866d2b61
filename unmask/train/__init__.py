"""Training: optimiser, budget, loop, checkpoints, log."""

from unmask.train.budget import Budget
from unmask.train.curves import Decay, InTurn, Line, Until
from unmask.train.lamb import LAMB
from unmask.train.loop import Diverged, Leg, Machine, Pace, Trainer, train
from unmask.train.momentum import Momentum
from unmask.train.optimise import AdamW
from unmask.train.plan import Fixed, Moment, Plan, Planner

__all__ = [
    "LAMB", "AdamW", "Budget", "Decay", "Diverged", "Fixed", "InTurn", "Leg", "Line", "Machine", "Moment", "Momentum", "Pace",
    "Plan", "Planner", "Trainer", "Until", "train",
]  # fmt: skip
