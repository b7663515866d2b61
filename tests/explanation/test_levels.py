"""Stages, levels and lexicons: what ERNIE hides when."""

import pytest

from tests.explanation.given import CHINESE, PAIR, tiny
from unmask import recipes
from unmask.errors import UserError
from unmask.explanation import explain
from unmask.text import Lexicon, Tokenizer


@pytest.mark.parametrize(("stage", "level"), [(1, "token"), (2, "phrase"), (3, "entity"), (None, "entity")])
def test_ernie_hides_what_its_stage_says(
    stage: int | None, level: str, trained: dict[str, Tokenizer], lexicon: Lexicon
) -> None:
    hidden_as = {"token": set(), "phrase": {"phrase"}, "entity": {"phrase", "entity"}}[level]
    seen = set()
    for visit in range(40):
        found = explain(tiny("ernie"), CHINESE, tokenizer=trained["ernie"], lexicon=lexicon, stage=stage, visit=visit)
        assert [(drawn.axis, drawn.name, drawn.share) for drawn in found.drawn] == [("level", level, 1.0)]
        assert (found.stage, found.stages) == (stage or 3, 3)
        known = {(entry.start, entry.end): entry.level for entry in found.found}
        assert sorted(known.values())[:3] == ["entity", "entity", "phrase"]
        for unit in found.units:
            kind = known.get((unit.start, unit.end), "")
            assert unit.level == (kind if kind in hidden_as else "")
            if level == "token":
                assert unit.start == unit.end
            seen.add(unit.level)
            for (start, end), kind in known.items():  # whole, or not at all
                if kind in hidden_as and unit.start <= end and start <= unit.end:
                    assert unit.start <= start <= end <= unit.end
    assert seen - {""} == hidden_as


def test_a_level_that_every_row_draws_is_told(trained: dict[str, Tokenizer], lexicon: Lexicon) -> None:
    recipe = recipes.get("ernie", size="tiny", variant="mixed")
    drawn = {
        explain(recipe, CHINESE, tokenizer=trained["ernie"], lexicon=lexicon, visit=visit).drawn for visit in range(16)
    }
    assert {one.name for (one,) in drawn} == {"token", "phrase", "entity"}
    assert {round(one.share, 3) for (one,) in drawn} == {0.333}


def test_other_units_take_the_place_of_levels(trained: dict[str, Tokenizer]) -> None:
    found = explain(tiny("ernie", "hide.units=Words"), CHINESE, tokenizer=trained["ernie"])
    assert not found.drawn
    assert not any("lexicon" in note for note in found.notes)


def test_without_a_lexicon_words_stand_for_phrases_and_a_note_says_so(trained: dict[str, Tokenizer]) -> None:
    found = explain(tiny("ernie"), CHINESE, tokenizer=trained["ernie"])
    assert any("--lexicon FILE" in note for note in found.notes)
    assert not found.found
    for unit in found.units:
        assert unit.words == 1
    tokens_only = explain(tiny("ernie"), CHINESE, tokenizer=trained["ernie"], stage=1)
    assert not any("lexicon" in note for note in tokens_only.notes)


def test_a_lexicon_or_a_stage_that_there_is_no_use_for_is_a_mistake(
    trained: dict[str, Tokenizer], lexicon: Lexicon
) -> None:
    with pytest.raises(UserError, match="a lexicon has no effect"):
        explain(tiny("bert"), PAIR, tokenizer=trained["bert"], lexicon=lexicon)
    with pytest.raises(UserError, match="bert has stages 1 to 2, got 3"):
        explain(tiny("bert"), PAIR, tokenizer=trained["bert"], stage=3)
    with pytest.raises(UserError, match="roberta has one stage, got 0"):
        explain(tiny("roberta"), PAIR, tokenizer=trained["roberta"], stage=0)
