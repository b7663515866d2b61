"""The sweep: which runs it asks for, and which settings it chooses."""

import pytest

from unmask.comparison.entry import parse
from unmask.comparison.request import Asked, Request, budgets
from unmask.comparison.tuning import check_sweep, grid, tuned
from unmask.errors import UserError

ENTRY = parse("roberta", size="tiny")


def request(*sweep, by="loss", entry=ENTRY):
    return Request(("data",), (Asked(entry, ("8e6tok", "16e6tok"), 1),), sweep=sweep, sweep_by=by)


def follow(asked, losses):
    """Runs the sweep; `losses` gives the loss of a run from its rate and its budget. Returns the rounds and the winner."""
    measured, rounds = {}, []
    while True:
        found = tuned(asked.asked[0], asked, measured)
        if not found.jobs:
            return rounds, found
        rounds.append([(job.entry.settings[-1].partition("=")[2], job.budget) for job in found.jobs])
        for job in found.jobs:
            loss = losses(float(job.entry.settings[-1].partition("=")[2]), job.budget)
            error = None if loss is not None else "diverged"
            measured[job.name] = {"error": error, "pretraining": {"held_out_loss": loss}, "scores": {}}


def test_halving_doubles_the_budget_and_keeps_the_better_half():
    rounds, found = follow(request("optimise.rate=1,2,3,4,5"), lambda rate, budget: abs(rate - 3.4))
    assert rounds == [
        [("1", "1e06tok"), ("2", "1e06tok"), ("3", "1e06tok"), ("4", "1e06tok"), ("5", "1e06tok")],
        [("3", "2e06tok"), ("4", "2e06tok"), ("2", "2e06tok")],
        [("3", "4e06tok"), ("4", "4e06tok")],
    ]
    assert found.entry.settings == ("optimise.rate=3",)
    assert found.entry.name == "roberta"  # the table and the folders keep its name
    assert len(found.runs) == 10


def test_a_run_that_failed_is_the_worst_and_a_sweep_in_which_all_fail_says_why():
    _, found = follow(request("optimise.rate=1,2"), lambda rate, budget: 5.0 if rate == 2 else None)
    assert found.entry.settings == ("optimise.rate=2",)
    _, found = follow(request("optimise.rate=1,2"), lambda rate, budget: None)
    assert found.entry is None
    assert "diverged" in found.error


def test_several_sweeps_are_combined_and_brackets_hold_commas():
    assert grid(["a=1,2", "b=(0.9,0.98),(0.9,0.999)"]) == [
        ("a=1", "b=(0.9,0.98)"), ("a=1", "b=(0.9,0.999)"), ("a=2", "b=(0.9,0.98)"), ("a=2", "b=(0.9,0.999)"),
    ]  # fmt: skip
    with pytest.raises(UserError, match="several values"):
        grid(["optimise.rate=1e-3"])


def test_losses_of_different_questions_are_not_compared():
    with pytest.raises(UserError, match="--sweep-by TASK"):
        check_sweep(request("hide.budget=0.15,0.4"))
    check_sweep(request("hide.budget=0.15,0.4", by="sst2"))
    check_sweep(request("system.backbone.dropout=0.0,0.1"))
    check_sweep(request("schedule.*.rows=16,64"))
    with pytest.raises(UserError, match="--sweep-by TASK"):
        check_sweep(request("schedule.0.length=64,128"))
    with pytest.raises(UserError, match="optimise.nothing"):
        check_sweep(request("optimise.nothing=1,2"))


def test_a_sweep_by_a_task_takes_the_highest_score_and_the_lowest_bits():
    for higher, best in ((True, "2"), (False, "1")):
        asked, measured = request("optimise.rate=1,2", by="t"), {}
        for job in tuned(asked.asked[0], asked, {}).jobs:
            rate = float(job.entry.settings[-1].partition("=")[2])
            measured[job.name] = {
                "error": None,
                "pretraining": {},
                "scores": {"t": {"0": {"score": rate, "higher": higher}}},
            }
        assert tuned(asked.asked[0], asked, measured).entry.settings == (f"optimise.rate={best}",)


def test_budgets_have_one_unit_and_are_sorted():
    assert budgets("20m, 5m") == ("5m", "20m")
    for wrong, said in (("5m,1e8tok", "one unit"), ("", "one unit"), ("5m,300s", "the same")):
        with pytest.raises(UserError, match=said):
            budgets(wrong)
