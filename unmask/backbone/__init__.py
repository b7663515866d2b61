"""Backbones: from tokens to vectors that know their context."""

from unmask.backbone.transformer import Transformer
from unmask.backbone.transformer_xl import TransformerXL

__all__ = ["Transformer", "TransformerXL"]
