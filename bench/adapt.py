"""Fine-tuning beside transformers' Trainer: BERT-base, sentences of mixed length, the same weights, examples and steps.

    python bench/adapt.py train.jsonl test.jsonl [--examples 20000] [--size base] [--epochs 1] [--rate 5e-5] [--peer trainer|loop]

The files are JSON lines with `text` and `label`. Both start from one random BERT; the tokenizer is a WordPiece trained on the
texts. `trainer` is transformers' own Trainer with dynamic padding (it needs accelerate); `loop` is the plain PyTorch loop
that it stands for: the same collator, bfloat16 autocast, fused AdamW, clipping and a linear rate.
"""

from __future__ import annotations

import argparse
import json
import lzma
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DataCollatorWithPadding,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    get_linear_schedule_with_warmup,
)

import unmask

SHAPES = {"base": (12, 768, 12), "small": (4, 512, 8), "tiny": (2, 128, 2)}
WARMUP, BATCH, LENGTH = 0.1, 32, 128


def main() -> None:
    given = _arguments()
    with TemporaryDirectory() as name:
        folder = Path(name)
        train, test = _rows(given.train)[: given.examples], _rows(given.test)
        _write(folder / "train.jsonl", train)
        _write(folder / "test.jsonl", test)
        (folder / "texts.txt").write_text("\n\n".join(row["text"] for row in train), encoding="utf-8")
        unmask.train_tokenizer([folder / "texts.txt"], folder / "tokenizer.json", kind="wordpiece")
        labels = sorted({str(row["label"]) for row in train})
        _random_bert(given.size, labels, folder)
        found = {"device": _device(), "examples": len(train), "size": given.size, "epochs": given.epochs}
        found["unmask"] = _ours(folder, given)
        found[given.peer] = _theirs(folder, train, test, labels, given)
        found["ratio"] = found[given.peer]["seconds"] / found["unmask"]["seconds"]
        print(json.dumps(found, indent=1))


def _ours(folder: Path, given: argparse.Namespace) -> dict[str, float]:
    base, _ = unmask.import_hf(folder / "hf", folder / "run")
    settings = [
        f"epochs={given.epochs}",
        f"examples={BATCH}",
        f"rate={given.rate}",
        f"warmup={WARMUP}",
        f"length={LENGTH}",
    ]
    began = time.perf_counter()
    model = base.adapt(folder / "train.jsonl", folder / "adapted", settings=settings, progress=False)
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "accuracy": model.evaluate(folder / "test.jsonl")["accuracy"]}


def _theirs(
    folder: Path, train: list[dict[str, Any]], test: list[dict[str, Any]], labels: list[str], given: argparse.Namespace
) -> dict[str, float]:
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder / "hf")
    model = BertForSequenceClassification.from_pretrained(folder / "hf").to(_device())
    sets = [_encoded(rows, tokenizer, labels) for rows in (train, test)]
    collate = DataCollatorWithPadding(tokenizer, pad_to_multiple_of=8)
    began = time.perf_counter()
    (_trained if given.peer == "trainer" else _looped)(model, sets[0], collate, given, folder)
    seconds = time.perf_counter() - began
    model.eval()
    right = 0
    with torch.no_grad():
        for batch in _batches(sets[1], collate, 256, shuffle=False):
            answers = batch.pop("labels")
            right += int((model(**batch).logits.argmax(1) == answers).sum())
    return {"seconds": seconds, "accuracy": right / len(test)}


def _trained(model: Any, rows: list[dict[str, Any]], collate: Any, given: argparse.Namespace, folder: Path) -> None:
    arguments = TrainingArguments(
        output_dir=str(folder / "trainer"), per_device_train_batch_size=BATCH, num_train_epochs=given.epochs, learning_rate=given.rate,
        warmup_steps=int(WARMUP * given.epochs * len(rows) / BATCH), weight_decay=0.01, bf16=_device() == "cuda", logging_steps=100,
        save_strategy="no", report_to=[], disable_tqdm=True,
    )  # fmt: skip
    Trainer(model=model, args=arguments, train_dataset=rows, data_collator=collate).train()


def _looped(model: Any, rows: list[dict[str, Any]], collate: Any, given: argparse.Namespace, folder: Path) -> None:
    model.train()
    steps = round(given.epochs * len(rows) / BATCH)
    optimiser = torch.optim.AdamW(model.parameters(), lr=given.rate, weight_decay=0.01, fused=True)
    schedule = get_linear_schedule_with_warmup(optimiser, int(WARMUP * steps), steps)
    done = 0
    while done < steps:
        for batch in _batches(rows, collate, BATCH, shuffle=True):
            with torch.autocast(_device(), torch.bfloat16, enabled=_device() == "cuda"):
                loss = model(**batch).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            optimiser.zero_grad()
            done += 1
            if done == steps:
                break
    if _device() == "cuda":
        torch.cuda.synchronize()


def _batches(rows: list[dict[str, Any]], collate: Any, size: int, *, shuffle: bool) -> Iterator[dict[str, Any]]:
    loader: Any = torch.utils.data.DataLoader(
        rows,  # type: ignore[arg-type]
        batch_size=size,
        shuffle=shuffle,
        collate_fn=collate,
        pin_memory=_device() == "cuda",
    )
    for batch in loader:
        yield {name: value.to(_device(), non_blocking=True) for name, value in batch.items()}


def _encoded(rows: list[dict[str, Any]], tokenizer: Any, labels: list[str]) -> list[dict[str, Any]]:
    found = tokenizer([row["text"] for row in rows], truncation=True, max_length=LENGTH)
    return [
        {"input_ids": ids, "attention_mask": mask, "labels": labels.index(str(row["label"]))}
        for ids, mask, row in zip(found["input_ids"], found["attention_mask"], rows, strict=True)
    ]


def _random_bert(size: str, labels: list[str], folder: Path) -> None:
    """One random network, as transformers writes it, with a tokenizer beside it."""
    layers, width, heads = SHAPES[size]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]", model_max_length=512,
    )  # fmt: skip
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
        intermediate_size=4 * width, num_labels=len(labels), pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    torch.manual_seed(0)
    BertForSequenceClassification(config).save_pretrained(folder / "hf")
    tokenizer.save_pretrained(folder / "hf")


def _rows(path: str) -> list[dict[str, Any]]:
    with (lzma.open if path.endswith(".xz") else open)(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def _device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--examples", type=int, default=20_000)
    parser.add_argument("--size", default="base", choices=SHAPES)
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--rate", type=float, default=5e-5)
    parser.add_argument("--peer", default="trainer", choices=("trainer", "loop"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
