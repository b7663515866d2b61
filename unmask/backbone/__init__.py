"""Backbones: from tokens to vectors that know their context."""

from unmask.backbone.transformer import Transformer

__all__ = ["Transformer"]
