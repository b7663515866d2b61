"""Weights are read from safetensors files of every length of header, and from nothing that is a pickle."""

import pytest
import torch
from safetensors.torch import save_file

from unmask.errors import UserError
from unmask.train import checkpoint


@pytest.mark.parametrize("length", [0x0280, 0x0380, 0x0480, 0x0580])
def test_a_header_whose_length_looks_like_the_start_of_a_pickle_is_read(tmp_path, length):
    tensor, file = torch.arange(3.0), tmp_path / "weights.safetensors"
    save_file({"a": tensor}, file, metadata={"more": ""})
    short = int.from_bytes(file.read_bytes()[:8], "little")
    save_file({"a": tensor}, file, metadata={"more": "x" * (length - short)})
    assert file.read_bytes()[:2] == length.to_bytes(2, "little")
    assert torch.equal(checkpoint.read(file)["a"], tensor)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_pickle_is_refused(tmp_path, zipped):
    torch.save({"a": torch.zeros(3)}, tmp_path / "weights.pt", _use_new_zipfile_serialization=zipped)
    with pytest.raises(UserError, match="is a pickle"):
        checkpoint.read(tmp_path / "weights.pt")
