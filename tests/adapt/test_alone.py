"""Runs that hold only what was trained: what is in them, how they find their base, and several on one base in memory."""

import json
import shutil
from dataclasses import replace

import pytest
import torch

import unmask
from tests.adapt.made import base_of
from tests.adapt.test_every_way import small
from tests.command import mistake, works
from unmask import adapt as ways
from unmask import recipes
from unmask.adapt import adapt
from unmask.adapt.adapters import Adapters, Bottleneck
from unmask.adapt.lora import Lora
from unmask.data.examples import Text
from unmask.errors import UserError
from unmask.infer.model import open_on, open_run, save_run
from unmask.run import from_json, to_json
from unmask.settings import override
from unmask.system.tuned import LAST, put_in
from unmask.tasks.classify import Classify, Example
from unmask.tasks.write import Pair, Write
from unmask.train import checkpoint

TEXTS = ["the doctor opened the case", "every window near London", "three valves", "no evidence"]
EXAMPLES = [Example(Text(text), "ab"[i % 2]) for i, text in enumerate(TEXTS)]


@pytest.fixture
def base(tokenizers, tmp_path):
    made = base_of("bert", tokenizers["wordpiece"], tmp_path / "base")
    save_run(made, tmp_path / "base")
    return made


def tuned(base, out, way="adapters", *settings, seed=0, task=None, examples=EXAMPLES):
    tune = override(ways.get(way), settings)
    task = task or Classify(epochs=2, examples=2, rate=1e-2)
    for _ in adapt(base, examples, out, task=task, tune=tune, seed=seed):
        pass
    return out


def chances(model):
    return [list(one.probabilities.values()) for one in model.predict(TEXTS)]


@pytest.mark.parametrize("way", ["adapters", "lora", "mix", "head"])
def test_several_on_one_base_answer_as_the_runs_that_are_opened_separately(way, base, tmp_path):
    folders = [tuned(base, tmp_path / str(seed), way, seed=seed) for seed in range(3)]
    opened = unmask.load(tmp_path / "base", device="cpu")
    models = [opened.add(folder) for folder in folders]
    separate = [chances(unmask.load(folder, device="cpu")) for folder in folders]
    assert separate[0] != separate[1] != separate[2]
    for _ in range(2):  # in turn: each request may go to another one
        assert [chances(model) for model in models] == separate
    tables = {model.system.backbone.embed.token.weight.data_ptr() for model in (opened, *models)}
    assert len(tables) == 1, "the weights of the base are in memory once"
    before = checkpoint.unique(open_run(tmp_path / "base", device="cpu").system)
    assert all(torch.equal(tensor, before[name]) for name, tensor in checkpoint.unique(opened.system).items())


def test_a_run_holds_what_was_trained_and_nothing_else(base, tmp_path):
    names = set(checkpoint.read(tuned(base, tmp_path / "run") / "weights.safetensors"))
    parts = {"after_attention", "after_mlp", "attention_norm", "mlp_norm", "norm"}
    assert all(name.startswith("predict.label.") or parts & set(name.split(".")) for name in names)
    assert {"backbone.blocks.0.after_mlp.up.weight", "backbone.blocks.1.attention_norm.bias"} <= names
    found = json.loads((tmp_path / "run" / "base.json").read_text())
    assert found["path"] == str((tmp_path / "base").resolve())
    assert found["sha256"] == checkpoint.digest(tmp_path / "base" / "weights.safetensors")


def test_another_base_is_refused_and_both_are_named(base, tokenizers, tmp_path):
    run = tuned(base, tmp_path / "run")
    other = base_of("bert", tokenizers["wordpiece"], tmp_path / "other", "system.backbone.deviation=0.5")
    save_run(other, tmp_path / "other")
    with pytest.raises(UserError, match=r"run was tuned on .*base \(fingerprint .*but .*other has other weights"):
        open_on(replace(other, folder=tmp_path / "other"), run)
    shutil.rmtree(tmp_path / "base")
    shutil.move(tmp_path / "other", tmp_path / "base")  # the path is right, and the weights are not
    said = mistake("predict", run, "the doctor", "--device", "cpu")
    assert "run was tuned on" in said
    assert "has other weights (fingerprint" in said


def test_a_base_and_its_run_may_move_together_and_a_lost_base_says_what_to_do(base, tmp_path):
    (tmp_path / "old").mkdir()
    shutil.move(tmp_path / "base", tmp_path / "old" / "base")
    run = tuned(replace(base, folder=tmp_path / "old" / "base"), tmp_path / "old" / "run")
    before = chances(unmask.load(run, device="cpu"))
    shutil.move(tmp_path / "old", tmp_path / "new")
    assert chances(unmask.load(tmp_path / "new" / "run", device="cpu")) == before
    shutil.move(tmp_path / "new" / "base", tmp_path / "elsewhere")
    said = mistake("predict", tmp_path / "new" / "run", "the doctor", "--device", "cpu")
    assert "its base is not at" in said
    assert "write the new path of the base into" in said
    assert chances(unmask.load(tmp_path / "elsewhere", device="cpu").add(tmp_path / "new" / "run")) == before


