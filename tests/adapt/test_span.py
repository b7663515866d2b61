"""Finding answers: SQuAD and CMRC files, official scores, questions without an answer, texts longer than a row."""

import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import unmask
from tests.adapt.made import base_of, loud
from tests.command import mistake, works
from tests.convert.parts import model_of, recipe_of, tokenizer_for
from unmask.adapt import adapt
from unmask.axes import Window
from unmask.data.examples import rows_of_task
from unmask.data.pack_examples import batch_of
from unmask.errors import UserError
from unmask.infer import answer, open_run
from unmask.infer.model import save_run
from unmask.infer.passes import laid_out
from unmask.tasks import Choose
from unmask.tasks._answer_scores import exact, f1, scorer_of
from unmask.tasks._questions import Asked, read_questions
from unmask.tasks.span import Span


@pytest.mark.parametrize(
    "answer,right,same,score",
    [
        ("the Eiffel Tower", ["Eiffel Tower!"], 1, 1),  # articles and punctuation do not count
        ("An  eiffel tower", ["the EIFFEL tower"], 1, 1),
        ("in 1889, by Eiffel", ["1889"], 0, 2 / 5),  # 1 of 4 words, 1 of 1
        ("Eiffel built Eiffel", ["Eiffel"], 0, 2 / 4),  # a word counts as often as both have it
        ("tower eiffel", ["Eiffel Tower", "a tower"], 0, 1),  # the order does not count; the best of all answers does
        ("1889", ["1890", "1889"], 1, 1),
        ("Eiffel's", ["Eiffels"], 1, 1),
        ("the", ["a"], 1, 1),  # nothing is left of both
        ("", [], 1, 1),
        ("1889", [], 0, 0),
        ("", ["1889"], 0, 0),
    ],
)
def test_english_answers_are_scored_as_squad_scores_them(answer, right, same, score):
    assert exact(answer, right, "squad") == same
    assert f1(answer, right, "squad") == pytest.approx(score)


@pytest.mark.parametrize(
    "answer,right,same,score",
    [
        ("北京", ["北京"], 1, 1),
        ("《北京》。", ["北京"], 1, 1),  # marks do not count
        ("在北京", ["北京"], 0, 4 / 5),  # 2 of 3 characters, 2 of 2
        ("北京和上海", ["北上海"], 0, 4 / 8),  # the longest run has no gaps: 上海
        ("1889年", ["1889 年"], 0, 1),  # the pieces are 1889 and 年
        ("2018", ["2019"], 0, 0),
        ("ABC公司", ["abc公司", "别的"], 1, 1),
        ("约3.5米", ["3.5米"], 0, 4 / 5),
    ],
)
def test_chinese_answers_are_scored_as_cmrc_scores_them(answer, right, same, score):
    assert exact(answer, right, "cmrc") == same
    assert f1(answer, right, "cmrc") == pytest.approx(score)


def test_the_scorer_follows_the_language():
    assert scorer_of(["北京是首都", "上海", "Paris"]) == "cmrc"
    assert scorer_of(["Paris", "北京", "London", "Rome"]) == "squad"


SQUAD = {"data": [{"title": "t", "paragraphs": [{"context": "The doctor slept near London.", "qas": [
    {"id": "q1", "question": "Where?", "answers": [{"text": "London", "answer_start": 22}, {"text": "near London", "answer_start": 17}]},
    {"id": "q2", "question": "Why?", "answers": [], "is_impossible": True},
    {"id": "q3", "question": "Who?", "answers": [{"text": "doctor", "answer_start": 5}]},
    {"id": "q4", "question": "When?", "answers": [{"text": "never", "answer_start": 0}]},
]}]}]}  # fmt: skip
CMRC = [{"context_id": "c", "context_text": "北京是中国的首都。", "qas": [{"query_text": "首都是哪里？", "query_id": "c0", "answers": ["北京", "北京"]}], "title": "t"}]  # fmt: skip


