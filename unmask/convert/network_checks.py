"""Check a Transformer before export: a value that its family does not support is an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unmask.backbone import Learned, NoPositions, Transformer
from unmask.backbone.transformer import norms_embeddings
from unmask.convert import recipe_facts
from unmask.convert.config_json import their_activation
from unmask.errors import require
from unmask.recipe import Recipe

if TYPE_CHECKING:
    from unmask.convert.family import Family


def check_transformer(family: Family, recipe: Recipe, backbone: Transformer) -> None:
    """Refuse values of the network that the family does not support."""
    _check_positions(family, backbone)
    _check_sharing(family, backbone)
    _check_embeddings(family, backbone)
    _check_layers(family, backbone)
    _check_feedforward(family, backbone)
    _check_knowledge(family, backbone)


def _check_positions(family: Family, backbone: Transformer) -> None:
    found, wanted = type(backbone.positions), family.positions or (Learned if family.names.position else NoPositions)
    require(
        found is wanted,
        (
            "Hugging Face's {model_type} has no {positions} positions, got system.backbone.positions={found}: "
            "train with system.backbone.positions={wanted}"
        ),
        model_type=family.model_type,
        positions=recipe_facts.positions(backbone),
        found=found.__name__,
        wanted=wanted.__name__,
    )
    require(
        not recipe_facts.repeats_positions(backbone),
        (
            "Hugging Face's {model_type} adds positions once, got system.backbone.positions.every=true: use the "
            "run folder as it is"
        ),
        model_type=family.model_type,
    )


def _check_sharing(family: Family, backbone: Transformer) -> None:
    require(
        backbone.sharing == family.sharing,
        (
            "the layers of Hugging Face's {model_type} share {sharing} of their weights, got "
            "system.backbone.sharing={sharing_2}: train with system.backbone.sharing={sharing}"
        ),
        model_type=family.model_type,
        sharing=family.sharing,
        sharing_2=backbone.sharing,
    )


def _check_embeddings(family: Family, backbone: Transformer) -> None:
    kind, names = family.model_type, family.names
    require(
        backbone.embedding in (None, backbone.width) or names.inside("project.weight") is not None,
        (
            "the embeddings of Hugging Face's {kind} are as wide as its layers, got "
            "system.backbone.embedding={embedding} and width={width}: train with system.backbone.embedding=none"
        ),
        kind=kind,
        embedding=backbone.embedding,
        width=backbone.width,
    )
    norms = names.inside("embed.norm.weight") is not None
    require(
        norms_embeddings(backbone) == norms,
        (
            "Hugging Face's {kind} has {norms} norm on its embeddings, got system.backbone.norm={norm} and "
            "embedding_norm={embedding_norm}: train with system.backbone.embedding_norm={lower}"
        ),
        kind=kind,
        norms="a" if norms else "no",
        norm=backbone.norm,
        embedding_norm=backbone.embedding_norm,
        lower=str(norms).lower(),
    )
    require(
        not backbone.segments or names.segment is not None,
        "Hugging Face's {kind} has no segments, got {segments}: set system.backbone.segments=0",
        kind=kind,
        segments=backbone.segments,
    )
    require(
        not backbone.tasks or names.position is not None,
        "Hugging Face's {kind} has no learned positions to which the vector of a task could be added, got system.backbone.tasks={tasks}: "
        "use the run folder as it is",
        kind=kind,
        tasks=backbone.tasks,
    )


def _check_layers(family: Family, backbone: Transformer) -> None:
    for name in ("first_norm", "biases", "gated"):
        found, wanted = getattr(backbone, name), family.layer_values.get(name, getattr(Transformer, name))
        require(
            found == wanted,
            (
                "Hugging Face's {model_type} has {name}={wanted}, got system.backbone.{name}={found}: train with "
                "system.backbone.{name}={wanted}"
            ),
            model_type=family.model_type,
            name=name,
            wanted=str(wanted).lower(),
            found=str(found).lower(),
        )


def _check_knowledge(family: Family, backbone: Transformer) -> None:
    require(
        backbone.knowledge is None,
        "Hugging Face's {model_type} reads no entities of a graph, got system.backbone.knowledge={knowledge}: use the run folder as "
        "it is",
        model_type=family.model_type,
        knowledge=type(backbone.knowledge).__name__,
    )


def _check_feedforward(family: Family, backbone: Transformer) -> None:
    kind = family.model_type
    check_activation(family, backbone.activation)
    require(
        "feedforward" in family.config.fields or backbone.feedforward == 4 * backbone.width,
        (
            "the feed-forward layer of Hugging Face's {kind} is four times as wide as the others, got "
            "system.backbone.feedforward={feedforward} and width={width}: train with "
            "system.backbone.feedforward={value}"
        ),
        kind=kind,
        feedforward=backbone.feedforward,
        width=backbone.width,
        value=4 * backbone.width,
    )


def check_activation(family: Family, activation: str) -> None:
    """Refuse an activation that the family does not have."""
    require(
        their_activation(family, activation) is not None,
        (
            "Hugging Face's {kind} has activations {values}, got system.backbone.activation={activation}: train "
            "with one of those"
        ),
        kind=family.model_type,
        values=", ".join(family.config.activations.values()),
        activation=activation,
    )
