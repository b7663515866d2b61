"""Every way of tuning with every recipe: it trains what it declares, saves it, and an opened run answers the same."""

from functools import cache

import pytest
import torch

from tests.adapt.made import SHAPE
from unmask import adapt as ways
from unmask import recipes, text, tune_names
from unmask.adapt import adapt
from unmask.data.examples import Text
from unmask.errors import UserError
from unmask.infer import answer
from unmask.infer.model import Model, open_on, open_run, save_run
from unmask.settings import flat, override
from unmask.tasks.classify import Classify, Example

KINDS = {"WordPiece": "wordpiece", "ByteBPE": "byte-bpe", "Unigram": "unigram", "WordBPE": "word-bpe", "Bytes": "bytes",
         "WholeWords": "wordpiece", "BPE": "wordpiece"}  # fmt: skip
EXAMPLES = [Example(Text("the doctor opened"), "a"), Example(Text("near London"), "b")] * 3
NEEDS = {
    "adapters": ("heads", "no attention"),
    "lora": ("heads", "no attention"),
    "mix": ("equal layers", "differ in width"),
}
NAMES = [name for name in tune_names.names() if name != tune_names.FULL]


def small(name, tokenizers, folder):
    """A saved model of a recipe with two layers, and weights that are all different."""
    recipe = recipes.get(name, size=recipes.smallest(name))
    known = flat(recipe)
    shape = [setting for setting in SHAPE if setting.partition("=")[0] in known]
    more = {"system.generator.width": 8, "system.generator.heads": 2, "system.generator.feedforward": 32,
            "system.generator.layers": 2, "system.generator.length": 48, "system.backbone.head": 8,
            "system.backbone.memory": 16, "system.backbone.embedding": 8}  # fmt: skip
    shape += [f"{key}={value}" for key, value in more.items() if known.get(key) is not None]
    lengths = [f"schedule.{i}.length=32" for i in range(len(recipe.schedule))]
    recipe = override(recipe, [*shape, *lengths])
    spelled = getattr(recipe.tokenizer, "spelled", False)
    given = [example.text.a for example in EXAMPLES]
    tokenizer = text.train(recipe.tokenizer, given) if spelled else tokenizers[KINDS[type(recipe.tokenizer).__name__]]
    system = recipe.system.build(recipe, tokenizer.vocabulary, 0)
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in system.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=random) * 0.1)
    model = Model(system.eval(), recipe, tokenizer, folder)
    save_run(model, folder)
    return model


@pytest.fixture(scope="module")
def base_of(tokenizers, tmp_path_factory):
    return cache(lambda name: small(name, tokenizers, tmp_path_factory.mktemp("base") / name))


def tuned(base, way, out, **values):
    tune = ways.get(way) if isinstance(way, str) else way
    task = Classify(**{"epochs": 2, "examples": 3, "rate": 1e-2} | values)
    texts = [Example(e.text, None) for e in EXAMPLES] if tune.turns else ()
    return list(adapt(base, EXAMPLES, out, task=task, tune=tune, overwrite=True, unlabelled=texts))


def answers(model):
    return [list(one.probabilities.values()) for one in answer(model, [e.text for e in EXAMPLES]).answers]


@pytest.mark.parametrize("way", NAMES)
@pytest.mark.parametrize("name", recipes.names())
def test_each_way_trains_what_it_says_saves_it_and_answers_the_same(name, way, base_of, tmp_path, monkeypatch):
    base, out = base_of(name), tmp_path / "run"
    tune = ways.get(way)
    needed, message = NEEDS.get(way, ("", ""))
    backbone = base.recipe.system.backbone
    if needed and not hasattr(backbone, needed) and needed not in backbone.gives:
        with pytest.raises(UserError, match=message):
            tuned(base, way, out)
        return
    if way == "siatl" and "future hidden" not in base.recipe.see.gives:
        with pytest.raises(UserError, match="does not read from left to right"):
            tuned(base, way, out)
        tune = override(tune, ["language=0"])
    if way == "cvt":
        tune = override(tune, ["average=none"])  # the saved weights are those of the last step
        if "both sides" not in base.recipe.see.reading.gives:
            with pytest.raises(UserError, match="reads from one side only"):
                tuned(base, tune, out)
            return
    before = {key: tensor.clone() for key, tensor in base.system.named_parameters()}
    models, first = [], {}
    monkeypatch.setattr(ways, "new_model", watched(ways.new_model, models, first))
    start = tuned(base, tune, out)[0]
    (trained,) = models
    head, system = trained.recipe.task.head, trained.system
    parameters = dict(system.named_parameters())
    declared = tune.trained(system, head, 2)
    moved = {key for key, tensor in parameters.items() if not torch.equal(tensor, first[key])}
    assert moved <= declared
    assert any(key.startswith(f"predict.{head}.") for key in moved)
    unread = {key for key in declared if ".entity_" in key}  # the texts name no entities of a graph
    assert moved == declared - unread or not tune.alone  # a network may have parameters that no answer depends on
    assert start["trained_parameters"] == sum(parameters[key].numel() for key in declared)
    assert start["all_parameters"] == sum(parameter.numel() for parameter in parameters.values())
    model = open_run(out, device="cpu")
    assert model.recipe == trained.recipe
    assert model.recipe.tune == tune
    assert answers(model) == answers(trained)
    if tune.alone:
        assert (out / "weights.safetensors").stat().st_size < (base.folder / "weights.safetensors").stat().st_size
        assert answers(open_on(base, out)) == answers(trained)
    assert all(torch.equal(tensor, before[key]) for key, tensor in base.system.named_parameters())


def watched(make, models, first):
    """What makes the model that is trained; it also collects the model and its first weights."""

    def made(*words):
        models.append(make(*words))
        first.update({key: tensor.detach().clone() for key, tensor in models[0].system.named_parameters()})
        return models[0]

    return made
