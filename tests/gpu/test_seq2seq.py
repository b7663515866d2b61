"""An encoder and a decoder on a GPU: packed rows, gradients and decoding with a cache are those of the CPU."""

import pytest
import torch

from tests.small import random_batch, vocabulary
from unmask import recipes
from unmask.infer.batches import one_more
from unmask.settings import override

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
SHORTER = "hide=(Rewrite, Masked(units=Spans(of=Tokens, lengths=Poisson), budget=0.5, replace=Infill, at=none))"


def built(name: str, *settings: str):
    recipe = override(recipes.get(name, size="tiny"), ["system.backbone.dropout=0.0", *settings])
    return recipe.system.build(recipe, vocabulary(), 0).eval()


def rows(padding: int):
    return random_batch(rows=4, length=64, examples=3, padding=padding)


@pytest.mark.parametrize("padding", [0, 5])
@pytest.mark.parametrize("name, settings", [("bart", ()), ("bart", (SHORTER,)), ("mass", ())])
def test_the_decoder_and_its_gradients_in_bfloat16_equal_float32_on_the_cpu(name, settings, padding):
    found = []
    for device in ("cpu", "cuda"):
        system = built(name, *settings).to(device)
        batch, _ = system.hide(rows(padding).to(device))
        with torch.autocast("cuda", torch.bfloat16, enabled=device == "cuda"):
            loss = system.step(batch, None)[0]["tokens"]
            decoded = system.vectors(batch)[0].decoded
        (loss.total / loss.count).backward()
        gradients = torch.cat([p.grad.flatten().float().cpu() for p in system.parameters()])
        found.append((batch.to("cpu"), decoded.float().cpu(), gradients))
    (batch, dense, expected), (again, fast, got) = found
    assert torch.equal(batch.ids, again.ids)
    assert torch.equal(batch.decoder.ids, again.decoder.ids)
    real = batch.decoder.real
    assert (fast - dense)[real].norm() / dense[real].norm() < 2e-2
    assert torch.isfinite(got).all()
    assert (got - expected).norm() / expected.norm() < 5e-2


def test_a_decoder_with_a_cache_writes_the_vectors_of_the_whole_text():
    system = built("bart").cuda()
    batch, _ = system.hide(random_batch(rows=3, length=40, padding=6).to("cuda"))
    with torch.no_grad():
        whole = system.vectors(batch)[0].decoded
        state = system.backbone.read(batch, 34)
        for place in range(34):
            hidden, state = system.backbone(one_more(batch.decoder.ids[:, place]), state)
            assert torch.allclose(hidden.for_prediction[:, 0], whole[:, place], atol=1e-4)
