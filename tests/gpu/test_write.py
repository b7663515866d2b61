"""On a GPU, a decoder with recorded steps writes what it writes on a CPU, and learns as on a CPU. Skipped without a GPU."""

from dataclasses import replace

import pytest
import torch

from tests.convert.parts import SENTENCES, model_of, recipe_of, tokenizer
from tests.infer.parts import PROMPTS
from unmask import recipes
from unmask.contracts.case import make_case
from unmask.contracts.small_data import SmallData
from unmask.infer import Beams, Greedy, Model, Sampling, generate
from unmask.tasks import Write

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
WAYS = [Greedy(), Greedy(no_repeat=2), Sampling(0.8), Beams(3), Beams(4, 0.6, length_offset=5, least=6, no_repeat=2)]
SOURCES = [*PROMPTS[:2], SENTENCES[0]]


def decoder(folder) -> Model:
    return model_of(recipe_of("bart"), tokenizer("byte"), folder)


def second_text(folder) -> Model:
    """A masked model that writes a second text, as UniLM does."""
    base = model_of(recipe_of("bert"), tokenizer("wordpiece"), folder)
    return model_of(Write().recipe(base), base.tokenizer, folder)


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("made", [decoder, second_text])
def test_that_recorded_steps_write_what_plain_ones_write(made, how, tmp_path):
    """Twice: the second time with the recording of the first."""
    model = made(tmp_path)
    expected = [generate(model, SOURCES, tokens=24, sampling=how, seed=seed).value for seed in (0, 1)]
    model = replace(model, system=model.system.cuda(), device="cuda")
    for seed in (0, 1):
        assert generate(model, SOURCES, tokens=24, sampling=how, seed=seed).value == expected[seed]
    (kept,) = model.recordings.values()
    assert kept.graph is not None


def test_that_pairs_have_the_losses_and_gradients_of_a_cpu():
    """Packed rows of pairs, in the precision of training: the kernels for examples of different lengths are used."""
    case = make_case(recipes.get("transformer", size="tiny", settings=["system.backbone.dropout=0.0"]), SmallData())
    (way,) = case.ways
    rows, system = case.rows(way), case.system
    exact = system.step(system.hide(rows)[0])[0]["tokens"]
    with torch.autocast("cuda", torch.bfloat16):
        moved = system.cuda()
        found = moved.step(moved.hide(rows.to("cuda"))[0])[0]["tokens"]
    assert float(found.count) == float(exact.count)
    assert float(found.total) == pytest.approx(float(exact.total), rel=0.01)
