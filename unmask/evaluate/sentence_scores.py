"""Score sentences: one number for each text, the higher the more acceptable the model finds it.

Sentences of the same length are read together, without padding. So the score of a sentence does not depend on the others.
Batches are made on the device, and the results are fetched once for each length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from unmask.batch import Batch, Hidden, Targets
from unmask.errors import require
from unmask.evaluate.sentence_way import ORIGINAL, SentenceWay, ways_of
from unmask.infer.likelihood import machine_of
from unmask.infer.model import Model
from unmask.infer.passes import CPU_PASS, Noted
from unmask.text import encode_documents

GPU_PASS = 1 << 16  # most tokens in a pass on a GPU
SCORES = {"cpu": 1 << 25, "cuda": 1 << 28}  # most scores in memory at once: predictions x vocabulary
_UNKNOWN = "sentences contain words or characters that the tokenizer does not know"


def score_sentences(model: Model, texts: Sequence[str], *, where: Sequence[str] = ()) -> Noted[np.ndarray]:
    """The score of each text, in nats. `where`: what errors call each text."""
    *_, last = trace_sentences(model, texts, where=where)
    return Noted(last["scores"], Counter(last["notes"]))


def trace_sentences(model: Model, texts: Sequence[str], *, where: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """Score texts, yielding a record per pass. The last record holds `scores`, those of each way (`by_way`), and `notes`."""
    require(len(texts) > 0, "there are no sentences to score: give at least one")
    names = where or [f"text number {number:,}" for number in range(1, len(texts) + 1)]
    ways = ways_of(model)
    room = model.length - max(len(way.front) + len(way.back) for way in ways)
    sentences = _tokens(model, room, texts, names)
    read = [_to_read(way, np.array([len(ids) for ids in sentences])) for way in ways]
    by_way: dict[str, np.ndarray] = {}
    notes: Counter[str] = Counter()
    for number, way in enumerate(ways):
        for record in trace_tokens(model, way, sentences):
            if "scores" not in record:
                yield {"tokens": sum(read[:number]) + record["tokens"], "tokens_total": sum(read)}
                continue
            by_way[way.name] = record["scores"]
            notes |= Counter(record["notes"])  # all ways have the same notes
    yield {"scores": np.sum(list(by_way.values()), axis=0), "by_way": by_way, "notes": dict(notes)}


def trace_tokens(model: Model, way: SentenceWay, sentences: Sequence[np.ndarray]) -> Iterator[dict[str, Any]]:
    """Like `trace_sentences`, in one way, for sentences that are tokens already, without special tokens."""
    lengths = np.array([len(ids) for ids in sentences])
    found, done, total = np.empty(len(sentences)), 0, _to_read(way, lengths)
    model.system.eval()
    for length, chosen in _by_length(lengths):
        # equal sentences are read once, so that their scores are equal in every bit
        ids, again = np.unique(np.stack([sentences[i] for i in chosen]), axis=0, return_inverse=True)
        copies = len(chosen) / len(ids)
        logs: list[Tensor] = []
        for logs, read in _passes(model, way, torch.from_numpy(ids).to(model.device)):
            yield {"tokens": done + int(read * copies), "tokens_total": total}
        scores = torch.cat(logs).view(len(ids), length).double().sum(1)
        found[chosen] = scores.cpu().numpy()[again.ravel()]
        done += len(chosen) * length * int(_rows(way, length))
    unknown = sum(bool((ids == model.tokenizer.vocabulary.unknown).any()) for ids in sentences)
    notes = model.random_weights(way.fact) + Counter({_UNKNOWN: unknown})
    yield {"scores": found, "notes": dict(+notes)}


def _tokens(model: Model, room: int, texts: Sequence[str], where: Sequence[str]) -> list[np.ndarray]:
    """The tokens of each text. A text without tokens, or one with more than `room`, is refused."""
    sentences = [document.ids for document in encode_documents(texts, model.tokenizer, "none")]
    for name, ids in zip(where, sentences, strict=True):
        require(len(ids) > 0, "{name}: the sentence is empty: write a text, or remove it", name=name)
        require(
            len(ids) <= room,
            (
                "{name}: the sentence has {tokens:,} tokens, but {folder} reads sentences of at most {room:,}: shorten or "
                "remove it"
            ),
            name=name,
            tokens=len(ids),
            folder=model.folder,
            room=room,
        )
    return sentences


def _by_length(lengths: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yields each length, and the indices of the sentences that have it."""
    order = np.argsort(lengths, kind="stable").tolist()
    for length, chosen in groupby(order, key=lambda i: int(lengths[i])):
        yield length, np.array(list(chosen))


