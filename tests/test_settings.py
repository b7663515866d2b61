"""A setting replaces a part by any part of its axis, and what both parts have stays as it was."""

from __future__ import annotations

from unmask import recipes


def size_of(backbone) -> tuple[int, int, int]:
    return backbone.layers, backbone.width, backbone.heads


def test_a_backbone_is_replaced_by_another_of_its_axis_and_keeps_its_size():
    usual = recipes.get("roberta", size="tiny").system.backbone
    changed = recipes.get("roberta", size="tiny", settings=["system.backbone=TransformerXL"]).system.backbone
    assert type(changed).__name__ == "TransformerXL"
    assert size_of(changed) == size_of(usual) == (2, 128, 2)


def test_a_system_is_replaced_and_keeps_its_backbone():
    usual = recipes.get("roberta", size="tiny").system.backbone
    setting = "system=GeneratorDiscriminator(generator=Transformer(layers=2, width=64, heads=1))"
    changed = recipes.get("roberta", size="tiny", settings=[setting]).system
    assert type(changed).__name__ == "GeneratorDiscriminator"
    assert changed.backbone == usual
