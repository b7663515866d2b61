"""Writing from a source: what is predicted of a pair, what is learnt of eight, with a cache and beams, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers, trainers

import unmask
from tests.command import mistake, works
from unmask import adapt, recipes
from unmask.data.examples import Text, rows_of
from unmask.data.pack_examples import batch_of
from unmask.errors import UserError
from unmask.evaluate import evaluate_file
from unmask.infer import Beams, Greedy, Sampling, fill, generate, open_run, stream
from unmask.infer.model import Model, save_run
from unmask.infer.passes import laid_out
from unmask.see import Everything, Prefix
from unmask.tasks import Classify, Write
from unmask.tasks import write as task
from unmask.tasks.write import Pair
from unmask.text import Tokenizer

SURE = Greedy()
KIND = {"bert": "wordpiece", "unilm": "wordpiece", "roberta": "byte-bpe", "bart": "byte-bpe", "electra": "wordpiece"}
PAIRS = [
    Text(f"{subject} {verb} the report", target)
    for subject, verb, target in (
        ("the doctor", "examined", "the doctor"), ("the judge", "ignored", "the judge ignored the case"),
        ("a patient", "opened", "three valves"), ("our server", "measured", "no evidence"),
        ("the river", "followed", "the river followed a long bridge near london"), ("my teacher", "sold", "every window"),
        ("the old engine", "repaired", "the data"), ("a small company", "described", "an open wound without delay"),
    )
]  # fmt: skip

LEARNT = [Pair(pair.a, pair.b) for pair in PAIRS]


def base_of(name: str, tokenizers, folder, *settings: str) -> Model:
    """A small network with fresh weights, as if it had been pretrained."""
    lengths = [f"schedule.{i}.length=48" for i in range(len(recipes.get(name).schedule))]
    small = ["system.backbone.length=48", "system.backbone.dropout=0.0", *lengths]
    recipe = recipes.get(name, size="tiny", settings=[*small, *settings])
    tokenizer = tokenizers[KIND.get(name, "byte-bpe")]
    return Model(recipe.system.build(recipe, tokenizer.vocabulary, 0).eval(), recipe, tokenizer, folder)


def written(model: Model, source: str, **options) -> str:
    return "".join(stream(model, source, sampling=SURE, **options).value)


@pytest.mark.parametrize(
    "see, reason",
    [
        ("LeftToRight", "sees only the tokens before a gap: continue a text with 'unmask generate'"),
        ("RightToLeft", "does not see both sides of a gap: use a model whose tokens see all others"),
        ("Prefix", "was trained to write a second text: let it write with 'unmask generate'"),
    ],
)
def test_a_model_that_fills_no_gaps_says_why(see, reason, tokenizers, tmp_path):
    with pytest.raises(UserError, match=reason):
        fill(base_of("bert", tokenizers, tmp_path, f"see={see}"), "The [MASK] slept.")
    assert (
        len(fill(base_of("unilm", tokenizers, tmp_path), "The [MASK] slept.").value) == 1
    )  # one of its views is everything


@pytest.mark.parametrize("name", ["bert", "unilm", "roberta"])
def test_only_the_second_text_and_its_end_are_ever_hidden(name, tokenizers, tmp_path):
    base = base_of(name, tokenizers, tmp_path / "base", "system.backbone.length=96")
    recipe = Write().recipe(base)
    system = recipe.system.build(recipe, base.tokenizer.vocabulary, 0)
    rows, _ = rows_of(PAIRS, [0] * 8, base.tokenizer, recipe.layout, 96)
    ever = torch.zeros(rows.ids.shape, dtype=torch.bool)
    for visit in range(30):
        batch = batch_of(rows, np.arange(8), visit)
        after, counts = system.hide(batch)
        used = after.targets["tokens"].weight > 0
        chosen = torch.zeros(batch.ids.numel(), dtype=torch.bool)
        chosen[after.targets["tokens"].where[used]] = True
        chosen = chosen.view(batch.shape)
        assert torch.equal(after.ids[~chosen], batch.ids[~chosen])
        assert torch.equal(after.targets["tokens"].ids[used], batch.ids.flatten()[after.targets["tokens"].where[used]])
        assert int(counts["tokens"]) == int(used.sum())
        ever[:, : batch.shape[1]] |= chosen
    for row, pair in enumerate(PAIRS):
        first, second = (base.tokenizer.encode(text) for text in (pair.a, pair.b))
        before = {"bert": 2, "unilm": 2, "roberta": 3}[name] + len(first)  # with the special tokens around it
        allowed = [False] * before + [True] * (len(second) + 1)  # and [SEP]
        found = ever[row].tolist()
        assert found[: len(allowed)] == allowed
        assert not any(found[len(allowed) :])
    share = [round(0.7 * (len(base.tokenizer.encode(pair.b)) + 1)) for pair in PAIRS]
    assert chosen.sum(1).tolist() == share


def test_a_left_to_right_model_predicts_only_the_second_text_and_its_end(tokenizers, tmp_path):
    base = base_of("gpt2", tokenizers, tmp_path / "base", "system.backbone.length=96")
    recipe = Write().recipe(base)
    system = recipe.system.build(recipe, base.tokenizer.vocabulary, 0)
    rows, _ = rows_of(PAIRS, [0] * 8, base.tokenizer, recipe.layout, 96)
    targets = system.hide(batch_of(rows, np.arange(8)))[0].targets["tokens"]
    width = batch_of(rows, np.arange(8)).shape[1]
    for row, pair in enumerate(PAIRS):
        mine = (targets.weight > 0) & (targets.where // width == row)
        assert targets.ids[mine].tolist() == [*base.tokenizer.encode(pair.b), base.tokenizer.role("sep")]
    with pytest.raises(UserError, match="hidden=0.5 is for models that fill gaps, but .* leave hidden out"):
        Write(hidden=0.5).recipe(base)


def writer(name: str, tokenizers, folder) -> Model:
    """A model that writes, with random weights that make some tokens much more likely than others."""
    base = base_of(name, tokenizers, folder)
    recipe = Write().recipe(base)
    model = Model(recipe.system.build(recipe, base.tokenizer.vocabulary, 3).eval(), recipe, base.tokenizer, folder)
    for parameter in model.system.parameters():
        parameter.data.mul_(3.0)
    return model


def test_a_decoder_reads_rows_that_are_only_as_long_as_its_texts(tokenizers, tmp_path):
    """In narrow rows the loss is that of rows with all the padding."""
    model = writer("bart", tokenizers, tmp_path)
    rows, _ = laid_out(model, Write().lay_out(LEARNT))
    batch = batch_of(rows, np.arange(8))
    narrow, wide = (model.system.hide(one)[0] for one in (batch, batch.replace(sides=None)))
    real = [int(found.real.sum(1).max()) for found in (wide, wide.decoder)]
    assert [narrow.shape[1], narrow.decoder.shape[1]] == [-(-size // 8) * 8 for size in real]
    assert wide.shape == wide.decoder.shape == batch.shape > narrow.shape
    with torch.no_grad():
        one, other = (model.system.step(found)[0]["tokens"] for found in (narrow, wide))
    assert float(one.count) == float(other.count) > 40
    assert float(one.total) == pytest.approx(float(other.total), rel=1e-5)


@pytest.mark.parametrize("name", ["bert", "unilm", "gpt2", "gpt-bert"])
@pytest.mark.parametrize("how", [Greedy(no_repeat=2), Sampling(), Beams(3, 0.6, length_offset=5, least=4)])
def test_a_cache_changes_no_text(name, how, tokenizers, tmp_path):
    """The oracle is reading everything again for every token, without a cache."""
    model, sources = writer(name, tokenizers, tmp_path), [pair.a for pair in PAIRS[:4]]
    exact = [one.ids for one in generate(model, sources, tokens=9, sampling=how, cached=False).value]
    assert [one.ids for one in generate(model, sources, tokens=9, sampling=how).value] == exact
    assert len(set(exact)) > 1


@pytest.mark.parametrize("name", ["deberta", "xlnet"])
def test_a_model_that_cannot_keep_two_texts_says_so_and_answers_without_a_cache(name, tokenizers, tmp_path):
    model = unmask.Model.of(writer(name, tokenizers, tmp_path))
    with pytest.raises(UserError, match="cannot keep two texts in a cache: generate with cached=False"):
        model.generate(PAIRS[0].a)
    how = {"beams": 4, "length_penalty": 0.6, "length_offset": 5}
    assert model.predict(PAIRS[0].a)[0].text == model.generate(PAIRS[0].a, tokens=24, cached=False, **how)


@pytest.mark.parametrize("name", ["bert", "unilm", "gpt2", "bart"])
def test_eight_pairs_are_learnt_and_written_exactly(name, tokenizers, tmp_path):
    longer = ("system.backbone.length=64", "schedule.0.length=64") if name in ("gpt2", "bart") else ()  # shorter tokens
    base = base_of(name, tokenizers, tmp_path / "base", *longer)
    how = Write(epochs=6, examples=8, rate=2e-3)
    records = list(adapt.adapt(base, LEARNT * 20, tmp_path / "run", task=how))
    assert records[-1]["done"]
    model = open_run(tmp_path / "run", device="cpu")
    if name in ("bert", "unilm"):
        assert model.recipe.all_tracks()[model.recipe.writing].see == Prefix()
        assert model.recipe.see == (Everything() if name == "unilm" else Prefix())
    for pair in PAIRS:
        assert written(model, pair.a, tokens=30) == pair.b
        assert unmask.Model.of(model).generate(pair.a, tokens=30, greedy=True) == pair.b
    said = works("generate", tmp_path / "run", PAIRS[4].a, "--greedy", "--tokens", 30, "--device", "cpu")
    assert said.out == PAIRS[4].b + "\n"
    told = works("generate", tmp_path / "run", PAIRS[4].a, "--greedy", "--tokens", 30, "--json")
    assert json.loads(told.out)["text"] == PAIRS[4].b
    asked = base.tokenizer.encode(PAIRS[4].b)[:3]
    assert written(model, PAIRS[4].a, tokens=3) == base.tokenizer.decode(asked)  # no more than asked for
    path = tmp_path / "test.jsonl"
    path.write_text("\n".join(json.dumps({"source": p.a, "target": p.b}) for p in PAIRS), encoding="utf-8")
    scores = evaluate_file(model, path)
    assert (scores["examples"], scores["exact"], scores["rouge_l"]) == (8, 1.0, 1.0)
    assert scores["bleu"] == pytest.approx(100)
    if name == "gpt2":
        check_that_the_search_can_be_changed(tmp_path / "run", path)


def check_that_the_search_can_be_changed(run, path) -> None:
    cut = works("evaluate", run, path, "--set", "most=2", "--set", "beams=1", "--json")
    assert "written texts are cut after 2 tokens: set most=4 for longer ones" in cut.err
    cut = json.loads(cut.out)
    assert all(len(text) < len(pair.b) for text, pair in zip(cut["written"], PAIRS, strict=True))
    said = works("predict", run, PAIRS[1].a, "--set", "most=2", "--json").out
    assert json.loads(said)["written"] == cut["written"][1]
    assert "are cut after" not in works("predict", run, PAIRS[1].a).err
    said = mistake("generate", run, PAIRS[1].a, "--min-tokens", 9, "--tokens", 8)
    assert "--min-tokens 9 is more than --tokens 8" in said
    said = mistake("evaluate", run, path, "--set", "epochs=4")
    assert "--set epochs cannot be changed after training: it can change beams, length_penalty" in said


def test_with_a_dev_set_the_loss_there_is_told_and_the_best_weights_are_kept(tokenizers, tmp_path):
    base = base_of("bert", tokenizers, tmp_path / "base")
    records = list(
        adapt.adapt(base, LEARNT, tmp_path / "run", dev=LEARNT[:3], task=Write(epochs=3, examples=8, rate=1e-3))
    )
    scores = [r["validation_score"] for r in records if "validation_score" in r]
    assert scores == [-r["validation_loss"] for r in records if "validation_loss" in r]
    assert len(scores) == 3
    assert scores[-1] > scores[0]


def test_a_model_that_writes_can_still_be_adapted_to_tell_labels_apart(tokenizers, tmp_path):
    """It reads with the view of everything, in training as when it is served."""
    base = base_of("unilm", tokenizers, tmp_path / "base")
    recipe = Write().recipe(base)
    writer = Model(
        recipe.system.build(recipe, base.tokenizer.vocabulary, 0), recipe, base.tokenizer, tmp_path / "writer"
    )
    labelled = Classify(dropout=0.0, labels=("no", "yes")).recipe(writer)
    assert labelled.see == Everything()
    system = labelled.system.build(labelled, base.tokenizer.vocabulary, 0).eval()
    rows, _ = rows_of(PAIRS, [0, 1] * 4, base.tokenizer, labelled.layout, 48)
    batch = batch_of(rows, np.arange(8))
    prepared, counts = system.hide(batch)
    assert int(counts["label"]) == 8
    with torch.no_grad():
        assert torch.equal(system.backbone(prepared)[0].last, system.look(batch).last)


def test_long_sources_are_cut_and_counted(tokenizers, tmp_path):
    base = base_of("unilm", tokenizers, tmp_path / "base")
    long = "the doctor examined the report " * 20
    assert not stream(base, PAIRS[0].a, tokens=8).notes
    text = written(base, long, tokens=8)
    room = 48 - 8 - 3
    assert dict(stream(base, long, tokens=8).notes) == {f"sources longer than {room} tokens, cut": 1}
    kept = base.tokenizer.decode(base.tokenizer.encode(long)[:room])
    assert text == written(base, kept, tokens=8)
    assert not stream(base, kept, tokens=8).notes
    with pytest.raises(
        UserError,
        match="--tokens 48 leaves no room for the source, because the model reads 48 tokens in all: ask for fewer --tokens",
    ):
        written(base, "the doctor", tokens=48)


def test_a_unilm_writes_as_it_was_pretrained_and_the_seed_decides(tokenizers, tmp_path):
    base = base_of("unilm", tokenizers, tmp_path / "base")
    texts = ["".join(stream(base, PAIRS[0].a, tokens=12, seed=seed).value) for seed in (0, 0, 1)]
    assert texts[0] == texts[1] != texts[2]
    assert "[MASK]" not in texts[0] + texts[2]


def test_long_pairs_are_cut_and_counted_when_adapting(tokenizers, tmp_path):
    base = base_of("bert", tokenizers, tmp_path / "base")
    long = [Pair("the doctor examined the report " * 20, "the judge")] * 2
    first = next(iter(adapt.adapt(base, [*LEARNT, *long], tmp_path / "run", task=Write(epochs=1, length=32))))
    assert first["notes"] == {"texts longer than 32 tokens, cut": 2}


@pytest.mark.parametrize(
    "row, expected",
    [
        ({"source": "a text"}, 'line 2: an example needs "source" and "target", both texts'),
        ({"target": "a text"}, 'line 2: an example needs "source" and "target", both texts'),
        ({"source": "a text", "target": 5}, "both texts; got {'target': 5}"),
        ({"source": 5, "target": "a text"}, 'line 2: an example needs "source" and "target"'),
        ({"text": "a text", "label": "x"}, "got the columns ['label', 'text']"),
    ],
)
def test_a_file_without_sources_or_targets_is_told_the_line(row, expected, tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(json.dumps(r) for r in ({"source": "x", "target": "y"}, row)), encoding="utf-8")
    with pytest.raises(UserError) as caught:
        task.read(path)
    assert expected in str(caught.value)
    assert str(path) in str(caught.value)


def test_pairs_with_an_empty_side_are_left_out_and_counted(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text('source,target\nx,y\n ,y\nx,\nx," "\nu,v\n', encoding="utf-8")
    pairs, notes = task.read(path)
    assert [(pair.source, pair.target) for pair in pairs] == [("x", "y"), ("u", "v")]
    assert notes == {f"pairs with an empty source or target, left out; the first is {path}, line 3": 3}
    pairs, notes = task.read(path, labelled=False)
    assert ([pair.source for pair in pairs], notes) == (
        ["x", "x", "x", "u"],
        {f"empty sources, left out; the first is {path}, line 3": 1},
    )
    (tmp_path / "lines.txt").write_text("x\n\nu v\n", encoding="utf-8")
    pairs, notes = task.read(tmp_path / "lines.txt", labelled=False)
    assert [pair.source for pair in pairs] == ["x", "u v"]
    assert list(notes) == [f"empty sources, left out; the first is {tmp_path / 'lines.txt'}, line 2"]


def test_an_empty_file_and_none_at_all_are_mistakes(tmp_path):
    (tmp_path / "void.jsonl").write_text("\n")
    with pytest.raises(UserError, match="holds no examples"):
        task.read(tmp_path / "void.jsonl")
    with pytest.raises(UserError, match="no such file"):
        task.read(tmp_path / "none.jsonl")


def test_an_empty_source_is_a_mistake(tokenizers, tmp_path):
    with pytest.raises(UserError, match="the source text is empty"):
        written(base_of("unilm", tokenizers, tmp_path), " ", tokens=8)


def without_mask(folder) -> Model:
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.train_from_iterator(
        ["the doctor"], trainers.BpeTrainer(special_tokens=["<|endoftext|>"], show_progress=False)
    )
    tokenizer = Tokenizer(backend)
    recipe = recipes.get("gpt2", size="tiny", settings=["see=Everything"])
    return Model(recipe.system.build(recipe, tokenizer.vocabulary, 0), recipe, tokenizer, folder)


def test_models_that_cannot_write_say_so_before_anything_is_made(tokenizers, tmp_path):
    out = tmp_path / "run"
    with pytest.raises(UserError, match=r"hides parts of the target, and the tokenizer has no \[MASK\]: adapt"):
        list(adapt.adapt(without_mask(tmp_path / "bert"), LEARNT, out, task=Write()))
    electra = base_of("electra", tokenizers, tmp_path / "electra")
    with pytest.raises(UserError, match="electra cannot be adapted to writing, because it does not predict tokens"):
        list(adapt.adapt(electra, LEARNT, out, task=Write()))
    assert not out.exists()
    bert = base_of("bert", tokenizers, tmp_path / "bert")
    with pytest.raises(UserError, match="use 'unmask fill', or adapt it with 'unmask adapt --task write'"):
        unmask.Model.of(bert).generate("the doctor")
    with pytest.raises(UserError, match="electra cannot generate text: it predicts replaced"):
        written(electra, "the doctor")
    with pytest.raises(UserError, match="--cut-left is for a prompt that is continued"):
        unmask.Model.of(base_of("unilm", tokenizers, tmp_path / "unilm")).generate("the doctor", cut_left=True)


@pytest.mark.parametrize("name", ["bart", "gpt2", "transformer"])
def test_a_vocabulary_without_an_end_is_a_mistake_before_training(name, tmp_path):
    """Without a token that ends a text, writing would never end."""
    backend = Backend(models.WordLevel({"<pad>": 0, "<s>": 1, "<mask>": 2, "the": 3, "doctor": 4}, unk_token="the"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.add_special_tokens(["<pad>", "<s>", "<mask>"])
    recipe = recipes.get(name, size="tiny", settings=["schedule.0.length=32"])
    tokenizer = Tokenizer(backend)
    model = Model(recipe.system.build(recipe, tokenizer.vocabulary, 0), recipe, tokenizer, tmp_path / "base")
    with pytest.raises(UserError, match="the tokenizer has no sep token"):
        list(adapt.adapt(model, LEARNT, tmp_path / "run", task=Write()))
    with pytest.raises(UserError, match="the tokenizer has no sep token"):
        unmask.Model.of(model).generate("the doctor")
    assert not (tmp_path / "run").exists()


def test_a_folder_that_is_there_is_kept(tokenizers, tmp_path):
    base = base_of("bert", tokenizers, tmp_path / "base")
    save_run(base, tmp_path / "base")
    for out, message in ((tmp_path, "exists already"), (tmp_path / "base", "exists already")):
        with pytest.raises(UserError, match=message):
            list(adapt.adapt(base, LEARNT, out, task=Write()))
    with pytest.raises(UserError, match="is the run that the new one starts from: choose another --out"):
        list(adapt.adapt(base, LEARNT, tmp_path / "base", task=Write(), overwrite=True))


def test_the_command_line_tells_a_mistake_in_one_line(tokenizers, tmp_path):
    save_run(base_of("electra", tokenizers, tmp_path / "run"), tmp_path / "run")
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps({"source": "x", "target": "y"}), encoding="utf-8")
    words = ("adapt", tmp_path / "run", path, "--out", tmp_path / "out", "--device", "cpu")
    assert "does not predict tokens" in mistake(*words, "--task", "write")
    assert "unknown task 'writ': did you mean write" in mistake(*words, "--task", "writ")
    assert "beams must be 1 or more, got 0" in mistake(*words, "--task", "write", "--set", "beams=0")
    assert "most must be 1 or more, and not under least=9, got 3" in mistake(
        *words, "--task", "write", "--set", "most=3", "--set", "least=9"
    )
    assert "hidden must be in (0, 1], got 70" in mistake(*words, "--task", "write", "--set", "hidden=70")
    assert not (tmp_path / "out").exists()


def test_a_file_is_read_by_the_task_that_is_asked_for(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps({"source": "the doctor", "target": "the judge"}), encoding="utf-8")
    with pytest.raises(UserError, match='needs "text"'):
        adapt.read_files(Classify(), path)
    assert len(adapt.read_files(Write(), path).examples) == 1
