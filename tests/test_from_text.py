"""From text to a model in one command: the tokenizer and the data are made, cached, and made again when the text changes."""

from __future__ import annotations

import json
import os
import shlex
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

import unmask
from tests.command import BERT, ONE_STAGE, mistake, run, works
from tests.command import pretrain as pretrain_for
from tests.conftest import documents
from unmask import recipes, text
from unmask.api.from_text import Reading, data_from_text, place
from unmask.data import Shards, cache
from unmask.errors import Notice, UserError
from unmask.text import Tokenizer

pretrain = partial(pretrain_for, steps=1)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    """A folder with text, and a cache of its own."""
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("\n\n".join(documents(60)))
    (tmp_path / "texts" / "b.jsonl").write_text(json.dumps({"text": documents(1, seed=5)[0]}) + "\n")
    return tmp_path


def entries(home: Path) -> dict[str, list[str]]:
    return {group: sorted(os.listdir(home / "cache" / group)) for group in ("tokenizers", "data")}


def commands(said: str) -> list[list[str]]:
    return [shlex.split(line)[1:] for line in said.splitlines() if line.startswith("  unmask ")]


def test_text_becomes_a_model_and_the_commands_shown_make_the_same(home, monkeypatch):
    said = pretrain("bert", home / "texts", home / "run").err
    assert "tokens are all that the text allows; the usual number is 30,000" in said
    shown = commands(said)
    assert [words[0] for words in shown] == ["tokenizer", "prepare", "pretrain"]
    made = entries(home)
    monkeypatch.setenv("UNMASK_CACHE", str(home / "other"))
    words = [[word.replace(str(home / "cache"), str(home / "by-hand")) for word in line] for line in shown]
    for line in words:
        works(*(str(home / "run-2") if word == str(home / "run") else word for word in line))
    assert not (home / "other").exists()
    for file in ("weights.safetensors", "tokenizer.json", "recipe.json"):
        assert (home / "run" / file).read_bytes() == (home / "run-2" / file).read_bytes()
    manifest = home / "cache" / "data" / made["data"][0] / "manifest.json"
    assert manifest.read_bytes() == Path(words[1][-1], "manifest.json").read_bytes()


def prepared(home: Path, name: str = "bert", *settings: str) -> dict:
    """What is told when the text is prepared for a recipe; nothing is trained."""
    recipe = recipes.get(name, size="tiny", settings=settings)
    records = data_from_text(
        recipe, [home / "texts"], home / "run", Reading(), start=None, resume=False, overwrite=False, stop=lambda: False,
        shown=lambda *_, **__: [],
    )  # fmt: skip
    return list(records)[-1]


def test_the_cache_is_used_again_until_the_text_changes(home):
    first = prepared(home)
    again = prepared(home)
    assert again["cached"]
    assert not first["cached"]
    assert again["notes"] == first["notes"] != {}  # notes are shown each time
    with (home / "texts" / "a.txt").open("a") as file:
        file.write("\n\nAnother text about a new bridge. It is short.")
    assert prepared(home)["tokens"] > first["tokens"]
    assert [len(names) for names in entries(home).values()] == [2, 2]
    os.utime(home / "texts" / "a.txt", ns=(1, 1))  # the same size at another time may be another text
    assert not prepared(home)["cached"]


def test_what_the_recipe_needs_decides_the_tokenizer_and_the_columns(home):
    found = [prepared(home)["folder"], prepared(home, "bert", "hide.units=Words")["folder"]]
    assert [Shards(folder).manifest["words"] for folder in found] == ["none", "auto"]
    assert [len(names) for names in entries(home).values()] == [1, 2]
    assert Tokenizer.load(prepared(home, "gpt")["folder"]).roles.keys() >= {"start", "delimiter", "extract"}


def test_a_model_of_bytes_reads_blank_lines(home):
    said = pretrain("char-transformer", home / "texts" / "a.txt", home / "run", "--holdout", "10%").err
    assert "--whole" in commands(said)[1]
    assert commands(said)[1][commands(said)[1].index("--holdout") + 1] == "0.1"
    shards = Shards(home / "cache" / "data" / entries(home)["data"][0])
    assert shards.manifest["whole"]


def test_in_python_notices_are_warnings_and_a_recipe_is_taken_as_it_is(home):
    recipe = recipes.get("bert", size="tiny", settings=[*BERT, "tokenizer.lowercase=false"])
    with pytest.warns(Notice, match="the text allows") as caught:
        model = unmask.pretrain(
            recipe, home / "texts", home / "run", budget="2steps", device="cpu", progress=False
        )  # fmt: skip
    assert {one.filename for one in caught} == {__file__}
    assert "The" in model.tokenizer.backend.get_vocab()
    records: list[dict] = []
    unmask.pretrain(recipe, [home / "texts"], home / "again", budget="2steps", device="cpu", progress=records.append)
    events = [record.get("event") for record in records]
    assert events.index("prepared") < events.index("start")
    assert records[events.index("prepared")]["cached"]


