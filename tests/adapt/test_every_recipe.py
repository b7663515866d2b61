"""Every kind of task with every recipe that suits it: adapted for an epoch, opened again, scored and answered."""

import math

import pytest

from tests.adapt.made import bases_in
from tests.adapt.test_task import EXAMPLES
from unmask import recipes, tasks
from unmask.adapt import adapt
from unmask.comparison.job import main_score
from unmask.data.examples import rows_of_task
from unmask.evaluate import evaluate_examples
from unmask.infer import answer, open_run
from unmask.settings import override

SCORES = {  # what the best epoch is chosen by; `choose`, `classify` and `write` have tests of their own
    "tag": "f1", "span": "f1", "number": "pearson", "multi": "micro_f1", "rank": "mrr", "relation": "macro_f1",
}  # fmt: skip


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    return bases_in(tmp_path_factory.mktemp("bases"))


@pytest.mark.parametrize("name", recipes.names())
@pytest.mark.parametrize("kind", SCORES)
def test_every_kind_of_task_runs_with_every_recipe_that_suits_it(name, kind, bases, tmp_path):
    base, some = bases(name), EXAMPLES[kind]
    task = override(tasks.get(kind), ["epochs=1", "examples=2", "length=32"])
    records = list(adapt(base, some, tmp_path / "run", task=task, dev=some))
    assert math.isfinite(records[-1]["loss"])
    model = open_run(tmp_path / "run", device="cpu")
    scores = evaluate_examples(model, some)
    assert 0 <= scores[SCORES[kind]] <= 1 or kind == "number"
    assert records[-1]["kept_epoch"][f"dev_{SCORES[kind]}"] == pytest.approx(scores[SCORES[kind]])
    assert main_score(scores, model.recipe.task)["measure"] == SCORES[kind]
    found = answer(model, some).answers
    assert len(found) == len(some)
    assert all(one.columns(1) and one.as_json(1) for one in found)


@pytest.mark.parametrize("name", recipes.names())
def test_every_word_has_a_token_of_its_own_with_the_tokenizer_of_every_recipe(name, bases):
    base = bases(name)
    task = tasks.Tag().learn(EXAMPLES["tag"])
    rows, _ = rows_of_task(task.lay_out(EXAMPLES["tag"]), base.tokenizer, base.recipe.layout, 32)
    for i, sentence in enumerate(EXAMPLES["tag"]):
        places, tags = rows.columns["place"].values[i], rows.columns["tag"].values[i]
        assert places[places >= 0].tolist() == list(range(len(sentence.words)))
        assert [task.labels[tag] for tag in tags[tags >= 0]] == list(sentence.tags)