def test_a_damaged_base_file_is_told(base, tmp_path):
    run = tuned(base, tmp_path / "run")
    (run / "base.json").write_text('{"path": 3}')
    assert "base.json is damaged" in mistake("predict", run, "the doctor", "--device", "cpu")


def test_a_base_that_was_never_saved_is_refused(tokenizers, tmp_path):
    base = base_of("bert", tokenizers["wordpiece"], tmp_path / "base")
    with pytest.raises(UserError, match="needs its base: save the base first"):
        tuned(base, tmp_path / "run")


def test_a_run_with_all_its_weights_needs_no_base(base, tmp_path):
    run = tuned(base, tmp_path / "run", "last", "layers=1")
    with pytest.raises(UserError, match="holds all its weights, so it needs no base"):
        unmask.load(tmp_path / "base", device="cpu").add(run)


def test_from_random_weights_all_weights_are_saved(base, tmp_path):
    for _ in adapt(base, EXAMPLES, tmp_path / "run", task=Classify(epochs=1), tune=Adapters(), fresh=True):
        pass
    assert not (tmp_path / "run" / "base.json").exists()
    assert chances(unmask.load(tmp_path / "run", device="cpu"))


def test_a_training_that_is_stopped_leaves_a_run_that_opens(base, tmp_path):
    records = list(adapt(base, EXAMPLES, tmp_path / "run", task=Classify(), tune=Adapters(), stop=lambda: True))
    assert records[-1]["stopped"]
    assert chances(unmask.load(tmp_path / "run", device="cpu"))


def test_a_tuned_network_with_more_modules_is_no_base_for_others(base, corpus, tmp_path):
    run = tuned(base, tmp_path / "run")
    model = unmask.load(run, device="cpu")
    with pytest.raises(UserError, match="was tuned with Adapters, which added modules .*: adapt the run that it was"):
        tuned(model, tmp_path / "next", "lora")
    with pytest.raises(UserError, match="was tuned with Adapters, which added modules .*: extend the run that it was"):
        model.extend([corpus], tmp_path / "next", tokens=5)
    with pytest.raises(UserError, match="was tuned with Adapters: continue from the run that it was tuned from"):
        unmask.pretrain("bert", corpus, tmp_path / "next", start=run, budget="1steps", device="cpu", progress=False)


def test_a_tuned_head_is_a_base_for_others(base, tmp_path):
    first = unmask.load(tuned(base, tmp_path / "first", "head"), device="cpu")
    second = unmask.load(tuned(first, tmp_path / "second", "adapters"), device="cpu")
    assert second.recipe.tune == Adapters()
    for _ in adapt(first, EXAMPLES, tmp_path / "full", task=Classify(epochs=1)):
        pass
    assert unmask.load(tmp_path / "full", device="cpu").recipe.tune is None


@pytest.mark.parametrize("name", ["bert", "gpt2", "xlnet", "modernbert", "deberta"])
def test_a_fresh_adapter_is_almost_the_identity_and_fresh_lora_is_it(name, tokenizers, tmp_path):
    before = vectors(small(name, tokenizers, tmp_path / "base"))
    for tune, most in ((Lora(), 0.0), (Adapters(), 2e-2), (Adapters(deviation=1e-6), 1e-5)):
        again = open_run(tmp_path / "base", device="cpu")
        put_in(again.system, tune)
        assert (vectors(again) - before).abs().max() <= most
        loosened(again.system, tune)
        assert (vectors(again) - before).abs().max() > 0.05, "what was added is read"


def vectors(model):
    return torch.from_numpy(unmask.Model.of(model).embed(TEXTS))


def loosened(system, tune):
    """Give what was added weights that are far from 0."""
    random = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name in tune.trained(system, "", LAST):
            if "norm" not in name:
                parameter = dict(system.named_parameters())[name]
                parameter.add_(torch.randn(parameter.shape, generator=random))


def test_a_bottleneck_is_two_small_layers_and_the_input():
    torch.manual_seed(0)
    adapter, x = Bottleneck(6, 2, 0.5), torch.randn(3, 6)
    for row, out in zip(x.tolist(), adapter(x).tolist(), strict=True):
        inner = [sum(w * v for w, v in zip(weights, row, strict=True)) for weights in adapter.down.weight.tolist()]
        inner = [z * 0.5 * (1 + torch.erf(torch.tensor(z / 2**0.5)).item()) for z in inner]
        more = [sum(w * v for w, v in zip(weights, inner, strict=True)) for weights in adapter.up.weight.tolist()]
        assert out == pytest.approx([v + m for v, m in zip(row, more, strict=True)], abs=1e-6)