def test_a_budget_in_time_begins_after_the_text_is_prepared(home, monkeypatch):
    began: list[float] = []

    def stop_here(*_, **options):
        began.append(options["began"])
        raise UserError("stopped here")

    monkeypatch.setattr("unmask.pretraining.pretrain", stop_here)
    start = time.monotonic()
    for data, from_the_command in ((home / "texts", False), (home / "cache" / "data", True)):
        given = data if not from_the_command else next(data.iterdir())
        with pytest.raises(UserError, match="stopped here"):
            unmask.pretrain("bert", given, home / "run", size="tiny", began=start, progress=lambda _: None)
    assert began[0] > start
    assert began[1] == start


def test_a_run_resumes_without_its_text_and_with_it(home):
    short = {"size": "tiny", "settings": BERT, "budget": "4steps", "device": "cpu"}
    unmask.pretrain("bert", home / "texts", home / "run", **short, progress=False)
    one = (home / "run" / "weights.safetensors").read_bytes()
    steps: list[int] = []
    unmask.pretrain("bert", home / "texts", home / "cut", **short, stop=lambda: steps.append(1) or len(steps) > 3)
    (home / "texts").rename(home / "away")
    works("pretrain", "--out", home / "cut", "--resume", "--device", "cpu")
    assert (home / "cut" / "weights.safetensors").read_bytes() == one
    (home / "away").rename(home / "texts")
    assert "is finished" in pretrain("bert", home / "texts", home / "cut", "--resume", steps=4).err
    (home / "texts" / "a.txt").write_text("Another text. It has two sentences.\n\nAnd another document. It is short.")
    assert "its text changed" in pretrain("bert", home / "texts", home / "cut", "--resume", steps=4, call=mistake)
    (home / "cache").rename(home / "gone")
    assert "no longer in the cache" in mistake("pretrain", "--out", home / "cut", "--resume")


def test_a_tokenizer_that_is_given_is_used(home):
    works("tokenizer", home / "texts", "--for", "bert", "--vocab", "120", "--out", home / "tok.json")
    said = pretrain("bert", home / "texts", home / "one", "--tokenizer", home / "tok.json").err
    assert [words[0] for words in commands(said)] == ["prepare", "pretrain"]
    pretrain("bert", home / "texts", home / "two", "--tokenizer", home / "one")
    assert len({Tokenizer.load(home / name).checksum for name in ("tok.json", "one", "two")}) == 1
    assert not (home / "cache" / "tokenizers").exists()
    said = pretrain("bert", home / "texts", home / "three", "--from", home / "one").err
    assert Tokenizer.load(home / "three").vocabulary.size == 120
    assert "--tokenizer has no effect with --from" in pretrain(
        "bert", home / "texts", home / "x", "--from", home / "one", "--tokenizer", home / "tok.json", call=mistake
    )


def test_a_tokenizer_without_the_special_tokens_of_the_layout_is_refused_before_preparing(home):
    works("tokenizer", home / "texts", "--kind", "wordpiece", "--out", home / "tok.json")
    said = pretrain("gpt", home / "texts", home / "run", "--tokenizer", home / "tok.json", call=mistake)
    assert "no start token" in said
    assert "--for RECIPE" in said
    works("tokenizer", home / "texts", "--for", "gpt", "--out", home / "gpt.json")
    said = pretrain("bert", home / "texts", home / "run", "--tokenizer", home / "gpt.json", call=mistake)
    assert "no mask token" in said
    assert not (home / "cache").exists()


@pytest.mark.parametrize("name", ["bert", "gpt", "spanbert", "xlnet"])
def test_a_tokenizer_for_a_recipe_has_its_kind_and_case(name, home):
    works("tokenizer", home / "texts", "--for", name, "--out", home / "one.json")
    made = unmask.train_tokenizer(home / "texts", home / "two.json", recipe=name, tell=lambda _: None)
    kind = recipes.get(name).tokenizer
    known = text.train(kind, text.Corpus([home / "texts"]), at_most=True)
    assert Tokenizer.load(home / "one.json").checksum == made.checksum == known.checksum
    assert ("The" in made.backend.get_vocab()) == (name == "spanbert")


def test_a_kind_and_a_recipe_are_not_named_together(home):
    words = ("tokenizer", home / "texts", "--for", "gpt", "--out", home / "t.json")
    assert "give one of them" in mistake(*words, "--kind", "bpe")
    assert "did you mean" in mistake(*("gtp" if word == "gpt" else word for word in words))
    assert "add --for RECIPE" in mistake("tokenizer", home / "texts", "--set", "a=1", "--out", home / "t.json")


