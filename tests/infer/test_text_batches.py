"""The fast way to batches of single texts gives the rows and the vectors of the usual way."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.contracts.every import case
from unmask import recipes
from unmask.data.examples import Laid, Text
from unmask.errors import UserError
from unmask.infer import Model
from unmask.infer.passes import laid_out, passes
from unmask.infer.text_batches import text_batches

TEXTS = ["the doctor slept", "rain", "a patient\n\nin the city \n", "the old engine sings " * 9, "É 雨 x"]


@pytest.mark.parametrize("name", recipes.names())
def test_every_recipe_reads_the_same_rows_as_in_the_usual_way(name, tmp_path):
    recipe, tokenizer = case(name).recipe, case(name).tokenizer
    model = Model(recipe.system.build(recipe, tokenizer.vocabulary, 0).eval(), recipe, tokenizer, tmp_path)
    rows, cut = laid_out(model, Laid([Text(text) for text in TEXTS]))
    wanted = {
        int(number): (
            batch.ids[i][batch.real[i]],
            batch.segment[i][batch.real[i]],
            hidden.last.flatten(0, 1)[batch.summary[i]],
        )
        for chosen, batch, hidden in passes(model, rows)
        for i, number in enumerate(chosen)
    }
    found, notes = text_batches(model, TEXTS)
    assert notes == cut
    seen = []
    for chosen, batch in found:
        with torch.no_grad():
            hidden = model.system.look(batch)
        for i, number in enumerate(chosen):
            ids, segment, summary = wanted[int(number)]
            assert torch.equal(batch.ids[i][batch.real[i]], ids)
            assert torch.equal(batch.segment[i][batch.real[i]], segment)
            assert torch.allclose(hidden.last.flatten(0, 1)[batch.summary[i]], summary, atol=1e-5)
            seen.append(int(number))
    assert sorted(seen) == list(range(len(TEXTS)))


def test_an_empty_text_is_named(tmp_path):
    recipe, tokenizer = case("bert").recipe, case("bert").tokenizer
    model = Model(recipe.system.build(recipe, tokenizer.vocabulary, 0), recipe, tokenizer, tmp_path)
    with pytest.raises(UserError, match="text number 2 of 3 is empty"):
        text_batches(model, ["a", " \n", "b"])


def test_rows_hold_no_more_padding_than_their_longest_text_needs(tmp_path):
    recipe, tokenizer = case("bert").recipe, case("bert").tokenizer
    model = Model(recipe.system.build(recipe, tokenizer.vocabulary, 0), recipe, tokenizer, tmp_path)
    for _, batch in text_batches(model, TEXTS)[0]:
        assert bool(batch.real.all(0).any())
        assert int(batch.real.sum(1).max()) == batch.shape[1]
    assert np.concatenate([chosen for chosen, _ in text_batches(model, TEXTS)[0]]).tolist() != [0, 1, 2, 3, 4]
