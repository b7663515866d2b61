"""The whole way by the command line, on a small corpus: every verb, what it prints and what it leaves behind."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import unmask
from tests import command
from tests.command import mistake, pretrain, run, works
from tests.conftest import documents
from unmask import cli, tasks
from unmask.data.examples import Text
from unmask.errors import UserError
from unmask.infer import open_run
from unmask.tasks._labelled import read_texts
from unmask.train.log import read

VERBS = sorted(c.name or c.callback.__name__ for c in cli.app.registered_commands)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def plain(text: str) -> str:
    """Without the colours and lines of a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m|│", "", text)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Two tokenizers, their data and three runs, each made by its verb."""
    home = tmp_path_factory.mktemp("way")
    (home / "corpus").mkdir()
    (home / "corpus" / "text.txt").write_text("\n\n".join(documents(60)), encoding="utf-8")
    lines = [json.dumps({"text": text}) for text in documents(60, seed=1)]
    (home / "corpus" / "more.jsonl").write_text("\n".join(lines), encoding="utf-8")
    for kind, vocab in (("wordpiece", 200), ("byte-bpe", 330)):
        works("tokenizer", home / "corpus", "--kind", kind, "--vocab", vocab, "--out", home / f"{kind}.json")
        works("prepare", home / "corpus", "--tokenizer", home / f"{kind}.json", "--out", home / kind, "--holdout", "5%",
              "--workers", 1)  # fmt: skip
    for recipe, data in (("bert", "wordpiece"), ("roberta", "byte-bpe"), ("gpt2", "byte-bpe")):
        pretrain(recipe, home / data, home / recipe)
    return home


def labelled(path: Path, count: int = 24, pair: bool = False) -> Path:
    """Texts that hold 'doctor' or 'river', labelled by which."""
    rows = []
    for number, text in enumerate(documents(count, seed=7)):
        word = ("doctor", "river")[number % 2]
        text = f"The {word} opened the case. {text[:60]}"
        rows.append(({"text_a": text, "text_b": "It rained."} if pair else {"text": text}) | {"label": word})
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def adapted(place) -> Path:
    train, dev = labelled(place / "train.jsonl"), labelled(place / "dev.jsonl", 8)
    works("adapt", place / "bert", train, "--dev", dev, "--out", place / "adapted", "--device", "cpu",
          "--set", "epochs=2", "--set", "examples=8", "--set", "length=32")  # fmt: skip
    return place / "adapted"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_shows_an_example_of_its_use(verb):
    shown = " ".join(plain(works(verb, "--help").out).split())
    assert f"Example: unmask {verb}" in shown


def test_there_are_the_verbs_that_the_project_promises():
    wanted = "adapt check diff embed evaluate explain export fill generate import lexicon pretrain predict prepare recipes show tokenizer"
    assert set(wanted.split()) <= set(VERBS)


def test_recipes_lists_the_family_oldest_first():
    found = json.loads(works("recipes", "--json").out)
    assert {"bert", "gpt2", "roberta"} <= {entry["name"] for entry in found}
    assert [entry["year"] for entry in found] == sorted(entry["year"] for entry in found)
    shown = works("recipes").out
    assert all(entry["name"] in shown for entry in found)


def test_show_gives_every_value_with_changes_applied():
    found = json.loads(works("show", "bert", "--size", "tiny", "--set", "hide.budget=0.2", "--json").out)
    assert found["recipe"]["hide"]["budget"] == 0.2
    assert found["parameters"] > 0
    assert found["flops_per_token"] > 0
    shown = works("show", "bert", "--size", "tiny", "--set", "hide.budget=0.2").out
    assert re.search(r"hide\.budget\W+0\.2", shown)


def test_show_tells_what_is_trained_from_what_is_kept():
    price = json.loads(works("show", "electra", "--size", "tiny", "--json").out)
    assert price["kept"] < price["parameters"]
    shown = works("show", "electra", "--size", "tiny").out
    assert re.search(rf"parameters in training +{price['parameters']:,}\n", shown)
    assert re.search(rf"parameters kept +{price['kept']:,}\n", shown)


def test_diff_names_what_differs_and_nothing_else():
    found = json.loads(works("diff", "bert", "roberta", "--json").out)
    assert found["tokenizer"] == {"bert": "WordPiece", "roberta": "ByteBPE"}
    assert all(pair["bert"] != pair["roberta"] for pair in found.values())
    assert json.loads(works("diff", "bert", "bert", "--json").out) == {}
    assert "WordPiece" in works("diff", "bert", "roberta").out


