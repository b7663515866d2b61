"""A generator and its discriminator: two folders of transformers', one run of ours."""

import json

import pytest
import torch
import transformers as hf

from tests.command import mistake, works
from tests.convert.parts import (
    PAIRS,
    PARITY,
    SENTENCES,
    TEXTS,
    assert_same_vectors,
    folder_of,
    generate,
    look,
    model_of,
    recipe_of,
    run,
    score,
    tokenizer,
    weights,
)
from tests.convert.test_import import bert, electra
from unmask import recipes, text
from unmask.convert import export_hf, import_hf
from unmask.errors import UserError
from unmask.infer import fill
from unmask.infer.model import open_run, save_run
from unmask.system import GeneratorDiscriminator, Single

BOTH = pytest.mark.parametrize("texts", [TEXTS, PAIRS], ids=["one text", "two texts"])


def generator(**changes):
    small = {"hidden_size": 8, "num_attention_heads": 1, "intermediate_size": 20}
    return electra(hf.ElectraForMaskedLM, **(small | changes))


def with_embeddings_of(network, other):
    network.electra.embeddings.load_state_dict(other.electra.embeddings.state_dict())
    return network


def written(tmp_path, judge, guess, tokens=None):
    return (
        folder_of(judge, tokenizer(), tmp_path / "discriminator"),
        folder_of(guess, tokens or tokenizer(), tmp_path / "generator"),
    )


def imported(tmp_path, judge, guess):
    folder, second = written(tmp_path, judge, guess)
    report = import_hf(folder, tmp_path / "run", generator=second)
    return open_run(tmp_path / "run", device="cpu"), report


@BOTH
@pytest.mark.parametrize("embedding", [12, 16])
def test_a_discriminator_alone_gives_the_same_scores_and_gets_a_fresh_generator(tmp_path, texts, embedding):
    network = electra(embedding_size=embedding)
    report = import_hf(folder_of(network, tokenizer(), tmp_path / "hf"), tmp_path / "run")
    model = open_run(tmp_path / "run", device="cpu")
    batch, hidden = look(model, texts)
    theirs = run(network, batch, segments=True)
    assert_same_vectors(hidden, theirs, batch)
    replaced = score(model, "replaced", batch, hidden)
    torch.testing.assert_close(replaced[batch.real], theirs.logits[batch.real], **PARITY)
    assert (report.architecture, report.recipe) == ("ElectraForPreTraining", "electra")
    assert report.parameters == network.num_parameters()
    assert not report.left_over
    assert report.missing
    assert all(name.startswith(("generator.", "fill.")) for name in report.missing)
    assert not [name for name in report.missing if ".embed." in name], "the embeddings are the discriminator's"


def test_a_bare_network_gets_a_fresh_head_too_and_can_be_pretrained_on(tmp_path):
    report = import_hf(folder_of(electra(hf.ElectraModel), tokenizer(), tmp_path / "hf"), tmp_path / "run")
    assert "predict.replaced.out.weight" in report.missing
    model = open_run(tmp_path / "run", device="cpu")
    prepared, counts = model.system.hide(look(model, TEXTS)[0])
    losses, _ = model.system.step(prepared)
    assert losses.keys() == counts.keys() == {"tokens", "replaced"}
    assert all(torch.isfinite(loss.total) for loss in losses.values())


@BOTH
@pytest.mark.parametrize("shared", [True, False], ids=["same embeddings", "other embeddings"])
def test_both_networks_give_the_same_vectors_and_scores(tmp_path, texts, shared):
    judge = electra()
    guess = with_embeddings_of(generator(), judge) if shared else generator()
    model, report = imported(tmp_path, judge, guess)
    assert model.recipe.system.shared == shared
    batch, hidden = look(model, texts)
    theirs = run(judge, batch, segments=True)
    assert_same_vectors(hidden, theirs, batch)
    replaced = score(model, "replaced", batch, hidden)
    torch.testing.assert_close(replaced[batch.real], theirs.logits[batch.real], **PARITY)
    guessed, tokens = generate(model, batch)
    theirs = run(guess, batch, segments=True)
    assert_same_vectors(guessed, theirs, batch)
    torch.testing.assert_close(tokens[batch.real], theirs.logits[batch.real], **PARITY)
    assert (report.missing, report.left_over) == ((), ())
    twice = sum(p.numel() for p in judge.electra.embeddings.parameters()) if shared else 0
    assert report.parameters == judge.num_parameters() + guess.num_parameters() - twice


