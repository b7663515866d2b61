"""The command line: one verb per thing a user does. It parses words, calls the Python API (`unmask`), and draws.

The API is imported inside the verbs, so that `unmask --help` is quick.
"""

from unmask.cli.program import app, main

# A verb joins the program when its module is imported, so every module is named here, in the order of `unmask --help`.
from unmask.cli import demo, recipes, check, explain, corpus, train, compare, pipeline, evaluate, infer, search  # isort: skip
from unmask.cli import attend, vectors, knowledge, serve, convert  # isort: skip

__all__ = [
    "app", "attend", "check", "compare", "convert", "corpus", "demo", "evaluate", "explain", "infer", "knowledge", "main", "pipeline", "recipes",
    "search", "serve", "train", "vectors",
]  # fmt: skip
