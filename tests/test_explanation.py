"""An explanation shows what the parts of the house did, and nothing of its own."""

import dataclasses
import json
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from tests.command import mistake, works
from unmask import explanation as module
from unmask import recipes
from unmask.errors import Mistake
from unmask.explanation import Explanation, explain, to_json
from unmask.explanation import row as row_module
from unmask.explanation.records import shown
from unmask.explanation.screen import render
from unmask.explanation.units import Made
from unmask.recipe import Recipe, override
from unmask.text import Lexicon, Tokenizer, boundaries

PAIR = "The doctor examined the patient carefully. She prescribed antibiotics for the infection."
CHINESE = "哈尔滨是黑龙江的省会，国际冰雪文化名城。她为感染开了抗生素。"
LEXICON = (
    "examined the patient\tphrase\nantibiotics\tentity\n哈尔滨\tentity\n黑龙江\tentity\n国际冰雪文化名城\tphrase\n"
)
NAMES = tuple(recipes.names())
MASKED = tuple(name for name in NAMES if recipes.get(name, size="tiny").hide.needs_mask)


def tiny(name: str, *settings: str) -> Recipe:
    return recipes.get(name, size="tiny", settings=settings)


@pytest.fixture(scope="module")
def trained() -> dict[str, Tokenizer]:
    text = f"{PAIR}\n{CHINESE}"
    return {name: row_module.small_tokenizer(tiny(name).tokenizer, text) for name in NAMES}


def screen(explanation: Explanation, width: int = 80) -> str:
    console = Console(width=width, file=StringIO())
    console.print(render(explanation))
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.fixture
def lexicon(tmp_path: Path) -> Lexicon:
    (tmp_path / "lexicon.tsv").write_text(LEXICON, encoding="utf-8")
    return Lexicon.load([tmp_path / "lexicon.tsv"])


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Made]:
    """What the parts made, in order of the explanations asked for."""
    found: list[Made] = []
    make = module.make

    def watched(*given: Any) -> Made:
        found.append(make(*given))
        return found[-1]

    monkeypatch.setattr(module, "make", watched)
    return found


@pytest.mark.parametrize("text", [PAIR, CHINESE])
@pytest.mark.parametrize("name", NAMES)
def test_targets_and_hidden_tokens_are_those_of_the_batch(
    name: str, text: str, trained: dict[str, Tokenizer], made: list[Made]
) -> None:
    tokenizer = trained[name]
    explanation = explain(tiny(name), text, tokenizer=tokenizer, visit=1)
    batch, targets = made[0].batch, made[0].batch.targets
    assert targets is not None
    real = [i for i, weight in enumerate(targets.weight.tolist()) if weight]
    spelled = {i: module.reading._spell(tokenizer, i) for i in {*targets.ids.tolist(), *batch.ids[0].tolist()}}
    assert [target.place for target in explanation.targets] == targets.where[real].tolist()
    assert [target.text for target in explanation.targets] == [spelled[i] for i in targets.ids[real].tolist()]
    assert [target.span for target in explanation.targets] == list(
        zip(targets.start[real].tolist(), targets.end[real].tolist(), strict=True)
    )
    hidden = {place: token.original for place, token in enumerate(explanation.tokens) if token.hidden}
    expected = {target.place: target.text for target in explanation.targets} if name in MASKED else {}
    assert hidden == expected
    assert [token.text for token in explanation.tokens] == [spelled[i] for i in batch.ids[0][batch.real[0]].tolist()]


@pytest.mark.parametrize("name", MASKED)
def test_every_hidden_token_belongs_to_one_unit_that_is_hidden_one_way(
    name: str, trained: dict[str, Tokenizer]
) -> None:
    for visit in range(6):
        explanation = explain(tiny(name), PAIR, tokenizer=trained[name], visit=visit)
        covered = [place for unit in explanation.units for place in range(unit.start, unit.end + 1)]
        assert covered == sorted(target.place for target in explanation.targets)
        assert {(unit.start, unit.end) for unit in explanation.units} == {t.span for t in explanation.targets}
        for number, unit in enumerate(explanation.units):
            tokens = explanation.tokens[unit.start : unit.end + 1]
            assert {token.hidden for token in tokens} == {unit.how}
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
    in_order = override(recipe, ["hide.shuffle.budget=0"])
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


