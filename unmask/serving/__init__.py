"""The HTTP service: trained models behind the interfaces that people's clients already speak."""

from unmask.serving.run_service import serve

__all__ = ["serve"]
