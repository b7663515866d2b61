"""A full disk ends in one line, and the last checkpoint survives it."""

import errno

from tests.bad_input.made import examples
from tests.command import mistake, pretrain
from unmask.infer import open_run
from unmask.train import checkpoint
from unmask.train.log import Log, read


def test_the_last_checkpoint_survives_a_full_disk_and_is_resumed(data, tmp_path, monkeypatch):
    def full_at_step_20(tensors, path):
        if path.parent.name == ".20":
            path.with_name("half").write_bytes(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")
        write(tensors, path)

    write, out = checkpoint._write, tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "_write", full_at_step_20)
        said = pretrain("bert", data, out, steps=25, call=mistake)
    assert "could not save step 20" in said
    assert "No space left" in said
    assert "the checkpoint of step 10 is still there" in said
    assert "--resume" in said
    assert [path.name for path in (out / "state").iterdir()] == ["10"]
    assert open_run(out, device="cpu")
    pretrain("bert", data, out, "--resume", steps=25)
    pretrain("bert", data, tmp_path / "whole", steps=25)
    assert [record["step"] for record in read(out)] == list(range(1, 26))
    for name in ("weights.safetensors", "optimiser.safetensors"):
        one, two = (folder / "state" / "25" / name for folder in (out, tmp_path / "whole"))
        assert one.read_bytes() == two.read_bytes()


def test_a_log_without_room_ends_in_one_line(data, tmp_path, monkeypatch):
    def full(log, record):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Log, "write", full)
    assert "No space left" in pretrain("bert", data, tmp_path / "run", call=mistake)


def test_an_adaptation_without_room_ends_in_one_line(bert, tmp_path, monkeypatch):
    def full(tensors, path):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoint, "_write", full)
    said = mistake("adapt", bert, examples(tmp_path / "t.jsonl"), "--out", tmp_path / "run", "--set", "epochs=1")
    assert "No space left" in said