@pytest.mark.parametrize("text", [PAIR, CHINESE])
def test_unilm_takes_another_view_at_another_visit_and_says_which(text: str, trained: dict[str, Tokenizer]) -> None:
    segments = {"everything": (0, 1), "left": (2, 2), "right": (3, 3), "prefix": (4, 5)}
    seen = set()
    for visit in range(24):
        found = explain(tiny("unilm"), text, tokenizer=trained["unilm"], visit=visit)
        (drawn,) = found.drawn
        seen.add(drawn.name)
        for q, query in enumerate(found.tokens):
            assert query.segment == segments[drawn.name][query.half]
            for k, key in enumerate(found.tokens):
                allowed = {
                    "everything": True,
                    "left": k <= q,
                    "right": k >= q,
                    "prefix": not key.half or (bool(query.half) and k <= q),
                }
                assert found.visible[q][k] == (query.example == key.example and allowed[drawn.name])
        assert bool(found.answers) == (drawn.name == "everything")
        told = " ".join(screen(found, 200).split())
        assert f"{drawn.name}: {drawn.meaning}" in told
        assert ("not asked in the view" in told) == (not found.answers)
    assert seen == set(segments)


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
    assert "asked at every token: Whether each token is the one that stood there" in text
    assert text.count("‹?›") == len(found.targets) + 1
    hidden_only = recipes.get("electra", size="tiny", variant="hidden-only")
    few = explain(hidden_only, PAIR, tokenizer=trained["electra"])
    assert few.questions[-1].places == tuple(target.place for target in few.targets)
    assert few.variant == "hidden-only"


def test_spanbert_also_predicts_from_the_two_tokens_around_a_span(trained: dict[str, Tokenizer]) -> None:
    found = explain(tiny("spanbert"), PAIR, tokenizer=trained["spanbert"], visit=1)
    assert [target.around for target in found.targets] == [(t.span[0] - 1, t.span[1] + 1) for t in found.targets]
    code = recipes.get("spanbert", size="tiny", variant="code")  # there this loss has no weight
    assert {t.around for t in explain(code, PAIR, tokenizer=trained["spanbert"]).targets} == {None}


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
    with pytest.raises(Mistake, match="a lexicon has no effect"):
        explain(tiny("bert"), PAIR, tokenizer=trained["bert"], lexicon=lexicon)
    with pytest.raises(Mistake, match="bert has stages 1 to 2, got 3"):
        explain(tiny("bert"), PAIR, tokenizer=trained["bert"], stage=3)
    with pytest.raises(Mistake, match="roberta has one stage, got 0"):
        explain(tiny("roberta"), PAIR, tokenizer=trained["roberta"], stage=0)


@pytest.mark.parametrize("name", ["bert", "albert", "structbert"])
def test_the_sentence_task_is_told_in_words(name: str, trained: dict[str, Tokenizer]) -> None:
    recipe, met = tiny(name), set()
    for visit in range(16):
        found = explain(recipe, PAIR, tokenizer=trained[name], visit=visit)
        assert found.answers
        for answer in found.answers:
            met.add(answer.label)
            assert answer.meaning == recipe.arrange.answers[answer.label]  # type: ignore[attr-defined]
            assert f"“{answer.meaning}” (class {answer.label})" in " ".join(screen(found, 200).split())
    assert met == set(range(recipe.arrange.classes))  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["albert", "structbert"])
def test_one_sentence_makes_no_pair(name: str, trained: dict[str, Tokenizer]) -> None:
    with pytest.raises(Mistake, match="give two or more"):
        explain(tiny(name), "The doctor left.", tokenizer=trained[name])