def test_a_generator_alone_is_a_single_network_that_fills(tmp_path):
    import_hf(folder_of(generator(), tokenizer(), tmp_path / "hf"), tmp_path / "run")
    model = open_run(tmp_path / "run", device="cpu")
    assert isinstance(model.recipe.system, Single)
    assert len(fill(model, "The [MASK] sat.", top=3).value[0]) == 3
    assert export_hf(model, tmp_path / "again").architecture == "ElectraForMaskedLM"


@pytest.mark.parametrize("changes, message", [
    ({"embedding_size": 8}, "embeddings of one width, got 8 and 12"),
    ({"max_position_embeddings": 48}, "texts of one length, got 48 and 64"),
    ({"type_vocab_size": 4}, "as many kinds of segments, got 4 and 2"),
    ({"hidden_size": 24, "num_attention_heads": 2}, "wider than its discriminator"),
])  # fmt: skip
def test_a_generator_that_does_not_go_with_the_discriminator_is_refused(tmp_path, changes, message):
    with pytest.raises(UserError, match=message):
        imported(tmp_path, electra(), generator(**changes))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("judge, guess, message", [
    (bert, generator, "first folder is BertForPreTraining: leave --generator out"),
    (generator, generator, "first folder is ElectraForMaskedLM: leave --generator out"),
    (electra, electra, "no generator but ElectraForPreTraining: give a folder of ElectraForMaskedLM"),
    (electra, bert, "no generator but BertForPreTraining"),
])  # fmt: skip
def test_folders_that_are_no_pair_are_refused(tmp_path, judge, guess, message):
    with pytest.raises(UserError, match=message):
        imported(tmp_path, judge(), guess())


def test_a_generator_with_another_vocabulary_is_refused(tmp_path):
    other = text.train(text.WordPiece(vocab=70), [sentence[::-1] for sentence in SENTENCES] * 3)
    folder, second = written(tmp_path, electra(), generator(), other)
    with pytest.raises(UserError, match="another vocabulary"):
        import_hf(folder, tmp_path / "run", generator=second)


def pair(folder, *settings):
    return model_of(recipe_of("electra", *settings), tokenizer(), folder)


@BOTH
@pytest.mark.parametrize("settings", [
    (), ("system.shared=false",), ("system.learned=true",), ("system.backbone.embedding=none",), ("system.fill.tied=false",),
    ("system.backbone.segments=3",), ("system.shared=false", "system.backbone.length=80"),
])  # fmt: skip
def test_the_generator_is_exported_when_asked_for(tmp_path, texts, settings):
    model = pair(tmp_path, *settings)
    made = export_hf(model, tmp_path / "hf", generator=True)
    assert (made.architecture, made.left_out) == ("ElectraForMaskedLM", ("discriminator",))
    network, info = hf.AutoModelForMaskedLM.from_pretrained(tmp_path / "hf", output_loading_info=True)
    assert not [keys for keys in info.values() if keys]
    batch, _ = look(model, texts)
    theirs = run(network.eval(), batch, segments=True)
    guessed, tokens = generate(model, batch)
    assert_same_vectors(guessed, theirs, batch)
    torch.testing.assert_close(tokens[batch.real], theirs.logits[batch.real], **PARITY)


@pytest.mark.parametrize("variant, architecture, left_out", [
    ("paper", "ElectraForPreTraining", ("generator",)),
    ("hidden-only", "ElectraForPreTraining", ("generator",)),
    ("replace-mlm", "ElectraForMaskedLM", ("generator",)),
    ("all-tokens", "ElectraModel", ("original", "generator")),
])  # fmt: skip
def test_the_ablations_keep_what_transformers_has(tmp_path, variant, architecture, left_out):
    model = model_of(recipes.get("electra", size="tiny", variant=variant), tokenizer(), tmp_path)
    made = export_hf(model, tmp_path / "hf")
    assert (made.architecture, made.left_out) == (architecture, left_out)
    network, info = getattr(hf, architecture).from_pretrained(tmp_path / "hf", output_loading_info=True)
    assert not [keys for keys in info.values() if keys]
    batch, hidden = look(model, TEXTS)
    assert_same_vectors(hidden, run(network.eval(), batch, segments=True), batch)


