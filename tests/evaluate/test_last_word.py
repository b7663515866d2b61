"""Last words: equal to loops over transformers' network; the answer is tokenised as in running text."""

import json
import math

import pytest
import torch

import unmask
from tests.command import works
from tests.convert.parts import SENTENCES
from tests.evaluate.parts import LENGTH, exported, language_model, log_probability
from tests.evaluate.test_sentence_scores import made
from unmask import evaluate, text
from unmask.errors import UserError
from unmask.evaluate.last_word import LastWord, _answer_tokens, evaluate_last_words
from unmask.infer.model import save_run

EXAMPLES = [
    LastWord("The cat sat on the", "mat"),
    LastWord("Birds fly\nover the old", "houses"),
    LastWord("rain", "été"),
    LastWord(" ".join(SENTENCES), "unbelievable"),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    home = tmp_path_factory.mktemp("last")
    made = language_model(home / "made")
    with torch.no_grad():
        made.system.backbone.embed.token.weight.mul_(3.0)  # so that some tokens are much likelier than others
    save_run(made, home / "run")
    return unmask.load(home / "run", device="cpu")


def by_hand(model, network, example):
    """The log-probability of the answer's tokens, and whether each is the likeliest. Tokens are cut by their bytes."""
    lines = f"{example.context} {example.answer}".split("\n")
    ids = [i for n, line in enumerate(lines) for i in model.tokenizer.encode(line + "\n" * (n + 1 < len(lines)))]
    first = next(i for i in range(len(ids), 0, -1) if model.tokenizer.decode(ids[:i]).rstrip() == example.context)
    ids, first = [model.tokenizer.role("sep"), *ids], first + 1
    cut = max(0, len(ids) - LENGTH)
    logs = [log_probability(network, ids[cut:i], ids[i]) for i in range(first, len(ids))]
    with torch.no_grad():
        best = [
            int(network(torch.tensor([ids[cut:i]])).logits[0, -1].argmax()) == ids[i] for i in range(first, len(ids))
        ]
    return sum(logs), len(logs), all(best)


def test_accuracy_and_perplexity_equal_transformers(model):
    network = exported(model, model.folder.parent / "hf")
    likeliest = []
    for context in ("The cat sat on", "Nobody knows why"):  # answers that the network would give itself
        ids = torch.tensor([[model.tokenizer.role("sep"), *model.tokenizer.encode(context)]])
        with torch.no_grad():
            scores = network(ids).logits[0, -1]
        order = (model.tokenizer.decode([int(i)]) for i in scores.argsort(descending=True))
        word = next(word for word in order if word.startswith(" ") and word.strip().isalpha())
        likeliest.append(LastWord(context, word.strip()))
    examples = [*EXAMPLES, *likeliest]
    expected = [by_hand(model, network, example) for example in examples]
    nats = -sum(log for log, _, _ in expected)
    found = evaluate_last_words(model, examples)
    assert (found["examples"], found["way"]) == (6, "last word")
    assert found["accuracy"] == pytest.approx(sum(right for _, _, right in expected) / 6)
    assert found["perplexity"] == pytest.approx(math.exp(nats / 6), rel=1e-4)
    assert found["perplexity_per_token"] == pytest.approx(math.exp(nats / sum(n for _, n, _ in expected)), rel=1e-4)
    assert list(found["notes"].values()) == [1]  # one context is cut


@pytest.mark.parametrize("sure", [True, False])
def test_an_answer_counts_only_if_all_of_its_tokens_are_the_likeliest(tmp_path, sure):
    model = made("char-transformer", tmp_path)
    with torch.no_grad():  # its answer is always "e"
        head = model.system.predict["tokens"]
        head.bias.index_fill_(0, torch.tensor(model.tokenizer.encode("e")), 1e4)
    found = evaluate_last_words(model, [LastWord("The cat sat", "eee" if sure else "eae")])
    assert found["accuracy"] == float(sure)


@pytest.mark.parametrize("kind", ["gpt2", "wordpiece", "unigram", "word"])
def test_the_tokens_of_an_answer_begin_in_it(tmp_path, kind):
    model = language_model(tmp_path, kind=kind)
    for answer in ("mat", "houses", "unbelievable"):
        (count,) = _answer_tokens(model, [LastWord("The cat sat on the", answer)])
        ids = model.tokenizer.encode(f"The cat sat on the {answer}")
        written = "".join(model.tokenizer.decode(ids[len(ids) - count :]).replace("##", "").split())
        assert written == answer
        assert 1 <= count < len(ids)


def test_a_space_of_its_own_belongs_to_the_context(tmp_path):
    model = made("char-transformer", tmp_path)
    assert isinstance(model.recipe.tokenizer, text.Bytes)
    with torch.no_grad():
        for parameter in model.system.parameters():
            parameter.zero_()
    found = evaluate_last_words(model, [LastWord("The cat sat on the", "mat")])
    assert found["perplexity"] == pytest.approx(model.tokenizer.vocabulary.size**3, rel=1e-4)  # three bytes


def test_the_file_decides_and_the_command_shows_the_scores(model, tmp_path):
    file = tmp_path / "last.jsonl"
    rows = [{"context": e.context, "answer": e.answer, "after": "."} for e in EXAMPLES[:3]]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    expected = evaluate_last_words(model, EXAMPLES[:3])
    assert json.loads(works("evaluate", model.folder, file, "--device", "cpu", "--json").out)[
        "perplexity"
    ] == pytest.approx(expected["perplexity"])
    assert "perplexity of an answer" in works("evaluate", model.folder, file, "--device", "cpu").out
    file.write_text('{"context": "a", "answer": "b", "after": ""}\n{"context": "a", "answer": " ", "after": ""}\n')
    with pytest.raises(UserError, match="last.jsonl, line 2: 'answer' must be a text, got ' '"):
        model.evaluate(file)


def test_a_masked_model_is_refused_with_what_to_do(tmp_path):
    file = tmp_path / "last.jsonl"
    file.write_text('{"context": "The cat sat on the", "answer": "mat", "after": "."}\n')
    for name in ("bert", "electra", "unilm", "xlnet"):
        with pytest.raises(
            UserError, match="does not predict the next token, .* use a model that reads from left to right"
        ):
            evaluate.evaluate_file(made(name, tmp_path), file)


def test_an_answer_that_does_not_fit_is_refused(model):
    with pytest.raises(UserError, match="an example: the answer .* must have between 1 and 23"):
        evaluate_last_words(model, [LastWord("The", "unbelievable" * 9)])
