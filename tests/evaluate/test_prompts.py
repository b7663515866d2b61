"""Tasks by prompt: scores equal to loops over transformers' network, and what a template and a file may hold."""

import json
import math

import numpy as np
import pytest
import torch

import unmask
from tests.command import mistake, works
from tests.convert.parts import SENTENCES, model_of, recipe_of, tokenizer
from tests.evaluate.parts import LENGTH, exported, language_model, log_probability
from unmask import evaluate
from unmask.errors import UserError
from unmask.infer.model import Model, save_run
from unmask.tasks import choose
from unmask.tasks.prompt import PromptQuestion, read
from unmask.text.template import Choice, Template

QUESTIONS = [
    {"animal": "cat", "choices": ["the mat", "a dog ran", "rain"], "answer": 2},
    {"animal": "dog", "choices": ["the river", "été"], "answer": "the river"},
    {"animal": "bird", "choices": ["hot", "over the old houses"], "answer": "1"},
]
PROMPT = "The {animal} sat: "


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Model:
    home = tmp_path_factory.mktemp("prompts")
    made = language_model(home / "run")
    save_run(made, home / "run")
    return made


@pytest.fixture(scope="module")
def network(model):
    return exported(model, model.folder.parent / "hf")


def lines(path, rows):
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    return path


def by_loop(network, before, answer) -> list[float]:
    return [log_probability(network, before + answer[:i], token) for i, token in enumerate(answer)]


def parts(model, prompt, choice):
    """The tokens of a prompt without the spaces at its end, and of what follows them."""
    before = model.tokenizer.encode(prompt.rstrip())
    whole = model.tokenizer.encode(prompt + choice)
    assert whole[: len(before)] == before
    return before, whole[len(before) :]


@pytest.mark.parametrize("normalise", ["token", "byte", "none"])
def test_choices_are_compared_as_loops_over_transformers_compare_them(model, network, tmp_path, normalise):
    file = lines(tmp_path / "q.jsonl", QUESTIONS)
    scoring = evaluate.Scoring(normalise=normalise, unconditional=True)
    found = evaluate.evaluate_prompts(model, file, prompt=PROMPT, scoring=scoring)
    end, right, right_without = [model.tokenizer.role("sep")], 0, 0
    for row, prediction, answer in zip(QUESTIONS, found["predictions"], (2, 0, 1), strict=True):
        scores, differences = [], []
        for choice in row["choices"]:
            before, tokens = parts(model, PROMPT.format(**row), choice)
            log = sum(by_loop(network, before, tokens))
            scores.append(log / {"token": len(tokens), "byte": len(choice.encode()), "none": 1}[normalise])
            differences.append(log - sum(by_loop(network, end, tokens)))
        assert prediction["scores"] == pytest.approx(scores, rel=1e-5)
        assert prediction["choice"] == row["choices"][int(np.argmax(scores))]
        assert prediction["answer"] == row["choices"][answer]
        right += int(np.argmax(scores)) == answer
        right_without += int(np.argmax(differences)) == answer
    assert found["accuracy"] == pytest.approx(right / 3)
    assert found["accuracy_unconditional"] == pytest.approx(right_without / 3)
    assert found["chance"] == pytest.approx((1 / 3 + 1 / 2 + 1 / 2) / 3)


def greedy(network, before, count) -> list[int]:
    ids = list(before)
    for _ in range(count):
        with torch.no_grad():
            ids.append(int(network(torch.tensor([ids])).logits[0, -1].argmax()))
    return ids[len(before) :]


def test_a_cloze_is_right_only_where_the_model_writes_the_very_answer(model, network, tmp_path):
    encode, decode = model.tokenizer.encode, model.tokenizer.decode
    easy = {word: decode(greedy(network, encode(word), 2)) for word in SENTENCES[0].split()}
    prompt = next(word for word, goes_on in easy.items() if encode(word + goes_on) == encode(word) + encode(goes_on))
    rows = [{"text": text, "answer": " houses every"} for text in ("The cat sat on the", prompt, "Nobody knows why")]
    rows[1]["answer"] = easy[prompt]
    found = evaluate.evaluate_prompts(model, lines(tmp_path / "q.jsonl", rows), prompt="{text}")
    assert [one["exact"] for one in found["predictions"]] == [False, True, False]
    assert found["exact"] == pytest.approx(1 / 3)
    logs = [by_loop(network, *parts(model, row["text"], row["answer"])) for row in rows]
    assert [one["log_likelihood"] for one in found["predictions"]] == pytest.approx(
        [sum(log) for log in logs], rel=1e-5
    )
    assert found["perplexity"] == pytest.approx(math.exp(-np.mean([sum(log) for log in logs])), rel=1e-4)
    assert found["perplexity_per_token"] == pytest.approx(math.exp(-np.mean(sum(logs, []))), rel=1e-4)


