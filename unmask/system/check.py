"""What every system shares: which objectives a recipe brings, whether its parts fit, what it costs."""

from __future__ import annotations

from typing import Any

import torch

from unmask import curves
from unmask.batch import Vocabulary
from unmask.errors import require
from unmask.hide import Mask, Next, Second, Shuffle
from unmask.predict import Adaptive, AllTokens, EveryLayer, Label, Replaced, Tokens
from unmask.recipe import Recipe, Stage
from unmask.see import Permuted
from unmask.text import layout as layouts

SENTENCE = "sentence"  # the name of the objective that follows from a recipe's `arrange`


def questions(recipe: Recipe) -> dict[str, Any]:
    """What is asked: the recipe's own objectives, and the sentence task that its `arrange` brings."""
    classes = recipe.arrange.classes  # type: ignore[attr-defined]
    return recipe.predict | ({SENTENCE: Label(classes=classes)} if classes else {})


def objectives(recipe: Recipe) -> dict[str, Any]:
    """What is predicted, a loss each: what is asked of every layer is as many objectives."""
    return {n: p for name, part in questions(recipe).items() for n, p in _each(recipe, name, part).items()}


def _each(recipe: Recipe, name: str, part: Any) -> dict[str, Any]:
    """The objectives that an entry of `predict` stands for."""
    return part.each(name, recipe.system.backbone.layers) if isinstance(part, EveryLayer) else {name: part}  # type: ignore[attr-defined]


def weights(recipe: Recipe, stage: Stage) -> dict[str, Any]:
    """The weight of each loss in a stage, a number or a curve; what is said of all layers holds for each that has none."""
    found: dict[str, Any] = {}
    for name, weight in stage.weights.items():
        part: Any = recipe.predict.get(name)
        if isinstance(part, EveryLayer):
            layers = recipe.system.backbone.layers  # type: ignore[attr-defined]
            each = part.each(name, layers).items()
            found |= {n: curves.of(weight, head.layer, layers) for n, head in each}  # type: ignore[arg-type]
    return found | {name: weight for name, weight in stage.weights.items() if name in _losses(recipe)}


def _losses(recipe: Recipe) -> list[str]:
    return [*objectives(recipe), *recipe.system.losses]  # type: ignore[attr-defined]


def hides(recipe: Recipe) -> list[Any]:
    """What each stage of the schedule hides."""
    return [stage.hide or recipe.hide for stage in recipe.schedule]


def check(recipe: Recipe, vocabulary: Vocabulary) -> None:
    """Refuse a recipe whose parts do not fit each other or the tokenizer."""
    for hide, stage in zip(hides(recipe), recipe.schedule, strict=True):
        require(
            vocabulary.mask is not None or not hide.needs_mask,
            f"{recipe.name} hides tokens behind [MASK], and the tokenizer has no mask token: "
            "train one with 'unmask tokenizer', or set hide.mask=0",
        )
        longest = hide.units.longest if hasattr(hide, "units") else 1
        require(
            longest <= stage.length,
            f"a hidden span may have {longest} words, and a row {stage.length} tokens: lower hide.units.lengths, or raise "
            "schedule.*.length",
        )
        shuffle = getattr(hide, "shuffle", Shuffle())
        require(
            bool(shuffle.budget) or shuffle == Shuffle(),
            f"hide.shuffle.size={shuffle.size} has no effect where nothing is shuffled: set hide.shuffle.budget too",
        )
        run = shuffle.size if shuffle.budget else 1
        require(
            run <= stage.length,
            f"runs of {run} tokens are shuffled, and a row has {stage.length}: lower hide.shuffle.size, or raise "
            "schedule.*.length",
        )
    check_network("backbone", recipe.system.backbone, recipe)  # type: ignore[attr-defined]
    _check_tokens(recipe)
    known = [*questions(recipe), *recipe.system.losses]  # type: ignore[attr-defined]
    for name in (name for stage in recipe.schedule for name in stage.weights):
        require(
            name in known or name in objectives(recipe),
            f"the schedule weighs a loss {name!r} that is not predicted: known are {', '.join(known)}",
        )


