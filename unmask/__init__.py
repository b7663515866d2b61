"""Unmask: pretrain, adapt, compare and use the language models of 2017-2020 on your own text. This is its Python API.

import unmask

model = unmask.pretrain("bert", "my_texts/", "runs/bert", size="small", budget="20m")
model.fill("Paris is the [MASK] of France.")
model.adapt("train.jsonl", "runs/bert-mine", dev="dev.jsonl").evaluate("test.jsonl")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from unmask.version import __version__ as __version__

if TYPE_CHECKING:
    from unmask.api.attending import attended
    from unmask.api.comparing import compare, compare_report
    from unmask.api.corpus import make_lexicon, prepare, train_tokenizer
    from unmask.api.explaining import explain, measure
    from unmask.api.graphs import graph, open_graph, triples
    from unmask.api.listing import check, describe, differences, list_recipes, list_tasks, list_tunes
    from unmask.api.model import Model
    from unmask.api.part_list import list_parts
    from unmask.api.runs import import_hf, import_vectors, load, pretrain
    from unmask.api.searching import SearchIndex, index, open_index
    from unmask.api.warming import warm
    from unmask.api.word_vectors import Vectors, load_vectors, make_vectors
    from unmask.infer.sampling import decoding
    from unmask.pipeline import plan_pipeline, run_pipeline
    from unmask.serving import serve
    from unmask.serving.client import Client
    from unmask.text import Mining

__all__ = [
    "Client", "Mining", "Model", "SearchIndex", "Vectors", "attended", "check", "compare", "compare_report", "decoding", "describe", "differences", "explain", "graph", "import_hf", "import_vectors", "index",
    "list_parts", "list_recipes", "list_tasks", "list_tunes", "load", "load_vectors", "make_lexicon", "make_vectors", "measure", "open_graph", "open_index", "plan_pipeline", "prepare", "pretrain", "run_pipeline", "serve", "train_tokenizer", "triples", "warm",
]  # fmt: skip

# where each name is: what is not used is not imported, so that `import unmask` and `unmask --help` are quick
_WHERE = {
    "unmask.api.attending": ("attended",),
    "unmask.api.comparing": ("compare", "compare_report"),
    "unmask.api.corpus": ("make_lexicon", "prepare", "train_tokenizer"),
    "unmask.api.explaining": ("explain", "measure"),
    "unmask.api.graphs": ("graph", "open_graph", "triples"),
    "unmask.api.listing": ("check", "describe", "differences", "list_recipes", "list_tasks", "list_tunes"),
    "unmask.api.model": ("Model",),
    "unmask.api.part_list": ("list_parts",),
    "unmask.api.runs": ("import_hf", "import_vectors", "load", "pretrain"),
    "unmask.api.searching": ("SearchIndex", "index", "open_index"),
    "unmask.api.warming": ("warm",),
    "unmask.api.word_vectors": ("Vectors", "load_vectors", "make_vectors"),
    "unmask.infer.sampling": ("decoding",),
    "unmask.pipeline": ("plan_pipeline", "run_pipeline"),
    "unmask.serving": ("serve",),
    "unmask.serving.client": ("Client",),
    "unmask.text": ("Mining",),
}


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is first used."""
    module = next((module for module, names in _WHERE.items() if name in names), None)
    if module is None:
        raise AttributeError(f"module 'unmask' has no attribute {name!r}")
    from unmask.threads import wait_without_spinning

    wait_without_spinning()
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    """What there is: the API too, before it is imported."""
    return sorted({*globals(), *__all__})