def test_two_characters_ahead_every_layer_and_its_weight_are_told(trained: dict[str, Tokenizer]) -> None:
    explanation = explain(tiny("char-transformer"), "Snow fell.", tokenizer=trained["char-transformer"])
    texts = [token.text for token in explanation.tokens]
    for place, target in enumerate(explanation.targets):
        assert (target.place, target.text) == (place, texts[place + 1])
        assert target.further == tuple(texts[place + 2 : place + 3])
    asked = {question.name: question for question in explanation.questions}
    assert {name: question.weight for name, question in asked.items()} == {
        "tokens": 1.0, "second": 0.5, "layer": 1.0, "layer_second": 0.5,
    }  # fmt: skip
    assert [len(texts) - len(asked[name].places) for name in asked] == [1, 2, 1, 2]
    choices = {choice.axis: choice.part for choice in explanation.choices}
    assert choices["weight layer"] == "InTurn (share 0.5, value 1)"
    assert "ahead 2" in choices["predict layer_second"]
    assert "then" in screen(explanation)


def test_gpt2_sees_what_stands_before(trained: dict[str, Tokenizer]) -> None:
    explanation = explain(tiny("gpt2"), PAIR, tokenizer=trained["gpt2"])
    size = len(explanation.tokens)
    assert explanation.visible == tuple(tuple(key <= query for key in range(size)) for query in range(size))
    assert [(t.place, t.span) for t in explanation.targets] == [(i, (i + 1, i + 1)) for i in range(size - 1)]
    assert not any(token.hidden for token in explanation.tokens)
    assert not explanation.answers


@pytest.mark.parametrize("name", [name for name in MASKED if name != "unilm"])
def test_bert_sees_its_whole_example_and_no_other(name: str, trained: dict[str, Tokenizer]) -> None:
    for text in (PAIR, f"{PAIR}\n\nSnow fell. It was cold.\n\nShe left. It rained."):
        explanation = explain(tiny(name), text, tokenizer=trained[name])
        examples = [token.example for token in explanation.tokens]
        assert explanation.visible == tuple(tuple(query == key for key in examples) for query in examples)


def test_the_same_seed_gives_the_same_explanation_and_another_visit_hides_others(
    trained: dict[str, Tokenizer],
) -> None:
    first, again, visit, seed = (
        explain(tiny("bert"), PAIR, tokenizer=trained["bert"], seed=seed, visit=visit)
        for seed, visit in ((0, 0), (0, 0), (0, 1), (1, 0))
    )
    assert first == again
    assert len({tuple(e.targets) for e in (first, visit, seed)}) == 3


def test_an_explanation_is_plain_json(trained: dict[str, Tokenizer]) -> None:
    explanation = explain(tiny("bert"), PAIR, tokenizer=trained["bert"])
    record = to_json(explanation)
    assert json.loads(json.dumps(record)) == record
    assert record["recipe"] == "bert"
    assert len(record["visible"]) == len(record["tokens"]) == len(explanation.tokens)
    assert set(record) == {field.name for field in dataclasses.fields(Explanation)}


@pytest.mark.parametrize("name", ["bert", "roberta", "gpt2"])
def test_without_a_tokenizer_a_small_one_knows_the_text(name: str) -> None:
    explanation = explain(tiny(name), CHINESE)
    assert "2,000 tokens" in explanation.notes[0]
    text = "".join(shown(token.original) for token in explanation.tokens if not token.special)
    assert set(text) <= set(CHINESE + row_module.OTHER_HAN)
    assert not any("UNK" in token.text for token in explanation.tokens)


def test_a_small_tokenizer_takes_the_size_that_there_is_text_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_module, "_documentation", lambda: ())
    assert len(explain(tiny("bert"), PAIR + " It rained.").tokens) > 10
    assert explain(tiny("roberta", "tokenizer.vocab=300"), PAIR).notes[0].count("300 tokens") == 1