def _check_tokens(recipe: Recipe) -> None:
    """Refuse predictions of what is not there: a target too far ahead, a layer too high."""
    backbone: Any = recipe.system.backbone  # type: ignore[attr-defined]
    given = [getattr(hide, "ahead", 1) for hide in hides(recipe)]
    ahead = min(given)
    asked = max((part.ahead for part in objectives(recipe).values() if isinstance(part, Tokens)), default=1)
    require(
        max(given) <= asked,
        f"hide.ahead={max(given)} gives targets that nothing predicts: set hide.ahead={asked}, or predict.NAME.ahead",
    )
    for name, part in objectives(recipe).items():
        if isinstance(part, Tokens):
            require(
                part.ahead <= ahead,
                f"predict.{name} predicts {part.ahead} tokens ahead, and hide gives targets up to {ahead} ahead: set "
                f"hide=Next(ahead={part.ahead})",
            )
            require(
                part.layer is None or part.layer <= backbone.layers,
                f"predict.{name} reads layer {part.layer}, and the backbone has {backbone.layers}: lower "
                f"predict.{name}.layer",
            )


def check_training(recipe: Recipe) -> None:
    """Refuse to train what cannot be learnt: no generator, no second text, or a future that is in sight."""
    pairs = bool(recipe.arrange.classes)  # type: ignore[attr-defined]
    for hide in hides(recipe):
        require(
            pairs or not isinstance(getattr(hide, "units", None), Second),
            "hide.units=Second hides the second of two texts, and arrange makes no pairs: set arrange=NextSentence",
        )
        require(
            not isinstance(hide, Next) or recipe.see.pattern == "left",  # type: ignore[attr-defined]
            f"hide=Next predicts the next token, and with see={type(recipe.see).__name__} the network sees it: set "
            "see=LeftToRight, or hide=Mask",
        )
    require(
        pairs or recipe.see.writes != "second",  # type: ignore[attr-defined]
        f"see={type(recipe.see).__name__} shows the second of two texts from left to right, and arrange makes no pairs: set "
        "arrange=NextSentence, or see=Everything, or, of several views, see.prefix=0",
    )
    _check_order(recipe)
    _check_memory(recipe)
    judges = [name for name, part in recipe.predict.items() if isinstance(part, Replaced | AllTokens)]
    require(
        not judges or bool(recipe.system.losses),  # type: ignore[attr-defined]
        f"{recipe.name} predicts {', '.join(judges)}: what a generator replaced, and the network has none: set "
        "system=GeneratorDiscriminator",
    )


def second_stream(recipe: Recipe) -> bool:
    """Whether the network has a second stream, which predicts tokens that it does not see."""
    return getattr(recipe.system.backbone, "streams", 1) == 2  # type: ignore[attr-defined]


def _check_order(recipe: Recipe) -> None:
    """An order needs something that comes last in it, and a stream that does not see it; such a stream needs an order."""
    ordered = isinstance(recipe.see, Permuted)
    two = second_stream(recipe)
    require(
        not ordered or all(isinstance(hide, Mask) for hide in hides(recipe)),
        "see=Permuted puts what is hidden at the end of an order, and hide gives it nothing to predict: set hide=Mask",
    )
    require(
        ordered == two,
        "see=Permuted predicts with a stream that does not see its token, and the network has none: set "
        "system.backbone=TransformerXL and system.backbone.streams=2"
        if ordered
        else f"system.backbone.streams=2 predicts what comes last in an order, and see={type(recipe.see).__name__} has none: "
        "set see=Permuted, or system.backbone.streams=1",
    )
    blind = [name for name, part in recipe.predict.items() if not _reads_query(part)]
    require(
        not two or not blind,
        f"with system.backbone.streams=2 only the second stream may predict, off its last layer, and {', '.join(blind)} would read "
        "the tokens themselves: leave it out, or set predict.*.layer=none",
    )


def _reads_query(part: Any) -> bool:
    return isinstance(part, Adaptive) or (isinstance(part, Tokens) and part.layer is None)


