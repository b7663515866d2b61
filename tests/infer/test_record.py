"""A step that writes where the last one wrote, as a recording does, gives what a step that makes everything anew gives.

What a GPU adds, the recording itself, is in tests/gpu."""

import pytest

from tests.convert.parts import SENTENCES
from tests.infer.parts import PROMPTS, gpt2
from unmask.infer import Beams, Greedy, Sampling, generate, generation_loop, stream
from unmask.infer.cuda_graph import GraphedStep

WAYS = [Greedy(1.2), Sampling(top_k=30), Sampling(top_p=0.9), Beams(3), Beams(3, 0.5, 1.2)]


@pytest.fixture
def model(tmp_path):
    return gpt2(tmp_path, "system.backbone.length=32", ends=2.0)


@pytest.fixture
def in_place(monkeypatch):
    """Steps run as on a GPU, over and over in the same places, without a recording."""

    def use():
        monkeypatch.setattr(generation_loop, "records", lambda device: True)
        monkeypatch.setattr(GraphedStep, "_run", GraphedStep._forward)

    return use


@pytest.mark.parametrize("how", WAYS)
def test_that_writing_in_place_changes_nothing(how, model, in_place):
    prompts = [*PROMPTS[:2], SENTENCES[0]]
    expected = generate(model, prompts, tokens=70, sampling=how).value
    assert not model.recordings
    in_place()
    for _ in range(2):  # the second time with what was kept of the first
        assert generate(model, prompts, tokens=70, sampling=how).value == expected
        assert len(model.recordings) == 1


def test_that_a_recording_serves_only_what_it_was_made_for(model, in_place):
    in_place()
    first = generate(model, PROMPTS, tokens=5, sampling=Greedy()).value
    (kept,) = model.recordings.values()
    assert generate(model, ["The"], tokens=5, sampling=Greedy()).value[0].ids == generate(model, ["The"], tokens=5, sampling=Sampling(top_k=1)).value[0].ids  # fmt: skip
    generate(model, PROMPTS, tokens=5, sampling=Sampling())
    assert generate(model, PROMPTS, tokens=5, sampling=Greedy()).value == first
    assert kept not in model.recordings.values()
    (again,) = model.recordings.values()
    generate(model, PROMPTS[::-1], tokens=5, sampling=Greedy())
    assert again in model.recordings.values()


def test_that_two_streams_at_once_do_not_disturb_each_other(model, in_place):
    prompts = [SENTENCES[0], SENTENCES[1]]
    expected = ["".join(stream(model, prompt, tokens=40).value) for prompt in prompts]
    in_place()
    streams, found = [stream(model, prompt, tokens=40).value for prompt in prompts], ["", ""]
    for _ in range(60):
        for number, pieces in enumerate(streams):
            found[number] += next(pieces, "")
    assert found == expected