def test_parts_lists_the_parts_of_an_axis_with_their_facts():
    found = json.loads(works("parts", "hide", "--json").out)
    assert {entry["axis"] for entry in found} == {"hide"}
    assert {"name", "about", "needs", "gives"} <= set(found[0])
    assert "Masked" in {entry["name"] for entry in found}
    shown = works("parts", "units").out
    assert re.search(r"units\W+Words\W+Every word is a unit\.\W+column:word", shown)
    assert "did you mean hide" in mistake("parts", "hid")


def test_the_help_of_adapt_names_every_task():
    shown = " ".join(plain(works("adapt", "--help").out).split())
    assert f"What to learn: {', '.join(tasks.names())}." in shown


@pytest.mark.parametrize("recipe", ["bert", "roberta", "gpt2"])
def test_explain_takes_a_recipe_by_name(recipe):
    text = "The doctor examined the patient. The river was cold."
    assert "doctor" in works("explain", recipe, text).out.lower()
    assert json.loads(works("explain", recipe, text, "--json").out)


def test_explain_takes_a_run_and_its_tokenizer(place):
    assert json.loads(works("explain", place / "bert", "The doctor opened the report.", "--json").out)


def test_tokenizer_and_prepare_report_what_they_made(place, tmp_path):
    made = json.loads(
        works("tokenizer", place / "corpus", "--vocab", 150, "--out", tmp_path / "tok.json", "--json").out
    )
    assert made["vocabulary"] == 150
    words = ("prepare", place / "corpus", "--tokenizer", tmp_path / "tok.json", "--workers", 1, "--json")
    found = json.loads(works(*words, "--out", tmp_path / "data").out)
    assert found["documents"] == 120
    assert found["vocabulary"] == 150
    assert found["tokens"] > 1000
    part = json.loads(
        works("prepare", f"{place / 'corpus'}:0.3", *words[2:], "--out", tmp_path / "part", "--words", "spaces").out
    )
    assert 15 < part["documents"] < 60


def test_lexicon_mines_phrases_and_names_and_prepare_finds_them(place, tmp_path):
    (tmp_path / "graph.tsv").write_text("London\tis\ta long bridge\nx\tis\t12\n")
    out = tmp_path / "phrases.tsv"
    words = ("lexicon", place / "corpus", "--graph", tmp_path / "graph.tsv", "--out", out, "--least-pmi", 0.3)
    ran = works(*words)
    assert "note: 1 name of one character, left out" in ran.err
    assert re.search(r"done: \d+ phrases and 2 entities, written to", ran.err)
    assert "exists already" in command.mistake(*words)
    found = json.loads(works(*words, "--overwrite", "--json").out)
    assert found["entities"] == 2
    assert found["phrases"] == len(out.read_text().splitlines()) - 2 > 5
    prepared = json.loads(works("prepare", place / "corpus", "--tokenizer", place / "wordpiece.json", "--lexicon", out,
                                "--lexicon", out, "--out", tmp_path / "data", "--workers", 1, "--json").out)  # fmt: skip
    assert [entry["entity"] for entry in prepared["lexicon"]] == [2, 2]
    assert np.fromfile(tmp_path / "data" / "train-00000.phrase", np.uint8).max() == 2
    manifest = unmask.prepare(
        place / "corpus", tmp_path / "again", tokenizer=place / "wordpiece.json", lexicon=out, workers=1
    )
    assert manifest["lexicon"] == prepared["lexicon"][:1]
    pretrain("bert", tmp_path / "data", tmp_path / "run", steps=1)


def test_lexicon_takes_a_graph_alone_and_refuses_options_without_effect(tmp_path):
    (tmp_path / "graph.jsonl").write_text('{"head": "New York", "relation": "in", "tail": "America"}\n')
    words = ("lexicon", "--graph", tmp_path / "graph.jsonl", "--out", tmp_path / "out.tsv")
    assert "nothing is mined without a CORPUS" in command.mistake(*words, "--least-count", 5)
    works(*words)
    assert (tmp_path / "out.tsv").read_text() == "America\tentity\t1\nNew York\tentity\t1\n"
    assert "give a corpus, or --graph" in command.mistake("lexicon", "--out", tmp_path / "other.tsv")
    summary = unmask.make_lexicon((), tmp_path / "api.tsv", graph=tmp_path / "graph.jsonl")
    assert summary["entities"] == 2


