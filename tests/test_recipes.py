"""Every recipe at every size: its parameters against the papers' tables and against arithmetic."""

from __future__ import annotations

import importlib
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import DebertaConfig, DebertaModel, ModernBertConfig, ModernBertForMaskedLM

from unmask import recipes
from unmask.errors import UserError
from unmask.run import from_json, to_json
from unmask.settings import flat
from unmask.system import check_training, cost

MILLION = 1e6


def parameters(name: str, size: str = "base", settings: tuple[str, ...] = (), what: str = "parameters") -> float:
    recipe = recipes.get(name, size=size, settings=settings)
    return cost(recipe, recipe.tokenizer.vocab)[what] / MILLION


def encoder(layers: int, width: int, inner: int) -> int:
    """Weights and biases of so many layers, each with two norms."""
    return layers * (4 * (width**2 + width) + 2 * width * inner + inner + width + 4 * width)


def albert(width: int, inner: int, layers: int = 1, narrow: int = 128, words: int = 30_000) -> int:
    """One shared layer, narrow embeddings with their norm and projection; the heads for tokens and sentence order."""
    embeddings = (words + 512 + 2) * narrow + 2 * narrow + narrow * width + width
    tokens = width * narrow + narrow + 2 * narrow + words
    order = width**2 + width + 2 * width + 2
    return embeddings + encoder(layers, width, inner) + tokens + order


@pytest.mark.parametrize("size, width, millions", [("base", 768, 12), ("large", 1024, 18), ("xlarge", 2048, 60)])
def test_albert_has_the_parameters_of_its_table(size, width, millions):
    assert parameters("albert", size) == pytest.approx(millions, rel=0.02)
    assert parameters("albert", size) * MILLION == albert(width, 4 * width)


def test_the_largest_albert_has_what_its_shape_gives_not_what_its_table_says():
    """The paper's table says 235M; 12 shared layers of width 4096 with embeddings of 128 are 223M."""
    assert parameters("albert", "xxlarge") * MILLION == albert(4096, 16_384) == 223_158_450


@pytest.mark.parametrize(
    "embedding, shared, attention, feedforward, none", [(128, 12, 64, 38, 89), (768, 31, 83, 57, 108)]
)
def test_what_albert_shares_costs_what_its_ablation_says(embedding, shared, attention, feedforward, none):
    table = {"all": shared, "attention": attention, "feedforward": feedforward, "none": none}
    for sharing, millions in table.items():
        settings = (f"system.backbone.embedding={embedding}", f"system.backbone.sharing={sharing}")
        assert parameters("albert", settings=settings, what="kept") == pytest.approx(millions, abs=1.5), sharing


def test_electra_keeps_the_discriminator():
    assert parameters("electra", "small", what="kept") == pytest.approx(14, rel=0.05)
    narrow = (30_522 + 512 + 2) * 128 + 2 * 128 + 128 * 256 + 256
    assert parameters("electra", "small", what="kept") * MILLION == narrow + encoder(12, 256, 1024)
    assert parameters("electra", "base", what="kept") == pytest.approx(110, rel=0.02)
    assert parameters("electra", "large", what="kept") == pytest.approx(335, rel=0.02)
    assert parameters("electra", "small") < 1.1 * parameters("electra", "small", what="kept")  # embeddings once


@pytest.mark.parametrize(
    "name, size, millions",
    [
        ("bert", "base", 110), ("bert", "large", 340), ("roberta", "base", 125), ("roberta", "large", 355),
        ("gpt2", "base", 124), ("gpt2", "large", 355), ("gpt", "base", 117), ("bart", "base", 139), ("bart", "large", 406), ("unilm", "large", 340), ("spanbert", "large", 340),
    ],
)  # fmt: skip
def test_other_papers_have_their_parameters(name, size, millions):
    assert parameters(name, size) == pytest.approx(millions, rel=0.02)


