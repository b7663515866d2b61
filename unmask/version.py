"""The version of unmask."""

__version__ = "0.1.0"