def test_a_pair_of_one_document_draws_from_a_line_of_ours(trained: dict[str, Tokenizer]) -> None:
    explanation = explain(tiny("bert", "arrange.random=1"), "The doctor left.", tokenizer=trained["bert"])
    texts = [[t.original for t in explanation.tokens if t.segment == s and not t.special] for s in (0, 1)]
    assert texts[0] == [trained["bert"].readable(i) for i in trained["bert"].encode("The doctor left.")]
    assert texts[1]
    assert [answer.label for answer in explanation.answers] == [1]
    assert any("a line of ours" in note for note in explanation.notes)


def test_a_pair_of_several_documents_draws_from_them(trained: dict[str, Tokenizer]) -> None:
    text = "The doctor left.\n\nThe patient slept."
    explanation = explain(tiny("bert", "arrange.random=1"), text, tokenizer=trained["bert"])
    known = {trained["bert"].readable(i) for i in trained["bert"].encode(text)}
    assert {token.original for token in explanation.tokens if not token.special} == known
    assert not any("a line of ours" in note for note in explanation.notes)


def test_a_text_longer_than_a_row_says_so(trained: dict[str, Tokenizer]) -> None:
    explanation = explain(tiny("roberta", "schedule.0.length=16"), PAIR, tokenizer=trained["roberta"])
    assert len(explanation.tokens) == 16
    assert "rows of 16 tokens" in explanation.notes[-1]


def test_words_are_hidden_whole_with_their_span(trained: dict[str, Tokenizer]) -> None:
    recipe = tiny("bert", "hide.units=Words", "hide.budget=1.0")
    explanation = explain(recipe, "She spoke of disestablishmentarianism.", tokenizer=trained["bert"])
    words = {target.span: explanation.tokens[target.place].word for target in explanation.targets}
    for (start, end), word in words.items():
        assert {explanation.tokens[place].word for place in range(start, end + 1)} == {word}
    assert any(start < end for start, end in words)


def test_without_rjieba_every_chinese_character_is_a_word(
    monkeypatch: pytest.MonkeyPatch, trained: dict[str, Tokenizer]
) -> None:
    monkeypatch.setattr(boundaries, "find_spec", lambda name: None)
    explanation = explain(tiny("gpt2"), CHINESE, tokenizer=trained["gpt2"])
    words = [token.word for token in explanation.tokens if not token.special]
    assert len(set(words)) == len(words)
    assert any("rjieba" in note for note in explanation.notes)


def test_nothing_to_explain_is_a_mistake(trained: dict[str, Tokenizer]) -> None:
    with pytest.raises(Mistake, match="no text to explain"):
        explain(tiny("bert"), " \n\n ", tokenizer=trained["bert"])
    with pytest.raises(Mistake, match="visit must be 0 or more"):
        explain(tiny("bert"), PAIR, tokenizer=trained["bert"], visit=-1)


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("name", NAMES)
def test_the_screen_is_never_wider_than_the_terminal(name: str, width: int, trained: dict[str, Tokenizer]) -> None:
    for text in (PAIR, CHINESE, f"{PAIR} " * 20):
        lines = screen(explain(tiny(name), text, tokenizer=trained[name]), width).splitlines()
        assert max(map(cell_len, lines)) <= width


def test_the_screen_shows_what_was_hidden_without_colours(trained: dict[str, Tokenizer]) -> None:
    explanation = explain(tiny("bert"), PAIR, tokenizer=trained["bert"], visit=1)
    text = " ".join(screen(explanation, 200).split())
    for token in explanation.tokens:
        if token.hidden:
            assert "{" + shown(token.original) + "→" + shown(token.text) + "}" in text
    assert "##" not in text


