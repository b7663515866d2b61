"""When a vocabulary grows, old tokens keep their weights and scores, and a new row is the mean of its pieces."""

from __future__ import annotations

import pytest
import torch

from tests.small import random_batch, vocabulary
from unmask import recipes
from unmask.errors import UserError
from unmask.system import with_tokens
from unmask.train.checkpoint import unique

SIZE, PIECES = 200, [(5, 9), (17, 5, 101), (199, 198)]
CASES = [
    ("bert", ()), ("spanbert", ()), ("electra", ()), ("electra", ("system.shared=false",)), ("gpt2", ()), ("albert", ()),
    ("deberta", ()), ("xlnet", ()), ("unilm", ()), ("char-transformer", ()),
    ("electra", ("system.fill.tied=false",)),
]  # fmt: skip


@pytest.mark.parametrize("name, settings", CASES)
def test_old_rows_and_scores_stay_and_new_rows_are_means(name, settings):
    recipe = recipes.get(name, size="tiny", settings=settings)
    old = recipe.system.build(recipe, vocabulary(SIZE), 1).eval()
    with torch.no_grad():
        for parameter in old.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)  # biases too
    new = with_tokens(recipe, old, vocabulary(SIZE + len(PIECES)), PIECES).eval()
    before, after = unique(old), unique(new)
    assert before.keys() == after.keys()
    grown = [tensor for tensor in before if before[tensor].shape != after[tensor].shape]
    assert grown
    for tensor in before:
        assert torch.equal(after[tensor][: len(before[tensor])] if tensor in grown else after[tensor], before[tensor])
    for tensor in grown:
        assert after[tensor].shape == (SIZE + len(PIECES), *before[tensor].shape[1:])
        for number, pieces in enumerate(PIECES):
            mean = sum(before[tensor][piece] for piece in pieces) / len(pieces)
            torch.testing.assert_close(after[tensor][SIZE + number], mean)
    batch = random_batch(2, 24)
    with torch.no_grad():
        seen = [system.look(batch) for system in (old, new)]
        assert torch.equal(seen[0].last, seen[1].last)
        for head in (name for name, one in old.predict.items() if hasattr(one, "decode")):
            scores = [s.predict[head].decode(one, batch) for s, one in zip((old, new), seen, strict=True)]
            width = min(scores[0].shape[-1], scores[1].shape[-1])
            torch.testing.assert_close(scores[1][..., :width], scores[0])


def test_clusters_of_embeddings_are_refused_by_name():
    recipe = recipes.get("transformer-xl", size="tiny", variant="words", settings=["system.backbone.cutoffs=(50, 100)"])
    system = recipe.system.build(recipe, vocabulary(SIZE), 0)
    with pytest.raises(
        UserError, match="transformer-xl cannot grow, because the embeddings of its backbone are in clusters"
    ):
        with_tokens(recipe, system, vocabulary(SIZE + 1), [(5, 6)])


def test_a_tensor_that_grows_without_being_declared_is_refused(monkeypatch):
    recipe = recipes.get("bert", size="tiny")
    system = recipe.system.build(recipe, vocabulary(SIZE), 0)
    monkeypatch.setattr("unmask.predict.tokens.TokensModule.token_rows", ("weight",))
    with pytest.raises(UserError, match="tensor predict.tokens.bias depends on the vocabulary .* `token_rows`"):
        with_tokens(recipe, system, vocabulary(SIZE + 1), [(5, 6)])
