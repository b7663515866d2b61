"""Exported tokenizers: whatever class opens them splits English and Chinese as ours do, or export says otherwise."""

import shutil

import pytest
import transformers as hf

from tests.command import works
from tests.convert.parts import SENTENCES, model_of, recipe_of
from unmask import text
from unmask.convert import export_hf, import_hf
from unmask.infer.model import open_run, save_run

ENGLISH = "The Café's cat, e.g. a naïve one, was UNBELIEVABLE in 2020!"
CHINESE = "今天天气很好，我们去ABC公园（2020年）。 Hello 世界"
TEXTS = [ENGLISH, CHINESE]
CORPUS = [*TEXTS * 5, *SENTENCES]
LOWER, CASED = text.WordPiece(vocab=100), text.WordPiece(vocab=105, lowercase=False)


def model(kind, folder, name="bert"):
    return model_of(recipe_of(name), text.train(kind, CORPUS), folder)


@pytest.mark.parametrize("auto", [hf.AutoTokenizer, hf.BertTokenizer, hf.BertTokenizerFast])
@pytest.mark.parametrize("kind", [LOWER, CASED], ids=["lower", "cased"])
@pytest.mark.parametrize("alone", [False, True], ids=["whole folder", "vocab.txt alone"])
def test_a_wordpiece_is_the_same_in_every_class_that_opens_it(tmp_path, kind, auto, alone):
    ours = model(kind, tmp_path)
    made = export_hf(ours, tmp_path / "hf")
    assert "vocab.txt" in made.files
    assert made.notes == ()
    if alone:
        (tmp_path / "hf" / "tokenizer.json").unlink()
        settings = tmp_path / "hf" / "tokenizer_config.json"
        settings.write_text(settings.read_text().replace("PreTrainedTokenizerFast", "BertTokenizer"))
    theirs = auto.from_pretrained(tmp_path / "hf")
    cls, sep = ours.tokenizer.role("cls"), ours.tokenizer.role("sep")
    for words in TEXTS:
        assert theirs(words)["input_ids"] == [cls, *ours.tokenizer.encode(words), sep]


def test_our_own_import_reads_vocab_txt(tmp_path):
    ours = model(CASED, tmp_path)
    export_hf(ours, tmp_path / "hf")
    (tmp_path / "hf" / "tokenizer.json").unlink()
    import_hf(tmp_path / "hf", tmp_path / "run")
    theirs = open_run(tmp_path / "run", device="cpu").tokenizer
    assert [theirs.encode(words) for words in TEXTS] == [ours.tokenizer.encode(words) for words in TEXTS]


@pytest.mark.parametrize("name, usual", [("bert", "BertTokenizer"), ("electra", "ElectraTokenizer")])
def test_of_characters_auto_tokenizer_is_right_and_the_note_says_that_bert_tokenizer_is_not(tmp_path, name, usual):
    ours = model(text.Characters(vocab=200), tmp_path, name)
    made = export_hf(ours, tmp_path / "hf")
    assert "vocab.txt" not in made.files
    theirs = hf.AutoTokenizer.from_pretrained(tmp_path / "hf")
    for words in TEXTS:
        assert theirs(words, add_special_tokens=False)["input_ids"] == ours.tokenizer.encode(words)
    assert hf.BertTokenizer.from_pretrained(tmp_path / "hf")(CHINESE) != theirs(CHINESE)
    (note,) = made.notes
    assert "AutoTokenizer" in note
    assert usual in note


def test_the_command_line_says_so(tmp_path):
    save_run(model(text.Characters(vocab=200), tmp_path), tmp_path / "run")
    said = works("export", tmp_path / "run", tmp_path / "hf").err
    assert "note: open the tokenizer with AutoTokenizer: it is Characters" in said
    shutil.rmtree(tmp_path / "hf")
    assert '"notes": [' in works("export", tmp_path / "run", tmp_path / "hf", "--json").out


def test_an_export_over_another_leaves_no_vocabulary_of_the_other(tmp_path):
    export_hf(model(LOWER, tmp_path), tmp_path / "hf")
    export_hf(model(text.Characters(vocab=200), tmp_path), tmp_path / "hf", overwrite=True)
    assert not (tmp_path / "hf" / "vocab.txt").exists()
