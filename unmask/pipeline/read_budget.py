"""The budget of a pipeline file: a total that is divided by shares, or a budget in each stage that pretrains."""

from __future__ import annotations

from typing import Any

from unmask.errors import UserError
from unmask.pipeline.budgets import added
from unmask.pipeline.toml_file import TomlFile
from unmask.train import Budget

Tables = dict[str, dict[str, Any]]  # the fields of the stages that pretrain, by the name of the stage


def read_budget(file: TomlFile, tables: Tables) -> tuple[str | None, dict[str, float]]:
    """The total budget, and the share of each stage."""
    total, own = file.data.get("budget"), {name: table["budget"] for name, table in tables.items() if "budget" in table}
    if total is not None:
        _parsed(file, ("budget",), total)
    file.require(
        not tables or total is not None or bool(own),
        (),
        'the budget is missing: give a total for all stages that pretrain, such as budget = "30m", and a share in each, or a '
        "budget in each stage",
    )
    if own:
        return _own_budgets(file, tables, own)
    return total, _shares(file, tables)


def _own_budgets(file: TomlFile, tables: Tables, own: dict[str, str]) -> tuple[str, dict[str, float]]:
    found = {name: _parsed(file, (name, "budget"), budget) for name, budget in own.items()}
    kind = next(iter(found.values())).kind
    for name, table in tables.items():
        other = "a total" if "budget" in file.data else "a share" if "share" in table else None
        file.require(
            name not in own or other is None,
            (name, "budget"),
            "[{name}] has a budget of its own, and there is {other}: give a total with shares, or a budget in each stage",
            name=name,
            other=other,
        )
        file.require(
            name in own,
            (name,),
            '[{name}] has no budget, and other stages have one: give it one, such as budget = "10m"',
            name=name,
        )
        file.require(
            found[name].kind == kind,
            (name, "budget"),
            "the budgets of all stages have one unit, got {some}",
            some=" and ".join(own.values()),
        )
    return added(list(own.values())), {name: budget.amount for name, budget in found.items()}


def _shares(file: TomlFile, tables: Tables) -> dict[str, float]:
    given = next((name for name in tables if "share" in tables[name]), None)
    for name, table in tables.items():
        file.require(
            "share" in table or given is None,
            (name,),
            "[{name}] has no share, and [{other}] has one: give both, or no stage (then all are equal)",
            name=name,
            other=given,
        )
        file.require(
            table.get("share", 1) > 0, (name, "share"), "share must be over 0, got {share}", share=table.get("share")
        )
    return {name: float(table.get("share", 1)) for name, table in tables.items()}


def _parsed(file: TomlFile, keys: tuple[str, ...], budget: str) -> Budget:
    try:
        return Budget.parse(budget)
    except UserError as error:
        file.fail(keys, "{error}", error=error)