@pytest.mark.parametrize("size", ["base", "large"])
def test_deberta_is_transformers_network_with_a_head_for_tokens_and_the_positions_of_its_decoder(size):
    backbone = recipes.get("deberta", size=size).system.backbone
    config = DebertaConfig(
        hidden_size=backbone.width, num_hidden_layers=backbone.layers, num_attention_heads=backbone.heads,
        intermediate_size=backbone.feedforward, relative_attention=True, pos_att_type=["c2p", "p2c"],
        position_biased_input=False,
    )  # fmt: skip
    with torch.device("meta"):
        encoder = DebertaModel(config).num_parameters()
    head = backbone.width**2 + 3 * backbone.width + config.vocab_size
    assert parameters("deberta", size) * MILLION == encoder + head + 512 * backbone.width


@pytest.mark.parametrize("size, millions", [("base", 149), ("large", 395)])
def test_modernbert_is_transformers_network_of_the_released_sizes(size, millions):
    backbone = recipes.get("modernbert", size=size).system.backbone
    config = ModernBertConfig(
        hidden_size=backbone.width, num_hidden_layers=backbone.layers, num_attention_heads=backbone.heads,
        intermediate_size=backbone.feedforward,
    )  # fmt: skip
    with torch.device("meta"):
        theirs = ModernBertForMaskedLM(config).num_parameters()
    assert parameters("modernbert", size) * MILLION == theirs
    assert parameters("modernbert", size) == pytest.approx(millions, rel=0.01)
    local = [kind == "sliding_attention" for kind in config.layer_types]
    assert [backbone.window(layer) for layer in range(backbone.layers)] == [64 if here else None for here in local]


@pytest.mark.parametrize("size, layers, width, inner", [("small", 12, 384, 1280), ("base", 12, 768, 2560)])
def test_gpt_bert_has_the_parameters_of_its_layers_embeddings_and_head(size, layers, width, inner):
    """The layers of the paper are others, so its own counts do not hold here."""
    embeddings, norm = (16_384 + 512) * width, 2 * width
    head = width**2 + width + 2 * width + 16_384
    assert parameters("gpt-bert", size) * MILLION == embeddings + norm + encoder(layers, width, inner) + head


@pytest.mark.parametrize("name, width", [("ernie", 128), ("electra", 64)])
def test_a_stage_costs_what_it_hides_itself(name, width):
    """Scores of every token of the vocabulary, and the layer before them, where something is hidden; back and forth."""
    recipe = recipes.get(name, size="tiny", settings=["hide.budget=0.15"])
    more = recipe.replace(
        schedule=tuple(replace(s, hide=replace(s.hide or recipe.hide, budget=0.55)) for s in recipe.schedule)
    )
    per_place = 3 * (2 * 128 * 1000 + 2 * width * 128)
    extra = cost(more, 1000)["flops_per_token"] - cost(recipe, 1000)["flops_per_token"]
    assert extra == pytest.approx(0.4 * per_place)


@pytest.mark.parametrize("size, trained, kept", [("base", 44, 41), ("large", 235, 219)])
def test_the_character_transformer_has_its_parameters_in_training_and_afterwards(size, trained, kept):
    """The difference is what every layer predicts with: an output for each of two characters."""
    assert parameters("char-transformer", size) == pytest.approx(trained, rel=0.01)
    assert parameters("char-transformer", size, what="kept") == pytest.approx(kept, rel=0.01)


def network(recipe):
    """What may change the number of parameters: the vocabulary and the kind of positions."""
    return recipe.tokenizer, flat(recipe).get("system.backbone.positions")


@pytest.mark.parametrize("name", recipes.names())
def test_every_size_and_variant_builds_and_survives_json(name):
    module = importlib.import_module(f"unmask.recipes.{name.replace('-', '_')}")
    seen = set()
    for size in module.SIZES:
        counts = {}
        for variant in module.VARIANTS:
            recipe = recipes.get(name, size=size, variant=variant)
            assert (recipe.name, recipe.size, recipe.variant) == (name, size, variant)
            assert from_json(to_json(recipe)) == recipe
            price = cost(recipe, recipe.tokenizer.vocab)
            assert 0 < price["kept"] <= price["parameters"]
            assert price["flops_per_token"] > 0
            counts.setdefault(network(recipe), set()).add((price["kept"], recipe.system.backbone.layers))
        assert all(len(alike) == 1 for alike in counts.values())  # variants of one vocabulary train the same network
        seen |= counts[network(recipes.get(name, size=size))]
    assert len(seen) == len(module.SIZES)  # shared layers cost nothing: ALBERT's small and medium differ in depth


