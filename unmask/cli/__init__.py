"""The command line: one verb per thing a user does. It parses words, calls the Python API (`unmask`), and draws.

The API is imported inside the verbs, so that `unmask --help` is quick.
"""

# A verb joins the program when its module is imported, so every module is named here, in the order of `unmask --help`.
from unmask.cli import (
    check,
    compare,
    convert,
    corpus,
    demo,
    evaluate,
    explain,
    infer,
    knowledge,
    recipes,
    search,
    train,
)  # isort: skip
from unmask.cli.program import app, main

__all__ = [
    "app", "check", "compare", "convert", "corpus", "demo", "evaluate", "explain", "infer", "knowledge", "main", "recipes",
    "search", "train",
]  # fmt: skip
