"""Training: optimiser, budget, loop, checkpoints, log."""

from unmask.train.adagrad import Adagrad
from unmask.train.adamax import Adamax
from unmask.train.average import Snapshots, Triggered
from unmask.train.budget import Budget
from unmask.train.lamb import LAMB
from unmask.train.loop import Diverged, Intervals, LoopStage, Machine, Trainer, train
from unmask.train.momentum import Momentum
from unmask.train.muon import Muon
from unmask.train.optimise import AdamW
from unmask.train.plan import Fixed, Moment, Plan, Planner

__all__ = [
    "LAMB", "Adagrad", "AdamW", "Adamax", "Budget", "Diverged", "Fixed", "Intervals", "LoopStage", "Machine", "Moment", "Momentum",
    "Muon", "Plan", "Planner", "Snapshots", "Trainer", "Triggered", "train",
]  # fmt: skip
