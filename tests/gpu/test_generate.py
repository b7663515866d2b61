"""On a GPU, recorded steps write what plain ones write on a CPU. Skipped where there is no GPU."""

from dataclasses import replace

import pytest
import torch

from tests.convert.parts import SENTENCES
from tests.infer.parts import PROMPTS, gpt2
from unmask.infer import Beams, Greedy, Sampling, generate, stream

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
WAYS = [Greedy(), Greedy(1.2), Sampling(), Sampling(0.8, 30), Sampling(top_p=0.9), Beams(3), Beams(3, 0.5, 1.2)]


@pytest.mark.parametrize("how", WAYS)
def test_that_recorded_steps_write_what_plain_ones_write(how, tmp_path):
    """Twice: the second time with the recording of the first, and beyond the context both times."""
    model = gpt2(tmp_path, "system.backbone.length=32", ends=2.0)
    prompts = [*PROMPTS[:2], SENTENCES[0]]
    expected = [generate(model, prompts, tokens=70, sampling=how, seed=seed).value for seed in (0, 1)]
    model = replace(model, system=model.system.cuda(), device="cuda")
    for seed in (0, 1):
        assert generate(model, prompts, tokens=70, sampling=how, seed=seed).value == expected[seed]
    (kept,) = model.recordings.values()
    assert kept.graph is not None


def test_that_two_streams_at_once_do_not_disturb_each_other(tmp_path):
    model = gpt2(tmp_path)
    prompts = [SENTENCES[0], SENTENCES[1]]
    expected = ["".join(stream(model, prompt, tokens=40).value) for prompt in prompts]
    model = replace(model, system=model.system.cuda(), device="cuda")
    streams, found = [stream(model, prompt, tokens=40).value for prompt in prompts], ["", ""]
    for _ in range(60):
        for number, pieces in enumerate(streams):
            found[number] += next(pieces, "")
    assert found == expected


def test_that_half_precision_stays_close(tmp_path):
    model = gpt2(tmp_path)
    exact = generate(model, PROMPTS, tokens=3, sampling=Greedy()).value
    model = replace(model, system=model.system.cuda().bfloat16(), device="cuda")
    found = generate(model, PROMPTS, tokens=3, sampling=Greedy()).value
    assert sum(a.ids[0] == b.ids[0] for a, b in zip(exact, found, strict=True)) >= 3