@pytest.mark.parametrize(
    "name, settings, message",
    [
        (
            "spanbert",
            ["hide.units.lengths.most=600"],
            "a hidden unit may have 600 words or tokens, but a row has only 512 tokens",
        ),
        (
            "structbert",
            ["hide.1.units.size=600"],
            "a hidden unit may have 600 words or tokens, but a row has only 512 tokens",
        ),
        ("structbert", ["hide.1.units.size=1"], "hide.units.size must be 2 or more tokens, got 1"),
        ("bert", ["hide.1.units.size=4"], "unknown setting 'hide.1.units.size'"),
        ("electra", ["system.learned=true"], "learns the weights of the losses, but the schedule gives weights too"),
        ("albert", ["system.backbone.sharing=some"], "must be one of none, attention, feedforward, all, got 'some'"),
        ("albert", ["system.backbone.embedding=0"], "backbone.embedding must be none or 1 or more, got 0"),
        (
            "unilm",
            ["system.backbone.segments=2"],
            "6 kinds of segments, but the backbone distinguishes only 2: set system.backbone.segments=6",
        ),
        (
            "bert",
            ["layout=a [SEP] b [SEP] [CLS]"],
            "3 kinds of segments, but the backbone distinguishes only 2: set system.backbone.segments=3",
        ),
        (
            "unilm",
            ["layout=a [SEP] b [SEP] [CLS]"],
            "3 kinds of segments, but the track 'prefix' has numbers for only 2",
        ),
        ("bert", ["system.backbone.segments=-2"], "segments must be 0 for none, or 2 or more, got -2"),
        ("ernie", ["hide.units.token=-1"], "shares of 0 or more, and at least one above 0"),
        ("unilm", ["hide.units.lengths.of=(0.5, 0.1)"], "shares of 0 or more that add up to 1"),
        ("unilm", ["tracks.left.share=0.6"], "the shares of the tracks must add up to at most 1"),
        (
            "electra",
            ["system.generator.length=64"],
            "system.generator.length=64 has no effect, .*: set system.backbone.length",
        ),
        ("electra", ["system.generator.segments=3"], "system.generator.segments=3 has no effect"),
        (
            "electra",
            ["system.shared=false", "system.generator.embedding=64"],
            "system.generator.embedding=64 has no effect",
        ),
        (
            "electra",
            ["system.generator.positions=Sinusoidal"],
            r"system.generator.positions=Sinusoidal\(every=False\) has no effect",
        ),
        ("electra", ["system.generator.width=1024"], "a generator may not be wider than its discriminator"),
        ("spanbert", ["hide.units.lengths.stop=0"], r"hide.units.lengths.stop must be in \(0, 1\), got 0"),
        (
            "char-transformer",
            ["hide.ahead=1"],
            "predict.second=Tokens needs the targets 'ahead_2', .*: set hide=Next.ahead=2.",
        ),
        (
            "char-transformer",
            ["predict.second.layer=13"],
            "predict.second reads layer 13, but the backbone has only 12",
        ),
        ("gpt2", ["hide.ahead=0"], "hide.ahead must be 1 or more, got 0"),
        ("albert", ["hide.units.lengths.most=0"], "hide.units.lengths.most must be 1 or more, got 0"),
    ],
)
def test_what_does_not_fit_is_one_clear_line(name, settings, message):
    with pytest.raises(UserError, match=message) as caught:
        checked(name, settings)
    assert "\n" not in str(caught.value)


def checked(name: str, settings: list[str]) -> None:
    recipe = recipes.get(name, settings=settings)
    cost(recipe, 200)
    check_training(recipe)


def test_the_readme_links_every_recipe_once():
    readme = Path(__file__).parents[1].joinpath("README.md").read_text(encoding="utf-8")
    linked = re.findall(r"\[([\w-]+)\]\(unmask/recipes/(\w+)\.py\)", readme)
    assert sorted(linked) == sorted((name, name.replace("-", "_")) for name in recipes.names())
    assert f"There are {len(linked)} recipes." in readme
