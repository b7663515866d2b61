"""The vector that a label is read from: the summary token, the mean, the largest values, or all three side by side."""

import pytest
import torch

from tests.adapt.made import base_of
from tests.contracts.every import case
from tests.small import random_batch
from unmask import predict
from unmask.adapt import adapt
from unmask.batch import Hidden
from unmask.data.examples import Laid, Text
from unmask.infer.model import Model, open_run
from unmask.infer.passes import batches, laid_out
from unmask.init_weights import InitWeights
from unmask.predict import Label
from unmask.tasks import Choose, Rank, Relation
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


@pytest.mark.parametrize("name", ["elmo", "cove", "bert", "gpt", "awd-lstm"])
def test_by_default_a_label_is_read_from_a_vector_that_depends_on_the_text_in_every_number(name, tmp_path):
    """At ELMo's summary token, one half of the vector has read only that token; CoVe's has the word vector of no word."""
    made = case(name)
    base = Model(made.build().eval(), made.recipe, made.tokenizer, tmp_path)
    recipe = Classify(labels=("a", "b"), texts=1).recipe(base)
    model = Model(recipe.system.build(recipe, made.tokenizer.vocabulary, 0).eval(), recipe, made.tokenizer, tmp_path)
    moved = {pool: _moved(model, pool) for pool in ("summary", "mean")}
    assert bool(moved["summary"].all()) == (recipe.predict["label"].pool == "summary")
    assert moved[recipe.predict["label"].pool].all()
    assert recipe.task.pool == recipe.predict["label"].pool
    asked = Classify(labels=("a", "b"), texts=1, pool="max").recipe(base)
    assert asked.predict["label"].pool == asked.task.pool == "max"
    others = {"choice": Choose(), "relation": Relation(labels=("a", "b"))}
    assert {made.recipe(base).predict[name].pool for name, made in others.items()} == {recipe.predict["label"].pool}
    assert Rank(lists=2).recipe(base).predict["choice"].pool == recipe.predict["label"].pool


@pytest.mark.parametrize("pool", ["summary", "mean"])
def test_a_choice_and_a_relation_read_the_vector_that_they_ask_for(pool):
    batch = random_batch(rows=3, length=24, examples=1)
    inside = torch.where(batch.example >= 0, 0, -1)
    batch = batch.replace(columns={"head": inside, "tail": inside})
    x = torch.randn(3, 24, 5, generator=torch.Generator().manual_seed(1))
    initial = InitWeights(deviation=0.5)
    heads = [predict.Choice(pool=pool, pooler=False), predict.Relation(classes=3, pool=pool)]
    choice, relation = (head.build(5, torch.empty(0), initial).eval() for head in heads)
    own = [x[row][batch.example[row] == 0] for row in range(3)]
    read = torch.stack([one[0] if pool == "summary" else one.mean(0) for one in own])
    torch.testing.assert_close(choice.decode(Hidden((x,)), batch).flatten(), choice.out(read).flatten())
    entity = relation.entity(torch.tanh(torch.stack([one.mean(0) for one in own])))
    expected = relation.out(torch.cat([relation.dense(torch.tanh(read)), entity, entity], 1))
    torch.testing.assert_close(relation.decode(Hidden((x,)), batch), expected)


def _moved(model: Model, pool: str) -> torch.Tensor:
    """D, which numbers of the vector of a text differ between two texts of as many words."""
    rows, _ = laid_out(model, Laid([Text("the doctor examined the report"), Text("a judge ignored every window")]))
    ((_, batch),) = batches(model, rows)
    with torch.no_grad():
        vectors = model.system.look(batch).last
    found = vectors.flatten(0, 1)[batch.summary] if pool == "summary" else vectors.mean(1)
    return found[0] != found[1]