@pytest.mark.parametrize(
    ("name", "text"),
    [("spanbert", PAIR), ("gpt2", f"{PAIR} " * 3), ("albert", CHINESE), ("electra", PAIR), ("unilm", f"{PAIR} " * 9)],
)
def test_a_picture_is_written_and_small(name: str, text: str, tmp_path: Path, trained: dict[str, Tokenizer]) -> None:
    pytest.importorskip("matplotlib")
    from unmask.explanation.picture import draw

    draw(explain(tiny(name), text, tokenizer=trained[name], visit=1), tmp_path / "out.png")
    written = (tmp_path / "out.png").read_bytes()
    assert written.startswith(b"\x89PNG")
    assert 10_000 < len(written) < 150_000


def test_a_picture_of_what_no_font_can_draw_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained: dict[str, Tokenizer], lexicon: Lexicon
) -> None:
    pytest.importorskip("matplotlib")
    from unmask.explanation import page, picture

    said: list[str] = []
    text = page.Page.text

    def heard(self: Any, x: float, y: float, words: str, **style: Any) -> Any:
        said.append(words)
        return text(self, x, y, words, **style)

    for function in (page._chinese, page._fonts):
        function.cache_clear()
    monkeypatch.setattr(page, "CHINESE", ())
    monkeypatch.setattr(page.Page, "text", heard)
    found = explain(tiny("ernie"), CHINESE, tokenizer=trained["ernie"], lexicon=lexicon)
    picture.draw(found, tmp_path / "out.png")
    for function in (page._chinese, page._fonts):
        function.cache_clear()
    assert any("no installed font can draw" in words for words in said)


def test_a_picture_that_cannot_be_drawn_is_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained: dict[str, Tokenizer]
) -> None:
    from unmask.explanation.picture import draw

    explanation = explain(tiny("gpt2"), "Snow fell.", tokenizer=trained["gpt2"])
    with pytest.raises(Mistake, match="ends in .png"):
        draw(explanation, tmp_path / "out.jpg")
    with pytest.raises(Mistake, match="does not exist"):
        draw(explanation, tmp_path / "missing" / "out.png")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(Mistake, match=r"pip install 'unmask\[pictures\]'"):
        draw(explanation, tmp_path / "out.png")


def test_settings_of_the_recipe_show_in_its_choices(trained: dict[str, Tokenizer]) -> None:
    recipe = override(tiny("bert"), ["hide.budget=0.3", "arrange=Blocks"])
    explanation = explain(recipe, PAIR, tokenizer=trained["bert"])
    parts = {choice.axis: choice.part for choice in explanation.choices}
    assert "budget 0.3" in parts["hide"]
    assert parts["arrange"].startswith("Blocks")
    assert "predict sentence" not in parts


def test_the_verb_takes_a_lexicon_a_stage_and_a_variant(tmp_path: Path) -> None:
    (tmp_path / "lexicon.tsv").write_text(LEXICON, encoding="utf-8")
    words = ("explain", "ernie", CHINESE, "--lexicon", tmp_path / "lexicon.tsv", "--stage", 2, "--json")
    record = json.loads(works(*words).out)
    assert record["drawn"][0]["name"] == "phrase"
    assert [entry["level"] for entry in record["found"]][:3] == ["phrase", "entity", "entity"]
    assert json.loads(works("explain", "bert", PAIR, "--variant", "code", "--json").out)["variant"] == "code"


def test_the_verb_measures_prepared_data(shards: dict[str, Path]) -> None:
    words = (
        "explain",
        "spanbert",
        "--size",
        "tiny",
        "--set",
        "schedule.0.length=64",
        "--statistics",
        shards["wordpiece"],
    )
    assert json.loads(works(*words, "--json").out)["recipe"] == "spanbert"
    assert "words in a unit, on average" in works(*words).out
    assert "one of them" in mistake(*words[:2], "a text", *words[2:])
    assert "one of them" in mistake("explain", "bert")
    assert "leave --tokenizer" in mistake(*words, "--picture", "x.png")
