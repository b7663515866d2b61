"""Numbers, several labels and ranking: files, metrics as sklearn and scipy compute them, losses by explicit loops."""

import json
import math

import numpy as np
import pytest
import torch
from scipy import stats

import unmask
from tests.adapt.made import base_of, loud
from tests.command import mistake, works
from unmask import metrics
from unmask.adapt import adapt, new_model
from unmask.data.examples import Text, rows_of_task
from unmask.data.pack_examples import batch_of
from unmask.errors import UserError
from unmask.infer import TaskReader, answer, open_run
from unmask.infer.model import save_run
from unmask.tasks import Multi, Number, Rank
from unmask.tasks._lists import lists_of
from unmask.tasks.classify import Classify, Columns, Example
from unmask.tasks.multi import LabelledText
from unmask.tasks.rank import Candidate

RANDOM = np.random.default_rng(0)


def test_correlations_are_those_of_scipy():
    a = RANDOM.integers(0, 6, 50) / 2  # with equal numbers
    b = a + RANDOM.normal(size=50)
    assert metrics.pearson(a, b) == pytest.approx(stats.pearsonr(a, b)[0])
    assert metrics.spearman(a, b) == pytest.approx(stats.spearmanr(a, b)[0])
    assert metrics.pearson([1, 2], [3, 3]) == 0.0


def test_scores_of_several_labels_are_those_of_sklearn():
    from sklearn.metrics import f1_score

    truth, found = (RANDOM.random((40, 5)) < share for share in (0.3, 0.4))
    truth[:, 4] = found[:, 4] = False  # a label that nobody has
    scores = metrics.several_labels(truth, found, "abcde")
    for average in ("micro", "macro"):
        assert scores[f"{average}_f1"] == pytest.approx(f1_score(truth, found, average=average, zero_division=0))
    assert scores["exact"] == pytest.approx(np.mean([list(t) == list(f) for t, f in zip(truth, found, strict=True)]))


def test_ranking_scores_are_those_of_sklearn_and_of_explicit_loops():
    from sklearn.metrics import ndcg_score

    for size in (1, 3, 30):
        scores, relevance = RANDOM.normal(size=size), RANDOM.integers(0, 3, size)
        relevance[RANDOM.integers(size)] = 1
        found = metrics.ranking(scores, relevance)
        if size > 1:
            assert found["ndcg_10"] == pytest.approx(ndcg_score([relevance], [scores], k=10))
        ranked = [relevance[i] for i in sorted(range(size), key=lambda i: -scores[i])]
        right, precisions = 0, []
        for place, one in enumerate(ranked, 1):
            if one > 0:
                right += 1
                precisions.append(right / place)
        assert found["map"] == pytest.approx(sum(precisions) / len(precisions))
        assert found["mrr"] == 1 / next(place for place, one in enumerate(ranked, 1) if one > 0)


def lines(path, rows):
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.mark.parametrize(
    "rows,kind",
    [
        ([{"text": "x", "label": 0.5}, {"text": "x", "label": 3.0}], "number"),
        ([{"text_a": "x", "text_b": "y", "label": 0.5}], "number"),
        ([{"text": "x", "label": 1.0}, {"text": "x", "label": 0.0}], "classify"),  # pandas writes whole numbers so
        ([{"text": "x", "label": 0.5}, {"text": "x", "label": 3}], "classify"),  # which says what is wrong
        ([{"text": "x", "label": "0.5"}], "classify"),
        ([{"text": "x", "labels": ["a"]}], "multi"),
        ([{"query": "x", "passage": "y", "label": 1}], "rank"),
        ([{"query": "x", "candidates": ["y"], "label": 0}], "rank"),
        ([{"tokens": ["x"], "tags": ["O"]}], "tag"),
        ([{"question": "x", "context": "y", "answers": []}], "span"),
        ([{"context": "x", "question": "x", "choices": ["y", "z"], "label": 0}], "choose"),
        ([{"source": "x", "target": "y"}], "write"),
        ([{"something": "x"}], None),
    ],
)
def test_the_columns_of_a_file_say_its_task(tmp_path, rows, kind):
    assert unmask.tasks.kind_of(lines(tmp_path / "t.jsonl", rows)) == kind