def test_squad_and_cmrc_files_are_read_as_they_are(tmp_path):
    (tmp_path / "s.json").write_text(json.dumps(SQUAD))
    found, notes = read_questions(tmp_path / "s.json", labelled=True, strict=False)
    assert [asked.place for asked in found] == [(22, 28), None, (4, 10), None]
    assert [asked.known for asked in found] == [True, True, True, False]
    assert found[0].answers == ("London", "near London")
    assert found[0].where == f"{tmp_path / 's.json'}, question q1"
    assert list(notes.values()) == [2, 1]
    assert "'doctor' is said to start at 5, where the text has 'octor '" in str(notes)
    with pytest.raises(UserError, match="2 answers are not where the file says: .*q3.*q4.* leave --strict out"):
        read_questions(tmp_path / "s.json", labelled=True, strict=True)
    same = {"question": "Who?", "context": "The doctor slept.", "answers": [{"text": "doctor", "start": 5}] * 3}
    (tmp_path / "s.jsonl").write_text(json.dumps(same) + "\n")
    assert list(read_questions(tmp_path / "s.jsonl", labelled=True, strict=False)[1].values()) == [1]
    (tmp_path / "c.json").write_text(json.dumps(CMRC))
    ((asked,), notes) = read_questions(tmp_path / "c.json", labelled=True, strict=True)
    assert (asked.question, asked.place, asked.answers, dict(notes)) == ("首都是哪里？", (0, 2), ("北京", "北京"), {})
    assert unmask.tasks.kind_of(tmp_path / "c.json") == "span"


