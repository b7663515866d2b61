"""How long a text a model reads: never at positions that it was not trained on, and as it was adapted."""

import pytest
import transformers as hf

from tests.adapt.made import SHAPE, base_of
from tests.command import mistake, works
from unmask import recipes
from unmask.convert import export_hf, import_hf
from unmask.data.examples import Laid, Text
from unmask.errors import UserError
from unmask.infer import answer, embed
from unmask.infer.model import Model, open_run, save_run
from unmask.infer.passes import batches, laid_out
from unmask.system import with_network_of
from unmask.tasks import Choose, Classify, Write

LONG = "the river opened the case near London " * 20


def base(tokenizers, folder, *settings):
    """A BERT with room for 48 tokens, of which the first 24 were trained."""
    return base_of("bert", tokenizers["wordpiece"], folder, "schedule.0.length=16", "schedule.1.length=24", *settings)


def widest(model, text):
    return max(batch.real.sum(1).max().item() for _, batch in batches(model, laid_out(model, Laid([Text(text)]))[0]))


def test_a_model_with_learned_positions_reads_as_far_as_its_longest_rows(tokenizers, tmp_path):
    model = base(tokenizers, tmp_path)
    assert (model.length, model.places) == (24, 48)
    assert widest(model, LONG) == 24
    assert embed(model, [LONG]).notes == {"texts longer than 24 tokens, cut": 1}


@pytest.mark.parametrize("settings", [["system.backbone.positions=Sinusoidal"], []])
def test_a_network_whose_positions_are_not_learned_may_read_more(settings, tokenizers, tmp_path):
    if settings:
        model = base(tokenizers, tmp_path, *settings)
    else:
        model = base_of("xlnet", tokenizers["unigram"], tmp_path, "schedule.0.length=24", "system.backbone.head=8")
    assert model.length == model.places == 48
    assert widest(model, LONG) == 48


@pytest.mark.parametrize("task", [Classify(labels=("a", "b")), Choose(), Write()])
def test_by_default_it_is_adapted_at_the_length_it_was_trained_with(task, tokenizers, tmp_path):
    recipe = task.recipe(base(tokenizers, tmp_path))
    assert recipe.schedule[0].length == recipe.longest == 24


def test_what_it_was_adapted_with_is_what_it_reads(tokenizers, tmp_path):
    for model in (
        base(tokenizers, tmp_path),
        base_of("xlnet", tokenizers["unigram"], tmp_path, "system.backbone.head=8"),
    ):
        recipe = Classify(length=12, labels=("a", "b")).recipe(model)
        system = recipe.system.build(recipe, model.tokenizer.vocabulary, 0)
        adapted = Model(system.eval(), recipe, model.tokenizer, tmp_path)
        assert adapted.length == 12
        assert widest(adapted, LONG) == 12
        assert answer(adapted, [LONG]).notes == {"texts longer than 12 tokens, cut": 1}


def test_a_longer_text_than_was_trained_is_refused_with_advice(tokenizers, tmp_path):
    model = base(tokenizers, tmp_path)
    with pytest.raises(UserError, match=r"length=32 is too long for .* trained with at most 24 tokens: leave length out, or "
                       r"pretrain with longer rows \(--set schedule\.\*\.length=32\)"):  # fmt: skip
        Classify(length=32, labels=("a", "b")).recipe(model)
    longer = recipes.get("bert", size="tiny", settings=[*SHAPE, "schedule.*.length=32"])  # the advice, followed
    assert longer.longest == 32


def test_an_imported_model_reads_as_far_as_its_network(tokenizers, tmp_path):
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    theirs = hf.ElectraForPreTraining(hf.ElectraConfig(
        vocab_size=tokenizers["wordpiece"].vocabulary.size, embedding_size=16, max_position_embeddings=512, **size))  # fmt: skip
    theirs.save_pretrained(tmp_path / "hf")
    tokenizers["wordpiece"].save(tmp_path / "hf" / "tokenizer.json")
    import_hf(tmp_path / "hf", tmp_path / "run")
    model = open_run(tmp_path / "run", device="cpu")
    assert max(stage.length for stage in model.recipe.schedule) < 512
    assert model.length == 512


def test_going_on_with_shorter_rows_forgets_no_positions(tokenizers, tmp_path):
    before = base(tokenizers, tmp_path).recipe
    asked = recipes.get("bert", size="tiny", settings=[*SHAPE, "schedule.*.length=16"])
    assert with_network_of(asked, before).longest == 24
    longer = recipes.get("bert", size="tiny", settings=[*SHAPE, "schedule.*.length=40"])
    assert with_network_of(longer, before).longest == 40


def test_transformers_is_told_the_length_that_was_trained(tokenizers, tmp_path):
    export_hf(base(tokenizers, tmp_path), tmp_path / "hf")
    tokenizer = hf.AutoTokenizer.from_pretrained(tmp_path / "hf")
    assert tokenizer.model_max_length == 24
    assert len(tokenizer(LONG, truncation=True)["input_ids"]) == 24


def test_from_the_command_line_an_adapted_model_keeps_its_length(tokenizers, tmp_path):
    save_run(base(tokenizers, tmp_path / "base"), tmp_path / "base")
    (tmp_path / "t.csv").write_text("text,label\n" + "a doctor,x\na river,y\n" * 4 + f"{LONG},x\n")
    words = (
        "adapt",
        tmp_path / "base",
        tmp_path / "t.csv",
        "--out",
        tmp_path / "run",
        "--set",
        "epochs=1",
        "--device",
        "cpu",
    )
    assert "1 text longer than 12 tokens, cut" in works(*words, "--set", "length=12").err
    assert "1 text longer than 12 tokens, cut" in works("evaluate", tmp_path / "run", tmp_path / "t.csv").err
    assert "length=40 is too long" in mistake(*words, "--overwrite", "--set", "length=40")
