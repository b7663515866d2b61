"""The most memory that this process has used so far."""

from __future__ import annotations

import resource
import sys

import torch


def peak_memory(device: str | None) -> int:
    """In bytes: of the GPU, if the work was done there, otherwise of the process."""
    if device != "cpu" and torch.cuda.is_available():
        return torch.cuda.max_memory_reserved()
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024  # Linux counts in KiB
