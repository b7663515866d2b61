"""Training: optimiser, budget, loop, checkpoints, log."""

from unmask.train.adagrad import Adagrad
from unmask.train.adamax import Adamax
from unmask.train.average import Snapshots, Triggered
from unmask.train.budget import Budget
from unmask.train.lamb import LAMB
from unmask.train.loop import Diverged, Intervals, LoopStage, Trainer, train
from unmask.train.machine import Machine, has_bfloat16, training_machine
from unmask.train.momentum import Momentum
from unmask.train.muon import Muon
from unmask.train.optimise import AdamW
from unmask.train.plan import Fixed, Moment, Plan, Planner

__all__ = [
    "LAMB", "Adagrad", "AdamW", "Adamax", "Budget", "Diverged", "Fixed", "Intervals", "LoopStage", "Machine", "Moment", "Momentum",
    "Muon", "Plan", "Planner", "Snapshots", "Trainer", "Triggered", "has_bfloat16", "train",
    "training_machine",
]  # fmt: skip
