"""What Hugging Face can express: the family of a recipe's result, and the reasons why some have none."""

from __future__ import annotations

from typing import Any

from unmask.backbone import Transformer, TransformerXL
from unmask.convert import config as configs
from unmask.convert import linear
from unmask.convert.config import FAMILIES, Backbone
from unmask.convert.exported_values import parts
from unmask.convert.names import NAMES, Heads, Kind
from unmask.convert.tokenizer import check_summary
from unmask.data import FromTask
from unmask.errors import UserError, require, unknown
from unmask.hide import Masked, Next
from unmask.predict import Label, Replaced, Tokens
from unmask.recipe import Recipe
from unmask.system import SENTENCE, Single, objectives


def backbone_of(recipe: Recipe) -> Backbone:
    system = recipe.system
    require(
        isinstance(system, Single) and isinstance(system.backbone, Backbone),
        f"only a single Transformer can be exported, got {type(system).__name__}: use the run folder as it is",
    )
    backbone = recipe.system.backbone
    if isinstance(backbone, Transformer):
        require(
            backbone.positions == "learned",
            f"Hugging Face's families have no {backbone.positions} positions: train with "
            "system.backbone.positions=learned",
        )
        require(
            not backbone.every,
            "Hugging Face's families add positions once, got system.backbone.every=true: use the run folder as it is",
        )
    return backbone


def shape_of(recipe: Recipe) -> tuple[Kind, Heads, tuple[str, ...]]:
    """The family, the heads that it has, and the names of those that it has no place for."""
    kind, why = kind_of(recipe)
    try:
        if isinstance(backbone := backbone_of(recipe), Transformer):
            _check_network(kind, backbone)
        return kind, *heads_of(recipe, kind)
    except UserError as error:
        raise UserError(f"{error} (it is {kind} because of {why})") from None


def kind_of(recipe: Recipe) -> tuple[Kind, str]:
    """The family follows from the parts: where the norm stands, who sees whom, what is shared, narrow or told apart.

    Returned with the values that decide it."""
    see: Any = recipe.see
    require(
        "prefix" not in see.gives,
        "Hugging Face's families have none that reads one text whole and writes a second after it, got "
        f"see={type(see).__name__}: export the run before it was adapted to write, or use this one as it is",
    )
    backbone, pattern = backbone_of(recipe), see.reading.pattern
    if isinstance(backbone, TransformerXL):
        _check_xlnet(backbone, see)
        return "xlnet", "system.backbone=TransformerXL"
    if (backbone.norm, pattern) == ("post", "everything"):
        family = _family(recipe)
        return (family, f"family={family}") if family else _kin(recipe, backbone)
    require(
        pattern == "left",
        "Hugging Face has the norm after each layer where all is seen (bert and its kin), before it where only the left "
        f"is (gpt2); got norm={backbone.norm!r} and see={type(see).__name__}: train with two that go together",
    )
    why = f"system.backbone.norm={backbone.norm} and see={type(see).__name__}"
    return ("gpt2" if backbone.norm == "pre" else "openai-gpt"), why


def _check_xlnet(backbone: TransformerXL, see: Any) -> None:
    require(
        see.reading.pattern == "everything" and not backbone.cutoffs,
        "Hugging Face has no Transformer-XL any more, only XLNet, which sees everything at once and has no clusters of "
        f"tokens, got see={type(see).__name__} and system.backbone.cutoffs={backbone.cutoffs}: use the run folder as it is",
    )
    for name, value, wanted in (
        ("streams", backbone.streams, 2),
        ("shared_biases", backbone.shared_biases, False),
        ("scaled_embeddings", backbone.scaled_embeddings, False),
    ):
        require(
            value == wanted,
            f"Hugging Face's xlnet has system.backbone.{name}={wanted}, got {value}: train with that",
        )
    require(
        backbone.head * backbone.heads == backbone.width,
        f"Hugging Face's xlnet has system.backbone.head={backbone.width // backbone.heads}, got {backbone.head}, where "
        f"width={backbone.width} and heads={backbone.heads}: head x heads must be the width",
    )