@pytest.mark.parametrize("settings", [
    (), ("system.shared=false",), ("system.backbone.embedding=none",),
])  # fmt: skip
def test_import_of_both_exports_has_identical_weights_and_recipe_parts(tmp_path, settings):
    # a file of weights does not say how they were drawn
    model = pair(tmp_path, "system.backbone.positions.start=random", *settings)
    save_run(model, tmp_path / "a")
    export_hf(model, tmp_path / "discriminator")
    export_hf(model, tmp_path / "generator", generator=True)
    report = import_hf(tmp_path / "discriminator", tmp_path / "b", generator=tmp_path / "generator")
    assert (report.missing, report.left_over) == ((), ())
    before, after = weights(tmp_path / "a"), weights(tmp_path / "b")
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key], after[key]) for key in before)
    one, other = (json.loads((tmp_path / run / "recipe.json").read_text()) for run in ("a", "b"))
    assert {key: (one[key], other[key]) for key in ("layout", "predict", "see", "arrange", "hide", "system")
            if one[key] != other[key]} == {}  # fmt: skip


def test_a_run_without_a_generator_says_so(tmp_path):
    with pytest.raises(UserError, match="has no generator, bert trained a single network"):
        export_hf(model_of(recipe_of("bert"), tokenizer(), tmp_path), tmp_path / "hf", generator=True)


def test_a_pair_that_came_in_can_be_trained_on(tmp_path):
    model, _ = imported(tmp_path, electra(), generator())
    assert isinstance(model.recipe.system, GeneratorDiscriminator)
    prepared, _ = model.system.hide(look(model, TEXTS)[0])
    losses, _ = model.system.step(prepared)
    assert all(torch.isfinite(loss.total) for loss in losses.values())


def test_the_command_line_exports_and_imports_the_one_and_the_other(tmp_path):
    save_run(pair(tmp_path), tmp_path / "run")
    said = works("export", tmp_path / "run", tmp_path / "discriminator").err
    assert "ElectraForPreTraining has no place for, and leaves out: generator" in said
    made = json.loads(works("export", tmp_path / "run", tmp_path / "generator", "--generator", "--json").out)
    assert (made["architecture"], made["left_out"]) == ("ElectraForMaskedLM", ["discriminator"])
    alone = json.loads(works("import", tmp_path / "discriminator", "--out", tmp_path / "one", "--json").out)
    assert "fill.dense.weight" in alone["missing"]
    words = ("import", tmp_path / "discriminator", "--generator", tmp_path / "generator", "--out", tmp_path / "both")
    assert json.loads(works(*words, "--json").out)["missing"] == []


def labelled(path):
    path.write_text("\n".join(json.dumps({"text": text, "label": i % 2}) for i, text in enumerate(SENTENCES)))
    return path


def test_an_adapted_discriminator_is_exported_if_its_head_is_that_of_transformers(tmp_path):
    save_run(pair(tmp_path), tmp_path / "run")
    train = labelled(tmp_path / "train.jsonl")
    words = ("adapt", tmp_path / "run", train, "--set", "epochs=1", "--device", "cpu")
    works(*words, "--out", tmp_path / "tanh", "--set", "pooler=true", "--set", "activation=tanh")
    assert "--set activation=gelu" in mistake("export", tmp_path / "tanh", tmp_path / "hf")
    works(*words, "--out", tmp_path / "mean", "--set", "pool=mean")  # no layer before the output
    works(*words, "--out", tmp_path / "gelu", "--set", "pooler=true")
    works("export", tmp_path / "gelu", tmp_path / "hf")
    network = hf.AutoModelForSequenceClassification.from_pretrained(tmp_path / "hf").eval()
    assert type(network) is hf.ElectraForSequenceClassification
    model = open_run(tmp_path / "gelu", device="cpu")
    batch, hidden = look(model, TEXTS)
    theirs = run(network, batch, segments=True)
    torch.testing.assert_close(score(model, "label", batch, hidden), theirs.logits, **PARITY)


def test_an_activation_without_a_pooler_is_refused(tmp_path):
    save_run(pair(tmp_path), tmp_path / "run")
    train = labelled(tmp_path / "train.jsonl")
    said = mistake("adapt", tmp_path / "run", train, "--out", tmp_path / "x", "--set", "pool=mean", "--set",
                   "activation=gelu")  # fmt: skip
    assert (
        "activation=gelu sets the activation of the dense layer before the output, but there is no such layer" in said
    )
