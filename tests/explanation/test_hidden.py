"""What is hidden, as which unit and how, is what the parts did that train."""

import pytest
import torch

from tests.explanation.given import CHINESE, MASKED, NAMES, PAIR, screen, tiny
from unmask import explanation as module
from unmask import system
from unmask.axes import rules
from unmask.explanation import explain
from unmask.explanation.hidden_units import Made
from unmask.explanation.records import shown
from unmask.system.tracks import hide_tracks
from unmask.text import Tokenizer


@pytest.mark.parametrize("text", [PAIR, CHINESE])
@pytest.mark.parametrize("name", NAMES)
def test_targets_and_hidden_tokens_are_those_of_the_batch(
    name: str, text: str, trained: dict[str, Tokenizer], made: list[Made]
) -> None:
    tokenizer = trained[name]
    explanation = explain(tiny(name), text, tokenizer=tokenizer, visit=1)
    batch = made[0].batch
    known = (batch.decoder or batch).targets
    both = [known[side] for side in ("tokens", "previous") if side in known]
    where, at, ids, start, end, weight = (
        torch.cat([getattr(one, field) for one in both]) for field in ("where", "at", "ids", "start", "end", "weight")
    )
    real = torch.nonzero(weight)[:, 0]
    spelled = {i: module.extract._spell(tokenizer, i) for i in {*ids.tolist(), *batch.ids[0].tolist()}}
    assert [target.place for target in explanation.targets] == where[real].tolist()
    assert [target.at for target in explanation.targets] == at[real].tolist()
    assert [target.text for target in explanation.targets] == [spelled[i] for i in ids[real].tolist()]
    assert [target.span for target in explanation.targets] == list(
        zip(start[real].tolist(), end[real].tolist(), strict=True)
    )
    hidden = {place: token.original for place, token in enumerate(explanation.tokens) if token.hidden}
    expected = {target.place: target.text for target in explanation.targets} if name in MASKED else {}
    assert hidden == expected or explanation.moved
    assert [token.text for token in explanation.tokens] == [spelled[i] for i in batch.ids[0][batch.real[0]].tolist()]


@pytest.mark.parametrize("name", NAMES)
def test_a_row_is_hidden_as_training_hides_it(name: str, trained: dict[str, Tokenizer], made: list[Made]) -> None:
    recipe, vocabulary = tiny(name), trained[name].vocabulary
    joined = PAIR.replace("She", "However, she")  # a task needs a connective
    for track, choices in recipe.all_tracks(recipe.schedule[-1]).items():
        explain(recipe, joined, track=track, tokenizer=trained[name])
        row = made[-1].before.replace(tracks=((track, 1),))
        trains = hide_tracks({track: choices}, row, vocabulary, 0, {track: system.asked(recipe, choices)})
        pairs = {f: (getattr(trains, f), getattr(made[-1].batch, f)) for f in ("ids", "segment", "rank", "counted")}
        for targets, found in (
            ((trains.decoder or trains).targets, (made[-1].batch.decoder or made[-1].batch).targets),
        ):
            assert targets.keys() == found.keys()
            pairs |= {
                f"{n}.{f}": (getattr(targets[n], f), getattr(found[n], f)) for n in targets for f in vars(found[n])
            }
        assert [field for field, (first, second) in pairs.items() if not torch.equal(first, second)] == []


def test_a_token_that_the_place_before_it_predicts_is_shown_at_its_own_place(trained: dict[str, Tokenizer]) -> None:
    recipe, same = tiny("bert", "hide.at=before"), tiny("bert")
    for visit in range(4):
        found, usual = (explain(r, PAIR, tokenizer=trained["bert"], visit=visit) for r in (recipe, same))
        assert found.tokens == usual.tokens
        assert found.units == usual.units
        assert [(t.place, t.at) for t in found.targets] == [(t.place, t.place - 1) for t in usual.targets]
        assert [q.places for q in found.questions if q.name == "tokens"] == [tuple(t.at for t in found.targets)]
        lines = [line.split() for line in screen(found, 120).splitlines()]
        for target in found.targets:
            reads = shown(found.tokens[target.at].text)
            assert any(line[:2] == [str(target.at), reads] and line[-1] == str(target.place) for line in lines)


def test_a_token_that_no_place_can_predict_is_not_hidden(trained: dict[str, Tokenizer]) -> None:
    recipe = tiny("roberta", "layout=a [SEP] b [SEP]", "hide.at=before", "hide.budget=1.0", "hide.replace.mask=0.9")
    found = explain(recipe, "Snow fell.", tokenizer=trained["roberta"])
    assert found.tokens[0].hidden is None
    assert any(token.hidden == "mask" for token in found.tokens)
    assert 0 not in [target.place for target in found.targets]


@pytest.mark.parametrize("name", MASKED)
def test_every_hidden_token_belongs_to_one_unit_and_is_hidden_in_its_own_way(
    name: str, trained: dict[str, Tokenizer]
) -> None:
    mask = trained[name].token(trained[name].role("mask"))
    for visit in range(6):
        explanation = explain(tiny(name), PAIR, tokenizer=trained[name], visit=visit)
        covered = [place for unit in explanation.units for place in range(unit.start, unit.end + 1)]
        assert covered == sorted(target.place for target in explanation.targets)
        assert {(unit.start, unit.end) for unit in explanation.units} == {t.span for t in explanation.targets}
        for number, unit in enumerate(explanation.units):
            tokens = explanation.tokens[unit.start : unit.end + 1]
            ways = {token.hidden for token in tokens}
            assert ways == {unit.how} if unit.how != "mixed" else len(ways) > 1
            assert all((token.text == mask) == (token.hidden == "mask") for token in tokens)
            assert {token.unit for token in tokens} == {number}
            assert len({token.word for token in tokens}) == unit.words
        assert all((token.hidden is None) == (token.unit == -1) for token in explanation.tokens)


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_hidden_tokens_say_how_they_are_hidden(name: str, trained: dict[str, Tokenizer]) -> None:
    mask = trained[name].token(trained[name].role("mask"))
    ways = set()
    for visit in range(12):
        for token in explain(tiny(name), PAIR, tokenizer=trained[name], visit=visit).tokens:
            ways.add(token.hidden)
            assert (token.text == mask) == (token.hidden == "mask")
            assert (token.text != token.original) == (token.hidden in ("mask", "random"))
            assert not (token.special and token.hidden)
    assert ways == {None, "mask", "random", "keep"}