def test_numbers_in_named_columns_of_a_csv_are_numbers(tmp_path):
    (tmp_path / "t.csv").write_text("review,stars\ngood,4.5\nbad,1.0\n")
    assert unmask.tasks.kind_of(tmp_path / "t.csv", Columns.of("review", "stars")) == "number"
    assert unmask.tasks.kind_of(tmp_path / "t.csv") is None


@pytest.mark.parametrize(
    "task,row,expected",
    [
        (Number(), {"text": "x", "label": "high"}, "the label must be a number, got 'high'"),
        (Number(), {"text": "x", "label": float("nan")}, "the label must be a number, got nan"),
        (Number(), {"text": "x", "label": True}, "the label must be a number, got True"),
        (Number(), {"text": "x", "score": 1}, "there is no column 'label'; the columns are 'text', 'score'"),
        (Number(), {"text": " ", "label": 1}, "the text is empty"),
        (Multi(), {"text": "x", "labels": "a"}, 'needs "labels", a list .*got \'a\''),
        (Multi(), {"text": "x", "label": ["a"]}, "needs \"labels\".*the columns are 'text', 'label'"),
        (Multi(), {"text": "x", "labels": ["a", 0.5]}, "a label is a word or a whole number, got 0.5"),
        (Multi(), {"text": "x", "labels": ["a", "a"]}, '"labels" has a label twice'),
        (Rank(), {"query": "x", "label": 1}, "\"passage\" must be a text that is not empty, got None; the columns are 'query', 'label'"),
        (Rank(), {"query": "x", "passage": "y"}, '"label" says how relevant the passage is, a number from 0, got None'),
        (Rank(), {"query": "x", "passage": "y", "label": -1}, "a number from 0, got -1"),
        (Rank(), {"query": "x", "candidates": []}, '"candidates" must be a list'),
        (Rank(), {"query": "x", "candidates": ["y"]}, 'has "candidates" and no "label"'),
    ],
)  # fmt: skip
def test_a_wrong_row_is_named_with_its_file_and_line(tmp_path, task, row, expected):
    file = lines(tmp_path / "t.jsonl", [{}, row][1:])
    with pytest.raises(UserError, match=expected) as raised:
        task.read(file, None)
    assert str(raised.value).startswith(f"{file}, line 1")


def test_candidates_become_one_example_each(tmp_path):
    rows = [
        {"query": "q", "candidates": ["a", "b"], "label": 1, "id": 3},
        {"query": "r", "candidates": [{"text": "a", "label": 2}, {"text": "c", "label": 0}]},
        {"query": "s", "candidates": ["a", "b"], "label": [0, 1]},
    ]
    found, _ = Rank().read(lines(tmp_path / "t.jsonl", rows), None)
    assert [(one.query, one.passage, one.relevance) for one in found] == [
        ("q", "a", 0), ("q", "b", 1), ("r", "a", 2), ("r", "c", 0), ("s", "a", 1), ("s", "b", 1),
    ]  # fmt: skip
    assert found[0].row == {"query": "q", "label": 1, "id": 3, "passage": "a"}