@pytest.mark.parametrize("words, said", [
    (("{home}/none",), "not a file, not a folder, and not a glob"),
    (("{home}/empty",), "holds no .txt, .jsonl, .parquet"),
    (("{home}/blank",), "holds no text"),
    (("{home}/texts", "{home}/data"), "is prepared data and {home}/texts is not"),
    (("{home}/a-run",), "is a run, not text"),
    (("{home}/texts", "--lexicon", "{home}/words.tsv"), "--lexicon has no effect"),
    (("{home}/data", "--lines"), "--lines says how text is read, but no text is given"),
])  # fmt: skip
def test_what_cannot_be_read_is_refused_with_what_to_do(words, said, home):
    for name in ("empty", "blank", "a-run", "data"):
        (home / name).mkdir()
    (home / "blank" / "a.txt").write_text("\n \n")
    (home / "a-run" / "recipe.json").write_text("{}")
    (home / "data" / "manifest.json").write_text("{}")
    given = [word.format(home=home) for word in words]
    found = pretrain("bert", given[0], home / "run", *given[1:], call=mistake)
    assert said.format(home=home) in found
    assert not (home / "run").exists()
    assert not any((home / "cache").rglob("tokenizer.json"))


def test_levels_need_a_lexicon_which_can_be_given(home):
    said = pretrain("ernie", home / "texts", home / "run", call=mistake)
    assert "unmask lexicon TEXT --graph" in said
    (home / "words.tsv").write_text("open wound\tphrase\nLondon\tentity\n")
    stages = [word for i in range(3) for word in ("--set", f"schedule.{i}.length=32")]
    pretrain("ernie", home / "texts", home / "run", "--lexicon", home / "words.tsv", *stages)
    assert Shards(home / "cache" / "data" / entries(home)["data"][0]).manifest["lexicon"][0]["phrase"] == 1


def test_a_cache_that_cannot_be_written_is_told(home, monkeypatch):
    (home / "file").write_text("")
    monkeypatch.setenv("UNMASK_CACHE", str(home / "file" / "cache"))
    said = pretrain("bert", home / "texts", home / "run", call=mistake)
    assert "set UNMASK_CACHE" in said
    assert not (home / "run").exists()


def test_mistakes_are_found_before_the_text_is_read(home):
    (home / "run").mkdir()
    assert "exists already" in pretrain("bert", home / "texts", home / "run", call=mistake)
    assert "a budget is a number" in mistake(
        "pretrain", "bert", home / "texts", "--out", home / "x", "--budget", "20 apples"
    )
    assert "needs a view" in pretrain("bert", home / "texts", home / "x", "--set", "hide=Next", call=mistake)
    assert not (home / "cache").exists()


def test_the_cache_is_where_the_environment_says(monkeypatch, tmp_path):
    assert cache.cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("UNMASK_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.cache_folder() == tmp_path / "xdg" / "unmask"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # not allowed by the specification: ignored
    assert cache.cache_folder() == Path.home() / ".cache" / "unmask"


def test_two_that_make_the_same_entry_keep_one_of_them_whole(tmp_path):
    folder = cache.entry("data", text="the same")

    def make(number: int) -> None:
        with cache.filled(folder) as draft:
            for name in ("one", "two"):
                (draft / name).write_text(str(number))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(make, range(20)))
    assert (folder / "one").read_text() == (folder / "two").read_text()
    assert os.listdir(folder.parent) == [folder.name]


def test_what_fails_leaves_nothing_in_the_cache():
    folder = cache.entry("data", text="broken")

    def make() -> None:
        with cache.filled(folder) as draft:
            (draft / "one").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        make()
    assert os.listdir(folder.parent) == []


def test_with_json_the_commands_are_a_line_for_a_program(home):
    ran = run("pretrain", "roberta", home / "texts", "--out", home / "run", "--size", "tiny", "--budget", "1steps",
              "--device", "cpu", "--json", *(w for s in ONE_STAGE for w in ("--set", s)))  # fmt: skip
    lines = [json.loads(line) for line in ran.err.splitlines()]
    assert [line for line in lines if line.get("event") == "commands"][0]["commands"][0].startswith("unmask tokenizer ")


def test_a_segmenter_that_is_installed_later_makes_new_data(home, monkeypatch):
    recipe, made = recipes.get("bert-wwm", size="tiny"), []
    for installed in (False, True):
        monkeypatch.setattr("unmask.api.from_text.available", lambda words, has=installed: words if has else "spaces")
        folder = home / f"tokenizer-{installed}.json"
        text.train(text.WordPiece(vocab=200), documents(60)).save(folder)
        made.append(place(recipe, [home / "texts"], Reading(), folder).data)
    assert made[0] != made[1]


def test_text_that_changes_after_its_folder_is_named_is_not_cached(home):
    recipe = recipes.get("roberta", size="tiny")
    records = data_from_text(recipe, [home / "texts"], home / "run", Reading(), start=None, resume=False, overwrite=False,
                             stop=lambda: False, shown=lambda *_, **__: [])  # fmt: skip
    next(record for record in records if record["event"] == "commands")
    (home / "texts" / "a.txt").write_text("\n\n".join(documents(90)))
    with pytest.raises(UserError, match="the text changed"):
        list(records)
    assert not list((home / "cache" / "data").glob("[!.]*"))


def test_every_option_of_reading_is_refused_for_prepared_data(home, shards):
    for option in (["--holdout", "0"], ["--lines"], ["--encoding", "utf-8"]):
        said = mistake("pretrain", "bert", shards["wordpiece"], "--size", "tiny", "--out", home / "x", *option)
        assert f"{option[0]} says how text is read" in said
