"""The page in a real browser: every view shows what the Python API gives, by mouse and by keyboard."""

import json
from urllib.parse import parse_qs, urlparse

import pytest
from axe_playwright_python.sync_playwright import Axe

import unmask
from tests.browser import bars, browser, go, opened, settle
from tests.serving.conftest import NAMES, STORED, running, service_of
from unmask.serving.indexes import open_indexes

TEXT = "the doctor opened the case near London"
RULES = {"resultTypes": ["violations"], "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
# a state of each view
VIEWS = [
    {"view": "hide", "model": "bert"}, {"view": "row", "recipe": "bert", "at": 2}, {"view": "attention", "model": "gpt2"},
    {"view": "compare", "model": "bert", "other": "gpt2"}, {"view": "write", "model": "gpt2", "go": 1, "at": 0, "tokens": 4},
    {"view": "answers", "model": "span", "question": "who opened it?"}, {"view": "search"}, {"view": "runs"},
]  # fmt: skip


@pytest.fixture(scope="module")
def chromium():
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def url(runs, tmp_path_factory):
    """A service with an index and with a run that has a log."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "lines.txt").write_text("three valves\nevery window near London\nthe doctor opened the case\n")
    unmask.index(runs / "vectors", folder / "lines.txt", folder / "lines", progress=False)
    (folder / "old").mkdir()
    (folder / "old" / "recipe.json").write_text("{}")
    records = [{"step": step, "loss": 8 - step / 10, "validation_loss": 8.0} for step in range(1, 21)]
    (folder / "old" / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    service = service_of(runs, *NAMES, runs=folder)
    service.indexes = open_indexes([folder / "lines"], service.models)
    with running(service) as found:
        yield found


def state_of(page):
    return {name: values[0] for name, values in parse_qs(urlparse(page.url).query).items()}


def percent(share):
    return f"{100 * share:.{0 if share >= 0.0995 else 1}f}%"


def shown(token):
    return token.removeprefix("##").strip() or "␣"


def expected(guesses):
    return [(shown(guess.token), percent(guess.probability)) for guess in guesses]


def test_a_word_is_hidden_by_click_and_by_keyboard_and_the_model_says_what_it_puts_there(chromium, url, runs):
    model = unmask.load(runs / "bert", device="cpu")
    with opened(chromium, url, view="hide", model="bert", text=TEXT, hide="") as page:
        page.get_by_role("button", name="doctor", exact=True).click()
        page.wait_for_selector("ol.bars")
        pieces = len(model.tokenizer.encode("doctor"))
        gaps = model.fill(TEXT.replace("doctor", "[MASK]" * pieces), top=8)
        cards = page.locator("#view .columns section").all()
        assert [bars(card) for card in cards] == [expected(guesses) for guesses in gaps]
        assert state_of(page)["hide"] == "4-10"
        page.keyboard.press("ArrowRight")  # the next word, and the focus is still there after the answer came
        page.keyboard.press("Enter")
        settle(page)
        assert state_of(page)["hide"] == "4-10,11-17"
        assert page.locator(".word[aria-pressed=true] s").all_inner_texts() == ["doctor", "opened"]
        page.keyboard.press("Space")
        settle(page)
        address = page.url
    with opened(
        chromium, url, **{name: values[0] for name, values in parse_qs(urlparse(address).query).items()}
    ) as page:
        assert [bars(card) for card in page.locator("#view .columns section").all()] == [expected(one) for one in gaps]


def test_a_model_that_reads_from_the_left_says_what_it_expects(chromium, url, runs):
    likeliest = unmask.load(runs / "gpt2", device="cpu").generate("the ", tokens=1, greedy=True)
    with opened(chromium, url, view="hide", model="gpt2", text=TEXT, hide="4-10") as page:
        found = bars(page.locator("#view .columns section").first)
        assert found[0][0] == shown(likeliest.removeprefix("the "))
        shares = [float(number.rstrip("%")) for _, number in found]
        assert shares == sorted(shares, reverse=True)


def test_a_row_changes_with_budget_units_view_and_visit(chromium, url):
    text = "The doctor examined the patient carefully. She prescribed antibiotics for the infection."
    with opened(chromium, url, view="row", recipe="bert", text=text) as page:
        page.get_by_label("Budget").focus()
        page.keyboard.press("End")
        page.keyboard.press("ArrowLeft")
        page.get_by_label("Units").select_option("Words")
        page.get_by_label("View", exact=True).select_option("Everything")
        page.get_by_label("Visit").fill("3")
        page.keyboard.press("Enter")
        page.wait_for_function("location.search.includes('visit=3')")
        settle(page)
        settings = ["hide.budget=0.95", "hide.units=Words", "see=Everything"]
        found = unmask.explain("bert", text, settings=settings, visit=3)
        tokens = page.locator("#view .chip > span").all_inner_texts()
        assert tokens == [shown(token.text) for token in found.tokens]
        hidden = page.locator("#view .chip.mask, #view .chip.random, #view .chip.keep").count()
        assert hidden == sum(token.hidden is not None for token in found.tokens) > 10
        predicted = page.locator("#view tbody b").all_inner_texts()
        assert predicted == [shown(one.text) for one in sorted(found.targets, key=lambda one: one.place)][:24]
        page.get_by_label("View", exact=True).select_option("LeftToRight")
        settle(page)
        seen = unmask.explain("bert", text, settings=[*settings[:2], "see=LeftToRight"], visit=3).visible
        drawn = "".join(path.get_attribute("d") for path in page.locator(".matrix .cells").all()).count("M")
        assert drawn == sum(map(sum, seen)) < len(seen) ** 2


def test_what_a_decoder_reads_and_predicts(chromium, url):
    with opened(chromium, url, view="row", recipe="bart", text=TEXT) as page:
        found = unmask.explain("bart", TEXT)
        rows = [row.split("\t") for row in page.locator("#view tbody tr").all_inner_texts()]
        assert [row[1:] for row in rows] == [
            [shown(found.decoder[one.at].text), f"{one.sees} of {len(found.decoder)}", shown(one.text)]
            for one in sorted(found.targets, key=lambda one: one.place)
        ]


def test_parts_that_do_not_fit_are_explained(chromium, url):
    with opened(chromium, url, view="row", recipe="gpt2", text=TEXT, see="Everything") as page:
        assert "set see=LeftToRight" in page.get_by_role("alert").inner_text()
        page.get_by_role("button", name="As in the recipe").click()
        settle(page)
        assert page.get_by_role("alert").count() == 0
        assert page.locator(".matrix").count() == 1
        page.get_by_label("Your sentence").fill("医生检查了病人。")
        page.get_by_role("button", name="检", exact=True).wait_for()
        assert state_of(page)["text"] == "医生检查了病人。"


def test_attention_of_each_layer_and_head(chromium, url, runs):
    found = unmask.load(runs / "gpt2", device="cpu").attention(TEXT)
    with opened(chromium, url, view="attention", model="gpt2", text=TEXT, at=5) as page:
        page.get_by_label("Layer", exact=True).select_option("2")
        settle(page)
        page.get_by_role("button", name="Head 1").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        settle(page)
        assert (state_of(page)["layer"], state_of(page)["head"]) == ("2", "2")
        weights = found.layers[1][1, 5].sort(descending=True)
        want = [
            (shown(found.tokens[i]), percent(round(w, 4)))
            for w, i in zip(*(one.tolist() for one in weights), strict=True)
        ]
        assert {number for _, number in bars(page.locator("#view"))} == {number for _, number in want[:8]}
        assert bars(page.locator("#view"))[0] == want[0]


def test_two_models_side_by_side(chromium, url, runs):
    with opened(chromium, url, view="compare", model="bert", other="gpt2", text=TEXT, hide="0-3") as page:
        first, second = page.locator("#view .columns section").all()
        model = unmask.load(runs / "bert", device="cpu")
        pieces = len(model.tokenizer.encode("the"))
        assert bars(first)[:8] == expected(model.fill("[MASK]" * pieces + TEXT[3:], top=8)[0])
        score = unmask.load(runs / "gpt2", device="cpu").score_sentences(TEXT, tell=lambda record: None)
        assert f"{float(score):.1f}" in second.inner_text()


def test_text_is_written_as_a_stream_with_the_likely_tokens_at_each_one(chromium, url, runs):
    with opened(chromium, url, view="write", model="gpt2", text="the cat", tokens=8, seed=3) as page:
        page.get_by_role("button", name="Write", exact=True).press("Enter")
        page.get_by_text("8 tokens.").wait_for()
        model = unmask.load(runs / "gpt2", device="cpu")
        written = page.locator(".written").inner_text().replace("\u200b", "")
        assert written == model.generate("the cat", tokens=8, temperature=0.8, seed=3, tell=lambda record: None)
        page.locator(".written .new").nth(1).focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        settle(page)
        assert state_of(page)["at"] == "2"
        assert len(bars(page.locator("#view"))) > 3
        assert page.locator(".bars .right").count() == 1  # the token that was drawn is among them


def test_what_is_written_from_a_source_does_not_continue_it(chromium):
    with (
        running(service_of(STORED, "unilm-write")) as address,
        opened(chromium, address, view="write", text="a b c", tokens=4, temperature=0, go=1) as page,
    ):
        page.get_by_text("The model writes a text from your sentence.").wait_for()
        page.locator("p[role=status]").get_by_text("tokens.").wait_for()
        written = page.locator(".written").inner_text().replace("\u200b", "")
    model = unmask.load(STORED / "unilm-write", device="cpu")
    assert written.strip() == model.generate("a b c", tokens=4, greedy=True, tell=lambda record: None).strip()


def test_tags_and_answers_are_marked_in_the_text(chromium, url, runs):
    text = "every window near London"
    with opened(chromium, url, view="answers", model="tags", text=text) as page:
        (found,) = unmask.load(runs / "tags", device="cpu").predict([text])
        assert page.locator("mark").count() == sum(tag != "O" for tag in found.tags) > 0
    with opened(chromium, url, view="answers", model="span", text=TEXT) as page:
        page.get_by_label("Question").fill("who opened it?")
        page.keyboard.press("Enter")
        page.locator("mark").wait_for()
        (found,) = unmask.load(runs / "span", device="cpu").predict([("who opened it?", TEXT)])
        assert page.locator("mark").evaluate("mark => mark.firstChild.textContent") == found.text


def test_the_first_view_is_one_that_the_model_can_do(chromium, runs):
    with running(service_of(runs, "pairs")) as address, opened(chromium, address, text=TEXT) as page:
        page.get_by_label("Second text").fill("three valves")
        page.keyboard.press("Enter")
        page.locator("ol.bars").wait_for()
        (found,) = unmask.load(runs / "pairs", device="cpu").predict([(TEXT, "three valves")])
        assert bars(page) == [(label, percent(share)) for label, share in found.top(9)]


def test_what_comes_from_the_code_is_chinese_too(chromium, url):
    with opened(chromium, url, view="row", recipe="bert", text=TEXT, lang="zh") as page:
        assert (
            page.get_by_text("每个词元看见整个样本（BERT）。").count() == 2
        )  # as the hint of the view, and as a choice
        assert "遮住 15% 的词元" in page.locator("#sentence").inner_text()
        assert page.get_by_text("Every token sees").count() == 0


# recipes and texts that have all kinds of notes between them
NOTED = [
    ("bert", "The cat sat on the mat. " * 50), ("bart", TEXT), ("xlnet", TEXT), ("elmo", TEXT), ("ernie-thu", TEXT), ("ernie", TEXT),
    ("awd-lstm", TEXT), ("cove", "The cat sat. " + "It slept. " * 50), ("char-transformer", TEXT),
]  # fmt: skip


def test_the_notes_below_a_row_are_chinese_too(chromium, url):
    notes = sorted({note for recipe, text in NOTED for note in unmask.explain(recipe, text).notes})
    with opened(chromium, url, view="row", recipe="xlnet", text=TEXT, lang="zh") as page:
        chinese = page.evaluate("async (notes) => notes.map((await import('/chinese.js')).noteInChinese)", notes)
        assert [note for note, found in zip(notes, chinese, strict=True) if found is None] == []
        page.locator("summary").press("Enter")
        shown = page.locator(".notes li").all_inner_texts()
    assert len(shown) > 2
    assert set(shown) <= set(chinese)


def test_nearest_sentences_and_losses(chromium, url):
    with opened(chromium, url, view="search", text="the doctor opened the case") as page:
        assert page.locator(".found li").count() == 3
        assert "the doctor opened the case" in page.locator(".found li").first.inner_text()
        page.get_by_role("link", name="Losses").press("Enter")
        page.locator("polyline").first.wait_for()
        before = page.locator("polyline").count()
        page.get_by_label("old").press("Space")
        settle(page)
        assert page.locator("polyline").count() == before - 2  # in training, and on held-out text
        assert state_of(page)["without"] == "old"
        page.go_back()
        page.locator(".found").wait_for()


def test_a_model_that_cannot_names_those_that_can_and_a_key_is_asked_for(chromium, url, runs):
    with opened(chromium, url, view="write", model="bert", text=TEXT) as page:
        page.locator("#view").get_by_role("button", name="gpt2").click()
        page.get_by_label("Temperature").wait_for()
    closed = running(service_of(runs, "bert"), keys=["first-key"])
    with closed as address, opened(chromium, address, view="row") as page:
        page.get_by_label("This service needs a key").fill("first-key")
        page.keyboard.press("Enter")
        page.locator(".matrix").wait_for()


@pytest.mark.parametrize("how", [{}, {"dark": True, "width": 320, "lang": "zh"}], ids=["light wide", "dark narrow"])
def test_nothing_is_against_wcag_and_nothing_is_cut_off(chromium, url, how):
    lang = how.get("lang", "en")
    size = {name: value for name, value in how.items() if name != "lang"}
    with opened(chromium, url, **size) as page:
        for state in VIEWS:
            go(page, url, text=TEXT, lang=lang, **state)
            found = Axe().run(page, options=RULES)
            assert found.violations_count == 0, (state, found.generate_report())
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), state
            assert page.locator("html").get_attribute("lang").startswith(lang)


def test_language_and_theme_are_switched_and_stay_in_the_address(chromium, url):
    with opened(chromium, url, view="runs") as page:
        page.get_by_role("button", name="中文").press("Enter")
        settle(page)
        page.get_by_role("button", name="深色").press("Enter")
        settle(page)
        assert page.get_by_role("heading", name="损失曲线").count() == 1
        assert page.evaluate("getComputedStyle(document.body).colorScheme") == "dark"
        assert (state_of(page)["lang"], state_of(page)["theme"]) == ("zh", "dark")
