"""Decoder: a decoder sees the tokens that it has written and the source of its own example, and nothing else."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unmask.batch import Batch
from unmask.contracts.broken import expect
from unmask.contracts.case import LENGTH, Case, StageTrack, has_decoder
from unmask.contracts.contract import Contract
from unmask.contracts.rows import predicting, some_rows, used, with_other_token
from unmask.see import visible

ROWS = 4
STEP = 5  # every fifth place of a row is changed, one at a time
MOST = 0.9  # at least this share of the outputs that may see a changed token must change
MANY = 16  # enough to contain rows with several examples, if `arrange` packs
LONG = 2 * LENGTH
CLOSE = 1e-5


def leak(case: Case) -> None:
    """Change tokens of the decoder rows and of the source, one at a time."""
    for way in case.ways:
        batch = case.hide(way, _packed(case, way, ROWS))
        decoder = predicting(batch)
        with torch.no_grad():
            before = case.system.backbone(batch)[0]
            for place in range(0, decoder.shape[1], STEP):
                other = batch.replace(decoder=with_other_token(decoder, place, case.vocabulary.size))
                after = case.system.backbone(other)[0]
                _check(way, visible(decoder)[:, :, place], _moved(before.decoded, after.decoded), decoder, "decoder")
                changed = int(_moved(before.last, after.last).sum())
                expect(changed == 0, f"In {way} no position of the encoder may see the decoder, but {changed} changed.")
            for place in range(0, batch.shape[1], STEP):
                after = case.system.backbone(with_other_token(batch, place, case.vocabulary.size))[0]
                same = (decoder.example == batch.example[:, place, None]) & batch.real[:, place, None]
                _check(way, same, _moved(before.decoded, after.decoded), decoder, "source")


def _moved(one: Any, other: Any) -> Tensor:
    """B T, True where two vectors differ."""
    moved: Tensor = (one - other).abs().amax(-1) > 0
    return moved


def _check(way: StageTrack, sees: Tensor, moved: Tensor, decoder: Batch, words: str) -> None:
    blind, seeing = moved & ~sees & decoder.real, sees & decoder.real
    expect(not blind.any(), f"In {way} another token of the {words} must not change positions of the decoder that may not see it, but "
           f"{int(blind.sum())} changed.")  # fmt: skip
    expect((moved & seeing).sum() >= MOST * seeing.sum(), f"In {way} another token of the {words} must change at least {MOST:.0%} of the "
           f"positions of the decoder that see it, but {int((moved & seeing).sum())} of {int(seeing.sum())} changed.")  # fmt: skip


def shifted(case: Case) -> None:
    """Change tokens of the text, one at a time: what the decoder reads up to the place where it writes the token must not
    change."""
    for way in case.ways:
        raw = _packed(case, way, ROWS)
        hidden = case.hide(way, raw)
        for name, targets in predicting(hidden).targets.items():
            where, at = used(targets, "where"), used(targets, "at")
            for number in range(0, len(where), STEP):
                ids = raw.ids.clone()
                ids.view(-1)[where[number]] = next(i for i in _ordinary(case) if i != int(ids.view(-1)[where[number]]))
                other = predicting(case.hide(way, raw.replace(ids=ids)))
                earlier = _same_example(predicting(hidden), at, at[number]) & (where <= where[number])
                moved = (other.ids.flatten() != predicting(hidden).ids.flatten())[at] & earlier
                expect(not moved.any(), f"In {way} the decoder must not read a token before it has predicted it as one of the targets "
                       f"{name!r}, but {int(moved.sum())} positions read it.")  # fmt: skip


def _same_example(decoder: Batch, at: Tensor, one: Tensor) -> Tensor:
    """Which of these flat indices are in the row and the example of one of them."""
    example, length = decoder.example.flatten(), decoder.shape[1]
    return (example[at] == example[one]) & (at // length == one // length)


def _ordinary(case: Case) -> Any:
    return (token for token in reversed(range(case.vocabulary.size)) if token not in case.vocabulary.special)


def alone(case: Case) -> None:
    """Check that an example gets the same vectors in the decoder in a packed row as alone."""
    for way in case.ways:
        packed = case.hide(way, _packed(case, way, 2))
        decoder = predicting(packed)
        with torch.no_grad():
            together = case.system.backbone(packed)[0].decoded
            for row in range(2):
                for number in range(int(packed.example[row].max()) + 1):
                    lone = _one(packed, row, number).replace(decoder=_one(decoder, row, number))
                    far = (
                        (case.system.backbone(lone)[0].decoded[0] - together[row, decoder.example[row] == number])
                        .abs()
                        .amax()
                    )
                    expect(far < CLOSE, f"In {way} example {number} of row {row} must get the same vectors in the decoder in a packed row "
                           f"as alone, but they differ by {far:.2g}.")  # fmt: skip


def _packed(case: Case, way: StageTrack, count: int) -> Batch:
    """The rows with the most examples."""
    rows = case.rows(way, MANY, LONG)
    return some_rows(rows, rows.example.amax(1).argsort(descending=True, stable=True)[:count].tolist())


def _one(batch: Batch, row: int, number: int) -> Batch:
    """A batch that contains only one example of a row."""
    mine = batch.example[row] == number
    names = ("ids", "segment", "position", "rank")
    fields = {name: getattr(batch, name)[row : row + 1, mine] for name in names}
    return batch.replace(**fields, example=torch.zeros_like(fields["ids"]), columns={}, decoder=None)


CONTRACTS = (
    Contract("decoder leak", "The decoder sees what it has written, and the source of its own example; nothing sees more.", leak, has_decoder),
    Contract("decoder input", "The decoder reads no token before it has predicted it.", shifted, has_decoder),
    Contract("decoder packing", "An example gets the same vectors in the decoder in a packed row as alone.", alone, has_decoder),
)  # fmt: skip