def test_shuffled_tokens_are_told_from_masked_ones_even_where_they_stand_as_before(
    trained: dict[str, Tokenizer],
) -> None:
    recipe, tokenizer = tiny("structbert"), trained["structbert"]
    in_order = recipe.replace(hide=rules(recipe.hide)[0])
    same_place = 0
    for visit in range(24):
        found, plain = (explain(r, PAIR, tokenizer=tokenizer, visit=visit) for r in (recipe, in_order))
        moved = [unit for unit in found.units if unit.how == "moved"]
        assert [unit for unit in found.units if unit.how != "moved"] == list(plain.units)
        assert moved
        for unit in moved:
            tokens = found.tokens[unit.start : unit.end + 1]
            assert len(tokens) == 3
            assert sorted(token.text for token in tokens) == sorted(token.original for token in tokens)
            same_place += sum(token.text == token.original for token in tokens)
    assert same_place


def test_a_word_may_be_masked_in_part_and_a_run_is_masked_whole_or_not_at_all(trained: dict[str, Tokenizer]) -> None:
    text = "She spoke of disestablishmentarianism."
    for draw in ("token", "span"):
        recipe = tiny("bert", "hide.units=Words", "hide.budget=1.0", f"hide.replace.draw={draw}")
        partly, ways = 0, set()
        for visit in range(30):
            found = explain(recipe, text, tokenizer=trained["bert"], visit=visit)
            for unit in found.units:
                masked = {token.hidden == "mask" for token in found.tokens[unit.start : unit.end + 1]}
                partly += len(masked) > 1
                ways.add(unit.how)
        assert ways >= {"mask", "random", "keep"}
        assert (partly > 0) == (draw == "token")
        assert "mixed" in ways or draw == "span"


def test_an_unknown_token_is_shown_and_not_hidden(trained: dict[str, Tokenizer]) -> None:
    recipe = tiny("bert", "hide.units=Words", "hide.budget=1.0")
    found = explain(recipe, "She saw a ж there.", tokenizer=trained["bert"])
    unknown = [token for token in found.tokens if token.text == "[UNK]"]
    assert [(token.hidden, token.unit, token.special) for token in unknown] == [(None, -1, False)]
    assert "[UNK]" not in [target.text for target in found.targets]


def test_words_are_hidden_whole_with_their_span(trained: dict[str, Tokenizer]) -> None:
    recipe = tiny("bert", "hide.units=Words", "hide.budget=1.0")
    explanation = explain(recipe, "She spoke of disestablishmentarianism.", tokenizer=trained["bert"])
    words = {target.span: explanation.tokens[target.place].word for target in explanation.targets}
    for (start, end), word in words.items():
        assert {explanation.tokens[place].word for place in range(start, end + 1)} == {word}
    assert any(start < end for start, end in words)


def test_the_same_seed_gives_the_same_explanation_and_another_visit_hides_others(
    trained: dict[str, Tokenizer],
) -> None:
    first, again, visit, seed = (
        explain(tiny("bert"), PAIR, tokenizer=trained["bert"], seed=seed, visit=visit)
        for seed, visit in ((0, 0), (0, 0), (0, 1), (1, 0))
    )
    assert first == again
    assert len({tuple(e.targets) for e in (first, visit, seed)}) == 3


def test_a_decoder_writes_the_text_that_new_tokens_stand_for(trained: dict[str, Tokenizer]) -> None:
    """Without another order of sentences, the row with each new token undone is the text, and the decoder reads it shifted."""
    recipe = tiny(
        "bart", "hide=(Rewrite, Masked(units=Spans(of=Tokens, lengths=Poisson), budget=0.4, replace=Infill, at=none))"
    )
    for visit in range(4):
        found = explain(recipe, PAIR, tokenizer=trained["bart"], visit=visit)
        undone = " ".join(token.original if token.hidden else shown(token.text) for token in found.tokens)
        writes = [target.text for target in found.targets]
        assert undone.replace("nothing ", "") == " ".join(map(shown, writes))
        assert [token.text for token in found.decoder[1:]] == writes[:-1]
        assert [unit.start for unit in found.units] == [p for p, token in enumerate(found.tokens) if token.hidden]
        assert len(found.tokens) < len(found.decoder)
        assert "The decoder writes, from left to right:" in screen(found)


def test_both_neighbours_are_predicted_each_from_the_tokens_on_one_side():
    shown = explain(tiny("elmo"), "The doctor examined the patient.")
    tokens = [token.text for token in shown.tokens]
    last = len(tokens) - 1
    expected = [(at, tokens[at + 1], at + 1) for at in range(last)]  # the left half: its own token and those before
    expected += [
        (at, tokens[at - 1], len(tokens) - at) for at in range(1, len(tokens))
    ]  # the right half: and those after
    assert [(target.at, target.text, target.sees) for target in shown.targets] == expected
    (asked,) = shown.questions
    assert asked.places == tuple(range(len(tokens)))
    assert screen(shown).count("examined") > 3