def test_prepare_takes_the_tokenizer_of_a_run(place, tmp_path):
    works("prepare", place / "corpus", "--tokenizer", place / "bert", "--out", tmp_path / "data", "--workers", 1)
    manifests = [json.loads((d / "manifest.json").read_text()) for d in (tmp_path / "data", place / "wordpiece")]
    assert manifests[0]["tokenizer"] == manifests[1]["tokenizer"]


@pytest.mark.parametrize("recipe", ["bert", "roberta", "gpt2"])
def test_pretrain_leaves_a_run_that_says_how_it_was_made(place, recipe):
    folder = place / recipe
    for name in ("weights.safetensors", "recipe.json", "tokenizer.json", "run.json", "log.jsonl"):
        assert (folder / name).is_file(), name
    records = read(folder)
    assert records[-1]["done"] is True
    assert records[-1]["step"] == 4
    assert "validation_loss" in records[-1]


def test_a_small_corpus_of_which_one_document_is_held_out_is_enough(place, tmp_path):
    works("prepare", place / "corpus", "--tokenizer", place / "bert", "--out", tmp_path / "data", "--workers", 1)
    pretrain("bert", tmp_path / "data", tmp_path / "run", steps=1)


def test_pretrain_takes_a_mixture_of_weighted_data(place, tmp_path):
    works("pretrain", "bert", f"{place / 'wordpiece'}:0.7", f"{place / 'wordpiece'}:0.3", "--out", tmp_path / "run",
          "--size", "tiny", "--budget", "2steps", "--device", "cpu", *command.settings(command.BERT))  # fmt: skip
    assert read(tmp_path / "run")[-1]["done"] is True


def test_pretrain_keeps_a_budget_of_time(place, tmp_path):
    ran = works("pretrain", "bert", place / "wordpiece", "--out", tmp_path / "run", "--size", "tiny", "--budget", "3s",
                "--device", "cpu", "--json", *command.settings(command.BERT))  # fmt: skip
    last = json.loads(ran.out)
    assert last["done"] is True
    assert last["steps"] == json.loads((tmp_path / "run" / "plan.jsonl").read_text().splitlines()[-1])["steps"]
    assert last["seconds"] < 6


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(place, tmp_path):
    for name, seed in (("one", 5), ("two", 5), ("three", 6)):
        ran = pretrain("roberta", place / "byte-bpe", tmp_path / name, "--seed", seed, "--json", steps=3)
        assert json.loads(ran.out)["step"] == 3
    one, two, three = ((tmp_path / n / "weights.safetensors").read_bytes() for n in ("one", "two", "three"))
    assert one == two
    assert one != three


@pytest.mark.parametrize("recipe,mask", [("bert", "[MASK]"), ("roberta", "<mask>"), ("roberta", "[MASK]")])
def test_fill_guesses_every_gap(place, recipe, mask):
    text = f"The {mask} examined the {mask} in the morning."
    found = json.loads(works("fill", place / recipe, text, "--top", 3, "--json").out)
    assert [len(guesses) for guesses in found] == [3, 3]
    chances = [guess["probability"] for guess in found[0]]
    assert chances == sorted(chances, reverse=True)
    assert found[0][0]["token"] in works("fill", place / recipe, text).out


def test_generate_goes_on_with_the_prompt_and_repeats_itself_by_seed(place):
    words = ("generate", place / "gpt2", "The doctor", "--tokens", 8, "--top-p", 0.9, "--top-k", 50)
    first, again, other = (works(*words, "--seed", seed).out for seed in (1, 1, 2))
    assert first.startswith("The doctor")
    assert first == again
    assert first != other
    assert json.loads(works(*words, "--seed", 1, "--json").out)["text"] == first.removesuffix("\n")
    cold = [works(*words[:5], "--greedy", "--seed", seed).out for seed in (1, 2)]
    assert cold[0] == cold[1]


def test_embed_writes_one_vector_per_text(place, tmp_path):
    (tmp_path / "texts.txt").write_text("The doctor slept.\nA river.\n\nThe doctor slept.\n", encoding="utf-8")
    ran = works("embed", place / "bert", tmp_path / "texts.txt", "--out", tmp_path / "v.npy", "--json")
    vectors = np.load(tmp_path / "v.npy")
    assert json.loads(ran.out)["shape"] == list(vectors.shape) == [3, 128]
    assert np.allclose(vectors[0], vectors[2], atol=1e-5)
    assert not np.allclose(vectors[0], vectors[1], atol=1e-3)
    works(
        "embed", place / "bert", tmp_path / "texts.txt", "--out", tmp_path / "v0.npy", "--pool", "summary", "--layer", 0
    )
    assert not np.allclose(np.load(tmp_path / "v0.npy"), vectors, atol=1e-3)


