"""Unmask: pretrain, adapt and use the language models of 2017-2020 on your own text.

import unmask

unmask.train_tokenizer("corpus/", "tok.json", kind="wordpiece", vocab=8000)
unmask.prepare("corpus/", "data/mine", tokenizer="tok.json")
model = unmask.pretrain("bert", "data/mine", "runs/bert", size="small", budget="20m")
model.fill("Paris is the [MASK] of France.")
model.adapt("train.jsonl", "runs/bert-mine", dev="dev.jsonl").evaluate("test.jsonl")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unmask.version import __version__ as __version__

__all__ = [
    "Model", "explain", "import_hf", "list_recipes", "load", "make_lexicon", "prepare", "pretrain", "train_tokenizer",
]  # fmt: skip

if TYPE_CHECKING:
    from unmask.api import (
        Model,
        explain,
        import_hf,
        list_recipes,
        load,
        make_lexicon,
        prepare,
        pretrain,
        train_tokenizer,
    )


def __getattr__(name: str) -> Any:
    """Import the API when it is first used, so that `import unmask` and `unmask --help` are quick."""
    if name in __all__:
        from unmask.threads import wait_without_spinning

        wait_without_spinning()
        from unmask import api

        return getattr(api, name)
    raise AttributeError(f"module 'unmask' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What there is: the API too, before it is imported."""
    return sorted({*globals(), *__all__})
