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
    _check_feedforward(family, backbone)


def _check_positions(family: Family, backbone: Transformer) -> None:
    found, wanted = type(backbone.positions), Learned if family.names.position else NoPositions
    require(
        found is wanted,
        f"Hugging Face's {family.model_type} has no {recipe_facts.positions(backbone)} positions, got "
        f"system.backbone.positions={found.__name__}: train with system.backbone.positions={wanted.__name__}",
    )
    require(
        not recipe_facts.repeats_positions(backbone),
        f"Hugging Face's {family.model_type} adds positions once, got system.backbone.positions.every=true: use the run folder as it is",
    )


def _check_sharing(family: Family, backbone: Transformer) -> None:
    require(
        backbone.sharing == family.sharing,
        f"the layers of Hugging Face's {family.model_type} share {family.sharing} of their weights, got "
        f"system.backbone.sharing={backbone.sharing}: train with system.backbone.sharing={family.sharing}",
    )


def _check_embeddings(family: Family, backbone: Transformer) -> None:
    kind, names = family.model_type, family.names
    require(
        backbone.embedding in (None, backbone.width) or names.inside("project.weight") is not None,
        f"the embeddings of Hugging Face's {kind} are as wide as its layers, got system.backbone.embedding="
        f"{backbone.embedding} and width={backbone.width}: train with system.backbone.embedding=none",
    )
    norms = names.inside("embed.norm.weight") is not None
    require(
        norms_embeddings(backbone) == norms,
        f"Hugging Face's {kind} has {'a' if norms else 'no'} norm on its embeddings, got system.backbone.norm="
        f"{backbone.norm} and embedding_norm={backbone.embedding_norm}: train with system.backbone.embedding_norm="
        f"{str(norms).lower()}",
    )
    require(
        not backbone.segments or names.segment is not None,
        f"Hugging Face's {kind} has no segments, got {backbone.segments}: set system.backbone.segments=0",
    )


def _check_feedforward(family: Family, backbone: Transformer) -> None:
    kind = family.model_type
    require(
        their_activation(family, backbone.activation) is not None,
        f"Hugging Face's {kind} has activations {', '.join(family.config.activations.values())}, got "
        f"system.backbone.activation={backbone.activation}: train with one of those",
    )
    require(
        "feedforward" in family.config.fields or backbone.feedforward == 4 * backbone.width,
        f"the feed-forward layer of Hugging Face's {kind} is four times as wide as the others, got "
        f"system.backbone.feedforward={backbone.feedforward} and width={backbone.width}: train with "
        f"system.backbone.feedforward={4 * backbone.width}",
    )
