"""The command line: one verb per thing a user does, each a thin call of the Python API.

What is heavy is imported inside the verbs, so that `unmask --help` is quick.
"""

from unmask.cli.program import app, main

# A verb joins the program when its module is imported, so every module is named here, in the order of `unmask --help`.
from unmask.cli import demo, recipes, explain, check, text, train, language_model, infer, convert  # isort: skip

__all__ = ["app", "check", "convert", "demo", "explain", "infer", "language_model", "main", "recipes", "text", "train"]