def test_an_answer_of_which_only_the_first_token_is_the_likeliest_is_not_exact(model, network, tmp_path):
    before = model.tokenizer.encode("The cat")
    (first,) = greedy(network, before, 1)
    answer = model.tokenizer.decode([first]) + "zq"
    assert model.tokenizer.encode("The cat" + answer)[len(before)] == first
    found = evaluate.evaluate_prompts(
        model, lines(tmp_path / "q.jsonl", [{"t": "The cat", "answer": answer}]), prompt="{t}"
    )
    assert found["exact"] == 0


def test_chinese_answers_follow_the_prompt_without_a_space(model, network, tmp_path):
    rows = [{"text": "很好看", "label": "好"}, {"text": "无聊", "label": "坏"}]
    found = evaluate.evaluate_prompts(
        model, lines(tmp_path / "q.jsonl", rows), prompt="choices：好，坏\n{text}：",
        scoring=evaluate.Scoring(normalise="none"),
    )  # fmt: skip
    for row, prediction in zip(rows, found["predictions"], strict=True):
        scores = [sum(by_loop(network, *parts(model, row["text"] + "：", choice))) for choice in "好坏"]
        assert prediction["scores"] == pytest.approx(scores, rel=1e-5)
    assert found["labels"] == ["好", "坏"]
    assert sum(map(sum, found["confusion"])) == 2
    assert not found["notes"]


def test_a_prompt_that_runs_into_a_word_is_told(model, tmp_path):
    file = lines(tmp_path / "q.jsonl", QUESTIONS)
    found = evaluate.evaluate_prompts(model, file, prompt="The {animal}:")
    assert [note for note in found["notes"] if "no space before their answer" in note]
    found = evaluate.evaluate_prompts(model, file, prompt="The {animal}: ")
    assert not found["notes"]


def test_a_token_across_prompt_and_answer_is_scored_with_the_answer(model, network, tmp_path):
    encode = model.tokenizer.encode
    prompt, choices = "The dog t", ["he", "o"]
    wholes = [encode(prompt + choice) for choice in choices]
    before = encode(prompt)
    assert wholes[0][: len(before)] != before  # " the" is one token
    shared = before[:-1]
    found = evaluate.evaluate_prompts(
        model, lines(tmp_path / "q.jsonl", [{"p": prompt, "choices": choices, "answer": 0}]), prompt="{p}",
        scoring=evaluate.Scoring(normalise="none"),
    )  # fmt: skip
    scores = [sum(by_loop(network, shared, whole[len(shared) :])) for whole in wholes]
    assert found["predictions"][0]["scores"] == pytest.approx(scores, rel=1e-5)
    assert [note for note in found["notes"] if "contains the beginning of the answer" in note]


def test_a_prompt_that_is_too_long_is_refused_or_cut_at_its_beginning(model, network, tmp_path):
    long = "The cat sat on the mat, and the dog ran away. " * 3
    file = lines(tmp_path / "q.jsonl", [{"text": long, "choices": ["the rain", "sun"], "answer": 1}])
    with pytest.raises(UserError, match=f"the model reads at most {LENGTH}: .* --cut-left"):
        evaluate.evaluate_prompts(model, file, prompt="{text}")
    found = evaluate.evaluate_prompts(
        model, file, prompt="{text}", scoring=evaluate.Scoring(normalise="none", cut_left=True)
    )
    both = [parts(model, long, choice) for choice in ("the rain", "sun")]
    room = LENGTH - max(len(answer) for _, answer in both)
    scores = [sum(by_loop(network, before[-room:], answer)) for before, answer in both]
    assert found["predictions"][0]["scores"] == pytest.approx(scores, rel=1e-5)
    assert [note for note in found["notes"] if "cut at their beginning" in note]
    endless = lines(tmp_path / "e.jsonl", [{"text": "a", "answer": "x y z w " * 9}])
    with pytest.raises(UserError, match="an answer has"):
        evaluate.evaluate_prompts(model, endless, prompt="{text}", scoring=evaluate.Scoring(cut_left=True))