def _check_memory(recipe: Recipe) -> None:
    """A memory is of no use where no row goes on with one before it."""
    memory = recipe.system.backbone.memory  # type: ignore[attr-defined]
    looks_ahead = not isinstance(recipe.see, Permuted) and recipe.see.pattern != "left"  # type: ignore[attr-defined]
    require(
        not memory or not hasattr(recipe.arrange, "reuse") or not looks_ahead,
        f"arrange=ContinuingPairs lets rows overlap, and with see={type(recipe.see).__name__} what is remembered of a row has seen what "
        "the next one predicts: set arrange=ContinuingRows, or see=Permuted",
    )
    require(
        not memory or recipe.arrange.continuous,  # type: ignore[attr-defined]
        f"system.backbone.memory={memory} keeps tokens of the row before, and arrange={type(recipe.arrange).__name__} gives rows "
        "that do not go on with each other: set arrange=ContinuingRows, or system.backbone.memory=0",
    )


def check_network(name: str, network: Any, recipe: Recipe) -> None:
    """Refuse a network, called `system.NAME`, that cannot read the recipe's rows."""
    rows = max(stage.length for stage in recipe.schedule)
    require(
        rows <= network.length,
        f"rows of {rows} tokens do not fit a {name} of length {network.length}: lower schedule.*.length or raise "
        f"system.{name}.length",
    )
    segments = recipe.see.segments  # type: ignore[attr-defined]
    require(
        segments <= network.segments or not segments,
        f"see={type(recipe.see).__name__} tells {segments} segments apart, and the {name} {network.segments}: "
        f"set system.{name}.segments={segments}",
    )
    _check_layout(name, network, recipe)


def _check_layout(name: str, network: Any, recipe: Recipe) -> None:
    """Refuse a layout with more kinds of segments than the network, or a view that gives them numbers, tells apart."""
    laid = 1 + max(item.segment for item in layouts.items(recipe.layout, 2 if "b" in recipe.layout.split() else 1))
    known = len(set(recipe.see.kinds)) or network.segments  # type: ignore[attr-defined]
    require(
        not network.segments or laid <= known,
        f"the layout {recipe.layout!r} has {laid} kinds of segments, and the {name} tells {known} apart: set "
        f"system.{name}.segments={laid}, or another layout",
    )


def cost(recipe: Recipe, vocabulary: int) -> dict[str, float]:
    """Parameters, and training operations per token over the whole schedule; nothing is allocated."""
    words = Vocabulary(size=vocabulary, pad=0, special=(), mask=0)
    with torch.device("meta"):
        system = recipe.system.build(recipe, words, 0)  # type: ignore[attr-defined]
    return {
        "parameters": sum(p.numel() for p in system.parameters()),
        "kept": sum(p.numel() for p in system.keep.parameters()),
        "flops_per_token": schedule_flops(recipe, vocabulary),
    }


def schedule_flops(recipe: Recipe, vocabulary: int) -> float:
    """Training operations per token over the whole schedule."""
    shares = [stage.share for stage in recipe.schedule]
    return sum(s * f for s, f in zip(shares, step_flops(recipe, vocabulary), strict=True)) / recipe.step_tokens


def step_flops(recipe: Recipe, vocabulary: int) -> list[float]:
    """Training operations of a step of each stage, with what it hides."""
    stages = zip(recipe.schedule, hides(recipe), strict=True)
    return [s.rows * s.length * flops_per_token(recipe.replace(hide=hide), vocabulary, s.length) for s, hide in stages]


def flops_per_token(recipe: Recipe, vocabulary: int, length: int) -> float:
    """Training operations per token: three forward passes' worth, predictions counted where they are made."""
    return 3 * float(recipe.system.flops(recipe, vocabulary, length))  # type: ignore[attr-defined]


def heads_flops(recipe: Recipe, vocabulary: int) -> float:
    """Of one forward pass of all objectives, per token."""
    backbone = recipe.system.backbone  # type: ignore[attr-defined]
    embedding, outputs = backbone.embedding or backbone.width, backbone.outputs(vocabulary)
    share = recipe.hide.share  # type: ignore[attr-defined]
    return float(sum(p.flops(backbone.width, embedding, outputs, share) for p in objectives(recipe).values()))  # type: ignore[attr-defined]
