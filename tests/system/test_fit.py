"""Do parts fit? Every need is a known fact; every combination trains, or the error's advice leads to one that fits."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from tests.hide.test_spans import with_lexicon
from tests.small import masking, random_batch, vocabulary
from unmask import backbone, curves, data, hide, predict, recipes, see, system
from unmask.axes import FACTS, fact, rules
from unmask.batch import Batch
from unmask.errors import UserError
from unmask.hide import Keep, Masked, Next
from unmask.predict import Adaptive, Tokens
from unmask.recipe import Recipe, Track
from unmask.settings import override
from unmask.system import check_training, weights
from unmask.system.fit import _unmet, advice_for, check_fit
from unmask.train import Machine, Trainer
from unmask.train.loop import MINIMISED

PACKAGES = (hide, see, backbone, predict, data, system)
NOT_PARTS = {
    "Texts",
    "Need",
    "Batch",
    "Cache",
    "Cells",
    "LayerMemory",
}  # dataclasses of these modules that are not parts of a recipe
# other values of parts than their usual ones, which have other facts
OTHER_VALUES = [
    Masked(at="before"), Masked(at="none"), Next(ahead=3), hide.Levels(phrase=0.0, entity=0.0), hide.Mask(mask=0.0), Tokens(layer=1),
    Tokens(target="ahead_2"), backbone.TransformerXL(streams=2), backbone.TransformerXL(cutoffs=(10, 20), memory=0),
    backbone.LSTM(carry=False), backbone.LSTM(inner=20), data.Blocks(cross=False),
    Next(second=True), hide.WriteSecond(halves=True),
]  # fmt: skip
AXES = {
    "arrange": [
        data.NextSentence, data.SentenceOrder, data.ThreeWay, data.Blocks, data.FullRows, data.ContinuingRows,
        data.ContinuingPairs, data.FromTask,
    ],
    "hide": [hide.Masked, hide.Next, hide.Nothing],
    "see": [see.Everything, see.LeftToRight, see.RightToLeft, see.Prefix, see.Permuted],
    "system.backbone": [backbone.Transformer, backbone.TransformerXL, backbone.LSTM, backbone.EncoderDecoder],
}  # fmt: skip
# what no setting can help, because the part itself refuses it: the reason
IMPOSSIBLE = {
    ("electra", name): "embeddings that are as wide as its layers"
    for name in ("TransformerXL", "LSTM", "EncoderDecoder")
}
# what would need more settings than advice may have: an LSTM and tracks that see other things than the left; heads that divide
# the width of an LSTM
NO_ADVICE = {
    ("unilm", "LSTM"): "choose another system.backbone",
    ("ernie-2", "LSTM"): "choose another system.backbone",
    ("bart", "LSTM"): "choose another hide.0",
    ("ernie-thu", "LSTM"): "choose another hide.1",
    ("transformer", "LSTM"): "choose another hide",
    ("mass", "LSTM"): "choose another hide",
    ("cove", "LSTM"): "choose another hide",
}
NO_ADVICE |= {("elmo", name): "choose another" for name in ("Transformer", "TransformerXL", "LSTM", "EncoderDecoder")}
SMALL = ["schedule.*.length=32", "schedule.*.rows=4", "system.backbone.layers=2"]
OTHERS = {"heads": 2, "feedforward": 64}  # where the old backbone has no attention
KEPT = ("layers", "width", "heads", "feedforward", "length", "segments")  # of a backbone that is replaced


def exported() -> dict[str, type]:
    """Every part of the packages by its name."""
    return {
        f"{package.__name__}.{name}": part
        for package in PACKAGES
        for name, part in vars(package).items()
        if isinstance(part, type) and dataclasses.is_dataclass(part) and name not in NOT_PARTS
    }


def replaced(recipe: Recipe, axis: str, part: type) -> Recipe:
    """The recipe with the usual values of a part in the place of its own; a backbone keeps its size."""
    if axis != "system.backbone":
        stages = tuple(dataclasses.replace(stage, hide=None) for stage in recipe.schedule) if axis == "hide" else None
        return recipe.replace(**{axis: part()} | ({"schedule": stages} if stages else {}))
    old = recipe.system.backbone
    if type(old) is part:
        return recipe
    known = {field.name for field in dataclasses.fields(part)}
    size = {name: getattr(old, name, OTHERS.get(name)) for name in KEPT if name in known}
    return recipe.replace(system=dataclasses.replace(recipe.system, backbone=part(**size)))


def batch_of(recipe: Recipe) -> Batch:
    """Four rows with all that any recipe reads, those of each track side by side."""
    names = ["main"] if recipe.takes_turns else list(recipe.all_tracks())
    rows = [4 - len(names) + 1] + [1] * (len(names) - 1)
    tracks = tuple(zip(names, rows, strict=True)) if len(names) > 1 else ()
    batch = with_lexicon(random_batch(rows=4, length=32, examples=2)).replace(tracks=tracks)
    linked = batch.text & (batch.position % 3 == 0)
    spelling = torch.randint(256, (4, 32, 6), generator=torch.Generator().manual_seed(0))
    return batch.replace(columns=batch.columns | {"links": torch.where(linked, 0, -1), "spelling": spelling})


def check_that_it_trains(recipe: Recipe) -> None:
    trainer = Trainer(recipe.system.build(recipe, vocabulary(), 0), recipe.optimise, Machine(), 0)
    first = recipe.schedule[0]
    scales = {name: curves.at(weight, 0.0) for name, weight in weights(recipe, first).items()}
    means = trainer.gradients([batch_of(recipe)], scales, 1, first.hide)
    assert float(means[MINIMISED]) > 0
    assert all(torch.isfinite(mean) for mean in means.values())
    assert any(bool(p.grad.any()) for p in trainer.system.backbone.parameters() if p.grad is not None)


@pytest.mark.parametrize("name", exported())
def test_every_need_and_every_give_of_a_part_is_a_known_fact(name):
    check_facts(exported()[name]())


@pytest.mark.parametrize("part", OTHER_VALUES, ids=repr)
def test_every_need_and_every_give_of_other_values_is_a_known_fact(part):
    assert part.needs != type(part)().needs or part.gives != type(part)().gives
    check_facts(part)


def check_facts(part) -> None:
    for name in (*part.gives, *part.must_use, *(one for need in part.needs for one in need.alternatives)):
        assert fact(name).words
    assert part.must_use <= part.gives
    assert all(need.because.startswith(("it ", "its ", "what ")) for need in part.needs)


def test_an_unknown_fact_is_refused():
    with pytest.raises(KeyError):
        fact("columns")
    with pytest.raises(KeyError):
        fact("column:")
    assert fact("column:links").words == "the column 'links' in the data"


def test_every_setting_of_the_list_of_facts_gives_its_fact():
    """On a recipe with a backbone that has all values which settings name; a few settings are refused there, not in BERT."""
    base = recipes.get("transformer-xl", size="tiny", settings=["system.backbone.cutoffs=(50, 100)"])
    refused = {"system=GeneratorDiscriminator", "hide.replace=Mask", "system.backbone.attention=Full"}
    refused |= {"system.backbone.local=Local", "system.backbone.knowledge=Fusion", "system.backbone.tasks=2"}
    for name, entry in FACTS.items():
        for setting in entry.settings:
            name_of_base = "awd-lstm" if setting == "system.backbone.inner=none" else "bert"
            other = setting in refused or name_of_base == "awd-lstm"
            changed = override(recipes.get(name_of_base, size="tiny") if other else base, [setting])
            given = {one for _, part in parts_of(changed) for one in part.gives}
            assert name in given, (name, setting)


def parts_of(recipe: Recipe):
    from unmask.axes import parts_in

    return [
        pair
        for value in (recipe.arrange, recipe.hide, recipe.see, recipe.system, recipe.predict, recipe.start)
        for pair in parts_in(value)
    ]


@pytest.mark.parametrize("name", recipes.names())
def test_a_recipe_with_another_part_trains_or_its_error_says_what_to_set(name):
    recipe, trained = recipes.get(name, size="tiny", settings=SMALL), 0
    own = {
        "see": [type(recipe.see)],
        "hide": [type(rule) for rule in rules(recipe.hide)][:1],
        "system.backbone": [type(recipe.system.backbone)],
    }
    for axis, parts in AXES.items():
        for part in dict.fromkeys([*parts, *own.get(axis, [])]):
            if (name, part.__name__) in IMPOSSIBLE:
                with pytest.raises(UserError, match=IMPOSSIBLE[name, part.__name__]):
                    replaced(recipe, axis, part)
                continue
            changed = replaced(recipe, axis, part)
            unmet = next(_unmet(changed, None), None)
            if unmet is None:
                check_training(changed)
                check_that_it_trains(changed)
                trained += 1
            elif (name, part.__name__) in NO_ADVICE:
                with pytest.raises(UserError, match=NO_ADVICE[name, part.__name__]):
                    check_training(changed)
            else:
                check_that_the_advice_helps(changed, unmet)
    assert trained >= len(AXES)  # with the recipe's own parts at least


def check_that_the_advice_helps(recipe: Recipe, unmet) -> None:
    with pytest.raises(UserError) as caught:
        check_training(recipe)
    message, advice = str(caught.value), advice_for(recipe, unmet)
    assert advice, message
    for settings in advice:
        assert " and ".join(settings) in message
        assert len({setting.partition("=")[0] for setting in settings}) == len(settings)  # nothing is set twice
        followed = override(recipe, settings)
        check_training(followed)
        if not any(
            setting.startswith("system.backbone=") for setting in settings
        ):  # those have their usual, large size
            check_that_it_trains(followed)


@pytest.mark.parametrize(
    "settings, message",
    [
        (
            ["hide=Next"],
            "hide=Next needs a view in which no token sees a later one, because it predicts the next token, but no part of bert "
            "gives this: set see=LeftToRight",
        ),
        (
            ["hide=Nothing"],
            "predict.tokens=Tokens needs the targets 'tokens', because it predicts the targets 'tokens', but no part of bert "
            "gives this: set hide=Masked, or hide=Next and see=LeftToRight",
        ),
        (
            ["hide.replace=Keep"],
            "predict.tokens=Tokens needs predicted tokens that are hidden in the text or tokens that are predicted from a position "
            "before them or a second stream that does not see the token it predicts, because it must not read the token that it "
            "predicts, but no part of bert gives this: set hide.replace=Mask, or hide=Next and see=LeftToRight",
        ),
        (
            ["arrange=Blocks", "see=Prefix"],
            "see=Prefix needs two texts in each example, because it shows the second of two texts from left to right, but no part "
            "of bert gives this: set arrange=NextSentence",
        ),
    ],
)
def test_an_error_names_the_part_the_need_the_reason_and_the_settings(settings, message):
    with pytest.raises(UserError) as caught:
        check_training(recipes.get("bert", size="tiny", settings=settings))
    assert str(caught.value) == message


def test_the_parts_of_a_track_are_named_by_their_track():
    recipe = recipes.get("unilm", size="tiny", settings=["arrange=Blocks"])
    with pytest.raises(UserError, match=r"^tracks\.prefix\.see=Prefix needs two texts .* set arrange=NextSentence$"):
        check_training(recipe)
    own = recipe.replace(tracks={"next": Track(share=0.5, see=see.Everything(), hide=Next())}, writes_with=None)
    with pytest.raises(UserError, match=r"^tracks\.next\.hide=Next needs .*: set tracks\.next\.see=LeftToRight$"):
        check_training(own)


def test_the_parts_of_a_stage_are_named_by_their_stage():
    recipe = recipes.get("bert", size="tiny")
    stages = (recipe.schedule[0], dataclasses.replace(recipe.schedule[1], hide=Next()))
    with pytest.raises(UserError, match=r"^schedule\.1\.hide=Next needs .*: set see=LeftToRight$"):
        check_training(recipe.replace(schedule=stages))


def test_what_is_given_and_must_be_read_needs_a_reader():
    recipe = recipes.get("gpt2", size="tiny", settings=["hide=Next(ahead=2)"])
    with pytest.raises(UserError) as caught:
        check_training(recipe)
    assert str(caught.value) == (
        "hide=Next gives the targets 'ahead_2', but no objective reads them, so the option has no effect: lower hide.ahead, or add "
        "an objective with target=ahead_2"
    )
    check_training(override(recipe, ["hide.ahead=1"]))
    check_training(recipe.replace(predict=recipe.predict | {"second": Tokens(target="ahead_2")}))


@pytest.mark.parametrize("view", [see.LeftToRight(), see.Everything()], ids=["left", "everything"])
def test_no_token_is_predicted_by_a_place_that_reads_it(view):
    """A token in sight may be predicted from the place before it, if that place does not see it either."""
    base = recipes.get("bert", size="tiny").replace(see=view)
    same, before = (base.replace(hide=Masked(replace=Keep(), at=at)) for at in ("same", "before"))
    with pytest.raises(UserError, match="it must not read the token that it predicts"):
        check_training(same)
    if view == see.LeftToRight():
        check_training(before)
    else:
        with pytest.raises(
            UserError, match="hide=Masked needs .*, because it predicts each token from the position before it"
        ):
            check_training(before)
    check_training(base.replace(hide=masking(at="before")))


def test_clusters_and_one_table_exclude_each_other():
    words = recipes.get("transformer-xl", size="tiny", variant="words")
    check_training(words)
    with pytest.raises(UserError, match="needs one table of token embeddings, .*: set system.backbone.cutoffs="):
        check_training(words.replace(predict={"tokens": Tokens(transform=False)}))
    plain = recipes.get("transformer-xl", size="tiny").replace(predict={"tokens": Adaptive()})
    with pytest.raises(UserError, match="needs adaptive embeddings"):
        check_training(plain)


def test_a_vocabulary_without_a_mask_token_is_refused_with_two_ways_out():
    from unmask.batch import Vocabulary

    bare, recipe = Vocabulary(size=200, pad=0, special=(0, 1, 2, 3)), recipes.get("bert", size="tiny")
    message = (
        "bert replaces tokens by \\[MASK\\], .*: train a tokenizer with 'unmask tokenizer', or set hide.replace.mask=0"
    )
    with pytest.raises(UserError, match=message):
        check_training(recipe, bare)
    with pytest.raises(UserError, match=message):
        recipe.system.build(recipe, bare, 0)
    check_training(override(recipe, ["hide.replace.mask=0"]), bare)
    check_training(recipes.get("gpt2", size="tiny"), bare)


def test_rules_that_are_used_together_must_all_give_what_an_objective_relies_on():
    bert = recipes.get("bert", size="tiny")
    with pytest.raises(
        UserError, match="only rules that hide tokens in place can be used together, got hide=Masked and Next"
    ):
        check_fit(bert.replace(hide=(bert.hide, Next()), see=see.LeftToRight()), vocabulary())
    kept = dataclasses.replace(bert.hide, replace=Keep())
    check_training(bert.replace(hide=(bert.hide, dataclasses.replace(bert.hide, budget=0.1))))
    with pytest.raises(UserError, match="predict.tokens=Tokens needs predicted tokens that are hidden in the text"):
        check_training(bert.replace(hide=(bert.hide, kept)))


def test_no_rule_at_all_is_refused():
    with pytest.raises(UserError, match=r"hide must have at least one rule, got \(\): set hide=Nothing"):
        recipes.get("bert", size="tiny").replace(hide=())


def test_the_boundary_of_a_span_needs_covered_tokens():
    spanbert = recipes.get("spanbert", size="tiny")
    with pytest.raises(UserError, match="predict.boundary=SpanBoundary needs .*boundaries must not have seen"):
        check_training(spanbert.replace(hide=Next(), see=see.LeftToRight()))


@pytest.mark.parametrize("name", ["name", "size", "variant"])
def test_a_label_of_a_recipe_is_not_a_setting(name):
    with pytest.raises(UserError, match=f"{name} is only a label"):
        recipes.get("bert", size="tiny", settings=[f"{name}=mini"])


def test_a_layer_of_the_encoder_cannot_predict_what_a_decoder_writes():
    recipe = recipes.get("bart", size="tiny", settings=["predict.tokens.layer=1"])
    with pytest.raises(UserError, match="reads layer 1 of the encoder.*set predict.tokens.layer=none"):
        check_fit(recipe, vocabulary())
