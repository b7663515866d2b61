"""Trials: one adaptation several times, to know how good it is: with other seeds, on other folds, with fewer labels."""

from unmask.trials.find_rate import draw_rates, trace_rates
from unmask.trials.folds import cross_validate, split, suspect_columns
from unmask.trials.label_curve import draw_curve, label_curve, parse_sizes
from unmask.trials.report import write_report
from unmask.trials.seeds import check_dev, try_seeds
from unmask.trials.trial import Trial

__all__ = [
    "Trial",
    "check_dev",
    "cross_validate",
    "draw_curve",
    "draw_rates",
    "label_curve",
    "parse_sizes",
    "split",
    "trace_rates",
    "try_seeds",
    "write_report",
    "suspect_columns",
]
