"""Find the Hugging Face architecture that fits the parts of a recipe; if there is none, an error says why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unmask.axes import needs_of, parts_in
from unmask.convert import recipe_facts
from unmask.convert.exported_heads import exported_heads
from unmask.convert.exported_values import check_known, strange_parts
from unmask.convert.families import all_values, families
from unmask.convert.family import Family
from unmask.convert.names import Heads
from unmask.convert.single_network import single_recipe
from unmask.errors import UserError, require, unknown
from unmask.recipe import Recipe
from unmask.system import Single

_SIDES = {"everything": "both sides", "left": "only the left side"}


@dataclass(frozen=True)
class Architecture:
    """The Hugging Face architecture of a trained recipe."""

    family: Family  # the model family
    heads: Heads  # the heads that are exported
    left_out: tuple[str, ...]  # heads and networks that the architecture has no place for

    @property
    def name(self) -> str:
        """The name of the Hugging Face class that opens it."""
        return self.family.architecture(self.heads)


def architecture_of(recipe: Recipe, *, generator: bool = False) -> Architecture:
    """The architecture of a trained recipe, or of its generator. If there is none, a UserError says why."""
    _check_attention(recipe)
    _check_components(recipe)
    check_known(recipe, all_values())
    recipe, others = single_recipe(recipe, generator=generator)
    backbone = backbone_of(recipe)
    family, why = _family_of(recipe, backbone)
    try:
        family.check(family, recipe, backbone)
        heads, left_out = exported_heads(family, recipe, backbone)
    except UserError as error:
        raise UserError(
            "{error} (it is {model_type} because of {why})", error=error, model_type=family.model_type, why=why
        ) from None
    return Architecture(family, heads, left_out + others)


def _check_attention(recipe: Recipe) -> None:
    """Refuse recurrent networks."""
    backbone = recipe.system.backbone
    require(
        "unpacked rows" not in needs_of(backbone),
        "Hugging Face has no architecture for recurrent networks, got system.backbone={kind}: use the run folder as it is",
        kind=type(backbone).__name__,
    )


def _check_components(recipe: Recipe) -> None:
    """Refuse networks that read components of characters."""
    components = [
        f"{path}={type(part).__name__}"
        for path, part in parts_in(recipe.system, "system")
        if "components" in part.gives
    ]
    require(
        not components,
        "Hugging Face has no architecture that adds the components of characters to its embeddings, got {components}: use the run "
        "folder as it is",
        components=" and ".join(components),
    )


def backbone_of(recipe: Recipe) -> Any:
    """The network of a recipe that has a single network."""
    system: Any = recipe.system
    require(
        isinstance(system, Single),
        "export writes a single network, got system={system_kind}: use the run folder as it is",
        system_kind=type(system).__name__,
    )
    return system.backbone


def _family_of(recipe: Recipe, backbone: Any) -> tuple[Family, str]:
    """The family, and the settings that decide it."""
    see = f"see={type(recipe.see).__name__}"
    require(
        not recipe_facts.writes_second_text(recipe),
        (
            "no architecture here reads one text whole and writes a second one after it, got {see}: export the run "
            "that it was adapted from, or use this one as it is"
        ),
        see=see,
    )
    before = recipe_facts.predicts_from_before(recipe)
    require(
        before is None,
        (
            "no architecture here predicts a hidden token from the place before it, got {before}=before: train "
            "with {before}=same, or use this run as it is"
        ),
        before=before,
    )
    possible = _possible(recipe, backbone)
    if recipe.family is not None and len(possible) > 1:  # the parts fit several families: the recipe decides
        return _named(recipe.family, possible), f"family={recipe.family}"
    claims = [(family, why) for family in possible if (why := family.claims(recipe, backbone))]
    require(
        len(claims) == 1,
        (
            "{count_of_claims} architectures of Hugging Face are made for this network, one is wanted, got "
            "family=None: set family to one of {listed}"
        ),
        count_of_claims=len(claims),
        listed=_listed(possible),
    )
    return claims[0]


def _possible(recipe: Recipe, backbone: Any) -> list[Family]:
    """The families that have this kind of network and all its parts."""
    alike = [family for family in families().values() if _is_alike(family, recipe, backbone)]
    require(bool(alike), _no_family(recipe, backbone))
    strange = {family.model_type: strange_parts(recipe, family.values) for family in alike}
    possible = [family for family in alike if not strange[family.model_type]]
    require(
        bool(possible),
        "Hugging Face's {listed} cannot hold {strange} with see={see_kind}: use the run folder as it is",
        listed=_listed(alike),
        strange=", ".join(strange[alike[0].model_type]),
        see_kind=type(recipe.see).__name__,
    )
    return possible


def _is_alike(family: Family, recipe: Recipe, backbone: Any) -> bool:
    """Whether the family has this kind of network: its class, the place of its norm, and which tokens it sees."""
    return (
        type(backbone) is family.network
        and all(getattr(backbone, name) == value for name, value in family.network_values.items())
        and family.sees == recipe_facts.sees(recipe)
    )


def _named(name: str, possible: list[Family]) -> Family:
    """The family that the recipe names."""
    if name not in families():
        raise unknown("family", name, [family.model_type for family in possible])
    found = [family for family in possible if family.model_type == name]
    require(
        bool(found),
        "family={name} cannot hold this network, {listed} can: set family to one that can, or to none",
        name=name,
        listed=_listed(possible),
    )
    return found[0]


def _listed(several: list[Family]) -> str:
    return ", ".join(family.model_type for family in several)


def _no_family(recipe: Recipe, backbone: Any) -> str:
    alike = [family for family in families().values() if type(backbone) is family.network]
    if not alike:
        kind = type(backbone).__name__
        return f"no architecture of Hugging Face here has such a network, got system.backbone={kind}: use the run folder as it is"
    names = sorted({name for family in alike for name in family.network_values})
    given = [f"{name}={getattr(backbone, name)!r}" for name in names] + [f"see={type(recipe.see).__name__}"]
    kinds: dict[str, list[Family]] = {}
    for family in alike:
        values = [f"{name}={value!r}" for name, value in family.network_values.items()]
        kinds.setdefault(" and ".join([*values, f"tokens that see {_SIDES[family.sees]}"]), []).append(family)
    known = [f"{kind} ({_listed(several)})" for kind, several in kinds.items()]
    return (
        f"no architecture of Hugging Face has {type(backbone).__name__} with {' and '.join(given)}, only "
        f"{', '.join(known)}: train with values that go together, or use the run folder as it is"
    )
