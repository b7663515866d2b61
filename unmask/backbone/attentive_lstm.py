"""AttentiveLSTM: a BiLSTM reads a source, and an LSTM with attention writes a text (Bahdanau, Luong; CoVe, McCann et al. 2017).

At each step the decoder reads its last token and what attention gathered from the source. `when` says with which state attention
asks: `before` (Bahdanau), with the state before the step, so that the step reads what it found; `after` (Luong, CoVe), with the
state after the step. In both cases the vector that predicts the next token is tanh(W [gathered; state]). With `after`, this vector is
read at the next step too ("input feeding").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from unmask.axes import Need
from unmask.backbone.attention_score import General, Prepared, Score, SourceAttention
from unmask.backbone.bilstm import BiLSTM, BiLSTMModule, TableEmbed
from unmask.backbone.lstm import EMBEDDINGS
from unmask.backbone.lstm_layer import GATES, Cells
from unmask.backbone.without_positions import WithoutPositions
from unmask.batch import Batch, Hidden, Record
from unmask.errors import require
from unmask.init_weights import InitWeights
from unmask.see import Pattern


@dataclass(frozen=True)
class AttentiveLSTM(WithoutPositions):
    """An encoder and a decoder of LSTMs, with attention between them. Tasks with labels keep only the encoder."""

    layers: int = 2  # of the encoder and of the decoder
    width: int = 600  # of the decoder, and of the layers of the encoder: half of it for each direction
    embedding: int = 300  # width of the embeddings, of the source and of the decoder, which has its own
    length: int = 512  # the longest text that is read at once; the network has no positions and could read any length
    fixed: bool = False  # the embeddings of the source never train: they are word vectors from a file (CoVe)
    joined: bool = False  # in tasks, the vectors are [embedding; layer] (CoVe), not the layer alone
    score: Score = General()  # how attention compares a state with the source
    when: Literal["before", "after"] = "after"  # attention asks before the step (Bahdanau), or after it (Luong)
    dropout: float = 0.2  # on the input and the output of every layer
    initial_embedding: float = EMBEDDINGS  # trained embeddings are first drawn between this and its negative
    deviation: float = 0.02  # of the initial weights of the output

    def __post_init__(self) -> None:
        require(
            self.width % 2 == 0,
            "backbone.width must be even, got {width}: each direction of the encoder has half",
            width=self.width,
        )
        require(
            self.deviation > 0,
            "backbone.deviation must be over 0, got {deviation}: write 0.02 or 0.1",
            deviation=self.deviation,
        )
        _ = self.encoder  # it checks the values that both have

    @property
    def encoder(self) -> BiLSTM:
        """The encoder as a backbone of its own: what is kept for tasks with labels."""
        return BiLSTM(
            layers=self.layers, cells=self.cells, embedding=self.embedding, length=self.length, fixed=self.fixed,
            joined=self.joined, dropout=self.dropout, initial_embedding=self.initial_embedding,
        )  # fmt: skip

    @property
    def fresh(self) -> InitWeights:
        """How heads are initialised."""
        return InitWeights("normal", self.deviation)

    @property
    def needs(self) -> tuple[Need, ...]:
        return (*self.encoder.needs, Need("decoder rows", "its decoder must have a text to write"))

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"one table", "no summary", "decoder", "kept encoder"})

    @property
    def cells(self) -> int:
        """The width of each direction of the encoder."""
        return self.width // 2

    def build(self, vocabulary: int, pattern: Pattern, embed: nn.Module | None = None) -> AttentiveLSTMModule:
        """The network with random initial weights. `embed`: the embeddings of another network, for the encoder."""
        return AttentiveLSTMModule(self, vocabulary, embed)

    def flops(self, length: int, pattern: Pattern, asked: float = 0.0) -> float:
        """Floating-point operations per token of one forward pass. `asked`: predictions per token of the source."""
        inputs = [self.embedding + self.width, *[self.width] * (self.layers - 1)]
        steps = sum(2 * GATES * self.width * (width + self.width) for width in inputs)
        attention = 4 * length * self.width + 4 * self.width**2
        return self.encoder.flops(length, pattern) + asked * (steps + attention)


@dataclass(frozen=True)
class AttentiveState(Record):
    """What the decoder knows after some tokens, and the source that it reads from."""

    per_source: ClassVar = ("keys", "real")  # several texts may be written from one source

    cells: list[Cells]  # of each layer of the decoder
    fed: Tensor  # B D, what the next step reads besides its token
    keys: Tensor  # B S D, the vectors of the source
    real: Tensor  # B S, True on its tokens, False on padding


class AttentiveLSTMModule(BiLSTMModule):
    """The network itself: the encoder, with a decoder."""

    can_cache = True

    def __init__(self, spec: AttentiveLSTM, vocabulary: int, embed: nn.Module | None) -> None:
        super().__init__(spec, vocabulary, embed)
        width = spec.width
        self.decoder_embed = TableEmbed(vocabulary, spec.embedding, spec.initial_embedding)
        inputs = [spec.embedding + width, *[width] * (spec.layers - 1)]
        self.decoder = nn.ModuleList(nn.LSTMCell(size, width) for size in inputs)
        self.attention = SourceAttention(spec.score, width, width)
        self.combine = nn.Linear(2 * width, width)

    @property
    def layer_modules(self) -> list[list[nn.Module]]:
        """The modules of each layer, those of the encoder first. All other modules count as embeddings."""
        found: list[list[nn.Module]] = [[layer] for layer in self.decoder]
        found[-1] += [self.attention, self.combine]
        return [*super().layer_modules, *found]

    def forward(self, batch: Batch, state: AttentiveState | None = None) -> tuple[Hidden, AttentiveState | None]:
        """The vectors of the batch and of its decoder rows. With a state, the batch holds the next tokens of the decoder."""
        if state is not None:
            decoded, state = self._written(batch, state)
            return Hidden((decoded,), decoded=decoded), state
        layers, ends = self.read_layers(batch)
        hidden = Hidden(tuple(layers))
        if batch.decoder is None:
            return hidden, None
        decoded, _ = self._written(batch.decoder, self._begin(layers[-1], ends, batch.real))
        return hidden.replace(decoded=decoded), None

    def read(self, source: Batch, length: int) -> AttentiveState:
        """Read a source once; the decoder then continues from this state. `length` has no effect: cells have one size."""
        layers, ends = self.read_layers(source)
        return self._begin(layers[-1], ends, source.real)

    def _begin(self, keys: Tensor, ends: list[Tensor], real: Tensor) -> AttentiveState:
        """The state before the first token: each layer begins with what its layer of the encoder knows at its ends."""
        cells = [Cells(end, torch.zeros_like(end)) for end in ends]
        return AttentiveState(cells, torch.zeros_like(ends[-1]), keys, real)

    def _written(self, rows: Batch, state: AttentiveState) -> tuple[Tensor, AttentiveState]:
        """B T D, the vectors that predict the next tokens; and the state after the rows."""
        x = self.dropout(self.decoder_embed(rows.ids))
        texts = len(x) // len(state.keys)  # that are written from each source
        keys, real = (tensor.repeat_interleave(texts, 0) for tensor in (state.keys, state.real))
        source = self.attention.prepare(keys, real)
        cells, fed, found = state.cells, state.fed, []
        for place in range(x.shape[1]):
            vector, cells, fed = self._step(x[:, place], cells, fed, source)
            found.append(vector)
        return torch.stack(found, 1), state.replace(cells=cells, fed=fed)

    def _step(self, x: Tensor, cells: list[Cells], fed: Tensor, source: Prepared) -> tuple[Tensor, list[Cells], Tensor]:
        """One token: B D, the vector that predicts the next one; the cells, and what the next step reads besides its token."""
        before = self.spec.when == "before"
        if before:
            fed = self.attention(cells[-1].output[:, None], source)[:, 0]
        x, after = torch.cat((x, fed), 1), []
        for layer, held in zip(self.decoder, cells, strict=True):
            kept = Cells(*layer(x, (held.output, held.cell)))
            x = self.dropout(kept.output)
            after.append(kept)
        gathered = fed if before else self.attention(x[:, None], source)[:, 0]
        vector: Tensor = torch.tanh(self.combine(torch.cat((gathered, x), 1)))
        return self.dropout(vector), after, vector
