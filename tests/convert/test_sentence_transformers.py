"""sentence-transformers opens what is exported, and makes the same vectors."""

from __future__ import annotations

import numpy as np
import pytest

from tests.convert.parts import SENTENCES, model_of, recipe_of, tokenizer_for
from unmask.convert import export_sentence_transformers
from unmask.errors import UserError
from unmask.infer import Model, embed
from unmask.tasks import Embed

TEXTS = [*SENTENCES, "rain", "the cat " * 60]  # the last one is cut


def model_with(name: str, pool: str, folder) -> Model:
    recipe = recipe_of(name)
    base = model_of(recipe, tokenizer_for(recipe), folder / "base")
    return model_of(Embed(pool=pool, loss="negatives").recipe(base), base.tokenizer, folder / "run")


@pytest.mark.parametrize(
    "name,pool",
    [("bert", "mean"), ("bert", "summary"), ("bert", "max"), ("roberta", "mean"), ("roberta", "summary"), ("gpt2", "mean"),
     ("gpt2", "summary"), ("albert", "mean"), ("electra", "mean"), ("deberta", "mean"), ("modernbert", "mean")],
)  # fmt: skip
def test_sentence_transformers_makes_the_same_vectors(name, pool, tmp_path):
    from sentence_transformers import SentenceTransformer

    model = model_with(name, pool, tmp_path)
    made = export_sentence_transformers(model, tmp_path / "out")
    assert "modules.json" in made.files
    assert "vectors" not in made.left_out
    theirs = SentenceTransformer(str(tmp_path / "out"), device="cpu").encode(TEXTS)
    assert np.allclose(theirs, embed(model, TEXTS).value, atol=2e-5)


def test_what_sentence_transformers_cannot_compute_is_refused(tmp_path):
    with pytest.raises(UserError, match="no pooling with learned weights"):
        export_sentence_transformers(model_with("bert", "weighted", tmp_path), tmp_path / "out")
    recipe = recipe_of("bert")
    with pytest.raises(UserError, match="was not adapted to make vectors"):
        export_sentence_transformers(model_of(recipe, tokenizer_for(recipe), tmp_path), tmp_path / "out")
    assert not (tmp_path / "out").exists()