def test_an_adapted_model_is_evaluated(adapted, place):
    test = labelled(place / "test.jsonl", 10)
    scores = json.loads(works("evaluate", adapted, test, "--json").out)
    assert scores["examples"] == 10
    assert scores["labels"] == ["doctor", "river"]
    assert sum(map(sum, scores["confusion"])) == 10
    right = scores["confusion"][0][0] + scores["confusion"][1][1]
    assert scores["accuracy"] == pytest.approx(right / 10)
    assert "accuracy" in works("evaluate", adapted, test).out


def test_an_adapted_model_predicts_one_text_and_a_file(adapted, place, tmp_path):
    one = json.loads(works("predict", adapted, "The doctor opened the case.", "--json").out)
    assert one["label"] in ("doctor", "river")
    assert sum(one["probabilities"].values()) == pytest.approx(1, abs=1e-4)
    assert works("predict", adapted, "The doctor opened the case.").out.startswith(one["label"])
    texts = ["The doctor opened the case.", "The river is near, very near."]
    (tmp_path / "t.txt").write_text("\n".join(texts), encoding="utf-8")
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps({"text": t}) for t in texts), encoding="utf-8")
    (tmp_path / "t.csv").write_text("text\n" + "\n".join(f'"{t}"' for t in texts), encoding="utf-8")
    lines = [works("predict", adapted, tmp_path / f"t.{kind}", "--json").out for kind in ("txt", "jsonl", "csv")]
    assert lines[0] == lines[1] == lines[2]
    found = [json.loads(line) for line in lines[0].splitlines()]
    assert [row["text"] for row in found] == texts
    assert found[0]["probabilities"] == pytest.approx(one["probabilities"], abs=1e-4)


def beside(ran: command.Ran, *, lines: bool = False) -> list[dict]:
    """What is told on the error output, every line of it JSON; the result is one JSON value, or one a line."""
    assert all(json.loads(text) for text in (ran.out.splitlines() if lines else [ran.out]))
    return [json.loads(line) for line in ran.err.splitlines()]


def test_with_json_a_notice_is_a_line_of_json_on_the_error_output(place, tmp_path):
    works("prepare", place / "corpus", "--tokenizer", place / "bert", "--out", tmp_path / "data", "--holdout", 0,
          "--workers", 1)  # fmt: skip
    told = beside(pretrain("bert", tmp_path / "data", tmp_path / "run", "--json", steps=2))
    assert {
        "event": "notice",
        "text": "there is no validation, because too little text was held out when the data was prepared",
    } in told


def test_with_json_notes_are_a_line_of_json_on_the_error_output(adapted, place, tmp_path):
    """An adapted model reads what it was adapted with, 32 tokens, and a pretrained one the rows it was trained with, 64."""
    long, word = "the doctor opened " * 300, {"notes": {"texts longer than 32 tokens, cut": 1}}
    (tmp_path / "t.txt").write_text(f"{long}\nshort\n", encoding="utf-8")
    (tmp_path / "t.jsonl").write_text(json.dumps({"text": long, "label": "doctor"}), encoding="utf-8")
    assert beside(works("predict", adapted, tmp_path / "t.txt", "--json"), lines=True) == [word]
    assert beside(works("embed", adapted, tmp_path / "t.txt", "--out", tmp_path / "v.npy", "--json")) == [word]
    assert beside(works("evaluate", adapted, tmp_path / "t.jsonl", "--json")) == [word]
    word = {"notes": {"texts longer than 64 tokens, cut": 1}}
    assert beside(works("fill", place / "bert", f"[MASK] {long}", "--json")) == [word]
    assert beside(works("fill", place / "bert", "[MASK] slept.", "--json")) == []


def test_blank_lines_of_a_file_of_texts_are_left_out_and_told(adapted, place, tmp_path):
    (tmp_path / "t.txt").write_text("The doctor slept.\nA river.\n\nThe rain.\n \n", encoding="utf-8")
    told = "blank lines left out (the first is line 3)"
    for words in (
        ("predict", adapted, tmp_path / "t.txt"),
        ("generate", place / "gpt2", "--file", tmp_path / "t.txt", "--tokens", 2),
        ("embed", adapted, tmp_path / "t.txt", "--out", tmp_path / "v.npy", "--overwrite"),
    ):
        assert f"note: 2 {told}" in works(*words).err
        ran = works(*words, "--json")
        assert beside(ran, lines=words[0] != "embed") == [{"notes": {told: 2}}]
        assert words[0] == "embed" or len(ran.out.splitlines()) == 3
    assert np.load(tmp_path / "v.npy").shape[0] == 3


