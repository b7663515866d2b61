"""Tracks: split a batch into the rows of each track, hide and rank them separately, and join them again."""

from __future__ import annotations

import torch
from torch import Tensor

from unmask.axes import Objective
from unmask.batch import TASK, Batch, Targets, Vocabulary
from unmask.hide import apply_rules
from unmask.recipe import MAIN, FullTrack

_PER_EXAMPLE = ("summary", "label", "counted")
_IN_TEXT = (
    "where",
    "start",
    "end",
)  # of targets: indices into the flattened text; `at` is one into the rows that predict


def hide_tracks(
    tracks: dict[str, FullTrack], batch: Batch, vocabulary: Vocabulary, seed: int, asked: dict[str, list[Objective]]
) -> Batch:
    """The batch hidden and ranked, the rows of each track in its own way; `asked`: the objectives of each track."""
    shares = batch.tracks or ((_usual(tracks), batch.shape[0]),)
    if len(shares) == 1:
        name = shares[0][0]
        return _hidden(tracks[name], batch, vocabulary, seed, asked[name])
    parts, begin = [], 0
    for name, rows in shares:
        parts.append(_hidden(tracks[name], rows_of(batch, begin, begin + rows), vocabulary, seed, asked[name]))
        begin += rows
    return joined(parts).replace(tracks=batch.tracks)


def tracks_of(tracks: dict[str, FullTrack], batch: Batch) -> list[str]:
    """The names of the tracks of a batch."""
    return [name for name, _ in batch.tracks] or [_usual(tracks)]


def _usual(tracks: dict[str, FullTrack]) -> str:
    """The track of a batch without track names: the first that has a share of the rows, or otherwise "main"."""
    return next((name for name, track in tracks.items() if track.share > 0), MAIN)


def _hidden(track: FullTrack, batch: Batch, vocabulary: Vocabulary, seed: int, asked: list[Objective]) -> Batch:
    batch = apply_rules(track.hide, track.see.draw(batch, seed), vocabulary, seed)
    return only_asked(track, view(track, batch), asked)


def view(track: FullTrack, batch: Batch) -> Batch:
    """The batch as a track sees it, with the ranks and the segment numbers of the track."""
    batch = track.see.apply(batch)  # first, because a view may need the segment numbers of the layout
    if track.number is not None:
        numbers = torch.full_like(batch.row, track.number)
        batch = batch.replace(per_row=batch.per_row | {TASK: numbers})
    if not track.segments:
        return batch
    # without a table of the numbers: copying one to the GPU cannot be recorded
    each = [number * (batch.segment == place) for place, number in enumerate(track.segments)]
    return batch.replace(segment=torch.stack(each).sum(0))


def only_asked(track: FullTrack, batch: Batch, asked: list[Objective]) -> Batch:
    """The batch in which targets and examples count only if one of these objectives of the track reads them."""
    if track.predict is None:
        return batch
    if batch.decoder is not None:
        batch = batch.replace(decoder=only_asked(track, batch.decoder, asked))
    kept = {part.target for part in asked}
    targets = {
        name: found if name in kept else found.replace(weight=torch.zeros_like(found.weight))
        for name, found in batch.targets.items()
    }
    examples = any(part.asked_at == "examples" for part in asked)
    return batch.replace(targets=targets, counted=batch.counted if examples else torch.zeros_like(batch.counted))