def test_without_a_prompt_an_answer_begins_a_document(model, network, tmp_path):
    found = evaluate.evaluate_prompts(model, lines(tmp_path / "q.jsonl", [{"t": "", "answer": "rain"}]), prompt="{t}")
    log = sum(by_loop(network, [model.tokenizer.role("sep")], model.tokenizer.encode("rain")))
    assert found["log_likelihood"] == pytest.approx(log, rel=1e-5)


def test_a_template_is_plain_text_with_fields(tmp_path):
    file = tmp_path / "t.txt"
    file.write_text("choices: 1=good, 0 = bad\nReview: {text} {{{n}}}\nIt is \n", encoding="utf-8")
    template = Template.read(file)
    assert template.choices == (Choice("1", "good"), Choice("0", "bad"))
    assert template.fill({"text": "a {b}", "n": 3}, "line 1") == "Review: a {b} {3}\nIt is "
    assert Template.read(str(file)) == template
    with pytest.raises(UserError, match="line 4: the template needs {review}, .* it has text, label"):
        Template.read("{review}").fill({"text": "a", "label": "b"}, "line 4")
    for text, said in (
        ("{text", "cannot be read .* for a literal brace"), ("a}b{c}", "cannot be read .* for a literal brace"), ("{text!r}", "only the name of a field"),
        ("{a.b}", "only the name of a field"), ("{a:>9}", "only the name of a field"), ("{}", "only the name of a field"),
        ("no field", "neither a file nor a template"), ("choices: a\n{b}", "two choices"),
        ("choices: a, a\n{b}", "twice"), ("choices: a,,c\n{b}", "empty choice"),
    ):  # fmt: skip
        with pytest.raises(UserError, match=said):
            Template.read(text)
    with pytest.raises(UserError, match="no such template"):
        Template.read(tmp_path / "none.txt")


def answers(folder, prompt, *rows):
    return [q.answer for q in read(lines(folder / "q.jsonl", rows), Template.read(prompt))]


def test_a_label_is_one_of_the_names_that_the_template_gives_its_choices(tmp_path):
    def found(choices, *labels):
        rows = ({"text": "x", "label": label} for label in labels)
        return answers(tmp_path, f"choices: {choices}\n{{text}}", *rows)

    assert found("pos=great, neg=terrible", "neg", "pos") == [1, 0]
    assert found("1=great, 0=terrible", 1, 0, "1", "0") == [0, 1, 0, 1]
    assert found("0=terrible, 1=great", 1, 0) == [1, 0]
    for label in (0, "0", 1, "great", "Pos", True):
        with pytest.raises(
            UserError,
            match="line 1: the label must be the name of a choice of the template \\(pos, neg\\), got .* 0=terrible, 1=great",
        ):
            found("pos=great, neg=terrible", label)
    for row in ({}, {"label": None}, {"label": ""}):
        with pytest.raises(UserError, match='needs "label"; this one has only text$'):
            answers(tmp_path, "choices: None=bad, good\n{text}", {"text": "x"} | row)


