"""The GPU's kernels give what the CPU's give. Skipped where there is no GPU."""

import pytest
import torch
from torch import nn

from tests.small import random_batch, spelled, vocabulary
from unmask import recipes
from unmask.contracts.case import without_dropout
from unmask.hide import Masked
from unmask.settings import flat
from unmask.train import Machine, Trainer
from unmask.train.cuda_graph import Graphed, GraphedGradients
from unmask.tree import tensors

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
# rows of random length are not recorded: each length would have its own recording
RECORDED = [name for name in recipes.names() if "random lengths" not in recipes.get(name, size="tiny").arrange.gives]


def batch_of(seed=0):
    """Rows that every recipe reads, with the spelling of words for ELMo."""
    return spelled(random_batch(rows=4, length=64, examples=3, seed=seed))


def first_loss(system, batch):
    return next(iter(system.step(batch, None)[0].values())).total


@pytest.mark.parametrize("name", recipes.names())
def test_packed_rows_in_bfloat16_on_the_gpu_equal_float32_on_the_cpu(name):
    recipe = recipes.get(name, size="tiny")
    system = recipe.system.build(recipe, vocabulary(), 0).eval()
    batch, counts = system.hide(batch_of())
    with torch.no_grad():
        expected = first_loss(system, batch)
        on_gpu, gpu_counts = system.cuda().hide(batch_of().to("cuda"))
        with torch.autocast("cuda", torch.bfloat16):
            found = first_loss(system, on_gpu).cpu()
            last = system.look(on_gpu).last.float().cpu()
        dense = system.cpu().look(batch).last
    assert torch.equal(on_gpu.ids.cpu(), batch.ids), "hiding must be the same on any device"
    where, expected_where = ((rows.decoder or rows).targets for rows in (on_gpu, batch))
    assert all(torch.equal(where[name].where.cpu(), targets.where) for name, targets in expected_where.items())
    assert all(gpu_counts[name].cpu() == count for name, count in counts.items())
    assert abs(found - expected) / expected < 5e-3
    real = batch.real
    assert (last - dense)[real].norm() / dense[real].norm() < 2e-2


@pytest.mark.parametrize("name", recipes.names())
def test_a_compiled_step_gives_the_loss_of_an_eager_one(name):
    recipe = recipes.get(name, size="tiny")
    system = recipe.system.build(recipe, vocabulary(), 0).cuda().eval()
    batch, _ = system.hide(batch_of().to("cuda"))
    with torch.autocast("cuda", torch.bfloat16):
        eager = first_loss(system, batch)
        system.compile_parts()
        compiled = first_loss(system, batch)
    assert abs(float(compiled - eager)) / float(eager) < 5e-3


@pytest.mark.parametrize("name", recipes.names())
def test_gradients_in_bfloat16_are_near_those_in_float32(name):
    """With as many tokens as in real training: the gradient of one token is small, and float16 would make it 0."""
    recipe = without_dropout(recipes.get(name, size="tiny"))
    batches = [spelled(random_batch(rows=64, length=128, examples=3, seed=1))]
    found = []
    for half in (False, True):
        trainer = Trainer(recipe.system.build(recipe, vocabulary(), 0), recipe.optimise, Machine("cuda", half=half), 0)
        trainer.gradients(batches, dict(recipe.schedule[0].weights), 1)
        found.append(torch.cat([p.grad.flatten() for p in trainer.system.parameters() if p.grad is not None]))
    assert torch.cosine_similarity(*found, dim=0) > 0.99


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_step_gives_the_losses_and_gradients_of_a_plain_one(name):
    recipe = recipes.get(name, size="tiny")
    found = {}
    for compiled in (False, True):
        trainer = Trainer(
            recipe.system.build(recipe, vocabulary(), 0).eval(),
            recipe.optimise,
            Machine("cuda", compiled=compiled, recorded=compiled),
            0,
        )
        for step in (1, 2):  # the second is replayed on other text, over gradients that stand there already
            batches = [batch_of(10 * step + i) for i in range(2)]
            means = trainer.gradients(batches, dict(recipe.schedule[0].weights), step)
        gradients = {n: p.grad for n, p in trainer.system.named_parameters() if p.grad is not None}
        found[compiled] = means, gradients
    (plain, expected), (recorded, got) = found[False], found[True]
    for loss in plain:
        # both are 0 where nothing is predicted: entities, in text without links
        assert abs(float(recorded[loss] - plain[loss])) <= 1e-4 * abs(float(plain[loss])), loss
    assert set(got) == set(expected)
    difference = sum(float((got[n] - expected[n]).square().sum()) for n in got) ** 0.5
    assert difference < 1e-3 * sum(float(expected[n].square().sum()) for n in got) ** 0.5


