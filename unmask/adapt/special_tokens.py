"""Special tokens of a task, such as marks around entities: they are added to the tokenizer and the network of a model."""

from __future__ import annotations

import dataclasses

from unmask.axes import Task, Tune
from unmask.errors import require
from unmask.infer.model import Model
from unmask.system.token_rows import with_tokens


def with_special_tokens(base: Model, task: Task, tune: Tune | None) -> Model:
    """The model with the special tokens of a task. The vector of a new token starts as that of a word."""
    new = {name: word for name, word in task.special_tokens.items() if base.tokenizer.backend.token_to_id(name) is None}
    if not new:
        return base
    require(
        tune is None or not tune.alone,
        "the task adds the tokens {names} to the network, but {tune} keeps the network as it is: train all weights, or leave the "
        "marks out",
        names=" and ".join(new),
        tune=type(tune).__name__,
    )
    tokenizer = base.tokenizer.with_special(list(new))
    pieces = [base.tokenizer.encode(word) for word in new.values()]
    system = with_tokens(base.recipe, base.system, tokenizer.vocabulary, pieces).to(base.device)
    return dataclasses.replace(base, system=system, tokenizer=tokenizer, recordings={})
