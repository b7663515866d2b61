"""The machine: the device, and in which precision and in which way it computes."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from dataclasses import dataclass
from typing import Any

import torch

# mallopt of glibc: the size from which freed memory is given back, and the largest number of blocks outside the heap
TRIM_THRESHOLD, MMAP_MAX, NEVER = -1, -4, -1


@dataclass(frozen=True)
class Machine:
    """Where and how the numbers are computed."""

    device: str = "cpu"
    half: bool = False  # bfloat16 autocast
    compiled: bool = False  # torch.compile: faster steps, after a minute or two
    recorded: bool = False  # replay kernels from a CUDA graph (GPU only)

    def autocast(self) -> contextlib.AbstractContextManager[Any]:
        if not self.half:
            return contextlib.nullcontext()
        return torch.autocast(self.device.split(":")[0], torch.bfloat16)


def training_machine(device: str, *, compiled: bool = False, recorded: bool = False) -> Machine:
    """The machine to train on: in bfloat16 on a GPU, and on a CPU that has instructions for it. `recorded`: on a GPU only."""
    gpu = device != "cpu"
    if not gpu:
        keep_freed_memory()
    return Machine(device, half=gpu or has_bfloat16(), compiled=compiled, recorded=recorded and gpu)


def has_bfloat16() -> bool:
    """Whether this CPU has instructions for bfloat16. Without them it is a hundred times slower than float32."""
    found = (
        getattr(torch.cpu, name, lambda: False)() for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    )
    return any(found)


def keep_freed_memory() -> None:
    """Let this process keep the memory that it frees, so that the next step finds it again.

    By default glibc gives large blocks back at once, and the system clears each page of a new block: up to a third of the
    time of a small step. Other C libraries have no `mallopt`, and nothing changes there."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(MMAP_MAX, 0)
        mallopt(TRIM_THRESHOLD, NEVER)
