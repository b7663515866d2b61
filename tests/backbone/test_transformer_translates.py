"""The network of the recipe transformer is torch.nn.Transformer with the same weights, with its embeddings and positions."""

import math

import torch
from torch import nn

from tests.small import vocabulary
from unmask import recipes
from unmask.batch import Batch
from unmask.infer.batches import left_padded

END = vocabulary().end
SMALL = [
    f"system.backbone.{name}" for name in ("width=16", "heads=4", "feedforward=24", "layers=3", "decoder_layers=2")
]


def pairs(sources: list[list[int]], targets: list[list[int]]) -> Batch:
    """Rows of a source, [SEP], a target and [SEP]."""
    rows = [[*source, END, *target, END] for source, target in zip(sources, targets, strict=True)]
    width = max(map(len, rows))
    flipped = left_padded([row[::-1] for row in rows], 0)  # padded on the right
    segment = [[0] * (len(s) + 1) + [1] * (width - len(s) - 1) for s in sources]
    position = torch.arange(width).expand(len(rows), -1)
    return flipped.replace(
        ids=flipped.ids.flip(1), example=flipped.example.flip(1), segment=torch.tensor(segment), position=position,
        columns={},
    )  # fmt: skip


def theirs(ours, spec) -> nn.Transformer:
    made = nn.Transformer(
        spec.width, spec.heads, spec.layers, spec.decoder_layers, spec.feedforward, dropout=0.0, activation="relu",
        layer_norm_eps=spec.epsilon, batch_first=True,
    ).eval()  # fmt: skip
    made.encoder.norm = made.decoder.norm = None  # the paper has no norm after the last layer: its layers end with one
    state = ours.state_dict()

    def put(module: nn.Module, name: str) -> None:
        module.load_state_dict({"weight": state[f"{name}.weight"], "bias": state[f"{name}.bias"]})

    def attend(module: nn.MultiheadAttention, weight, bias, out: str) -> None:
        module.in_proj_weight.data.copy_(weight)
        module.in_proj_bias.data.copy_(bias)
        put(module.out_proj, out)

    def own(layer, name: str, norms: tuple[str, str]) -> None:
        attend(
            layer.self_attn,
            state[f"{name}.attention.qkv.weight"],
            state[f"{name}.attention.qkv.bias"],
            f"{name}.attention.out",
        )
        put(layer.linear1, f"{name}.mlp.up")
        put(layer.linear2, f"{name}.mlp.down")
        put(layer.norm1, f"{name}.attention_norm")
        put(getattr(layer, norms[1]), f"{name}.mlp_norm")

    for number, layer in enumerate(made.encoder.layers):
        own(layer, f"encoder.blocks.{number}", ("norm1", "norm2"))
    for number, layer in enumerate(made.decoder.layers):
        name = f"decoder_blocks.{number}"
        own(layer, name, ("norm1", "norm3"))
        put(layer.norm2, f"{name}.cross_norm")
        both = [
            torch.cat((state[f"{name}.cross.query.{kind}"], state[f"{name}.cross.kv.{kind}"]))
            for kind in ("weight", "bias")
        ]
        attend(layer.multihead_attn, *both, f"{name}.cross.out")
    return made


def waves(length: int, width: int) -> torch.Tensor:
    """The paper's formula, by loops."""
    table = torch.zeros(length, width)
    for place in range(length):
        for i in range(0, width, 2):
            angle = place / 10_000 ** (i / width)
            table[place, i], table[place, i + 1] = math.sin(angle), math.cos(angle)
    return table


def test_it_is_the_transformer_of_torch():
    recipe = recipes.get("transformer", size="tiny", settings=[*SMALL, "hide.halves=false"])
    system = recipe.system.build(recipe, vocabulary(), 0).eval()
    for parameter in system.parameters():
        parameter.data.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(len(parameter))))
    sources, targets = [[9, 14, 30, 7], [8, 8, 40]], [[50, 61], [33, 70, 71, 72, 90]]
    with torch.no_grad():
        batch = system.hide(pairs(sources, targets))[0]
        found = system.backbone(batch)[0].decoded
        network, table = theirs(system.backbone, recipe.system.backbone), system.backbone.embed.token.weight
        for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
            read, write = (
                torch.tensor([[*source, END]]),
                torch.tensor([[END, *target]]),
            )  # a decoder begins with the end
            embedded = [table[ids] * math.sqrt(16) + waves(ids.shape[1], 16) for ids in (read, write)]
            mask = nn.Transformer.generate_square_subsequent_mask(write.shape[1])
            expected = network(*embedded, tgt_mask=mask)
            torch.testing.assert_close(found[row, : write.shape[1]], expected[0], atol=1e-5, rtol=1e-4)
            asked = batch.decoder.targets["tokens"]
            mine = (asked.weight > 0) & (asked.at // batch.decoder.shape[1] == row)
            assert asked.ids[mine].tolist() == [*target, END]
            assert batch.decoder.ids[row, : write.shape[1]].tolist() == write[0].tolist()
            assert batch.ids[row, : read.shape[1]].tolist() == read[0].tolist()


def test_label_smoothing_is_that_of_the_paper_in_training_and_absent_otherwise():
    """By the formula: 90% of the answer is the token, 10% is spread evenly over all tokens."""
    recipe = recipes.get("transformer", size="tiny", settings=SMALL)
    head = recipe.system.build(recipe, vocabulary(), 0).predict["tokens"]
    batch = recipe.system.build(recipe, vocabulary(), 0).hide(pairs([[9, 14]], [[50]]))[0]
    targets = batch.decoder.targets["tokens"]
    vectors = torch.randn(len(targets.ids), 16, generator=torch.Generator().manual_seed(1))
    logs = head.scores(vectors).log_softmax(-1)
    own = logs.gather(1, targets.ids[:, None])[:, 0]
    smooth = 0.9 * own + 0.1 * logs.mean(1)
    for training, expected in ((True, smooth), (False, own)):
        loss = head.train(training).measure(vectors, targets)
        torch.testing.assert_close(loss.total, -(expected * targets.weight).sum())
        assert float(loss.count) == float(targets.weight.sum()) == 2
