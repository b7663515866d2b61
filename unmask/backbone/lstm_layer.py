"""One LSTM layer in one direction, computed by the fused kernels of torch; and the order in which it reads rows."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from unmask.backbone.scaled_gradients import GradientScale
from unmask.batch import Batch, Record

GATES = 4  # input, forget, cell and output gate: torch keeps their weights in one matrix


@dataclass(frozen=True)
class Cells(Record):
    """What an LSTM layer remembers of the tokens that it has read."""

    output: Tensor  # B D, its last output
    cell: Tensor  # B H


@dataclass(frozen=True)
class ReadingOrder:
    """At which step each token of a row is read. Padding is read last, so it never changes the vector of a token."""

    step: Tensor  # B T, the place in the row that is read at each step
    place: Tensor  # B T, the step at which each place is read
    lengths: Tensor  # B, the number of tokens of each row

    @classmethod
    def left(cls, batch: Batch) -> ReadingOrder:
        """From left to right. Padding may be at the left or at the right of a row."""
        first, lengths, place = _places(batch)
        return cls((place + first) % batch.shape[1], (place - first) % batch.shape[1], lengths)

    @classmethod
    def right(cls, batch: Batch) -> ReadingOrder:
        """From right to left."""
        first, lengths, place = _places(batch)
        turned = (first + lengths[:, None] - 1 - place) % batch.shape[1]
        return cls(turned, turned, lengths)

    def to_steps(self, x: Tensor) -> Tensor:
        """B T D, from the order of the row to the order in which it is read."""
        return _taken(x, self.step)

    def to_places(self, x: Tensor) -> Tensor:
        """B T D, from the order in which a row is read to that of the row."""
        return _taken(x, self.place)


def _places(batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """B 1, the place of the first token of each row; B, its number of tokens; T, all places."""
    first = batch.real.int().argmax(1, keepdim=True)
    return first, batch.real.sum(1), torch.arange(batch.shape[1], device=batch.ids.device)


def _taken(x: Tensor, index: Tensor) -> Tensor:
    return x.gather(1, index[:, :, None].expand_as(x))


class LSTMLayer(nn.Module):
    """One layer, one direction. `weight_dropout`: on the recurrent weights, with one mask for all steps (AWD-LSTM).
    `projection`: the output is projected to this width at every step; None: it is as wide as the cells. `clip`: cells and
    projected outputs stay between this and its negative; the fused kernels cannot do this, so it is computed step by step,
    which is much slower. None: they have no limit."""

    def __init__(
        self, inputs: int, cells: int, *, projection: int | None = None, weight_dropout: float = 0.0,
        clip: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.cells, self.weight_dropout, self.clip, outputs = cells, weight_dropout, clip, projection or cells
        self.input_weight = nn.Parameter(torch.empty(GATES * cells, inputs))
        self.recurrent_weight = nn.Parameter(torch.empty(GATES * cells, outputs))
        self.input_bias = nn.Parameter(torch.empty(GATES * cells))
        self.recurrent_bias = nn.Parameter(torch.empty(GATES * cells))
        self.projection = None if projection is None else nn.Parameter(torch.empty(projection, cells))
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -(cells**-0.5), cells**-0.5)

    @property
    def stacked(self) -> dict[str, int]:
        """Its matrices, and how many each of them holds."""
        gates = {"input_weight": GATES, "recurrent_weight": GATES}
        return gates if self.projection is None else gates | {"projection": 1}

    @property
    def outputs(self) -> int:
        return self.recurrent_weight.shape[1]

    def begin(self, rows: int, dtype: torch.dtype) -> Cells:
        """The state before the first token: zeros."""
        like = self.recurrent_weight.new_zeros(0, dtype=dtype)
        return Cells(like.new_zeros(rows, self.outputs), like.new_zeros(rows, self.cells))

    def forward(self, x: Tensor, state: Cells | None = None, lengths: Tensor | None = None) -> tuple[Tensor, Cells]:
        """B T D, the outputs, and the state after the last step. Rows begin at step 0.

        `lengths`: B, the tokens of each row. With them, the state is that after the last token of each row, and outputs
        after it are zeros. They are copied to the CPU, so the device is waited for."""
        state = state or self.begin(len(x), x.dtype)
        if self.clip is not None:
            return self._step_by_step(x, state, self.clip)
        start = (state.output[None].to(x.dtype), state.cell[None].to(x.dtype))
        if not (x.is_cuda and torch.is_autocast_enabled("cuda")):
            return self._fused(x, start, self._weights(), lengths)
        dtype, scale = torch.get_autocast_dtype("cuda"), GradientScale()
        x, *first_and_weights = scale.before(x, *start, *self._weights())
        out, after = self._fused(x, (first_and_weights[0], first_and_weights[1]), first_and_weights[2:], lengths)
        out, output, cell = scale.after(out.to(dtype), after.output.to(dtype), after.cell.to(dtype))
        return out, Cells(output, cell)

    def _fused(
        self, x: Tensor, start: tuple[Tensor, Tensor], weights: list[Tensor], lengths: Tensor | None
    ) -> tuple[Tensor, Cells]:
        learns = torch.is_grad_enabled()  # only then cuDNN keeps what a backward pass needs; it drops nothing
        if lengths is None:
            out, output, cell = torch._VF.lstm(x, start, weights, True, 1, 0.0, learns, False, True)
            return out, Cells(output[0], cell[0])
        packed = pack_padded_sequence(x, lengths.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False)
        order, back = packed.sorted_indices, packed.unsorted_indices
        assert order is not None
        assert back is not None
        start = (start[0][:, order], start[1][:, order])
        read, output, cell = torch._VF.lstm(
            packed.data, packed.batch_sizes, start, weights, True, 1, 0.0, learns, False
        )
        out = pad_packed_sequence(packed._replace(data=read), batch_first=True, total_length=x.shape[1])[0]
        return out, Cells(output[0, back], cell[0, back])

    def _step_by_step(self, x: Tensor, state: Cells, clip: float) -> tuple[Tensor, Cells]:
        recurrent = F.dropout(self.recurrent_weight, self.weight_dropout, self.training)
        given = F.linear(x, self.input_weight, self.input_bias + self.recurrent_bias)  # B T 4H
        output, cell, found = state.output, state.cell, []
        for step in given.unbind(1):
            let_in, keep, new, let_out = (step + F.linear(output, recurrent)).chunk(GATES, 1)
            cell = (keep.sigmoid() * cell + let_in.sigmoid() * new.tanh()).clamp(-clip, clip)
            output = let_out.sigmoid() * cell.tanh()
            if self.projection is not None:
                output = F.linear(output, self.projection).clamp(-clip, clip)
            found.append(output)
        return torch.stack(found, 1), Cells(output, cell)

    def _weights(self) -> list[Tensor]:
        """The weights as the kernel takes them. For cuDNN they are parts of one tensor, matrices first: otherwise it copies
        them itself, with a warning."""
        dropped = F.dropout(self.recurrent_weight, self.weight_dropout, self.training)
        matrices = [self.input_weight, dropped, *([] if self.projection is None else [self.projection])]
        biases = [self.input_bias, self.recurrent_bias]
        if dropped.is_cuda:
            named = [*matrices, *biases]
            parts = torch.cat([weight.flatten() for weight in named]).split([weight.numel() for weight in named])
            views = [part.view_as(weight) for part, weight in zip(parts, named, strict=True)]
            matrices, biases = views[: len(matrices)], views[len(matrices) :]
        return [*matrices[:2], *biases, *matrices[2:]]

    def flops(self) -> float:
        """Floating-point operations per token of one forward pass."""
        return 2 * sum(weight.numel() for weight in self.parameters() if weight.dim() == 2)
