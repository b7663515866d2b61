"""Attention weights: those of transformers for the same weights, and none for a network without attention."""

import pytest
import torch
from transformers import AutoModel

from tests.convert.parts import PARITY, SENTENCES, look, model_of, recipe_of, tokenizer_for
from unmask.convert import export_hf
from unmask.data.examples import Text
from unmask.errors import UserError
from unmask.infer import attention


def model(name, folder):
    recipe = recipe_of(name)
    return model_of(recipe, tokenizer_for(recipe), folder)


@pytest.mark.parametrize("name", ["bert", "gpt2", "modernbert", "deberta", "xlnet"])
def test_the_weights_are_those_of_transformers(name, tmp_path):
    ours = model(name, tmp_path)
    export_hf(ours, tmp_path / "hf")
    theirs = AutoModel.from_pretrained(tmp_path / "hf", attn_implementation="eager").eval()
    found = attention(ours, SENTENCES[0]).value
    batch, _ = look(ours, [Text(SENTENCES[0])])
    extra = {"token_type_ids": batch.segment} if name == "xlnet" else {}
    with torch.no_grad():
        expected = theirs(input_ids=batch.ids, output_attentions=True, **extra).attentions
    backbone = ours.recipe.system.backbone
    for mine, other in zip(found.layers[: backbone.layers], expected, strict=True):
        assert mine.shape == (backbone.heads, len(found.tokens), len(found.tokens))
        torch.testing.assert_close(mine, other[0], **PARITY)


def test_a_network_without_attention_is_refused(tmp_path):
    with pytest.raises(UserError, match="no attention layers"):
        attention(model("awd-lstm", tmp_path), SENTENCES[0])