def test_a_recorded_step_draws_its_dropout_from_the_seed_of_the_step():
    recipe = recipes.get("bert", size="tiny")
    trainer = Trainer(
        recipe.system.build(recipe, vocabulary(), 0), recipe.optimise, Machine("cuda", half=True, recorded=True), 0
    )
    batch = batch_of()
    first, again, other = (float(trainer.gradients([batch], {}, step)["tokens"]) for step in (1, 1, 2))
    assert first == again
    assert first != other


def test_inputs_of_equal_shapes_and_other_values_or_names_get_their_own_recording():
    model, x = nn.Linear(3, 3).cuda(), torch.ones(2, 3, device="cuda")

    def work(inputs: dict) -> dict:
        found = model(inputs["x"] if "x" in inputs else -inputs["y"]).sum() * inputs["factor"]
        found.backward()
        return {"found": found.detach()}

    graphed = GraphedGradients(work, model)
    once, twice = (graphed({"x": x, "factor": factor})["found"] for factor in (1, 2))
    assert torch.equal(2 * once, twice)
    assert torch.equal(graphed({"y": -x, "factor": 1})["found"], once)
    assert len(graphed.recordings) == 3


@pytest.mark.parametrize("name", ["bert", "gpt2", "unilm", "char-transformer", "transformer-xl", "xlnet"])
def test_attention_weights_are_dropped_in_a_recorded_step_and_not_afterwards(name):
    """With half of them dropped and nothing else: the loss depends on the step; served, it is that of the fast kernels."""
    others = [n for n in flat(recipes.get(name)) if n.startswith("system") and n.endswith("dropout")]
    settings = [f"{n}=0.0" for n in others] + ["system.backbone.attention_dropout=0.5"]
    found = []
    for recipe in (recipes.get(name, size="tiny", settings=settings[:n]) for n in (len(settings), len(others))):
        system, machine = recipe.system.build(recipe, vocabulary(), 0), Machine("cuda", half=True, recorded=True)
        trainer, batch = Trainer(system, recipe.optimise, machine, 0), batch_of()
        weights = {n: w for n, w in recipe.schedule[0].weights.items() if isinstance(w, float)}
        losses = []
        for step in (1, 1, 2):
            trainer.memory.clear()
            losses.append(float(trainer.gradients([batch], weights, step)["tokens"]))
        system.eval()
        with torch.no_grad(), machine.autocast():
            served = float(system.step(system.hide(batch.to("cuda"))[0], None)[0]["tokens"].total)
        found.append((losses, served))
    (dropped, served), (plain, expected) = found
    assert dropped[0] == dropped[1] != dropped[2]
    assert plain[0] == plain[1]
    assert served == expected


@pytest.mark.parametrize("name", recipes.names())
def test_compiled_hiding_is_the_same_to_the_bit(name):
    recipe = recipes.get(name, size="tiny")
    system = recipe.system.build(recipe, vocabulary(), 0).cuda()
    batch = batch_of().to("cuda")
    eager, counts = system.hide(batch)
    torch._dynamo.reset()  # it keeps only a few versions of a function, and every recipe makes its own
    compiled, compiled_counts = torch.compile(system.hide, dynamic=False, fullgraph=True)(batch)
    for one, other in zip(tensors((eager, counts)), tensors((compiled, compiled_counts)), strict=True):
        assert torch.equal(one, other)


def assert_recorded_hiding_is_the_same(name, rules):
    """For other text and another progress than the recording was made with too."""
    recipe = recipes.get(name, size="tiny")
    system = recipe.system.build(recipe, vocabulary(), 0).cuda()
    recorded = Graphed(system.hide)
    for seed in (0, 1):
        progress = torch.full((), 0.3 * seed, device="cuda")
        batch = batch_of(seed).to("cuda").replace(progress=progress)
        for rule in rules:
            plain, again = tensors(system.hide(batch, rule)), tensors(recorded(batch, rule))
            assert all(torch.equal(one, other) for one, other in zip(plain, again, strict=True))
    assert len(recorded.recordings) == len(rules)


@pytest.mark.parametrize("name", recipes.names())
def test_recorded_hiding_is_the_same_to_the_bit(name):
    assert_recorded_hiding_is_the_same(name, [None])


def test_a_stage_that_hides_something_else_has_its_own_recording():
    assert_recorded_hiding_is_the_same("roberta", [None, Masked(budget=0.4), Masked(budget=0.3)])
