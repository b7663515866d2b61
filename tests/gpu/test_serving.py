"""The service on a GPU: answers are those of the Python API, whatever they are batched with."""

import asyncio

import numpy as np
import pytest
import torch

pytest.importorskip("prometheus_client", reason="the service is not installed")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

from tests.convert.parts import SENTENCES, model_of, recipe_of, tokenizer  # noqa: E402
from unmask import infer  # noqa: E402
from unmask.serving.call import Call  # noqa: E402
from unmask.serving.completions import Completions, completions  # noqa: E402
from unmask.serving.models import Models  # noqa: E402
from unmask.serving.service import Service  # noqa: E402


@pytest.fixture
def service(tmp_path):
    for name, kind in (("bert", "wordpiece"), ("gpt2", "gpt2")):
        infer.save_run(model_of(recipe_of(name), tokenizer(kind), tmp_path), tmp_path / name)
    made = Service(Models({name: tmp_path / name for name in ("bert", "gpt2")}, device="cuda"))
    made.engine.start()
    yield made
    made.engine.close()


def test_vectors_of_requests_at_once_are_those_of_the_api(service):
    served = service.models.get("bert")
    texts = [" ".join(SENTENCES[0].split()[: 1 + number % 9]) for number in range(60)]

    async def ask(text):
        return await service.embed(served, await service.tokens(served, [text], truncate=False))

    async def all_at_once():
        return await asyncio.gather(*map(ask, texts))

    found = np.concatenate(asyncio.run(all_at_once()))
    np.testing.assert_allclose(found, infer.embed(served.model, texts).value, atol=1e-3)


def test_generated_texts_are_those_of_the_api(service):
    body = Completions("gpt2", tuple(SENTENCES), max_tokens=6, temperature=0)
    found = asyncio.run(completions(Call(service, body)))
    expected = service.models.get("gpt2").model.generate(SENTENCES, tokens=6, greedy=True)
    assert [text + one["text"] for text, one in zip(SENTENCES, found["choices"], strict=True)] == expected