def test_an_answer_is_an_index_or_one_of_the_choices(tmp_path):
    assert answers(tmp_path, "{q}", {"q": "?", "choices": ["2", "1", "0"], "answer": "0"}) == [2]
    question = read(
        lines(tmp_path / "q.jsonl", [{"q": "?", "choices": [" a", "b"], "answer": 0}]), Template.read("{q} x")
    )
    assert question == [PromptQuestion("? x", (" a", "b"), 0)]
    for rows, said in (
        ([{"q": "?", "choices": ["2", "1", "0"], "answer": 0}], "index and also the text of one of the choices"),
        ([{"q": "?", "choices": ["a", "b"], "answer": 2}], "index from 0 to 1, got 2"),
        ([{"q": "?", "choices": ["a", "b"], "answer": -1}], "index from 0 to 1, got -1"),
        ([{"q": "?", "choices": ["a"], "answer": 0}], "list of two texts or more"),
        ([{"q": "?", "choices": "ab", "answer": 0}], "list of two texts or more"),
        ([{"q": "?", "choices": ["a", ""], "answer": 0}], "a choice must be a text"),
        ([{"q": "?", "answer": 3}], '"answer" must be a text'),
        ([{"q": "?"}], 'an example needs "answer"'),
        ([{"q": ["?"], "answer": "a"}], "must be a text or a number"),
        ([{"q": "?", "answer": "a"}, {"q": "?", "choices": ["a", "b"], "answer": 0}], "mixes"),
        ([], "holds no examples"),
    ):
        with pytest.raises(UserError, match=said):
            answers(tmp_path, "{q}", *rows)


def test_a_file_of_choices_serves_both_to_adapt_and_to_ask(tmp_path):
    rows = [
        {"text": "?", "choices": ["a", "b", "c"], "label": 2},
        {"text": "?", "choices": ["a", "b"], "label": "b"},
        {"text": "?", "choices": ["1", "0"], "label": 0},
        {"text": "?", "choices": ["a", "b"], "label": 0, "answer": "a"},
        {"text": "?", "choices": ["a", "b"], "label": None, "answer": 1},
    ]
    assert answers(tmp_path, "{text}", *rows) == [2, 1, 0, 0, 1]
    assert [q.label for q in choose.read(lines(tmp_path / "c.jsonl", rows[:4]))] == [2, 1, 0, 0]
    for row, said in (
        (
            {"label": 0, "answer": 1},
            'line 1: "answer" is 1 and "label" is 0: they mean two different choices; give only one',
        ),
        ({"label": 2}, "the label must be the text of a choice or its number, 0 to 1; got 2"),
        ({"label": "1"}, "the label must be the text of a choice or its number, 0 to 1; got '1'"),
        ({"label": None}, 'has "choices" but no right one: give "answer" or "label"'),
        ({}, 'has "choices" but no right one: give "answer" or "label"'),
    ):
        with pytest.raises(UserError, match=said):
            answers(tmp_path, "{text}", {"text": "?", "choices": ["a", "b"]} | row)


def test_the_command_line_asks_and_python_gives_the_same(model, tmp_path):
    file = lines(tmp_path / "q.jsonl", [{"text": "The cat sat", "label": i % 2} for i in range(4)])
    (tmp_path / "p.txt").write_text("choices: 0=mat, 1=rain\n{text} on the \n")
    words = ("zero-shot", model.folder, file, "--prompt", tmp_path / "p.txt")
    found = json.loads(works(*words, "--normalise", "byte", "--unconditional", "--json").out)
    loaded = unmask.load(model.folder, device="cpu")
    again = loaded.zero_shot(file, prompt=tmp_path / "p.txt", normalise="byte", unconditional=True)
    assert found == again
    assert found["accuracy"] == 0.5  # the same answer to every question, and half of them are of each label
    shown = works(*words).out
    assert "accuracy by chance" in shown
    assert "truth in rows" in shown
    assert "normalise must be token, byte, none" in mistake(*words, "--normalise", "word")
    clozes = lines(tmp_path / "c.jsonl", [{"text": "The cat", "answer": " sat"}])
    assert "perplexity of an answer" in works("zero-shot", model.folder, clozes, "--prompt", "{text}").out
    assert "have no choices" in mistake("zero-shot", model.folder, clozes, "--prompt", "{text}", "--unconditional")


def test_a_model_that_sees_both_sides_is_refused(tmp_path):
    bert = model_of(recipe_of("bert"), tokenizer(), tmp_path / "bert")
    with pytest.raises(UserError, match="does not predict the next token: its 'see' part is Everything"):
        evaluate.evaluate_prompts(bert, lines(tmp_path / "q.jsonl", QUESTIONS), prompt=PROMPT)
    with pytest.raises(UserError, match="does not predict the next token"):
        evaluate.evaluate_text(bert, tmp_path / "q.jsonl")
