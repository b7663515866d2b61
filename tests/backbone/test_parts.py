"""Attention, positions and a decoder are parts of a Transformer: a new one needs no change of the network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.small import random_batch
from unmask.axes import Backbone, Part
from unmask.backbone import Full, Learned, NoPositions, Sinusoidal, Transformer, TransformerXL
from unmask.backbone.embed import Norm
from unmask.batch import Batch, Hidden
from unmask.errors import UserError
from unmask.see import Everything, LeftToRight
from unmask.settings import override
from unmask.train.optimise import layer_scales

SHAPE = Transformer(layers=3, width=16, heads=2, feedforward=32, length=40, dropout=0.0)
DISTANCES = 9


@dataclass(frozen=True)
class Biased(Part):
    """Attention with a score for each distance and head, from one table with a norm that all layers share."""

    distances: int = DISTANCES  # rows of the table

    @property
    def dense(self) -> bool:
        return True

    @property
    def cached(self) -> bool:
        return False

    def build(self, width: int, heads: int, dropout: float) -> nn.Module:
        return BiasedModule(width, heads)

    def shared(self, width: int, heads: int, dropout: float) -> nn.Module:
        return Table(self.distances, width)

    def flops(self, width: int, length: int) -> float:
        return 1000 * width + length


class Table(nn.Module):
    """The vectors of all distances, and the distance of each pair of tokens."""

    def __init__(self, distances: int, width: int) -> None:
        super().__init__()
        self.table, self.norm = nn.Embedding(distances, width), Norm(width)
        self.calls = 0

    def forward(self, batch: Batch, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        self.calls += 1
        half = self.table.num_embeddings // 2
        distance = batch.position[:, :, None] - batch.position[:, None, :]
        return self.norm(self.table.weight).to(dtype), distance.clamp(-half, half) + half  # L D, B T T


class BiasedModule(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.place, self.out = nn.Linear(width, heads), nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Any, cache: Any = None, reads: Tensor | None = None) -> Tensor:
        assert cache is None
        reads = x if reads is None else reads
        q, k, v = (
            f(y).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for f, y in ((self.query, x), (self.key, reads), (self.value, reads))
        )
        table, distance = mask.prepared
        bias = self.place(table)[distance].permute(0, 3, 1, 2).masked_fill(~mask.mask, -torch.inf)  # B H T T
        found = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        return self.out(found.transpose(1, 2).flatten(2))


@dataclass(frozen=True)
class LastAgain(Part):
    """The last layer once more: its queries also know the position, and it reads the layer below it."""

    def build(self, spec: Transformer, blocks: nn.ModuleList, embed: nn.Module) -> nn.Module:
        return LastAgainModule(spec, blocks[-1])

    def flops(self, spec: Transformer, length: int) -> float:
        return 12345.0


class LastAgainModule(nn.Module):
    def __init__(self, spec: Transformer, block: nn.Module) -> None:
        super().__init__()
        self.block = (block,)  # in a tuple: it belongs to the network
        self.position = nn.Embedding(spec.length, spec.width)

    def forward(self, layers: tuple[Tensor, ...], batch: Batch, mask: Any) -> Tensor:
        return self.block[0](layers[-1] + self.position(batch.position), mask, reads=layers[-2])


def network(spec: Transformer, pattern="everything") -> nn.Module:
    torch.manual_seed(0)
    return spec.build(200, pattern).eval()


def rows(view=Everything(), **options) -> Batch:  # noqa: B008
    return view.apply(random_batch(rows=2, length=40, examples=2, **options))


def test_a_shared_table_is_prepared_once_per_batch_and_reaches_every_layer():
    model = network(replace(SHAPE, attention=Biased(), positions=NoPositions()))
    tables = [name for name, _ in model.named_parameters() if "table" in name]
    assert tables == ["shared_attention.table.weight"]
    model(rows())[0].last.square().sum().backward()
    assert model.shared_attention.calls == 1
    assert float(model.shared_attention.table.weight.grad.abs().sum()) > 0
    for block in model.blocks:
        assert float(block.attention.place.weight.grad.abs().sum()) > 0


def test_relative_attention_alone_knows_the_order_of_tokens():
    """Without positions, full attention gives a permuted text the permuted vectors; relative attention does not."""
    batch = rows().replace(example=torch.zeros(2, 40, dtype=torch.long), position=torch.arange(40).expand(2, -1))
    turned = batch.replace(ids=batch.ids.flip(1), segment=batch.segment.flip(1))
    same = {}
    for name, attention in (("full", Full()), ("relative", Biased())):
        model = network(replace(SHAPE, attention=attention, positions=NoPositions(), deviation=0.3))
        with torch.no_grad():
            same[name] = torch.allclose(model(batch)[0].last, model(turned)[0].last.flip(1), atol=1e-4)
    assert same == {"full": True, "relative": False}


def test_an_attention_that_needs_all_scores_gets_a_mask_whatever_the_kernels(monkeypatch):
    from unmask.backbone import transformer

    asked = []
    original = transformer.attention_mask
    monkeypatch.setattr(transformer, "attention_mask", lambda *a, **o: asked.append(o["dense"]) or original(*a, **o))
    for attention in (Full(), Biased()):
        network(replace(SHAPE, attention=attention))(rows())
    assert asked == [False, True]


def test_a_step_that_reads_other_vectors_equals_one_on_the_same_vectors():
    """Full attention with `reads` equal to its own input changes nothing; with other vectors it gathers from those."""
    model = network(replace(SHAPE, norm="pre"))
    seen = rows()
    x, other = torch.randn(2, 2, 40, 16, generator=torch.Generator().manual_seed(1))
    from unmask.backbone.attention import attention_mask

    mask = attention_mask(seen, "everything", torch.float32)
    with torch.no_grad():
        block = model.blocks[0]
        assert torch.allclose(block(x, mask), block(x, mask, reads=x), atol=1e-6)
        assert not torch.allclose(block(x, mask), block(x, mask, reads=other), atol=1e-3)
        mixed = other.clone()
        mixed[:, 5, 0] += 3  # only tokens of the same example see it
        moved = (block(x, mask, reads=other) - block(x, mask, reads=mixed)).abs().amax(2) > 1e-7
        assert torch.equal(moved, mask.mask[:, 0, :, 5])


@pytest.mark.parametrize("attention", [Full(), Biased()])
def test_a_decoder_makes_what_objectives_read_and_shares_the_blocks(attention):
    spec = replace(SHAPE, attention=attention, positions=NoPositions(), decoder=LastAgain())
    model, batch = network(spec), rows()
    hidden, _ = model(batch)
    assert hidden.decoded.shape == hidden.last.shape
    assert hidden.for_prediction is hidden.decoded
    assert not torch.allclose(hidden.decoded, hidden.last, atol=1e-3)
    own = [name for name, _ in model.named_parameters() if name.startswith("decoder")]
    assert own == ["decoder.position.weight"]
    assert float(model.decoder.position.weight.detach().std()) > 0.01  # drawn with the other weights
    hidden.decoded.square().sum().backward()
    assert float(model.decoder.position.weight.grad.abs().sum()) > 0
    assert float(model.shared_attention.table.weight.grad.abs().sum()) > 0 if attention == Biased() else True


def test_without_a_decoder_objectives_read_the_last_layer():
    hidden = Hidden((torch.zeros(1, 2, 3), torch.ones(1, 2, 3)))
    assert hidden.for_prediction is hidden.last


def test_parts_say_what_they_cost():
    plain = SHAPE.flops(40, "everything")
    assert plain == 3 * (2 * (4 * 16**2 + 2 * 16 * 32) + 4 * 40 * 16)
    assert replace(SHAPE, attention=Biased()).flops(40, "everything") == 3 * (1000 * 16 + 40 + 4 * 16 * 32)
    assert replace(SHAPE, decoder=LastAgain()).flops(40, "everything") == plain + 12345


@pytest.mark.parametrize("changes", [{"attention": Biased()}, {"decoder": LastAgain()}], ids=["attention", "decoder"])
def test_a_part_that_cannot_continue_from_a_cache_is_refused_by_name(changes):
    model = network(replace(SHAPE, **changes), "left")
    ((field, part),) = changes.items()
    with pytest.raises(UserError, match=rf"system.backbone.{field}={type(part).__name__} cannot .*--no-cache"):
        model.cache(1, 8)
    model(rows(LeftToRight()))  # without a cache it reads


def test_the_order_of_draws_does_not_depend_on_optional_parts():
    plain, more = network(SHAPE), network(replace(SHAPE, decoder=LastAgain()))
    assert {name for name, _ in more.named_parameters()} - {name for name, _ in plain.named_parameters()} == {
        "decoder.position.weight"
    }


def test_the_depth_of_optional_parts_is_that_of_their_place():
    """A shared table belongs to the embeddings, a decoder to the last layer."""
    spec = replace(SHAPE, attention=Biased(), decoder=LastAgain(), norm="pre")
    model = nn.Module()
    model.backbone, model.head = network(spec), nn.Linear(2, 2)
    scales = layer_scales(model, 0.5)
    assert scales["backbone.shared_attention.table.weight"] == scales["backbone.embed.token.weight"] == 0.5**5
    assert scales["backbone.decoder.position.weight"] == scales["backbone.final_norm.weight"] == 0.5**2
    assert scales["backbone.blocks.0.mlp.up.weight"] == 0.5**4
    assert scales["head.weight"] == 1


@pytest.mark.parametrize(
    "positions, bounded, first, tables",
    [
        (Learned(), True, True, 0),
        (Learned(every=True), True, True, 2),
        (Sinusoidal(), False, False, 0),
        (Sinusoidal(every=True), True, False, 2),
        (NoPositions(), False, False, 0),
    ],
)
def test_positions_are_a_part(positions, bounded, first, tables):
    spec = replace(SHAPE, positions=positions)
    names = [name for name, _ in network(spec).named_parameters()]
    assert spec.bounded is bounded
    assert ("embed.position.weight" in names) is first
    assert sum(name.startswith("places.") for name in names) == tables
    assert network(spec)(rows())[0].last.isfinite().all()


def test_positions_are_set_by_name():
    assert override(SHAPE, ["positions=Sinusoidal"]).positions == Sinusoidal()
    assert override(SHAPE, ["positions.every=true"]).positions == Learned(every=True)
    assert override(SHAPE, ["positions=NoPositions()"]).positions == NoPositions()
    with pytest.raises(UserError, match="Learned, NoPositions, Rotary, Sinusoidal"):
        override(SHAPE, ["positions=Full"])


def test_backbones_declare_what_they_need_and_give():
    assert (SHAPE.needs, SHAPE.gives, SHAPE.memory) == ((), {"one table", "any width", "equal layers"}, 0)
    plain = TransformerXL(memory=0)
    assert (plain.needs, plain.gives) == ((), {"one table", "equal layers"})
    full = TransformerXL(memory=8, streams=2, cutoffs=(10, 20))
    assert full.gives == {"memory", "second stream", "clusters", "equal layers"}
    assert [(need.fact, need.unless) for need in full.needs] == [
        ("continuing rows|examples", "memory=0"),
        ("order|examples", "streams=1"),
    ]
    for need in full.needs:
        assert need not in override(full, [need.unless]).needs


@pytest.mark.parametrize("part", [SHAPE, TransformerXL()], ids=["Transformer", "TransformerXL"])
def test_backbones_have_all_members_of_their_protocol(part):
    members = {name for base in Backbone.__mro__ for name in vars(base) if not name.startswith("_")}
    assert members >= {"layers", "memory", "needs", "gives", "build", "flops"}
    assert not [name for name in members if not hasattr(part, name)]