def test_a_single_blank_line_is_told_and_a_text_without_any_says_nothing(tmp_path):
    (tmp_path / "t.txt").write_text("a\n\nb\n", encoding="utf-8")
    assert read_texts(tmp_path / "t.txt") == ([Text("a"), Text("b")], {"blank line left out (line 2)": 1})
    (tmp_path / "t.txt").write_text("a\nb\n", encoding="utf-8")
    assert read_texts(tmp_path / "t.txt") == ([Text("a"), Text("b")], {})


def test_only_line_ends_part_the_texts_of_a_file(tmp_path):
    (tmp_path / "t.txt").write_bytes("a\u2028b\r\nc\x0cd\x85e\n".encode())
    assert read_texts(tmp_path / "t.txt") == ([Text("a\u2028b"), Text("c\x0cd\x85e")], {})


def test_with_json_a_source_that_was_cut_to_write_from_is_told(place, tmp_path):
    (tmp_path / "t.jsonl").write_text(json.dumps({"source": "the doctor", "target": "slept"}), encoding="utf-8")
    works(
        "adapt", place / "bert", tmp_path / "t.jsonl", "--task", "write", "--out", tmp_path / "run", "--set", "epochs=1"
    )
    told = beside(works("generate", tmp_path / "run", "the doctor " * 400, "--tokens", 2, "--json"))
    assert told == [{"notes": {"sources longer than 59 tokens, cut": 1}}]


@pytest.mark.parametrize("task", ["classify", "write"])
def test_what_is_cut_from_the_dev_file_is_told(task, place, tmp_path):
    names = ("text", "label") if task == "classify" else ("source", "target")
    texts = [("doctor", "a"), ("river", "b"), ("river " * 600, "b")]
    for file, rows in (("train", texts[:2]), ("dev", texts)):
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
        (tmp_path / f"{file}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    words = ("adapt", place / "bert", tmp_path / "train.jsonl", "--dev", tmp_path / "dev.jsonl", "--task", task,
             "--set", "epochs=1", "--overwrite", "--out", tmp_path / "run")  # fmt: skip
    assert "1 text longer than 64 tokens, cut (dev)" in works(*words).err
    assert {"notes": {"texts longer than 64 tokens, cut (dev)": 1}} in beside(works(*words, "--json"))


def test_a_model_adapted_to_pairs_predicts_a_pair(place, tmp_path):
    train = labelled(tmp_path / "pairs.jsonl", 8, pair=True)
    works("adapt", place / "gpt2", train, "--out", tmp_path / "run", "--set", "epochs=1", "--set", "examples=4")
    found = json.loads(works("predict", tmp_path / "run", "The doctor slept.", "It rained.", "--json").out)
    assert (found["text_a"], found["text_b"]) == ("The doctor slept.", "It rained.")
    assert found["label"] in ("doctor", "river")
    other = json.loads(works("predict", tmp_path / "run", "The doctor slept.", "A river.", "--json").out)
    assert found["probabilities"] != other["probabilities"]
    assert "reads pairs: give two texts" in mistake("predict", tmp_path / "run", "The doctor slept.")