def _to_read(way: SentenceWay, lengths: np.ndarray) -> int:
    """The number of tokens that are read to score sentences of these lengths."""
    return int((lengths * _rows(way, lengths)).sum())


def _rows(way: SentenceWay, length: Any) -> Any:
    """The number of rows of a sentence."""
    return length if way.masked else 1


@torch.no_grad()
def _passes(model: Model, way: SentenceWay, ids: Tensor) -> Iterator[tuple[list[Tensor], int]]:
    """Yields, after each pass, the scores of the tokens so far, and the number of tokens read. `ids`: sentences, S n."""
    each = int(_rows(way, ids.shape[1]))
    tokens = CPU_PASS if model.device == "cpu" else GPU_PASS
    logs: list[Tensor] = []
    step = max(1, tokens // (ids.shape[1] + len(way.front) + len(way.back)))
    for begin in range(0, len(ids) * each, step):
        rows = torch.arange(begin, min(begin + step, len(ids) * each), device=ids.device)
        with machine_of(model).autocast():
            logs.append(_scored(model, way, ids[rows // each], rows % each))
        yield logs, (begin + len(rows)) * ids.shape[1]


def _scored(model: Model, way: SentenceWay, texts: Tensor, place: Tensor) -> Tensor:
    """The scores of the tokens that are scored in these rows. `texts`: B n. `place`: B, the token that is masked."""
    head: Any = model.head(way.fact, "score sentences")
    rows, length = texts.shape
    places = place[:, None] if way.masked else torch.arange(length, device=texts.device).expand(rows, length)
    wanted = texts.gather(1, places).flatten()
    batch = _batch(way, texts[:, : length - way.next_token])
    where = (torch.arange(rows, device=texts.device)[:, None] * batch.shape[1] + len(way.front) + places).flatten()
    batch, at = _asked(model, way, batch, where)
    hidden = model.system.look(batch, way.track)
    if way.fact == ORIGINAL:
        return head.original(hidden, batch).flatten()[where].float()
    vectors = hidden.query if hidden.query is not None else hidden.for_prediction.flatten(0, 1)[at]
    most = max(1, SCORES[texts.device.type] // model.tokenizer.vocabulary.size)
    found = [
        -F.cross_entropy(head.decode(Hidden((some[None],)), batch)[0].float(), ids, reduction="none")
        for some, ids in zip(vectors.split(most), wanted.split(most), strict=True)
    ]
    return torch.cat(found)


def _asked(model: Model, way: SentenceWay, batch: Batch, where: Tensor) -> tuple[Batch, Tensor]:
    """The batch that is read to score these tokens, and the flat index of the vector that predicts each of them. `where`: the
    flat indices of the tokens."""
    at = where - way.earlier
    if way.second_stream:
        batch = batch.replace(targets={"tokens": _targets(where, batch.ids.flatten()[where])}, order=batch.position)
    if way.rule is not None:  # before the [MASK] is written: decoder rows are made from the text as it is
        decoder = way.rule.rows_for_token(batch, where % batch.shape[1], model.tokenizer.vocabulary)
        batch, at = batch.replace(decoder=decoder), decoder.targets["tokens"].at
    if way.masked:
        ids = batch.ids.flatten().index_fill(0, where, model.tokenizer.role("mask"))
        batch = batch.replace(ids=ids.view(batch.shape))
    return batch, at


def _batch(way: SentenceWay, texts: Tensor) -> Batch:
    """Rows of equal length, with the special tokens around each text."""
    rows, length = texts.shape
    front, back, segments = (texts.new_tensor(values) for values in (way.front, way.back, way.segments))
    ids = torch.cat((front.expand(rows, -1), texts, back.expand(rows, -1)), 1)
    position = torch.arange(ids.shape[1], device=ids.device)
    text = (position >= len(way.front)) & (position < len(way.front) + length)
    segment = F.pad(segments, (ids.shape[1] - len(segments), 0))
    number, zeros = torch.arange(rows, device=ids.device), torch.zeros_like(ids)
    return Batch(
        ids=ids, columns={"word": torch.where(text, position, -1).expand_as(ids), "sentence": zeros}, example=zeros,
        segment=segment.expand_as(ids), position=position.expand_as(ids), row=number, visit=torch.zeros_like(number),
        summary=number * ids.shape[1], label=torch.zeros_like(number), counted=torch.ones(rows, device=ids.device),
    )  # fmt: skip


def _targets(where: Tensor, ids: Tensor) -> Targets:
    return Targets(where, where, ids, where, where, torch.ones(len(where), device=where.device))
