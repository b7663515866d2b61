"""Fresh weights against the distributions of the released programs, by Kolmogorov and Smirnov's test."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.stats import ks_2samp, kstest, norm, truncnorm, uniform
from torch import nn
from transformers import ModernBertConfig, ModernBertModel

from tests.small import vocabulary
from unmask import recipes
from unmask.backbone import NoPositions
from unmask.data import Collection, Shards
from unmask.data.loader import Loader, TrackReaders
from unmask.init_weights import InitWeights
from unmask.recipe import Recipe
from unmask.train import Machine, Plan, Trainer

DEVIATION = 0.02
# The others follow BERT's program, which cuts at two deviations.
NORMAL = ("bart", "deberta", "gpt", "gpt2", "mass", "roberta", "spanbert", "transformer", "transformer-xl", "xlnet")
# at size tiny, their deviation is that of a narrow network
WIDER = ("deberta", "gpt", "gpt-bert", "gpt2", "modernbert", "transformer", "unmask", "xlnet")
RECURRENT = ("awd-lstm", "elmo")  # these have a law for each kind of weights
LAWS = {"normal": norm(scale=DEVIATION), "truncated": truncnorm(-2, 2, scale=DEVIATION)}


def built(name: str, *settings: str, size: str = "tiny", variant: str = "paper", words: int = 400) -> nn.Module:
    recipe = recipes.get(name, size=size, variant=variant, settings=settings)
    return recipe.system.build(recipe, vocabulary(words), 0)


def follows(weights: torch.Tensor, law) -> bool:
    return kstest(weights.detach().flatten().numpy(), law.cdf).pvalue > 1e-6


def matrices(system: nn.Module, without: tuple[str, ...] = ()) -> torch.Tensor:
    """All weights with two dimensions or more, in one row; without those whose name ends with one of these."""
    named = system.named_parameters()
    return torch.cat([p.flatten() for name, p in named if p.dim() > 1 and not name.endswith(without)])


def usual(name: str) -> tuple[str, ...]:
    """Settings for size tiny with which its weights start as in the sizes of the paper."""
    if name in WIDER:
        return ("system.backbone.deviation=0.02",)
    assert not near(recipes.get(name, size="base"))
    networks = near(recipes.get(name, size="tiny"))
    return tuple(f"system.{n}.{value}" for n in networks for value in ("deviation=0.02", "positions.start=random"))


def near(recipe: Recipe) -> list[str]:
    """The networks of a recipe in which heads start at the neighbours of a token."""
    return [name for name, one in recipe.system.networks.items() if getattr(one, "positions", NoPositions()).neighbours]


@pytest.mark.parametrize(
    "name", [name for name in recipes.names() if name not in (*RECURRENT, "cove")]
)  # cove: torch's own LSTMs
def test_every_recipe_starts_with_the_distribution_of_its_program(name):
    law = "normal" if name in NORMAL else "truncated"
    smaller = ("attention.out.weight", "mlp.down.weight")
    others = {
        "electra": ("project.weight", "replaced.out.weight"),
        "gpt2": smaller,
        "modernbert": smaller,
        "unmask": smaller,
    }
    weights = matrices(built(name, *usual(name)), others.get(name, ()))
    assert follows(weights, LAWS[law])
    assert (weights.abs().max() > 2 * DEVIATION) == (law == "normal")


@pytest.mark.parametrize("name", RECURRENT)
def test_lstm_layers_start_uniform_by_their_number_of_cells_and_the_rest_by_its_program(name):
    system = built(name)
    for layer in (layer for layers in system.backbone.layer_modules for layer in layers):
        bound = layer.cells**-0.5
        for parameter in layer.parameters():
            assert follows(parameter, uniform(-bound, 2 * bound))
    if name == "awd-lstm":
        assert follows(system.backbone.embed.token.weight, uniform(-0.1, 0.2))
        return
    assert follows(system.predict["neighbours"].weight, norm(scale=64**-0.5))
    assert (system.backbone.embed.highways[0].gate.bias == -2).all()


def test_biases_start_at_zero_and_norms_at_one():
    for name in ("bert", "electra", "gpt2", "transformer-xl"):
        for where, parameter in built(name).named_parameters():
            if where.endswith(".bias"):
                assert not parameter.any(), where
            elif "norm" in where:
                assert (parameter == 1).all(), where


def test_what_electra_leaves_to_its_library_starts_by_glorot():
    system = built("electra", size="small")
    for layer in (system.backbone.project, system.generator.project, system.predict["replaced"].out):
        limit = math.sqrt(6 / sum(layer.weight.shape))
        assert layer.weight.abs().max() <= limit
        assert follows(layer.weight, uniform(-limit, 2 * limit))
        assert not layer.bias.any()
    assert follows(system.predict["replaced"].dense.weight, LAWS["truncated"])


def test_alberts_projection_starts_as_its_layers_do():
    assert follows(built("albert", *usual("albert")).backbone.project.weight, LAWS["truncated"])


def test_the_outputs_of_gpt2s_layers_start_smaller_by_the_root_of_their_number():
    system = built("gpt2", "system.backbone.layers=3", *usual("gpt2"))
    for block in system.backbone.blocks:
        for layer in (block.attention.out, block.mlp.down):
            assert follows(layer.weight, norm(scale=DEVIATION / math.sqrt(6)))


def test_modernberts_layers_start_as_in_transformers():
    """The same deviations, the outputs of layers smaller; transformers cuts at two deviations too."""
    torch.manual_seed(0)
    config = ModernBertConfig(
        vocab_size=400, hidden_size=128, num_hidden_layers=3, num_attention_heads=2, intermediate_size=320, pad_token_id=0,
        bos_token_id=0, eos_token_id=0, cls_token_id=0, sep_token_id=0,
    )  # fmt: skip
    theirs, ours = (
        ModernBertModel(config),
        built("modernbert", "system.backbone.layers=3", *usual("modernbert")).backbone,
    )
    for mine, other in zip(ours.blocks, theirs.layers, strict=True):
        pairs = [(mine.attention.qkv, other.attn.Wqkv), (mine.attention.out, other.attn.Wo)]
        for one, two in [*pairs, (mine.mlp.up, other.mlp.Wi), (mine.mlp.down, other.mlp.Wo)]:
            found, expected = (layer.weight.detach().flatten().numpy() for layer in (one, two))
            assert ks_2samp(found, expected).pvalue > 1e-6
            assert found.std() / expected.std() == pytest.approx(1, rel=0.02)


def test_the_projections_of_adaptive_embeddings_start_with_a_deviation_of_their_own():
    system = built("transformer-xl", "system.backbone.cutoffs=(100,300)", variant="words")
    embedding, head = system.backbone.embed.token, system.predict["tokens"]
    for projection in (*embedding.projections, head.projections[0]):
        assert follows(projection, norm(scale=0.01))
    for table in (*embedding.tables, head.cluster):
        assert follows(table, LAWS["normal"])


def test_both_laws_draw_with_the_deviation_they_are_given():
    torch.manual_seed(0)
    assert follows(InitWeights("normal", 0.5).draw(torch.empty(5000)), norm(scale=0.5))
    assert follows(InitWeights("truncated", 0.5).draw(torch.empty(5000)), truncnorm(-2, 2, scale=0.5))


LAYERS = [
    "predict.replaced.initial=layers",
    "system.backbone.initial_projection=layers",
    "system.generator.initial_projection=layers",
]


@pytest.mark.parametrize("settings, collapses", [([], False), (LAYERS, True)], ids=["glorot", "as in the layers"])
def test_electra_tells_tokens_apart_after_forty_steps(settings, collapses, tokenizers, shards):
    small = [
        "backbone.width=64", "backbone.heads=2", "backbone.feedforward=128", "backbone.embedding=32",
        "generator.width=16", "generator.heads=1", "generator.feedforward=32",
    ]  # fmt: skip
    shape = [f"system.{setting}" for setting in small]
    recipe = recipes.get("electra", size="mini", settings=[*shape, "optimise.rate=1e-3", *settings])
    tokenizer, collection = tokenizers["wordpiece"], Collection(Shards(shards["wordpiece"]).split("train"))
    loader = Loader([TrackReaders([recipe.arrange.open(collection, tokenizer, recipe.layout, 64, 0)])], [1.0], 16)
    system = recipe.system.build(recipe, tokenizer.vocabulary, 0)
    trainer = Trainer(system, recipe.optimise, Machine(), 0)
    for step in range(1, 41):
        trainer.gradients([loader.batch(16)], recipe.schedule[0].weights, step)
        trainer.update(Plan(600).moment(step))
    batch = loader.batch(16)
    with torch.no_grad():
        vectors = system.eval().look(batch).last[batch.real]
    spread = (vectors - vectors.mean(0)).norm() / vectors.norm()
    assert spread < 0.1 if collapses else spread > 0.3


@pytest.mark.parametrize(("size", "reach", "deviation"), [("tiny", 1.0, 0.1), ("base", 0.1, DEVIATION)])
def test_the_embeddings_and_the_output_of_an_lstm_that_translates_start_larger_in_small_sizes(size, reach, deviation):
    system = built("cove", size=size, variant="translator")
    for embed in (system.backbone.embed, system.backbone.decoder_embed):
        assert follows(embed.token.weight, uniform(-reach, 2 * reach))
    assert follows(system.predict["tokens"].weight, norm(scale=deviation))


def test_the_encoder_that_is_kept_starts_as_it_does_in_the_translator():
    spec = recipes.get("cove", size="tiny", variant="translator").system.backbone
    assert follows(spec.encoder.build(400, "everything").embed.token.weight, uniform(-1, 2))