def test_adapting_learns_labels_that_a_word_gives_away_and_is_repeatable(place, tmp_path):
    train = labelled(tmp_path / "train.jsonl", 32)
    words = ("adapt", place / "bert", train, "--dev", train, "--set", "epochs=30", "--set", "examples=8", "--json")
    ends = [json.loads(works(*words, "--out", tmp_path / name).out) for name in ("one", "two")]
    assert ends[0]["validation_accuracy"] > 0.9
    one, two = ((tmp_path / name / "weights.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two


def test_a_fresh_control_starts_from_other_weights(place, tmp_path):
    train = labelled(tmp_path / "train.jsonl", 8)
    words = ("adapt", place / "bert", train, "--set", "epochs=0.1", "--set", "rate=1e-9")
    works(*words, "--out", tmp_path / "tuned")
    works(*words, "--out", tmp_path / "fresh", "--fresh")
    base, tuned, fresh = (
        open_run(folder, device="cpu").system.backbone.embed.token.weight
        for folder in (place / "bert", tmp_path / "tuned", tmp_path / "fresh")
    )
    assert torch.allclose(base, tuned, atol=1e-6)
    assert not torch.allclose(base, fresh, atol=1e-3)


@pytest.mark.parametrize("recipe", ["bert", "roberta", "gpt2"])
def test_a_model_exported_and_imported_gives_the_same_vectors(place, tmp_path, recipe):
    files = json.loads(works("export", place / recipe, tmp_path / "hf", "--json").out)["files"]
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {Path(file).name for file in files}
    report = json.loads(works("import", tmp_path / "hf", "--out", tmp_path / "back", "--json").out)
    assert report["recipe"] == recipe
    assert not report["missing"]
    vectors = [unmask.load(folder, device="cpu").embed(documents(3)) for folder in (place / recipe, tmp_path / "back")]
    assert np.allclose(*vectors, atol=1e-5)


def test_a_run_is_continued_on_new_text(place, tmp_path):
    (tmp_path / "new.txt").write_text("\n\n".join(documents(30, seed=9)), encoding="utf-8")
    works("prepare", tmp_path / "new.txt", "--tokenizer", place / "bert", "--out", tmp_path / "new", "--holdout", "10%",
          "--workers", 1)  # fmt: skip
    pretrain("bert", tmp_path / "new", tmp_path / "still", "--from", place / "bert", "--set", "optimise.rate=1e-9")
    before, after = (open_run(f, device="cpu").system.state_dict() for f in (place / "bert", tmp_path / "still"))
    assert all(torch.allclose(before[name], after[name], atol=1e-6) for name in before)
    pretrain("bert", tmp_path / "new", tmp_path / "moved", "--from", place / "bert")
    moved = open_run(tmp_path / "moved", device="cpu").system.state_dict()
    assert any(not torch.allclose(before[name], moved[name], atol=1e-4) for name in before)


def test_an_imported_model_is_continued_and_adapted(place, tmp_path):
    works("export", place / "bert", tmp_path / "hf")
    works("import", tmp_path / "hf", "--out", tmp_path / "back")
    works("prepare", place / "corpus", "--tokenizer", tmp_path / "back", "--out", tmp_path / "data", "--holdout", "5%",
          "--workers", 1)  # fmt: skip
    pretrain("bert", tmp_path / "data", tmp_path / "on", "--from", tmp_path / "back", steps=2)
    works("adapt", tmp_path / "on", labelled(tmp_path / "t.jsonl", 8), "--out", tmp_path / "task", "--set", "epochs=1")


def test_no_verb_shows_the_verbs():
    ran = run()
    assert all(verb in ran.out + ran.err for verb in VERBS)


def test_the_python_api_goes_the_same_way(place, tmp_path):
    unmask.train_tokenizer(place / "corpus", tmp_path / "tok.json", kind="wordpiece", vocab=180)
    manifest = unmask.prepare(
        place / "corpus", tmp_path / "data", tokenizer=tmp_path / "tok.json", holdout=0.05, workers=1
    )
    assert manifest["documents"] == 120
    model = unmask.pretrain("bert", tmp_path / "data", tmp_path / "run", size="tiny", settings=command.BERT,
                            budget="2steps", device="cpu")  # fmt: skip
    assert "bert tiny" in repr(model)
    assert len(model.fill("The [MASK] slept.", top=2)[0]) == 2
    assert model.embed("One text.").shape == (1, 128)
    train = labelled(tmp_path / "train.jsonl", 8)
    tuned = model.adapt(train, tmp_path / "task", dev=train)
    assert tuned.labels == ("doctor", "river")
    assert tuned.evaluate(train)["examples"] == 8
    assert len(tuned.predict(["a text", ("a text", "and another")][:1])) == 1
    with pytest.raises(UserError, match="two texts, but .* reads one"):
        tuned.predict(("a text", "and another"))
    assert tuned.history[-1]["kept_epoch"] in tuned.history[-1]["epochs"]
    files = model.export(tmp_path / "hf")
    assert files
    back, report = unmask.import_hf(tmp_path / "hf", tmp_path / "back")
    assert back.recipe.name == report.recipe == "bert"
    assert unmask.load(tmp_path / "run").tokenizer.checksum == model.tokenizer.checksum
    assert unmask.explain("bert", "The doctor slept.")
    assert "gpt2" in [entry.name for entry in unmask.list_recipes()]
    gpt2 = unmask.load(place / "gpt2", device="cpu")
    assert gpt2.generate("The", tokens=3).startswith("The")