EXAMPLES = {
    "number": (
        Number(),
        [Example(Text("the doctor"), "1.5"), Example(Text("a river"), "-2"), Example(Text("rain"), "4")],
    ),
    "multi": (
        Multi(),
        [LabelledText(Text("rain"), None, labels=("x", "y")), LabelledText(Text("a river"), None, labels=("z",))],
    ),
    "rank": (Rank(), [Candidate("who?", "the doctor", 2), Candidate("who?", "a river", 1), Candidate("x", "rain", 0)]),
}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_loss_is_that_of_an_explicit_loop(kind, tokenizers, tmp_path):
    task, some = EXAMPLES[kind]
    base = base_of("bert", tokenizers["wordpiece"], tmp_path / "base")
    task = task.learn(some)
    recipe = task.recipe(base)
    system = recipe.system.build(recipe, base.tokenizer.vocabulary, 0).eval()
    loud(system.predict["label"])
    rows, _ = rows_of_task(task.lay_out(some), base.tokenizer, recipe.layout, 48)
    batch, _ = system.hide(batch_of(rows, np.arange(len(some))))
    with torch.no_grad():
        hidden, _ = system.backbone(batch, None)
        scores = system.predict["label"].decode(hidden, batch).tolist()
        loss = system.step(batch)[0]["label"]
    if kind == "number":
        mean, spread = np.mean([1.5, -2, 4]), np.std([1.5, -2, 4])
        each = [(s[0] - (n - mean) / spread) ** 2 for s, n in zip(scores, [1.5, -2, 4], strict=True)]
    else:
        wanted = {"multi": [[1, 1, 0], [0, 0, 1]], "rank": [[1], [0.5], [0]]}[kind]
        yes = [[1 / (1 + math.exp(-one)) for one in row] for row in scores]
        each = [
            -sum(w * math.log(p) + (1 - w) * math.log(1 - p) for w, p in zip(*both, strict=True)) / len(both[0])
            for both in zip(wanted, yes, strict=True)
        ]
    assert float(loss.total) == pytest.approx(sum(each), rel=1e-4)
    assert float(loss.count) == len(some)


def test_a_model_learns_a_number_of_any_size(tokenizers, tmp_path):
    base = base_of("bert", tokenizers["wordpiece"], tmp_path / "base")
    some = [
        Example(Text(t), n)
        for t, n in (("the doctor", "1000"), ("a river", "3000"), ("rain", "1000"), ("a long bridge", "3000"))
    ]
    records = list(
        adapt(base, some, tmp_path / "run", task=Number(epochs=30, examples=4, rate=5e-3, dropout=0.0), dev=some)
    )
    assert records[-1]["baseline"] == {"label": "2000", "mse": 1e6}
    assert records[-1]["kept_epoch"]["dev_pearson"] > 0.9
    found = answer(open_run(tmp_path / "run", device="cpu"), ["a river"]).answers[0].number
    assert abs(found - 3000) < 500


def test_windows_of_a_long_text_are_classified_by_their_mean_vector(tokenizers, tmp_path):
    base = base_of("bert", tokenizers["wordpiece"], tmp_path / "base")
    some = [Example(Text("the doctor slept near the long bridge in the morning"), "a"), Example(Text("a river"), "b")]
    task = Classify(length=12, long="strides", stride=1.0, epochs=1, pooler=False, dropout=0.0).learn(some)
    recipe = task.recipe(base)
    system = recipe.system.build(recipe, base.tokenizer.vocabulary, 0).eval()
    loud(system.predict["label"])
    rows, notes = rows_of_task(task.lay_out(some), base.tokenizer, recipe.layout, 12)
    assert notes == {"texts longer than 12 tokens, read in windows": 1}
    batch, _ = system.hide(batch_of(rows, np.arange(2)))
    with torch.no_grad():
        hidden, _ = system.backbone(batch, None)
        found = system.predict["label"].decode(hidden, batch)
        vectors = hidden.last.flatten(0, 1)[batch.summary].view(2, -1, 16)
        used = batch.real.any(1).view(2, -1)
        head = system.predict["label"].out
        for i in range(2):
            real = [vectors[i, j] for j in range(used.shape[1]) if used[i, j]]
            torch.testing.assert_close(found[i], head(sum(real) / len(real)))
    assert used.sum(1).tolist()[1] == 1 < used.sum(1).tolist()[0]
    with pytest.raises(UserError, match="long=strides and orders=both cannot be combined"):
        Classify(long="strides", orders="both")


