"""A budget that is divided, and what is left of a pipeline without some stages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.made import folder
from unmask.errors import UserError
from unmask.pipeline.budgets import added, divided
from unmask.pipeline.read_file import read_pipeline
from unmask.pipeline.toml_file import TomlFile
from unmask.train import Budget


@pytest.mark.parametrize(
    ("total", "shares", "parts"),
    [
        ("30m", [0.6, 0.1, 0.3], ["18m", "3m", "9m"]),
        ("100s", [1, 1, 1], ["33.3s", "33.4s", "33.3s"]),
        ("20steps", [6, 1, 3], ["12steps", "2steps", "6steps"]),
        ("1e9tok", [3, 1], ["750000000tok", "250000000tok"]),
        ("1e17flop", [1, 3], ["2.5e16flop", "7.5e16flop"]),
    ],
)
def test_parts_of_a_budget_are_in_proportion_and_are_budgets(total, shares, parts):
    assert divided(total, shares) == parts


@pytest.mark.parametrize("total", ["19steps", "7m", "12345tok", "61s"])
def test_rounded_parts_add_up_to_the_budget(total):
    parts = divided(total, [0.61, 0.13, 0.26])
    assert sum(Budget.parse(part).amount for part in parts) == pytest.approx(Budget.parse(total).amount, abs=1e-9)


def test_a_budget_too_small_for_its_stages_is_refused():
    with pytest.raises(UserError, match="2steps is too small for 3 stages: its smallest part would be under 1steps"):
        divided("2steps", [1, 1, 1])


def test_budgets_of_stages_are_added():
    assert added(["18m", "90s", "30s"]) == "20m"


def pipeline(tmp_path: Path, text: str | None = None):
    file = folder(tmp_path, text) if text else folder(tmp_path)
    return read_pipeline(TomlFile.read(file))


def test_without_a_stage_the_next_starts_from_what_it_started_from_and_the_total_stays(tmp_path):
    whole = pipeline(tmp_path)
    assert whole.budgets == {"general": "12steps", "knowledge": "2steps", "domain": "6steps"}
    left = whole.without({"knowledge"})
    assert [(stage.name, stage.start) for stage in left.stages] == [
        ("general", None),
        ("domain", "general"),
        ("task", "domain"),
    ]
    assert left.budgets == {"general": "13steps", "domain": "7steps"}
    both = whole.without({"knowledge", "domain"})
    assert [(stage.name, stage.start) for stage in both.stages] == [("general", None), ("task", "general")]
    assert whole.without({"general"}).stages[0].start is None


def test_only_stages_that_a_score_depends_on_are_left_out_in_turn(tmp_path):
    text = 'out = "out"\nrecipe = "bert"\nbudget = "9steps"\n[a]\ntext = "wiki/"\n[b]\ntext = "wiki/"\n'
    tasks = (
        '[first]\nfrom = "a"\ntrain = "train.jsonl"\ntest = "test.jsonl"\n[second]\nfrom = "b"\ntrain = "train.jsonl"\n'
    )
    assert list(pipeline(tmp_path, text + tasks).ablated()) == ["a"]
    between = tasks.replace('from = "b"\n', 'from = "first"\ndev = "dev.jsonl"\n')
    assert list(pipeline(tmp_path, text + between).ablated()) == ["a", "first"]
