"""Reading bit by bit gives what reading at once gives, at every place, for texts of different lengths beside each other."""

import pytest
import torch

from tests.convert.parts import SENTENCES, model_of, recipe_of, tokenizer
from tests.infer.parts import gpt2
from unmask.errors import UserError
from unmask.infer.batches import left_padded, one_more
from unmask.infer.next_token import NextToken
from unmask.see import LeftToRight
from unmask.tree import rows_of

CLOSE = {"atol": 1e-4, "rtol": 1e-4}


@pytest.fixture
def model(tmp_path):
    return gpt2(tmp_path)


def texts(model):
    return [model.tokenizer.encode(text)[:n] for text, n in zip(SENTENCES, (17, 3, 30, 1), strict=True)]


def alone(model, ids):
    with torch.no_grad():
        return model.system.look(left_padded([ids], 0))


@pytest.mark.parametrize("settings", [(), ("system.backbone.positions=Sinusoidal", "system.backbone.sharing=all"),
                                      ("system.backbone.norm=post", "system.backbone.segments=2"),
                                      ("system.backbone.positions=Rotary",),
                                      ("system.backbone.positions=Rotary(local_theta=50)",
                                       "system.backbone.local=Local(window=4, every=2)")])  # fmt: skip
@pytest.mark.parametrize("sizes", [(30,), (1,) * 30, (7, 1, 12, 10)])
def test_that_cached_equals_uncached_at_every_place_of_a_batch_of_mixed_lengths(sizes, settings, tmp_path):
    model = gpt2(tmp_path, *settings)
    rows = texts(model)
    batch = left_padded(rows, model.tokenizer.vocabulary.pad)
    state, found, begin = model.system.backbone.cache(len(rows), 30), [], 0
    for size in sizes:
        part = batch.replace(
            **{name: getattr(batch, name)[:, begin : begin + size] for name in ("ids", "example")},
            columns={name: column[:, begin : begin + size] for name, column in batch.columns.items()},
            segment=batch.segment[:, begin : begin + size],
            position=(batch.real[:, begin : begin + size].cumsum(1) - 1).clamp(min=0),
        )
        with torch.no_grad():
            hidden, state = model.system.read_on(part, state)
        found.append(hidden.layers)
        begin += size
    for layer in range(len(found[0])):
        together = torch.cat([layers[layer] for layers in found], 1)
        for row, ids in enumerate(rows):
            torch.testing.assert_close(together[row, -len(ids) :], alone(model, ids).layers[layer][0], **CLOSE)


def test_that_rows_can_be_chosen_and_go_on_apart(model):
    rows = texts(model)
    with torch.no_grad():
        _, state = model.system.read_on(left_padded(rows, 0), model.system.backbone.cache(len(rows), 32))
        chosen = rows_of(state, torch.tensor([2, 0, 2]))
        hidden, _ = model.system.read_on(one_more(torch.tensor([5, 6, 7])), chosen)
        untouched, _ = model.system.read_on(one_more(torch.tensor([8, 9, 10, 11])), state)
    for row, (parent, token) in enumerate(((2, 5), (0, 6), (2, 7))):
        torch.testing.assert_close(hidden.last[row, -1], alone(model, [*rows[parent], token]).last[0, -1], **CLOSE)
    for row, token in enumerate((8, 9, 10, 11)):
        torch.testing.assert_close(untouched.last[row, -1], alone(model, [*rows[row], token]).last[0, -1], **CLOSE)


def test_that_every_token_sees_something_padding_too(model):
    """A kernel may answer an empty view with what is not a number, and padding would spread it."""
    _, view, _ = model.system.backbone.cache(4, 30).take(LeftToRight().apply(left_padded(texts(model), 0)))
    assert view.mask.any(-1).all()


def test_that_training_is_given_no_state_and_keeps_none(model):
    with torch.no_grad():
        batch = left_padded([texts(model)[0]], 0)
        hidden, state = model.system.read_on(batch, None)
        assert state is None
        assert torch.equal(hidden.last, model.system.look(batch).last)


@pytest.mark.parametrize("cached", [True, False])
def test_that_a_model_that_sees_both_sides_is_never_read_part_by_part(cached, tmp_path):
    model = model_of(recipe_of("bert"), tokenizer("wordpiece"), tmp_path)
    with pytest.raises(UserError, match="does not read from left to right: use 'unmask fill'"):
        NextToken(model, cached)
