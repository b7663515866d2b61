"""What is asked of the network, and where."""

import pytest

from tests.explanation.given import PAIR, screen, tiny
from unmask import recipes
from unmask.errors import UserError
from unmask.explanation import explain
from unmask.text import Tokenizer


def test_electra_asks_a_generator_for_what_is_hidden_and_a_discriminator_about_every_token(
    trained: dict[str, Tokenizer],
) -> None:
    found = explain(tiny("electra"), PAIR, tokenizer=trained["electra"])
    asked = {question.by: question for question in found.questions}
    assert asked["generator"].places == tuple(target.place for target in found.targets)
    assert asked["discriminator"].places == tuple(range(len(found.tokens)))
    assert asked["discriminator"].weight == 50
    text = " ".join(screen(found, 200).split())
    assert "The generator predicts what is hidden" in text
    assert "predicts at every token: Whether each token is the original" in text
    assert text.count("‹?›") == len(found.targets) + 1
    hidden_only = recipes.get("electra", size="tiny", variant="hidden-only")
    few = explain(hidden_only, PAIR, tokenizer=trained["electra"])
    assert few.questions[-1].places == tuple(target.place for target in few.targets)
    assert few.variant == "hidden-only"


def test_spanbert_also_predicts_from_the_two_tokens_around_a_span(trained: dict[str, Tokenizer]) -> None:
    met = set()
    for visit in range(12):
        found = explain(tiny("spanbert"), PAIR, tokenizer=trained["spanbert"], visit=visit)
        hidden = {target.place for target in found.targets}
        for target in found.targets:
            left, right = target.place, target.place
            while left in hidden:
                left -= 1
            while right in hidden:
                right += 1
            inside = not found.tokens[left].special and not found.tokens[right].special
            assert target.around == ((left, right) if inside else None)
            met.add(inside)
            assert (f"{left} and {right}" in screen(found, 120)) or not inside
    assert met == {True, False}
    code = recipes.get("spanbert", size="tiny", variant="code")  # there this loss has no weight
    assert {t.around for t in explain(code, PAIR, tokenizer=trained["spanbert"]).targets} == {None}


@pytest.mark.parametrize("name", ["bert", "albert", "structbert"])
def test_the_sentence_task_is_told_in_words(name: str, trained: dict[str, Tokenizer]) -> None:
    recipe, met = tiny(name), set()
    for visit in range(16):
        found = explain(recipe, PAIR, tokenizer=trained[name], visit=visit)
        assert found.answers
        for answer in found.answers:
            met.add(answer.label)
            assert answer.meaning == recipe.arrange.answers[answer.label]
            assert f"“{answer.meaning}” (class {answer.label})" in " ".join(screen(found, 200).split())
    assert met == set(range(recipe.arrange.classes))


@pytest.mark.parametrize("name", ["albert", "structbert"])
def test_one_sentence_makes_no_pair(name: str, trained: dict[str, Tokenizer]) -> None:
    with pytest.raises(UserError, match="give two or more"):
        explain(tiny(name), "The doctor left.", tokenizer=trained[name])


def test_two_characters_ahead_every_layer_and_its_weight_are_told(trained: dict[str, Tokenizer]) -> None:
    explanation = explain(tiny("char-transformer"), "Snow fell.", tokenizer=trained["char-transformer"])
    texts = [token.text for token in explanation.tokens]
    for place, target in enumerate(explanation.targets):
        assert (target.at, target.place, target.text) == (place, place + 1, texts[place + 1])
        assert target.further == tuple(texts[place + 2 : place + 3])
    asked = {question.name: question for question in explanation.questions}
    assert {name: question.weight for name, question in asked.items()} == {
        "tokens": 1.0, "second": 0.5, "layer": 1.0, "layer_second": 0.5,
    }  # fmt: skip
    assert [len(texts) - len(asked[name].places) for name in asked] == [1, 2, 1, 2]
    choices = {choice.axis: choice.part for choice in explanation.choices}
    assert choices["weight layer"] == "InTurn (share 0.5, value 1)"
    assert "target ahead_2" in choices["predict layer_second"]
    assert "then" in screen(explanation)


def test_parts_that_cannot_be_trained_together_are_shown_and_told(trained: dict[str, Tokenizer]) -> None:
    changed = recipes.get("gpt2", size="tiny", settings=["see=Everything"])
    assert explain(changed, PAIR, tokenizer=trained["gpt2"]).misfit.endswith("set see=LeftToRight")
    assert explain(tiny("gpt2"), PAIR, tokenizer=trained["gpt2"]).misfit == ""
