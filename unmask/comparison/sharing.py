"""Several processes on one GPU: NVIDIA's MPS lets their kernels run side by side. Without MPS they take turns."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_CONTROL = "nvidia-cuda-mps-control"
_OWN = 0.6  # GiB of GPU memory that a process takes besides its tensors: libraries and kernels


@contextmanager
def shared_gpu(processes: int) -> Iterator[dict[str, str]]:
    """Yields the environment for processes that share the GPU. The MPS server is ours, and ends with us."""
    if processes < 2 or shutil.which(_CONTROL) is None or "CUDA_MPS_PIPE_DIRECTORY" in os.environ:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="unmask-mps-") as folder:
        places = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        environment = os.environ | places
        started = subprocess.run([_CONTROL, "-d"], env=environment, capture_output=True, check=False)
        if started.returncode:
            yield {}
            return
        try:
            yield places
        finally:
            subprocess.run([_CONTROL], input=b"quit\n", env=environment, capture_output=True, check=False)


def limit_memory(device: str | None, processes: int) -> None:
    """Give this process its part of the GPU's memory, so that it chooses passes that leave room for the others."""
    if processes < 2 or device == "cpu" or not torch.cuda.is_available():
        return
    place = torch.device(device or "cuda").index or 0
    total = torch.cuda.get_device_properties(place).total_memory / 2**30
    torch.cuda.set_per_process_memory_fraction(max(0.01, 1 / processes - _OWN / total), place)
