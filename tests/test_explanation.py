"""An explanation shows what the parts of the house did, and nothing of its own."""

import dataclasses
import importlib.util
import json
import sys
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from unmask import explanation as module
from unmask import recipes
from unmask.batch import Batch, Vocabulary
from unmask.errors import Mistake
from unmask.explanation import Explanation, explain, shown, to_json
from unmask.explanation_screen import render
from unmask.recipe import Recipe, override
from unmask.text import Tokenizer

PAIR = "The doctor examined the patient carefully. She prescribed antibiotics for the infection."
CHINESE = "医生仔细检查了病人。她为感染开了抗生素。"
NAMES = ("bert", "roberta", "gpt2")
MASKED = ("bert", "roberta")


@dataclass(frozen=True)
class Watched:
    """A hide that keeps what it made."""

    hide: Any
    made: list[Batch]

    @property
    def needs_mask(self) -> bool:
        return self.hide.needs_mask

    def apply(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Batch:
        self.made.append(self.hide.apply(batch, vocabulary, seed))
        return self.made[-1]


def tiny(name: str, *settings: str) -> Recipe:
    return recipes.get(name, size="tiny", settings=settings)


@pytest.fixture(scope="module")
def tokenizers() -> dict[str, Tokenizer]:
    text = f"{PAIR}\n{CHINESE}"
    return {name: module._small_tokenizer(tiny(name).tokenizer, text) for name in NAMES}


def screen(explanation: Explanation, width: int = 80) -> str:
    console = Console(width=width, file=StringIO())
    console.print(render(explanation))
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("text", [PAIR, CHINESE])
@pytest.mark.parametrize("name", NAMES)
def test_targets_and_hidden_tokens_are_those_of_the_batch(
    name: str, text: str, tokenizers: dict[str, Tokenizer]
) -> None:
    made: list[Batch] = []
    recipe, tokenizer = tiny(name), tokenizers[name]
    explanation = explain(recipe.replace(hide=Watched(recipe.hide, made)), text, tokenizer=tokenizer, visit=1)
    targets = made[0].targets
    assert targets is not None
    real = [i for i, weight in enumerate(targets.weight.tolist()) if weight]
    assert [target.place for target in explanation.targets] == targets.where[real].tolist()
    assert [target.text for target in explanation.targets] == [
        tokenizer.readable(i) for i in targets.ids[real].tolist()
    ]
    hidden = {place: token.original for place, token in enumerate(explanation.tokens) if token.hidden}
    expected = {target.place: target.text for target in explanation.targets} if name in MASKED else {}
    assert hidden == expected
    assert [token.text for token in explanation.tokens] == [
        tokenizer.readable(i) for i in made[0].ids[0][made[0].real[0]].tolist()
    ]


@pytest.mark.parametrize("name", MASKED)
def test_hidden_tokens_say_how_they_are_hidden(name: str, tokenizers: dict[str, Tokenizer]) -> None:
    mask = tokenizers[name].token(tokenizers[name].role("mask"))
    ways = set()
    for visit in range(12):
        for token in explain(tiny(name), PAIR, tokenizer=tokenizers[name], visit=visit).tokens:
            ways.add(token.hidden)
            assert (token.text == mask) == (token.hidden == "mask")
            assert (token.text != token.original) == (token.hidden in ("mask", "random"))
            assert not (token.special and token.hidden)
    assert ways == {None, "mask", "random", "keep"}


def test_gpt2_sees_what_stands_before(tokenizers: dict[str, Tokenizer]) -> None:
    explanation = explain(tiny("gpt2"), PAIR, tokenizer=tokenizers["gpt2"])
    size = len(explanation.tokens)
    assert explanation.visible == tuple(tuple(key <= query for key in range(size)) for query in range(size))
    assert [(t.place, t.span) for t in explanation.targets] == [(i, (i + 1, i + 1)) for i in range(size - 1)]
    assert not any(token.hidden for token in explanation.tokens)
    assert not explanation.answers


@pytest.mark.parametrize("name", MASKED)
def test_bert_sees_its_whole_example_and_no_other(name: str, tokenizers: dict[str, Tokenizer]) -> None:
    for text in (PAIR, f"{PAIR}\n\nSnow fell. It was cold.\n\nShe left."):
        explanation = explain(tiny(name), text, tokenizer=tokenizers[name])
        examples = [token.example for token in explanation.tokens]
        assert explanation.visible == tuple(tuple(query == key for key in examples) for query in examples)


def test_the_same_seed_gives_the_same_explanation_and_another_visit_hides_others(
    tokenizers: dict[str, Tokenizer],
) -> None:
    first, again, visit, seed = (
        explain(tiny("bert"), PAIR, tokenizer=tokenizers["bert"], seed=seed, visit=visit)
        for seed, visit in ((0, 0), (0, 0), (0, 1), (1, 0))
    )
    assert first == again
    assert len({tuple(e.targets) for e in (first, visit, seed)}) == 3


def test_an_explanation_is_plain_json(tokenizers: dict[str, Tokenizer]) -> None:
    explanation = explain(tiny("bert"), PAIR, tokenizer=tokenizers["bert"])
    record = to_json(explanation)
    assert json.loads(json.dumps(record)) == record
    assert record["recipe"] == "bert"
    assert len(record["visible"]) == len(record["tokens"]) == len(explanation.tokens)
    assert set(record) == {field.name for field in dataclasses.fields(Explanation)}


@pytest.mark.parametrize("name", NAMES)
def test_without_a_tokenizer_a_small_one_knows_the_text(name: str) -> None:
    explanation = explain(tiny(name), CHINESE)
    assert "2,000 tokens" in explanation.notes[0]
    text = "".join(shown(token.original) for token in explanation.tokens if not token.special)
    assert set(text) <= set(CHINESE + module.OTHER_HAN)
    assert not any("UNK" in token.text for token in explanation.tokens)


def test_a_small_tokenizer_takes_the_size_that_there_is_text_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_documentation", lambda: ())
    assert len(explain(tiny("bert"), PAIR).tokens) > 10
    assert explain(tiny("roberta", "tokenizer.vocab=300"), PAIR).notes[0].count("300 tokens") == 1


def test_a_pair_of_one_document_draws_from_a_line_of_ours(tokenizers: dict[str, Tokenizer]) -> None:
    explanation = explain(tiny("bert", "arrange.random=1"), "The doctor left.", tokenizer=tokenizers["bert"])
    texts = [[t.original for t in explanation.tokens if t.segment == s and not t.special] for s in (0, 1)]
    assert texts[0] == [tokenizers["bert"].readable(i) for i in tokenizers["bert"].encode("The doctor left.")]
    assert texts[1]
    assert [answer.label for answer in explanation.answers] == [1]
    assert any("a line of ours" in note for note in explanation.notes)


def test_a_pair_of_several_documents_draws_from_them(tokenizers: dict[str, Tokenizer]) -> None:
    text = "The doctor left.\n\nThe patient slept."
    explanation = explain(tiny("bert", "arrange.random=1"), text, tokenizer=tokenizers["bert"])
    known = {tokenizers["bert"].readable(i) for i in tokenizers["bert"].encode(text)}
    assert {token.original for token in explanation.tokens if not token.special} == known
    assert not any("a line of ours" in note for note in explanation.notes)


def test_a_text_longer_than_a_row_says_so(tokenizers: dict[str, Tokenizer]) -> None:
    explanation = explain(tiny("roberta", "schedule.0.length=16"), PAIR, tokenizer=tokenizers["roberta"])
    assert len(explanation.tokens) == 16
    assert "rows of 16 tokens" in explanation.notes[-1]


def test_words_are_hidden_whole_with_their_span(tokenizers: dict[str, Tokenizer]) -> None:
    recipe = tiny("bert", "hide.units=Words", "hide.budget=1.0")
    explanation = explain(recipe, "She spoke of disestablishmentarianism.", tokenizer=tokenizers["bert"])
    words = {target.span: explanation.tokens[target.place].word for target in explanation.targets}
    for (start, end), word in words.items():
        assert {explanation.tokens[place].word for place in range(start, end + 1)} == {word}
    assert any(start < end for start, end in words)


def test_without_rjieba_every_chinese_character_is_a_word(
    monkeypatch: pytest.MonkeyPatch, tokenizers: dict[str, Tokenizer]
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "rjieba" else find(name, *rest)
    )
    explanation = explain(tiny("gpt2"), CHINESE, tokenizer=tokenizers["gpt2"])
    words = [token.word for token in explanation.tokens if not token.special]
    assert len(set(words)) == len(words)
    assert any("rjieba" in note for note in explanation.notes)


def test_nothing_to_explain_is_a_mistake(tokenizers: dict[str, Tokenizer]) -> None:
    with pytest.raises(Mistake, match="no text to explain"):
        explain(tiny("bert"), " \n\n ", tokenizer=tokenizers["bert"])
    with pytest.raises(Mistake, match="visit must be 0 or more"):
        explain(tiny("bert"), PAIR, tokenizer=tokenizers["bert"], visit=-1)


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("name", NAMES)
def test_the_screen_is_never_wider_than_the_terminal(name: str, width: int, tokenizers: dict[str, Tokenizer]) -> None:
    for text in (PAIR, CHINESE, f"{PAIR} " * 20):
        lines = screen(explain(tiny(name), text, tokenizer=tokenizers[name]), width).splitlines()
        assert max(map(cell_len, lines)) <= width


def test_the_screen_shows_what_was_hidden_without_colours(tokenizers: dict[str, Tokenizer]) -> None:
    explanation = explain(tiny("bert"), PAIR, tokenizer=tokenizers["bert"], visit=1)
    text = " ".join(screen(explanation, 200).split())
    for token in explanation.tokens:
        if token.hidden:
            assert "{" + shown(token.original) + "→" + shown(token.text) + "}" in text
    assert "##" not in text


@pytest.mark.parametrize(("name", "text"), [("bert", PAIR), ("gpt2", f"{PAIR} " * 3), ("roberta", CHINESE)])
def test_a_picture_is_written(name: str, text: str, tmp_path: Path, tokenizers: dict[str, Tokenizer]) -> None:
    pytest.importorskip("matplotlib")
    from unmask.explanation_picture import draw

    draw(explain(tiny(name), text, tokenizer=tokenizers[name]), tmp_path / "out.png")
    written = (tmp_path / "out.png").read_bytes()
    assert written.startswith(b"\x89PNG")
    assert len(written) > 10_000


def test_a_picture_that_cannot_be_drawn_is_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokenizers: dict[str, Tokenizer]
) -> None:
    from unmask.explanation_picture import draw

    explanation = explain(tiny("gpt2"), "Snow fell.", tokenizer=tokenizers["gpt2"])
    with pytest.raises(Mistake, match="ends in .png"):
        draw(explanation, tmp_path / "out.jpg")
    with pytest.raises(Mistake, match="does not exist"):
        draw(explanation, tmp_path / "missing" / "out.png")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(Mistake, match=r"pip install 'unmask\[pictures\]'"):
        draw(explanation, tmp_path / "out.png")


def test_settings_of_the_recipe_show_in_its_choices(tokenizers: dict[str, Tokenizer]) -> None:
    recipe = override(tiny("bert"), ["hide.budget=0.3", "arrange=Blocks"])
    explanation = explain(recipe, PAIR, tokenizer=tokenizers["bert"])
    parts = {choice.axis: choice.part for choice in explanation.choices}
    assert "budget 0.3" in parts["hide"]
    assert parts["arrange"].startswith("Blocks")
    assert "predict sentence" not in parts