@pytest.mark.parametrize("name", ["bert", "roberta", "gpt2", "xlnet", "modernbert", "deberta", "electra"])
@pytest.mark.parametrize("way", ["adapters", "lora"])
def test_under_five_percent_of_the_parameters_train_at_base(name, way):
    recipe, tune, system = recipes.get(name, size="base"), ways.get(way), torch.nn.Module()
    with torch.device("meta"):
        system.backbone = recipe.system.backbone.build(recipe.tokenizer.vocab, "everything")
        tune.put_in(system)
    sizes = {key: parameter.numel() for key, parameter in system.named_parameters()}
    head = 768 * 768 + 768 + 2 * 768 + 2  # a pooler and two classes
    trained = sum(sizes[key] for key in tune.trained(system, "", 1)) + head
    assert trained < 0.05 * sum(sizes.values())


def test_a_model_that_writes_is_tuned_too(base, tmp_path):
    pairs = [Pair("the doctor slept", "he slept"), Pair("a river froze", "it froze")]
    for way in ("adapters", "lora", "last"):
        tuned(base, tmp_path / way, way, task=Write(epochs=1), examples=pairs)
        assert isinstance(unmask.load(tmp_path / way, device="cpu").predict("the doctor")[0].text, str)


def test_dropout_and_scale_of_lora_are_those_of_the_paper(base):
    put_in(base.system, tune := Lora(rank=2, alpha=6.0, projections=("key", "down")))
    loosened(base.system, tune)
    block = base.system.backbone.blocks[0]
    x = torch.randn(3, 16, generator=torch.Generator().manual_seed(0))
    (one,) = tune.factors(base.system)["backbone.blocks.0.attention.qkv.weight"]
    plain = torch.nn.functional.linear(x, block.attention.qkv.weight, block.attention.qkv.bias)
    expected = plain.clone()
    expected[:, 16:32] += (6.0 / 2) * x @ one.down.T @ one.up.T
    torch.testing.assert_close(block.attention.qkv(x), expected)
    names = [f"backbone.blocks.{i}.{layer}.weight" for i in range(2) for layer in ("attention.qkv", "mlp.down")]
    assert sorted(tune.factors(base.system)) == sorted(names)


def test_a_recipe_with_a_way_of_tuning_is_the_same_after_json(base):
    for tune in (None, Lora(rank=3, projections=("out",)), Adapters(size=5), ways.get("ulmfit"), ways.get("siatl")):
        recipe = base.recipe.replace(tune=tune)
        assert from_json(to_json(recipe)) == recipe
    old = json.loads(to_json(base.recipe))
    assert old.pop("tune") is None
    assert from_json(json.dumps(old)).tune is None, "older files have no `tune`"


def test_the_command_line_names_the_way_its_values_and_the_count(base, tmp_path):
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps({"text": e.text.a, "label": e.label}) for e in EXAMPLES))
    words = ("adapt", tmp_path / "base", tmp_path / "t.jsonl", "--device", "cpu", "--set", "epochs=1", "--overwrite")
    words = (*words, "--out", tmp_path / "run", "--tune")
    ran = works(*words, "lora", "--set", "tune.rank=2", "--set", "tune.projections=('query',)")
    trained = 2 * (2 * 16 + 16 * 2) + (16 * 16 + 16) + (2 * 16 + 2)  # both layers, the dense layer, the output
    whole = sum(parameter.numel() for parameter in base.system.backbone.parameters()) + trained
    assert f"; trains {trained:,} of {whole:,} parameters" in ran.err.splitlines()[0]
    assert unmask.load(tmp_path / "run", device="cpu").recipe.tune == Lora(rank=2, projections=("query",))
    assert works("predict", tmp_path / "run", "the doctor").out
    assert "unknown way of tuning 'lorra': did you mean lora" in mistake(*words, "lorra")
    assert "unknown setting 'rang': did you mean rank" in mistake(*words, "lora", "--set", "tune.rang=2")
    assert "tune.rank=2 is a value of a way of tuning, and full has none" in mistake(
        *words, "full", "--set", "tune.rank=2"
    )
    assert "tune.projections names sideways, but the network has down, key, out" in mistake(
        *words, "lora", "--set", "tune.projections=('sideways',)"
    )
    assert "tune.rank must be 1 or more, got 0" in mistake(*words, "lora", "--set", "tune.rank=0")
    assert "tune.size must be none or 1 or more, got 0" in mistake(*words, "adapters", "--set", "tune.size=0")
    assert "lora" in works("adapt", "--help").out
