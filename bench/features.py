"""Heads on cached features: the first head computes the vectors of a network that does not train, the second finds them.

    python bench/features.py train.jsonl [--size base] [--examples 2000] [--epochs 3] [--device cpu|cuda]

Both heads are trained by the same command with `tune.cache=true`. Prints the seconds of both and their ratio: `training` is from the file
to the last step, with the vectors; `all` also counts that the run is opened again and its report is written.
On two quiet CPU cores: python bench/features.py train.jsonl --device cpu; a quick check that it runs: --examples 100 --size tiny
"""

from __future__ import annotations

import argparse
import json
import os
import time
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

import unmask
from unmask import recipes
from unmask.api.model import Model
from unmask.infer.model import Model as Network
from unmask.infer.model import save_run
from unmask.tasks._rows import read_rows
from unmask.text import Tokenizer


def main() -> None:
    given = _arguments()
    with TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["UNMASK_CACHE"] = str(folder / "cache")
        rows = [row for _, row in islice(read_rows(Path(given.train)), given.examples)]
        (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        (folder / "texts.txt").write_text("\n\n".join(row["text"] for row in rows), encoding="utf-8")
        unmask.train_tokenizer([folder / "texts.txt"], folder / "tokenizer.json", recipe="bert")
        model = _base(given.size, folder, given.device)
        (folder / "few.jsonl").write_text("".join((folder / "train.jsonl").read_text().splitlines(True)[:16]))
        model.adapt(  # what is imported and set up once is not counted
            folder / "few.jsonl",
            folder / "few",
            tune="head",
            settings=["epochs=1", "length=128"],
            progress=lambda _: None,
        )
        first, second = (_head(model, folder, number, given) for number in (1, 2))
        found = {"device": given.device, "size": given.size, "examples": len(rows), "epochs": given.epochs,
                 "threads": torch.get_num_threads(), "load": os.getloadavg()[0]}  # fmt: skip
        for name in first:
            found[name] = {"first": first[name], "second": second[name], "ratio": first[name] / second[name]}
        print(json.dumps(found, indent=1))


def _head(model: Model, folder: Path, seed: int, given: argparse.Namespace) -> dict[str, float]:
    """The seconds until the last step, and of everything."""
    began, ended = time.perf_counter(), 0.0

    def watch(record: dict[str, Any]) -> None:
        nonlocal ended
        ended = time.perf_counter() - began

    model.adapt(
        folder / "train.jsonl", folder / f"head{seed}", tune="head", seed=seed, progress=watch,
        settings=[f"epochs={given.epochs}", "length=128", "tune.cache=true"],
    )  # fmt: skip
    return {"training": ended, "all": time.perf_counter() - began}


def _base(size: str, folder: Path, device: str) -> Model:
    """A BERT with random weights: what the vectors mean does not matter here."""
    recipe, tokenizer = recipes.get("bert", size=size), Tokenizer.load(folder / "tokenizer.json")
    torch.manual_seed(0)
    system = recipe.system.build(recipe, tokenizer.vocabulary, 0)
    save_run(Network(system, recipe, tokenizer, folder / "run", "cpu"), folder / "run")
    return unmask.load(folder / "run", device=device)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", help="JSON lines with `text` and `label`")
    parser.add_argument("--size", default="base")
    parser.add_argument("--examples", type=int, default=2000)
    parser.add_argument("--epochs", type=float, default=3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


if __name__ == "__main__":
    main()
