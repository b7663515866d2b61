"""The vector that a label is read from: the summary token, the mean, the largest values, or all three side by side."""

import pytest
import torch

from tests.adapt.made import base_of
from tests.small import random_batch
from unmask.adapt import adapt
from unmask.batch import Hidden
from unmask.data.examples import Text
from unmask.infer.model import open_run
from unmask.init_weights import InitWeights
from unmask.predict import Label
from unmask.tasks.classify import Classify, Example


@pytest.mark.parametrize("pooler", [False, True])
@pytest.mark.parametrize("pool", ["summary", "mean", "max", "concat"])
def test_each_example_of_a_packed_row_has_its_own_pools(pool, pooler):
    batch = random_batch(rows=3, length=24, examples=2)
    x = torch.randn(3, 24, 5, generator=torch.Generator().manual_seed(1)) - 3  # largest values below 0 too
    x[batch.example < 0] = 99.0  # padding is never read
    head = Label(classes=3, pool=pool, pooler=pooler).build(5, torch.empty(0), InitWeights(deviation=0.5))
    found = head.decode(Hidden((x,)), batch)
    for row in range(3):
        for number in range(2):
            mine = x[row][batch.example[row] == number]
            one = {"summary": mine[0], "mean": mine.mean(0), "max": mine.max(0).values}
            read = torch.cat([one["summary"], one["max"], one["mean"]]) if pool == "concat" else one[pool]
            expected = head.out(torch.tanh(head.dense(read)) if pooler else read)
            torch.testing.assert_close(found[2 * row + number], expected)


@pytest.mark.parametrize("name", ["bert", "gpt2"])
@pytest.mark.parametrize("pool", ["max", "concat"])
def test_a_model_with_these_pools_is_trained_and_opened(name, pool, tokenizers, tmp_path):
    """Of bert, the pooler of the sentence objective has another shape than that of a concatenation, and is not taken."""
    base = base_of(name, tokenizers["wordpiece" if name == "bert" else "byte-bpe"], tmp_path / "base")
    examples = [Example(Text("the doctor"), "a"), Example(Text("near London"), "b")]
    for _ in adapt(base, examples, tmp_path / "run", task=Classify(epochs=1, pool=pool, pooler=name == "bert")):
        pass
    head = open_run(tmp_path / "run", device="cpu").system.predict["label"]
    first = head.out if head.dense is None else head.dense
    assert first.in_features == (48 if pool == "concat" else 16)