def _family(recipe: Recipe) -> Kind | None:
    """The family that the recipe names: one of those that see everything."""
    known = [kind for kind in FAMILIES if NAMES[kind].masked == "ForMaskedLM"]
    if recipe.family is not None and recipe.family not in known:
        raise unknown("family", recipe.family, known)
    return recipe.family  # type: ignore[return-value]


def _kin(recipe: Recipe, backbone: Transformer) -> tuple[Kind, str]:
    seen = f"see={type(recipe.see).__name__}"
    if backbone.sharing == "all":
        return "albert", f"{seen} and system.backbone.sharing=all"
    if backbone.embedding not in (None, backbone.width):
        return "electra", f"{seen} and system.backbone.embedding={backbone.embedding}"
    why = f"{seen}, system.backbone.segments={backbone.segments} and arrange={type(recipe.arrange).__name__}"
    return ("bert" if backbone.segments or SENTENCE in objectives(recipe) else "roberta"), why


def _check_network(kind: Kind, backbone: Transformer) -> None:
    sharing = "all" if kind == "albert" else "none"
    require(
        backbone.sharing == sharing,
        f"the layers of Hugging Face's {kind} have {sharing} of their weights in common, got "
        f"system.backbone.sharing={backbone.sharing}: train with system.backbone.sharing={sharing}",
    )
    require(
        backbone.embedding in (None, backbone.width) or NAMES[kind].inside("project.weight") is not None,
        f"the embeddings of Hugging Face's {kind} are as wide as its layers, got system.backbone.embedding="
        f"{backbone.embedding} and width={backbone.width}: train with system.backbone.embedding=none",
    )
    norms = NAMES[kind].inside("embed.norm.weight") is not None
    require(
        backbone.norms_embeddings == norms,
        f"Hugging Face's {kind} has {'a' if norms else 'no'} norm on its embeddings, got system.backbone.norm="
        f"{backbone.norm} and embedding_norm={backbone.embedding_norm}: train with system.backbone.embedding_norm="
        f"{str(norms).lower()}",
    )
    require(
        configs.their_activation(kind, backbone.activation) is not None,
        f"Hugging Face's {kind} has activations {', '.join(FAMILIES[kind].activations.values())}, got "
        f"system.backbone.activation={backbone.activation}: train with one of those",
    )
    require(
        "feedforward" in FAMILIES[kind].fields or backbone.feedforward == 4 * backbone.width,
        f"the feed-forward layer of Hugging Face's {kind} is four times as wide as the others, got "
        f"system.backbone.feedforward={backbone.feedforward} and width={backbone.width}: train with system.backbone.feedforward={4 * backbone.width}",
    )
    require(
        not backbone.segments or NAMES[kind].segment is not None,
        f"Hugging Face's {kind} has no segments, got {backbone.segments}: set system.backbone.segments=0",
    )


def heads_of(recipe: Recipe, kind: Kind) -> tuple[Heads, tuple[str, ...]]:
    """The heads by name, each checked against what the family has; and those that it has no place for."""
    found: dict[str, Any] = objectives(recipe)
    kept_beside = isinstance(recipe.arrange, FromTask) and any(isinstance(part, Label) for part in found.values())
    out = tuple(
        name
        for name, part in found.items()
        if not _has_place(kind, name, part, recipe) or (kept_beside and isinstance(part, Tokens))
    )
    kept = {name: part for name, part in found.items() if name not in out}
    tokens = [name for name, part in kept.items() if isinstance(part, Tokens)]
    labels = [name for name, part in kept.items() if isinstance(part, Label) and name != SENTENCE]
    replaced = [name for name, part in kept.items() if isinstance(part, Replaced)]
    others = tokens + replaced + [name for name in kept if name == SENTENCE]
    require(
        max(len(tokens), len(labels), len(replaced)) <= 1 and not (labels and others) and not (tokens and replaced),
        f"a Hugging Face model predicts one thing, or tokens and a sentence task, got {', '.join(kept)} (arrange="
        f"{type(recipe.arrange).__name__}): leave one out",
    )
    for name in tokens:
        _check_place(recipe, kind)
        _check_tokens(kept[name], backbone_of(recipe), kind)
    for name, part in kept.items():
        if isinstance(part, Label):
            _check_label(part, kind, backbone_of(recipe).width)
            check_summary(kind, recipe.layout)
    if replaced:
        _check_replaced(backbone_of(recipe), kind)
    heads = Heads(
        tokens=next(iter(tokens), None),
        sentence=SENTENCE if SENTENCE in kept else None,
        label=next(iter(labels), None),
        replaced=next(iter(replaced), None),
        tied=all(kept[name].tied for name in tokens),
    )
    return heads, out