def test_answers_in_two_lists_are_read_as_a_list_of_answers(tmp_path):
    """As Hugging Face's data sets write SQuAD; no answer is two empty lists."""
    rows = [
        {
            "question": "Where?",
            "context": "The doctor slept near London.",
            "answers": {"text": texts, "answer_start": starts},
        }
        for texts, starts in ((["London", "near London"], [22, 17]), ([], []))
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (first, second), notes = Span().read(tmp_path / "t.jsonl", None)
    assert (first.answers, first.place) == (("London", "near London"), (22, 28))
    assert (second.answers, second.place, dict(notes)) == ((), None, {})


@pytest.mark.parametrize(
    "row,expected",
    [
        ({"question": "x", "context": "x", "answers": {"text": ["x"], "answer_start": []}}, "two lists of equal length"),
        ({"question": "x", "answers": []}, "needs \"question\" and \"context\".*got context=None, and the columns are 'question', 'answers'"),
        ({"question": " ", "context": "x", "answers": []}, "got question=' '"),
        ({"question": "x", "context": "x"}, 'needs "answers", a list such as'),
        ({"question": "x", "context": "x", "answers": [{"text": "x", "start": "0"}]}, "an answer is .*got {'text': 'x', 'start': '0'}"),
        ({"question": "x", "context": "x", "answers": [{"text": ""}]}, "an answer is"),
    ],
)  # fmt: skip
def test_a_wrong_question_is_named_with_its_file_and_line(tmp_path, row, expected):
    (tmp_path / "t.jsonl").write_text("\n" + json.dumps(row))
    with pytest.raises(UserError, match=expected) as raised:
        Span().read(tmp_path / "t.jsonl", None)
    assert str(raised.value).startswith(f"{tmp_path / 't.jsonl'}, line 2: ")


def test_another_json_file_is_refused(tmp_path):
    (tmp_path / "x.json").write_text('{"rows": []}')
    with pytest.raises(UserError, match="x.json is neither SQuAD nor CMRC JSON"):
        Span().read(tmp_path / "x.json", None)
    (tmp_path / "x.json").write_bytes('{"data": "é"}'.encode("latin-1"))
    with pytest.raises(UserError, match="x.json is not UTF-8"):
        Span().read(tmp_path / "x.json", None)


EXAMPLES = [
    Asked("who slept?", "the doctor slept near the long bridge", ("the doctor",), (0, 10)),
    Asked("where?", "the doctor slept near the long bridge", ("near the long bridge",), (17, 37)),
    Asked("when?", "a river", (), None),
    Asked("lost?", "a river", ("never",), None),  # its answer is not in the text
]


@pytest.mark.parametrize(
    "recipe,kind,length", [("bert", "wordpiece", 16), ("xlnet", "unigram", 24), ("gpt2", "byte-bpe", 24)]
)
def test_the_loss_is_that_of_an_explicit_loop_over_windows(recipe, kind, length, tokenizers, tmp_path):
    base = base_of(recipe, tokenizers[kind], tmp_path / "base")
    task = Span(length=length).learn(EXAMPLES)
    system = task.recipe(base).system.build(task.recipe(base), base.tokenizer.vocabulary, 0).eval()
    loud(system.predict["span"])
    rows, _ = rows_of_task(task.lay_out(EXAMPLES), base.tokenizer, base.recipe.layout, length)
    owners = rows.per_example["owner"].tolist()
    assert len(owners) > len(EXAMPLES)  # some texts have several windows
    batch = batch_of(rows, np.arange(len(rows)))
    batch, counts = system.hide(batch)
    with torch.no_grad():
        hidden, _ = system.backbone(batch, None)
        scores = system.predict["span"].decode(hidden, batch)
        loss = system.step(batch)[0]["span"]
    total = counted = 0.0
    for i, owner in enumerate(owners):
        asked, places = EXAMPLES[owner], batch.columns["characters"][i].tolist()
        if not asked.known:
            continue
        summary = int(batch.summary[i]) - i * batch.shape[1]
        inside = [t for t in range(batch.shape[1]) if batch.columns["context"][i, t] >= 0]
        pieces = {"".join(asked.context[a:b]) for a, b in (places[t] for t in inside)}
        assert pieces
        own = [t for t in inside if asked.place and places[t][0] < asked.place[1] and places[t][1] > asked.place[0]]
        whole = own and places[own[0]][0] == asked.place[0] and places[own[-1]][1] == asked.place[1]
        begin, end = (own[0], own[-1]) if whole else (summary, summary)
        allowed = sorted({*inside, summary})
        for side, right in ((0, begin), (1, end)):
            total -= F.log_softmax(scores[i, allowed, side], 0)[allowed.index(right)].item() / 2
        counted += 1
    assert float(loss.count) == float(counts["span"]) == counted
    assert float(loss.total) == pytest.approx(total, rel=1e-4)


def window(first, last, summary=0):
    """Five tokens of one letter each; the first token is the summary."""
    columns = {
        "context": np.array([-1, 0, 0, 0, 0]),
        "characters": np.array([[-1, -1], [0, 1], [2, 3], [4, 5], [6, 7]]),
    }
    return Window(np.array([first, last], float).T, columns, summary)


def test_the_best_span_is_the_answer_unless_none_is_better():
    asked = Asked("?", "北 京 上 海", where="x")
    one = window([5, 0, 3, 1, 0], [4, 9, 0, 2, 1])
    found = Span(no_answer=False)._found(asked, [one])
    assert found.text == "北"  # 0 + 9: the end of a span is not before its beginning
    assert found.best[0][1] == (0, 1)
    assert Span(no_answer=True)._found(asked, [one]).text == "北"  # 9 > 5 + 4 - 0: equal is not better
    better = window([6, 0, 3, 1, 0], [4, 9, 0, 2, 1])
    assert Span(no_answer=True)._found(asked, [better]).text == ""
    assert Span(no_answer=True, threshold=2)._found(asked, [better]).text == "北"
    assert Span(no_answer=True)._found(asked, [better, one]).text == "北"  # in another window there may be an answer
    assert Span(no_answer=False, longest=1)._found(asked, [window([0, 0, 9, 0, 0], [0, 0, 0, 9, 1])]).text in (
        "京",
        "上",
    )
    assert Span(no_answer=False, longest=2)._found(asked, [window([0, 0, 9, 0, 0], [0, 0, 0, 9, 1])]).text == "京 上"


def test_an_answer_has_whole_words():
    asked = Asked("?", "doctors slept", where="x")
    columns = {"context": np.array([-1, 0, 0]), "characters": np.array([[-1, -1], [0, 6], [6, 7]])}
    scores = np.array([[0, 0], [5, 0], [0, 5]], float)
    scores[1, 1] = 6
    assert Span(no_answer=False)._found(asked, [Window(scores, columns, 0)]).text == "doctors"


def test_a_model_learns_to_find_answers(tokenizers, tmp_path):
    base = base_of("bert", tokenizers["wordpiece"], tmp_path / "base")
    some = []
    for place in ("London", "the river", "the bridge", "the window"):
        for before in (
            "the doctor slept near ", "my teacher sold every valve near ", "near ", "my doctor slept near ", "the teacher slept near ",
        ):  # fmt: skip
            some.append(Asked("where?", before + place, (place,), (len(before), len(before) + len(place))))
    records = list(adapt(base, some, tmp_path / "run", task=Span(epochs=60, examples=12, rate=5e-3), dev=some))
    assert records[-1]["kept_epoch"]["dev_exact"] > 0.9
    model = open_run(tmp_path / "run", device="cpu")
    assert (model.recipe.task.no_answer, model.recipe.task.scorer) == (False, "squad")
    assert answer(model, [("where?", "my teacher slept near London")]).answers[0].text == "London"


def test_a_long_answer_at_a_wrong_place_is_quoted_with_both_quotes(tmp_path):
    answer_, context = (
        "risen by less than two percent per year, as they said",
        "Prices have risen by less than two percent.",
    )
    row = {"question": "How?", "context": context, "answers": [{"text": answer_, "start": 3}]}
    (tmp_path / "s.jsonl").write_text(json.dumps(row) + "\n")
    (said, _) = read_questions(tmp_path / "s.jsonl", labelled=True, strict=False)[1]
    assert f"'{answer_[:40]} ...' is said to start at 3, where the text has '{context[3:43]}'" in said


def test_finding_answers_from_the_command_line(tokenizers, tmp_path):
    save_run(base_of("spanbert", tokenizers["wordpiece"], tmp_path / "base"), tmp_path / "base")
    (tmp_path / "s.json").write_text(json.dumps(SQUAD))
    words = ("adapt", tmp_path / "base", tmp_path / "s.json", "--out", tmp_path / "run", "--set", "epochs=1")
    assert "2 answers are not where the file says" in mistake(*words, "--strict")
    said = works(*words, "--dev", tmp_path / "s.json").err
    assert "2 answers are not where the file says, and were looked for in the text" in said
    scores = json.loads(works("evaluate", tmp_path / "run", tmp_path / "s.json", "--json").out)
    assert {"exact", "f1", "exact_with_answer", "f1_without_answer"} <= set(scores)
    found = json.loads(
        works("predict", tmp_path / "run", "Where?", "The doctor slept near London.", "--json", "--top", 2).out
    )
    assert {"answer", "start", "end", "probability", "top"} <= set(found)
    works("predict", tmp_path / "run", tmp_path / "s.json", "--out", tmp_path / "out.csv")
    assert "give a question and a text" in mistake("predict", tmp_path / "run", "Where?")


@torch.no_grad()
@pytest.mark.parametrize("name,pool", [("bert", "summary"), ("elmo", "mean"), ("cove", "mean")])
def test_that_there_is_no_answer_is_read_from_a_vector_that_has_read_the_whole_text(name, pool, tmp_path):
    """The same fact decides for `choose` and `relation`."""
    base = model_of(recipe_of(name), tokenizer_for(recipe_of(name)), tmp_path)
    task = Span(no_answer=True)
    recipe = task.recipe(base)
    assert recipe.predict["span"].pool == Choose().recipe(base).predict["choice"].pool == pool
    model = model_of(recipe, base.tokenizer, tmp_path)
    asked = [Asked("a dog?", "the cat sat", ()), Asked("rain?", "Birds fly over the old houses", ("Birds",), (0, 5))]
    batch = batch_of(laid_out(model, task.lay_out(asked))[0], np.arange(2))
    head, hidden = model.system.predict["span"], look_at(model, batch)
    found, loss = head.decode(hidden, batch), 0.0
    for row, one in enumerate(asked):
        place = int(batch.summary[row]) - row * batch.shape[1]
        vectors = hidden.last[row, batch.real[row]]
        whole = hidden.last[row, place] if pool == "summary" else vectors.mean(0)
        none = head.out.weight @ whole + head.out.bias
        torch.testing.assert_close(found[row, place], none)
        inside = [t for t in range(batch.shape[1]) if batch.columns["context"][row, t] >= 0]
        own = [head.out.weight @ hidden.last[row, t] + head.out.bias for t in inside]
        torch.testing.assert_close(found[row, inside], torch.stack(own))
        for side, column in enumerate(("answer_begins", "answer_ends")):
            scores = torch.stack([none[side], *(score[side] for score in own)])
            right = 0 if not one.answers else 1 + [int(batch.columns[column][row, t]) >= 0 for t in inside].index(True)
            loss += float(F.cross_entropy(scores[None], torch.tensor([right]))) / 2
    total = head(hidden, batch.replace(counted=torch.ones(2)))
    assert float(total.total) == pytest.approx(loss, rel=1e-4)
    assert answer(model, asked).answers[0].best  # a model with any backbone answers


def look_at(model, batch):
    with torch.no_grad():
        return model.system.look(model.system.read(batch))