@pytest.mark.parametrize("kind", ["number", "multi", "rank"])
def test_each_kind_from_the_command_line(kind, tokenizers, tmp_path):
    save_run(base_of("bert", tokenizers["wordpiece"], tmp_path / "base"), tmp_path / "base")
    rows = {
        "number": [{"text_a": "x", "text_b": "rain", "label": 0.5}, {"text_a": "x", "text_b": "a river", "label": 4.0}],
        "multi": [{"text": "rain", "labels": ["a", "b"]}, {"text": "a river", "labels": []}],
        "rank": [
            {"query": "x", "candidates": ["rain", "a river"], "label": 1},
            {"query": "y", "passage": "rain", "label": 1},
        ],
    }[kind]
    file = lines(tmp_path / "t.jsonl", rows)
    said = works("adapt", tmp_path / "base", file, "--dev", file, "--out", tmp_path / "run", "--set", "epochs=1").err
    assert f"is read as --task {kind}" in said
    scores = json.loads(works("evaluate", tmp_path / "run", file, "--json").out)
    assert {
        "number": {"pearson", "spearman", "mse"},
        "multi": {"micro_f1", "macro_f1"},
        "rank": {"mrr", "map", "ndcg_10"},
    }[kind] <= set(scores)
    assert ("queries" in works("evaluate", tmp_path / "run", file).out) == (kind == "rank")
    works("predict", tmp_path / "run", file, "--out", tmp_path / "out.jsonl")
    found = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert {"number": "number", "multi": "predicted_labels", "rank": "score"}[kind] in found
    works("predict", tmp_path / "run", *(["rain"] if kind == "multi" else ["x", "rain"]))
    assert "leave --top out" in mistake("predict", tmp_path / "run", file, "--top", 2)


def test_several_labels_in_a_csv_are_a_list_in_json(tmp_path):
    (tmp_path / "t.csv").write_text('text;tags\nrain;"[""a"", ""b""]"\na river;[]\n')
    found, _ = Multi().read(tmp_path / "t.csv", Columns.of(None, "tags"))
    assert [one.labels for one in found] == [("a", "b"), ()]
    said = Multi().described(tmp_path / "t.csv", Columns.of(None, "tags"))
    assert said.endswith("is read with the delimiter semicolon and the quote \": text from 'text', label from 'tags'")


def test_a_list_holds_a_relevant_passage_and_less_relevant_ones_of_its_query():
    grades = [("a", 2), ("a", 0), ("b", 1), ("a", 1), ("a", 0), ("b", 0), ("c", 1), ("d", 0)]
    examples = [Candidate(query, str(number), float(grade)) for number, (query, grade) in enumerate(grades)]
    assert lists_of(examples, 2) == [(0, 1), (0, 3), (0, 4), (3, 1), (3, 4), (2, 5)]
    assert lists_of(examples, 3) == [(0, 1, 3), (0, 4), (3, 1, 4), (2, 5)]  # "c" and "d" have nothing to compare


def test_a_model_of_lists_learns_the_softmax_over_their_scores_and_ranks_each_passage(tokenizers, tmp_path):
    base = base_of("bert", tokenizers["wordpiece"], tmp_path)
    words = "river bridge window report".split()
    examples = [Candidate(q, f"the {w}", float(w == q)) for q in words for w in words]
    task = Rank(lists=4).learn(examples)
    recipe = task.recipe(base)
    laid = recipe.task.lay_out(examples)
    assert [len(one) for one in laid.readings] == [4] * 4
    model = new_model(base, recipe, tmp_path / "run", 0, fresh=False)
    loud(model.system.predict["choice"])
    answers = recipe.task.answer(TaskReader(model), examples).answers
    scores = np.array([one.score for one in answers]).reshape(4, 4)
    mine = np.stack([np.roll(row, -place) for place, row in enumerate(scores)])  # the relevant passage first
    expected = float(np.mean(np.log(np.exp(mine).sum(1)) - mine[:, 0]))
    assert TaskReader(model).losses(laid)["choice"] == pytest.approx(expected, rel=1e-4)
    assert [one.rank for one in answers[:4]] == (np.argsort(np.argsort(-scores[0])) + 1).tolist()


@pytest.mark.parametrize("wrong", [0, 1])
def test_a_list_of_one_passage_is_refused(wrong):
    with pytest.raises(UserError, match="lists must be none, or 2 or more"):
        Rank(lists=wrong)


def test_queries_without_anything_to_compare_are_refused():
    with pytest.raises(UserError, match="no query has both a relevant passage and a less relevant one"):
        Rank(lists=2).learn([Candidate("a", "x", 1.0), Candidate("b", "y", 0.0)])
