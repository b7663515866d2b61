"""The head that predicts tokens, for an imported checkpoint of most families."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unmask.predict import Tokens

if TYPE_CHECKING:
    from unmask.convert.family import Family
    from unmask.convert.hf_folder import HFFolder


def token_head(source: HFFolder, backbone: Any, tied: bool) -> Tokens:
    """The head of the checkpoint's family."""
    family = source.family
    if family.transform is None:
        return Tokens(tied=tied, transform=False, bias="bias" in family.names.tokens)
    return Tokens(
        tied=tied,
        activation=token_activation(family, backbone),
        epsilon=backbone.epsilon,
        transform_bias="dense.bias" in family.names.tokens,
    )


def token_activation(family: Family, backbone: Any) -> Any:
    """The activation of the head that predicts tokens."""
    return backbone.activation if family.transform == "network" else "gelu"