def _has_place(kind: Kind, name: str, part: Any, recipe: Recipe) -> bool:
    """Has the family a head that answers the same question?"""
    called = NAMES[kind]
    if name == SENTENCE:
        whole = called.alone is not None or any(isinstance(other, Tokens) for other in objectives(recipe).values())
        return bool(called.sentence) and whole and type(recipe.arrange) is FAMILIES[kind].asks
    return isinstance(part, Tokens | Label) or (isinstance(part, Replaced) and bool(called.replaced))


def _check_place(recipe: Recipe, kind: Kind) -> None:
    """Refuse a head that was trained to predict another place than Hugging Face's: the same one, or the next."""
    after = NAMES[kind].causal
    wanted, where = (Next, "that follows each place") if after else (Masked, "at its own place")
    for name, part in parts(recipe):
        require(
            not name.startswith("hide") or (isinstance(part, wanted) and "one earlier" not in part.gives),
            f"Hugging Face's {kind} predicts the token {where}, got {name}={type(part).__name__}: train with "
            f"{name}={wanted.__name__}, or use the run folder as it is",
        )


def _check_tokens(part: Tokens, backbone: Backbone, kind: Kind) -> None:
    require(
        part.target == "tokens" and part.layer is None,
        f"Hugging Face's {kind} predicts tokens off its last layer, and no further than the next, got target={part.target} "
        f"and layer={part.layer}: use the run folder as it is",
    )
    transform, bias = FAMILIES[kind].transform is not None, "bias" in NAMES[kind].tokens
    way = "with a transform and a bias" if transform else f"without a transform and {'with a' if bias else 'a'} bias"
    require(
        part.transform == transform and (bias or not part.bias),
        f"Hugging Face's {kind} predicts tokens {way}, got "
        f"transform={part.transform} and bias={part.bias}: train with a head such as that of the {kind} recipe",
    )
    if part.transform:
        activation = configs.tokens_activation(kind, backbone)
        require(
            (part.activation, part.epsilon) == (activation, backbone.epsilon),
            f"Hugging Face's {kind} predicts tokens with activation={activation!r} and epsilon={backbone.epsilon}, got "
            f"{part.activation!r} and {part.epsilon}: train with those",
        )


def _check_label(part: Label, kind: Kind, width: int) -> None:
    require(
        part.pool == "summary",
        f"Hugging Face's {kind} reads a label off one token, got pool={part.pool!r}: adapt with pool=summary",
    )
    require(
        part.orders == "one",
        f"Hugging Face's {kind} reads a pair in one order, got orders={part.orders!r}: adapt with orders=one",
    )
    activation = FAMILIES[kind].pooler
    pooler = activation is not None
    if linear.fits(part, activation, width):
        return
    require(
        part.pooler == pooler and (pooler or not part.bias),
        f"Hugging Face's {kind} reads a label {'with a pooler' if pooler else 'without a pooler or a bias'}, got "
        f"pooler={part.pooler} and bias={part.bias}: adapt again with --set pooler={str(pooler).lower()}",
    )
    require(
        not pooler or part.activation == activation,
        f"Hugging Face's {kind} reads a label with activation={activation!r}, got {part.activation!r}: "
        f"adapt the model anew with 'unmask adapt ... --set activation={activation}'",
    )


def _check_replaced(backbone: Backbone, kind: Kind) -> None:
    require(
        backbone.activation == "gelu",
        f"Hugging Face's {kind} finds replaced tokens with the activation of the network, here with gelu, got "
        f"{backbone.activation!r}: train with system.backbone.activation=gelu",
    )
