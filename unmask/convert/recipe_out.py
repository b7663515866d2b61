"""What Hugging Face can express: the family that a recipe's parts make, and the reasons why some make none."""

from __future__ import annotations

from unmask.backbone import Transformer
from unmask.convert.names import Heads, Kind
from unmask.convert.tokenizer import check_summary
from unmask.errors import require
from unmask.predict import Label, Tokens
from unmask.recipe import Recipe
from unmask.system import SENTENCE, Single
from unmask.system.single import objectives


def backbone_of(recipe: Recipe) -> Transformer:
    system = recipe.system
    require(
        isinstance(system, Single) and isinstance(system.backbone, Transformer),
        f"only a single Transformer can be exported, got {type(system).__name__}: use the run folder as it is",
    )
    backbone: Transformer = system.backbone  # type: ignore[attr-defined]
    require(
        backbone.positions == "learned",
        f"Hugging Face's families have no {backbone.positions} positions: train with system.backbone.positions=learned",
    )
    return backbone


def kind_of(recipe: Recipe) -> Kind:
    """The family follows from the parts: where the norm stands, who sees whom, whether segments are told apart."""
    backbone, pattern = backbone_of(recipe), recipe.see.pattern  # type: ignore[attr-defined]
    if (backbone.norm, pattern) == ("post", "everything"):
        return "bert" if backbone.segments or SENTENCE in objectives(recipe) else "roberta"
    require(
        (backbone.norm, pattern) == ("pre", "left"),
        "Hugging Face has the norm after each layer where all is seen (bert, roberta), before it where only the left "
        f"is (gpt2); got norm={backbone.norm!r} and see={type(recipe.see).__name__}: set system.backbone.norm to fit",
    )
    require(
        not backbone.segments,
        f"Hugging Face's gpt2 has no segments, got {backbone.segments}: set system.backbone.segments=0",
    )
    require(SENTENCE not in objectives(recipe), "Hugging Face's gpt2 has no sentence task: set arrange=Stream")
    return "gpt2"


def heads_of(recipe: Recipe, kind: Kind) -> Heads:
    """The heads by name, each checked against what the family has."""
    found = objectives(recipe)
    for name, part in found.items():
        require(
            isinstance(part, Tokens | Label),
            f"Hugging Face has no head for {name!r}, a {type(part).__name__}: leave it out",
        )
    tokens = [name for name, part in found.items() if isinstance(part, Tokens)]
    labels = [name for name, part in found.items() if isinstance(part, Label) and name != SENTENCE]
    sentence = [name for name in found if name == SENTENCE]
    require(
        len(tokens) <= 1 and len(labels) <= 1 and not (labels and tokens + sentence),
        f"a Hugging Face model predicts one thing or tokens and a sentence task, got {', '.join(found)}: leave one out",
    )
    for name in tokens:
        _check_tokens(found[name], backbone_of(recipe), kind)
    for name in labels + sentence:
        _check_label(found[name], kind, name == SENTENCE)
        check_summary(kind, recipe.layout)
    return Heads(
        tokens=next(iter(tokens), None),
        sentence=next(iter(sentence), None),
        label=next(iter(labels), None),
        tied=all(found[name].tied for name in tokens),
    )


def _check_tokens(part: Tokens, backbone: Transformer, kind: Kind) -> None:
    require(
        part.transform == (kind != "gpt2") and not (part.bias and kind == "gpt2"),
        f"Hugging Face's {kind} predicts tokens {'without' if kind == 'gpt2' else 'with'} a transform and a bias, got "
        f"transform={part.transform} and bias={part.bias}: train with a head such as that of the {kind} recipe",
    )
    if part.transform:
        activation = backbone.activation if kind == "bert" else "gelu"
        require(
            (part.activation, part.epsilon) == (activation, backbone.epsilon),
            f"Hugging Face's {kind} predicts tokens with activation={activation!r} and epsilon={backbone.epsilon}, got "
            f"{part.activation!r} and {part.epsilon}: train with those",
        )


def _check_label(part: Label, kind: Kind, sentence: bool) -> None:
    require(
        part.pool == "summary",
        f"Hugging Face's {kind} reads a label off one token, got pool={part.pool!r}: adapt with pool=summary",
    )
    pooler = kind != "gpt2"
    require(
        part.pooler == pooler and not (part.bias and kind == "gpt2"),
        f"Hugging Face's {kind} reads a label {'with a pooler' if pooler else 'without a pooler or a bias'}, got "
        f"pooler={part.pooler} and bias={part.bias}: adapt with those set so",
    )
    require(
        not sentence or part.classes == 2,
        f"Hugging Face's sentence task has 2 answers, got {part.classes}: train with 2",
    )