def rows_of(batch: Batch, begin: int, end: int) -> Batch:
    """The rows from `begin` to `end` of a batch in which no token is hidden yet, with those of its decoder. An example that is
    read several times is not cut: both are multiples of its rows."""
    rows, length = batch.shape

    def part(values: Tensor) -> Tensor:
        return values[begin * len(values) // rows : end * len(values) // rows]

    examples = {name: part(getattr(batch, name)) for name in _PER_EXAMPLE}
    rowwise = {
        name: getattr(batch, name)[begin:end] for name in ("ids", "example", "segment", "position", "row", "visit")
    }
    return batch.replace(
        **rowwise, **examples | {"summary": examples["summary"] - begin * length}, tracks=(),
        decoder=None if batch.decoder is None else rows_of(batch.decoder, begin, end),
        columns={name: column[begin:end] for name, column in batch.columns.items()},
        per_row={name: values[begin:end] for name, values in batch.per_row.items()},
        per_example={name: part(values) for name, values in batch.per_example.items()},
    )  # fmt: skip


def joined(parts: list[Batch], texts: list[Batch] | None = None) -> Batch:
    """One batch with the rows of all parts, which have the same row length. All have decoder rows, or none has.

    `texts`: for decoder rows, the batches that they belong to."""
    begins = _begins(parts)
    names = [n for n, v in vars(parts[0]).items() if isinstance(v, Tensor) and v.dim() and n not in _PER_EXAMPLE]
    found = {name: torch.cat([getattr(part, name) for part in parts]) for name in (*names, "label", "counted")}
    summary = torch.cat([part.summary + begin for part, begin in zip(parts, begins, strict=True)])
    return parts[0].replace(
        **found, summary=summary, targets=_joined_targets(parts, begins, _begins(texts or parts)), decoder=_joined_decoders(parts),
        columns={name: torch.cat([part.columns[name] for part in parts]) for name in parts[0].columns},
        per_row={name: torch.cat([part.per_row[name] for part in parts]) for name in parts[0].per_row},
        per_example={name: torch.cat([part.per_example[name] for part in parts]) for name in parts[0].per_example},
    )  # fmt: skip


def _joined_decoders(parts: list[Batch]) -> Batch | None:
    found = [part.decoder for part in parts if part.decoder is not None]
    assert len(found) in (0, len(parts)), "some tracks have decoder rows, and others have none"
    length = max((one.shape[1] for one in found), default=0)
    return joined([_widened(one, length) for one in found], parts) if found else None


def _widened(batch: Batch, length: int) -> Batch:
    """The batch with padding up to this row length."""
    rows, before = batch.shape
    if before == length:
        return batch

    def moved(place: Tensor) -> Tensor:
        return place // before * length + place % before

    def padded(values: Tensor, fill: int) -> Tensor:
        return torch.cat((values, values.new_full((rows, length - before, *values.shape[2:]), fill)), 1)

    tokens = {
        name: value
        for name, value in vars(batch).items()
        if isinstance(value, Tensor) and value.shape[:2] == batch.shape
    }
    return batch.replace(
        **{name: padded(value, -1 if name == "example" else 0) for name, value in tokens.items()},
        columns={name: padded(column, -1) for name, column in batch.columns.items()}, summary=moved(batch.summary),
        targets={name: one.replace(at=moved(one.at)) for name, one in batch.targets.items()},
    )  # fmt: skip


def _begins(parts: list[Batch]) -> list[int]:
    """The flat index of the first token of each part in the joined batch."""
    return [sum(part.ids.numel() for part in parts[:i]) for i in range(len(parts))]


def _joined_targets(parts: list[Batch], begins: list[int], in_text: list[int]) -> dict[str, Targets]:
    """The targets of all parts, joined by name. A part without targets of a name adds none. `in_text`: where the text of each
    part begins."""
    found: dict[str, Targets] = {}
    for name in dict.fromkeys(name for part in parts for name in part.targets):
        moved = [
            _moved(part.targets[name], begin, text)
            for part, begin, text in zip(parts, begins, in_text, strict=True)
            if name in part.targets
        ]
        found[name] = Targets(**{key: torch.cat([one[key] for one in moved]) for key in moved[0]})
    return found


def _moved(targets: Targets, begin: int, text: int) -> dict[str, Tensor]:
    """The fields of the targets of a part that begins at these flat indices of the joined rows and of the joined text."""
    moved = {name: getattr(targets, name) + text for name in _IN_TEXT}
    return vars(targets) | moved | {"at": targets.at + begin}
