"""A small pipeline in a folder, and a runner that trains nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.conftest import documents
from unmask.pipeline.call import Call
from unmask.pipeline.runner import Stopped

FILE = """\
out = "out"
recipe = "bert"
size = "tiny"
budget = "20steps"

[general]
text = "wiki/"
share = 6

[knowledge]
triples = "graph.tsv"
share = 1

[domain]
text = "reviews.txt"
lines = true
share = 3

[task]
train = "train.jsonl"
dev = "dev.jsonl"
test = "test.jsonl"
set = "epochs=1"
"""


def folder(place: Path, text: str = FILE) -> Path:
    """The files of a pipeline; returns the pipeline file."""
    (place / "wiki").mkdir(parents=True, exist_ok=True)
    (place / "wiki" / "a.txt").write_text("\n\n".join(documents(40, seed=1)), encoding="utf-8")
    (place / "reviews.txt").write_text("\n".join(documents(20, seed=2)), encoding="utf-8")
    names = ["London", "the doctor", "the river", "our server"]
    rows = [f"{a}\t/near/by\t{b}" for a in names for b in names if a != b]
    (place / "graph.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (place / "names.tsv").write_text("London\tLondon\n", encoding="utf-8")
    for split, seed in (("train", 3), ("dev", 4), ("test", 5)):
        made = [{"text": one[:60], "label": "long" if len(one) > 200 else "short"} for one in documents(24, seed)]
        (place / f"{split}.jsonl").write_text("\n".join(map(json.dumps, made)), encoding="utf-8")
    file = place / "mine.toml"
    file.write_text(text, encoding="utf-8")
    return file


def tasks_in(place: Path, *names: str) -> None:
    """A folder of tasks, with the files of the task of `folder`."""
    for name in names:
        (place / "tasks" / name).mkdir(parents=True)
        for split in ("train", "dev", "test"):
            (place / "tasks" / name / f"{split}.jsonl").write_text((place / f"{split}.jsonl").read_text())


class FakeRunner:
    """Writes what a command would write. `scores`: the score of the next evaluations. `killed`: ends in that call."""

    def __init__(
        self, scores: list[float] | None = None, *, killed: int | None = None, stopped: int | None = None
    ) -> None:
        self.calls: list[Call] = []
        self.scores, self.killed, self.stopped = scores or [], killed, stopped

    def __call__(self, call: Call) -> dict[str, Any]:
        self.calls.append(call)
        if len(self.calls) == self.killed:
            Path(str(call.out)).mkdir(parents=True)  # something was written, and nothing was finished
            raise KeyboardInterrupt
        if len(self.calls) == self.stopped:
            raise Stopped
        if call.verb == "evaluate":
            score = self.scores.pop(0) if self.scores else 0.5
            tasks = (
                [one.name for one in sorted(Path(str(call.words[1])).iterdir())]
                if Path(str(call.words[1])).is_dir()
                else [""]
            )
            return {
                "scores": {task: {"score": score, "measure": "accuracy", "higher": True, "all": {}} for task in tasks}
            }
        out = Path(str(call.out))
        if call.verb in ("tokenizer", "triples"):
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text("{}")
            return {}
        out.mkdir(parents=True, exist_ok=True)
        (out / "weights.safetensors").write_bytes(b"")
        return {
            "steps": 1,
            "tokens": 2,
            "seconds": 3.0,
            "loss": 4.0,
            "held_out_loss": None,
            "curve": [(1.0, 5.0), (2.0, 4.0)],
        }

    @property
    def verbs(self) -> list[str]:
        return [call.verb for call in self.calls]

    @property
    def stages(self) -> list[str]:
        """The stages that were trained, by the names of their runs."""
        return [Path(str(c.out)).name.rpartition("-")[0] for c in self.calls if c.verb in ("pretrain", "adapt")]
