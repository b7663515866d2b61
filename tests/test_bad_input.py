"""What goes wrong is told in one line that says what to do, and nothing of the user's is lost."""

import csv
import errno
import gzip
import json
import shutil
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers

import unmask
from tests import command
from tests.command import mistake, pretrain, snapshot, works
from tests.conftest import documents
from unmask.infer import open_run
from unmask.tasks import classify
from unmask.tasks.classify import Classify
from unmask.text import documents as reading
from unmask.train import checkpoint
from unmask.train.log import Log, read
from unmask.train.loop import Trainer


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def tok(tokenizers, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("tok") / "tok.json"
    tokenizers["wordpiece"].save(path)
    return path


@pytest.fixture(scope="module")
def data(shards) -> Path:
    return shards["wordpiece"]


@pytest.fixture(scope="module")
def bert(data, tmp_path_factory) -> Path:
    """A run that reads 64 tokens at most."""
    folder = tmp_path_factory.mktemp("runs") / "bert"
    pretrain("bert", data, folder, "--set", "system.backbone.length=64", steps=2)
    return folder


@pytest.fixture(scope="module")
def gpt2(shards, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "gpt2"
    pretrain("gpt2", shards["byte-bpe"], folder, steps=2)
    return folder


@pytest.fixture(scope="module")
def adapted(bert, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    works("adapt", bert, examples(folder / "train.jsonl"), "--out", folder / "adapted", "--set", "epochs=1")
    return folder / "adapted"


def examples(path: Path, *rows: dict) -> Path:
    """A labelled file: a few good examples, then these."""
    good = [{"text": f"The {word} slept.", "label": word} for word in ("doctor", "river") * 4]
    path.write_text("\n".join(json.dumps(row) for row in [*good, *rows]), encoding="utf-8")
    return path


def prepare(corpus: object, tok: Path, out: Path, *words: object, call=works):
    return call("prepare", corpus, "--tokenizer", tok, "--out", out, "--workers", 1, *words)


class TestCorpus:
    def test_a_missing_corpus_is_named(self, tok, tmp_path):
        said = prepare(tmp_path / "none.txt", tok, tmp_path / "data", call=mistake)
        assert "no such corpus" in said
        assert "none.txt" in said
        assert "no such corpus" in mistake("tokenizer", tmp_path / "none.txt", "--out", tmp_path / "t.json")

    @pytest.mark.parametrize("content", ["", "\n \n\t\n"])
    def test_an_empty_corpus_is_named_and_leaves_nothing_behind(self, tok, tmp_path, content):
        (tmp_path / "void.txt").write_text(content)
        said = prepare(tmp_path / "void.txt", tok, tmp_path / "data", call=mistake)
        assert "void.txt" in said
        assert "empty" in said
        assert "empty" in mistake("tokenizer", tmp_path / "void.txt", "--vocab", 50, "--out", tmp_path / "t.json")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["void.txt"]

    def test_a_folder_without_text_and_a_file_of_unknown_format_are_told_what_is_read(self, tok, tmp_path):
        (tmp_path / "folder").mkdir()
        (tmp_path / "text.docx").write_text("x")
        assert ".jsonl" in prepare(tmp_path / "folder", tok, tmp_path / "data", call=mistake)
        assert ".jsonl" in prepare(tmp_path / "text.docx", tok, tmp_path / "data", call=mistake)

    def test_a_byte_that_is_not_utf8_is_named_with_its_file_and_offset(self, tok, tmp_path):
        good = "The doctor slept.\n\n" * 5
        (tmp_path / "latin.txt").write_bytes(good.encode() + "Caf\xe9 open.\n".encode("latin-1"))
        for words in (("tokenizer", tmp_path / "latin.txt", "--vocab", 40),
                      ("prepare", tmp_path / "latin.txt", "--tokenizer", tok, "--workers", 1)):  # fmt: skip
            said = mistake(*words, "--out", tmp_path / "out")
            assert "latin.txt is not UTF-8" in said
            assert f"0xe9 at offset {len(good) + 3}" in said
            assert "--errors replace" in said
            assert not (tmp_path / "out").exists()

    def test_bytes_that_are_not_utf8_are_replaced_and_counted_on_request(self, tok, tmp_path):
        (tmp_path / "latin.txt").write_bytes("Caf\xe9.\n\nTh\xe9.\n\nFine.\n".encode("latin-1"))
        ran = prepare(tmp_path / "latin.txt", tok, tmp_path / "data", "--errors", "replace")
        assert "2 lines with bytes that are not UTF-8, replaced" in ran.err
        notes = json.loads((tmp_path / "data" / "manifest.json").read_text())["notes"]
        assert notes == {"lines with bytes that are not UTF-8, replaced": 2}
        assert "strict or replace" in prepare("x", tok, tmp_path / "d", "--errors", "ignore", call=mistake)

    def test_a_very_long_line_is_cut_into_parts_and_counted(self, tok, tmp_path, monkeypatch):
        text = "The doctor slept. " * 200
        (tmp_path / "long.txt").write_text(text + "\n\nShort.\n")
        prepare(tmp_path / "long.txt", tok, tmp_path / "whole", "--holdout", 0)
        monkeypatch.setattr(reading, "LONGEST_TEXT", 500)
        ran = prepare(tmp_path / "long.txt", tok, tmp_path / "parts", "--holdout", 0)
        assert "1 documents longer than 500 characters, cut into parts" in ran.err
        whole, parts = (json.loads((tmp_path / n / "manifest.json").read_text()) for n in ("whole", "parts"))
        assert parts["documents"] > whole["documents"] == 2
        assert parts["tokens"] == whole["tokens"]

    def test_a_line_too_long_for_the_memory_is_named_with_its_place(self, tok, tmp_path, monkeypatch):
        (tmp_path / "long.txt").write_text("Fine.\n" + "x" * 5000)
        monkeypatch.setattr(reading, "LONGEST_LINE", 1000)
        said = prepare(tmp_path / "long.txt", tok, tmp_path / "data", call=mistake)
        assert "at byte 6" in said
        assert "line breaks" in said

    def test_a_truncated_gzip_is_named_as_damaged(self, tok, tmp_path):
        noise = np.random.default_rng(0)
        text = " ".join(map(str, noise.integers(1 << 30, size=5000))).encode()
        (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(text)[:-2000])
        said = prepare(tmp_path / "cut.txt.gz", tok, tmp_path / "data", call=mistake)
        assert "cut.txt.gz is damaged" in said
        assert "again" in said
        assert not (tmp_path / "data").exists()

    def test_a_gzip_with_wrong_bytes_is_named_as_damaged(self, tok, tmp_path):
        raw = bytearray(gzip.compress(b"The doctor slept. " * 1000))
        raw[10] |= 0b110  # a kind of block that does not exist
        with pytest.raises(zlib.error):
            gzip.decompress(raw)
        (tmp_path / "bad.txt.gz").write_bytes(raw)
        assert "is damaged" in prepare(tmp_path / "bad.txt.gz", tok, tmp_path / "data", call=mistake)

    @pytest.mark.parametrize("line", ["not json", '{"body": "x"}', '{"text": 5}', '["text"]'])
    def test_a_line_of_json_without_a_text_is_named_with_its_number(self, tok, tmp_path, line):
        (tmp_path / "c.jsonl").write_text('{"text": "Fine."}\n' + line)
        said = prepare(tmp_path / "c.jsonl", tok, tmp_path / "data", call=mistake)
        assert "line 2" in said
        assert '"text"' in said

    @pytest.mark.parametrize("share", ["0", "1.5", "-0.1"])
    def test_an_impossible_share_of_a_corpus_is_refused(self, corpus, tok, tmp_path, share):
        assert "(0, 1]" in prepare(f"{corpus}:{share}", tok, tmp_path / "data", call=mistake)

    @pytest.mark.parametrize("share", ["lots", "15", "100%", "-1%", "nan"])
    def test_a_holdout_that_means_nothing_is_refused(self, corpus, tok, tmp_path, share):
        said = prepare(corpus, tok, tmp_path / "data", f"--holdout={share}", call=mistake)
        assert "0.5%" in said
        assert not (tmp_path / "data").exists()

    def test_a_large_holdout_holds_out_about_so_much(self, corpus, tok, tmp_path):
        prepare(corpus, tok, tmp_path / "data", "--holdout", "0.75")
        splits = json.loads((tmp_path / "data" / "manifest.json").read_text())["splits"]
        assert sum(shard["documents"] for shard in splits["train"]) == pytest.approx(30, abs=8)


class TestTokenizer:
    def test_a_vocabulary_larger_than_the_corpus_allows_is_refused_with_the_largest(self, corpus, tmp_path):
        said = mistake("tokenizer", corpus, "--vocab", 5000, "--out", tmp_path / "t.json")
        assert "5,000 were asked for" in said
        largest = said.partition("--vocab ")[2].split()[0]
        assert not (tmp_path / "t.json").exists()
        works("tokenizer", corpus, "--vocab", largest, "--out", tmp_path / "t.json")

    def test_a_vocabulary_of_nothing_is_refused(self, corpus, tmp_path):
        assert "over 5" in mistake("tokenizer", corpus, "--vocab", 3, "--out", tmp_path / "t.json")

    def test_an_unknown_kind_lists_the_nearest(self, corpus, tmp_path):
        said = mistake("tokenizer", corpus, "--kind", "wordpeice", "--out", tmp_path / "t.json")
        assert "did you mean wordpiece" in said

    def test_a_file_that_is_no_tokenizer_is_named(self, corpus, tmp_path):
        assert "no tokenizer at" in prepare(corpus, tmp_path / "none.json", tmp_path / "data", call=mistake)
        (tmp_path / "t.json").write_text('{"a": 1}')
        assert "is not a tokenizer.json" in prepare(corpus, tmp_path / "t.json", tmp_path / "data", call=mistake)

    def test_a_tokenizer_without_mask_is_refused_by_a_masked_recipe_and_taken_by_another(self, corpus, tmp_path):
        backend = Backend(models.WordLevel({"<|endoftext|>": 0, "the": 1, "The": 2, ".": 3}, unk_token="<|endoftext|>"))
        backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        backend.add_special_tokens(["<|endoftext|>"])
        backend.save(str(tmp_path / "t.json"))
        prepare(corpus, tmp_path / "t.json", tmp_path / "data", "--holdout", "5%")
        said = pretrain("roberta", tmp_path / "data", tmp_path / "run", call=mistake)
        assert "no mask token" in said
        assert "unmask tokenizer" in said
        assert not (tmp_path / "run").exists()
        pretrain("gpt2", tmp_path / "data", tmp_path / "run", steps=1)


class TestData:
    def test_a_folder_that_was_not_prepared_is_told_how_to(self, tmp_path):
        (tmp_path / "raw").mkdir()
        assert "unmask prepare" in pretrain("bert", tmp_path / "raw", tmp_path / "run", call=mistake)
        assert not (tmp_path / "run").exists()

    def test_data_of_two_tokenizers_is_not_mixed(self, shards, tmp_path):
        both = (shards["wordpiece"], shards["byte-bpe"])
        said = mistake("pretrain", "bert", *both, "--out", tmp_path / "run", "--size", "tiny", "--device", "cpu")
        assert "another tokenizer" in said
        assert "prepare both with the same one" in said

    def test_a_run_is_not_continued_on_data_of_another_tokenizer(self, bert, shards, tmp_path):
        said = pretrain("roberta", shards["byte-bpe"], tmp_path / "run", "--from", bert, call=mistake)
        assert "another tokenizer" in said
        assert f"--tokenizer {bert}" in said
        assert not (tmp_path / "run").exists()

    def test_a_data_folder_whose_tokenizer_was_swapped_is_refused(self, data, shards, tmp_path):
        shutil.copytree(data, tmp_path / "data")
        shutil.copy(shards["byte-bpe"] / "tokenizer.json", tmp_path / "data" / "tokenizer.json")
        assert "another tokenizer" in pretrain("bert", tmp_path / "data", tmp_path / "run", call=mistake)

    @pytest.mark.parametrize("column", ["ids", "word", "sentence", "document"])
    def test_a_checksum_that_fails_names_the_file(self, data, tmp_path, column):
        shutil.copytree(data, tmp_path / "data")
        file = tmp_path / "data" / f"train-00000.{column}"
        raw = bytearray(file.read_bytes())
        raw[len(raw) // 2] ^= 1
        file.write_bytes(raw)
        said = pretrain("bert", tmp_path / "data", tmp_path / "run", call=mistake)
        assert f"{file} is damaged" in said
        assert "prepare" in said

    def test_a_missing_column_and_a_damaged_manifest_are_named(self, data, tmp_path):
        shutil.copytree(data, tmp_path / "data")
        (tmp_path / "data" / "train-00000.word").unlink()
        assert "train-00000.word is missing" in pretrain("bert", tmp_path / "data", tmp_path / "run", call=mistake)
        manifest = tmp_path / "data" / "manifest.json"
        manifest.write_text(manifest.read_text()[:50])
        said = pretrain("bert", tmp_path / "data", tmp_path / "run", call=mistake)
        assert "manifest.json" in said

    @pytest.mark.parametrize("weight", ["0", "0.0"])
    def test_a_weight_of_nothing_is_refused(self, data, tmp_path, weight):
        assert "over 0" in pretrain("bert", f"{data}:{weight}", tmp_path / "run", call=mistake)
        assert not (tmp_path / "run").exists()


class TestNamesAndValues:
    @pytest.mark.parametrize(
        "words,expected",
        [
            (["show", "brt"], "did you mean bert"),
            (["show", "bert", "--size", "tinny"], "did you mean tiny"),
            (["show", "bert", "--size", "enormous"], "base"),
            (["show", "bert", "--variant", "papr"], "did you mean paper"),
            (["show", "bert", "--set", "hide.budgt=0.2"], "did you mean hide.budget"),
            (["show", "bert", "--set", "hidee.budget=0.2"], "hide"),
            (["show", "bert", "--set", "schedule.7.length=64"], "schedule.1"),
            (["show", "bert", "--set", "hide.units=Word"], "did you mean Words"),
            (["show", "bert", "--set", "hide.budget"], "NAME=VALUE"),
            (["diff", "bert", "robert"], "did you mean"),
            (["explain", "gpt3", "a text"], "did you mean gpt or gpt2"),
        ],
    )
    def test_an_unknown_name_lists_the_nearest(self, words, expected):
        assert expected in mistake(*words)

    def test_an_unknown_way_to_find_words_lists_the_nearest(self, corpus, tok, tmp_path):
        said = prepare(corpus, tok, tmp_path / "data", "--words", "space", call=mistake)
        assert "did you mean spaces?" in said

    @pytest.mark.parametrize(
        "setting,expected",
        [
            ("hide.budget=15", "write 0.15 for 15%"),
            ("hide.budget=0", "(0, 1]"),
            ("hide.budget=much", "a number"),
            ("hide.mask=0.95", "at most 1"),
            ("hide.copies=0", "1 or more"),
            ("system.backbone.heads=7", "multiple of backbone.heads"),
            ("system.backbone.heads=0", "1 or more"),
            ("system.backbone.layers=2.5", "a whole number"),
            ("system.backbone.dropout=1", "[0, 1)"),
            ("optimise.rate=-1", "over 0"),
            ("optimise.rate=nan", "a number"),
            ("optimise.curve=round", "one of linear"),
            ("optimise.warmup=10000", "a share of all steps"),
            ("optimise.decay=-0.1", "optimise.decay"),
            ("optimise.epsilon=0", "optimise.epsilon"),
            ("optimise.betas=0.9", "optimise.betas"),
            ("optimise.betas=(0.9,)", "optimise.betas"),
            ("batch_tokens=0", "1 or more"),
            ("schedule.0.share=0.5", "add up to 1"),
            ("schedule.0.length=4", "8 or more"),
        ],
    )
    def test_an_impossible_value_is_refused_before_anything_is_written(self, data, tmp_path, setting, expected):
        assert expected in pretrain("bert", data, tmp_path / "run", "--set", setting, call=mistake)
        assert not (tmp_path / "run").exists()

    @pytest.mark.parametrize(
        "words,expected",
        [
            (["--budget", "nonsense"], "a budget is 20m"),
            (["--budget", "0steps"], "over 0"),
            (["--set", "schedule.0.length=1024"], "lower schedule"),
            (["--set", "schedule.0.weights={'tokns': 2.0}"], "tokns"),
        ],
    )
    def test_a_run_that_cannot_start_leaves_nothing_behind(self, data, tmp_path, words, expected):
        assert expected in pretrain("bert", data, tmp_path / "run", *words, call=mistake)
        assert not (tmp_path / "run").exists()

    def test_a_run_that_cannot_start_does_not_remove_the_one_it_would_replace(self, bert, data, tmp_path):
        shutil.copytree(bert, tmp_path / "run")
        before = snapshot(tmp_path / "run")
        for words in (["--budget", "nonsense"], ["--set", "schedule.0.length=1024"]):
            pretrain("bert", data, tmp_path / "run", "--overwrite", *words, call=mistake)
            assert snapshot(tmp_path / "run") == before

    @pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
    def test_a_gpu_that_is_not_there_is_told(self, bert, data, tmp_path):
        said = pretrain("bert", data, tmp_path / "run", "--device", "cuda", call=mistake)
        assert "use --device cpu" in said
        assert "use --device cpu" in mistake("fill", bert, "The [MASK].", "--device", "cuda")


class TestExistingOutput:
    @pytest.fixture
    def verbs(self, corpus, tok, data, bert, adapted, tmp_path):
        """For each verb that writes, its words but for the place."""
        train = examples(tmp_path / "train.jsonl")
        works("export", bert, tmp_path / "hf")
        quick = ["--size", "tiny", "--budget", "1steps", "--device", "cpu", *command.settings(command.BERT)]
        return {
            "tokenizer": ["tokenizer", corpus, "--vocab", 150, "--out"],
            "prepare": ["prepare", corpus, "--tokenizer", tok, "--workers", 1, "--out"],
            "pretrain": ["pretrain", "bert", data, *quick, "--out"],
            "adapt": ["adapt", bert, train, "--set", "epochs=0.1", "--out"],
            "embed": ["embed", bert, train, "--out"],
            "export": ["export", bert],
            "import": ["import", tmp_path / "hf", "--out"],
        }

    @pytest.mark.parametrize("verb", ["tokenizer", "prepare", "pretrain", "adapt", "embed", "export", "import"])
    def test_what_exists_is_kept_without_overwrite_and_replaced_with_it(self, verbs, tmp_path, verb):
        place = tmp_path / "mine"
        if verb in ("tokenizer", "embed"):
            place.write_text("mine")
        else:
            place.mkdir()
            (place / "thesis.txt").write_text("mine")
        before = snapshot(place)
        said = mistake(*verbs[verb], place)
        assert "exists already" in said
        assert "--overwrite" in said
        assert snapshot(place) == before
        works(*verbs[verb], place, "--overwrite")
        assert snapshot(place) != before

    def test_resume_does_not_remove_a_folder_that_is_no_run(self, data, tmp_path):
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "thesis.txt").write_text("mine")
        pretrain("bert", data, tmp_path / "mine", "--resume", call=mistake)
        assert (tmp_path / "mine" / "thesis.txt").read_text() == "mine"

    def test_a_run_is_not_removed_by_continuing_it_in_its_own_place(self, bert, data, tmp_path):
        shutil.copytree(bert, tmp_path / "run")
        before = (tmp_path / "run" / "weights.safetensors").read_bytes()
        words = ("--set", "optimise.rate=1e-9", "--from", tmp_path / "run", "--overwrite")
        ran = pretrain("bert", data, tmp_path / "run", *words, steps=1, call=command.run)
        assert ran.code in (0, 1)
        if ran.code:
            assert (tmp_path / "run" / "weights.safetensors").read_bytes() == before
        else:
            open_run(tmp_path / "run", device="cpu")

    def test_an_output_whose_folder_does_not_exist_is_made_or_refused_in_one_line(self, bert, tmp_path):
        (tmp_path / "t.txt").write_text("A text.\n")
        ran = command.run("embed", bert, tmp_path / "t.txt", "--out", tmp_path / "new" / "v.npy")
        assert ran.code in (0, 1)
        assert (tmp_path / "new" / "v.npy").exists() == (ran.code == 0)


class TestFullDisk:
    def test_the_last_checkpoint_survives_a_full_disk_and_is_resumed(self, data, tmp_path, monkeypatch):
        def full_at_step_20(tensors, path):
            if path.parent.name == ".20":
                path.with_name("half").write_bytes(b"half")
                raise OSError(errno.ENOSPC, "No space left on device")
            write(tensors, path)

        write, out = checkpoint._write, tmp_path / "run"
        with monkeypatch.context() as patch:
            patch.setattr(checkpoint, "_write", full_at_step_20)
            said = pretrain("bert", data, out, steps=25, call=mistake)
        assert "could not save step 20" in said
        assert "No space left" in said
        assert "the checkpoint of step 10 is still there" in said
        assert "--resume" in said
        assert [path.name for path in (out / "state").iterdir()] == ["10"]
        assert open_run(out, device="cpu")
        pretrain("bert", data, out, "--resume", steps=25)
        pretrain("bert", data, tmp_path / "whole", steps=25)
        assert [record["step"] for record in read(out)] == list(range(1, 26))
        for name in ("weights.safetensors", "optimiser.safetensors"):
            one, two = (folder / "state" / "25" / name for folder in (out, tmp_path / "whole"))
            assert one.read_bytes() == two.read_bytes()

    def test_a_log_without_room_ends_in_one_line(self, data, tmp_path, monkeypatch):
        def full(log, record):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(Log, "write", full)
        assert "No space left" in pretrain("bert", data, tmp_path / "run", call=mistake)

    def test_an_adaptation_without_room_ends_in_one_line(self, bert, tmp_path, monkeypatch):
        def full(tensors, path):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(checkpoint, "_write", full)
        said = mistake("adapt", bert, examples(tmp_path / "t.jsonl"), "--out", tmp_path / "run", "--set", "epochs=1")
        assert "No space left" in said


class TestDivergence:
    def test_a_loss_that_is_no_number_names_step_rate_and_last_good_checkpoint(self, data, tmp_path, monkeypatch):
        def broken(trainer, batches, weights, step, hide=None):
            means = gradients(trainer, batches, weights, step, hide)
            return {name: mean * (float("nan") if step == 13 else 1) for name, mean in means.items()}

        gradients = Trainer.gradients
        monkeypatch.setattr(Trainer, "gradients", broken)
        said = pretrain("bert", data, tmp_path / "run", steps=40, call=mistake)
        assert "diverged at step 13" in said
        assert "learning rate 0.000" in said
        assert "last good checkpoint is step 10" in said
        assert "lower optimise.rate" in said
        assert checkpoint.newest(tmp_path / "run") == 10

    def test_a_rate_far_too_high_is_noticed(self, data, tmp_path):
        said = pretrain("roberta", data, tmp_path / "run", "--set", "optimise.rate=1e30", steps=40, call=mistake)
        assert "diverged at step" in said
        assert "none was saved yet" in said

    def test_weights_gone_wrong_never_replace_the_last_good_checkpoint(self, data, tmp_path, monkeypatch):
        def broken(trainer, step, steps):
            found = update(trainer, step, steps)
            if step == 20:
                torch.nn.init.constant_(next(trainer.system.parameters()), float("nan"))
            return found

        update = Trainer.update
        monkeypatch.setattr(Trainer, "update", broken)
        said = pretrain("bert", data, tmp_path / "run", steps=40, call=mistake)
        assert "last good checkpoint is step 10" in said
        weights = checkpoint.read(tmp_path / "run" / "weights.safetensors")
        assert all(tensor.isfinite().all() for tensor in weights.values())


class TestRuns:
    def test_a_run_that_does_not_exist_is_told_how_to_make_one(self, tmp_path):
        assert "unmask pretrain" in mistake("fill", tmp_path / "none", "The [MASK].")

    @pytest.mark.parametrize("name", ["weights.safetensors", "recipe.json", "tokenizer.json"])
    def test_an_unfinished_run_is_not_opened(self, bert, tmp_path, name):
        shutil.copytree(bert, tmp_path / "run")
        (tmp_path / "run" / name).unlink()
        with pytest.raises(ValueError, match=f"not a finished run: it has no {name}"):
            unmask.load(tmp_path / "run")

    @pytest.mark.parametrize(
        "content",
        [
            "",
            '{"part": "unmask.recipe.Rec',
            "[]",
            "null",
            '{"part": "unmask.recipe.Recipe", "name": "bert"}',
            '{"part": "unmask.recipe.Recipe", "colour": 1}',
            '{"part": "unmask.recipe.Nothing"}',
            '{"part": "unmask.backbone.Transformer"}',
        ],
    )
    def test_a_damaged_recipe_is_named(self, bert, tmp_path, content):
        shutil.copytree(bert, tmp_path / "run")
        (tmp_path / "run" / "recipe.json").write_text(content)
        assert "recipe" in mistake("fill", tmp_path / "run", "The [MASK].")

    def test_weights_that_are_a_pickle_are_refused_with_the_way_to_convert_them(self, bert, tmp_path):
        shutil.copytree(bert, tmp_path / "run")
        tensors = checkpoint.read(bert / "weights.safetensors")
        for modern in (True, False):
            torch.save(tensors, tmp_path / "run" / "weights.safetensors", _use_new_zipfile_serialization=modern)
            said = mistake("fill", tmp_path / "run", "The [MASK].")
            assert "is a pickle" in said
            assert "safetensors.torch.save_file" in said

    @pytest.mark.parametrize("keep", [0, 4, 5000])
    def test_weights_cut_off_are_named(self, bert, tmp_path, keep):
        shutil.copytree(bert, tmp_path / "run")
        weights = tmp_path / "run" / "weights.safetensors"
        raw = weights.read_bytes()[:keep]
        weights.unlink()
        weights.write_bytes(raw)
        said = mistake("fill", tmp_path / "run", "The [MASK].")
        assert "weights.safetensors is damaged" in said

    def test_weights_of_another_network_are_refused(self, bert, gpt2, tmp_path):
        shutil.copytree(bert, tmp_path / "run")
        (tmp_path / "run" / "weights.safetensors").unlink()
        shutil.copy(gpt2 / "weights.safetensors", tmp_path / "run")
        assert "does not fit the model" in mistake("fill", tmp_path / "run", "The [MASK].")

    def test_a_pickled_hugging_face_model_is_refused_with_the_way_to_convert_it(self, bert, tmp_path):
        works("export", bert, tmp_path / "hf")
        tensors = checkpoint.read(tmp_path / "hf" / "model.safetensors")
        (tmp_path / "hf" / "model.safetensors").unlink()
        torch.save(tensors, tmp_path / "hf" / "pytorch_model.bin")
        said = mistake("import", tmp_path / "hf", "--out", tmp_path / "run")
        assert "pickle" in said
        assert "save_pretrained" in said
        assert not (tmp_path / "run").exists()

    def test_each_model_is_told_what_it_can_do(self, bert, gpt2, adapted, tmp_path):
        assert "unmask generate" in mistake("fill", gpt2, "The [MASK].")
        assert "unmask fill" in mistake("generate", bert, "The")
        assert "unmask adapt" in mistake("predict", bert, "The text.")
        assert "predicts label" in mistake("fill", adapted, "The [MASK].")
        assert "write [MASK]" in mistake("fill", bert, "No gap.")

    @pytest.mark.parametrize(
        "words,expected",
        [
            (["--temperature", "-1"], "0 or more"),
            (["--top-k", "0"], "1 or more"),
            (["--top-p", "15"], "(0, 1]"),
            (["--tokens", "0"], "1 or more"),
        ],
    )
    def test_an_impossible_way_to_draw_is_refused(self, gpt2, words, expected):
        assert expected in mistake("generate", gpt2, "The", *words)

    def test_an_impossible_layer_pool_or_number_of_guesses_is_refused(self, bert, tmp_path):
        (tmp_path / "t.txt").write_text("A text.\n")
        words = ("embed", bert, tmp_path / "t.txt", "--out", tmp_path / "v.npy")
        assert "between -3 and 2" in mistake(*words, "--layer", 9)
        assert "mean or summary" in mistake(*words, "--pool", "max")
        assert "1 or more" in mistake("fill", bert, "The [MASK].", "--top", 0)
        assert not (tmp_path / "v.npy").exists()


class TestExamples:
    def adapt(self, bert, file, out, *words, call=mistake):
        return call("adapt", bert, file, "--out", out, "--set", "epochs=1", "--device", "cpu", *words)

    def test_a_label_of_dev_that_train_never_had_is_named_and_nothing_is_lost(self, bert, tmp_path):
        train, dev = examples(tmp_path / "t.jsonl"), examples(tmp_path / "d.jsonl", {"text": "x", "label": "bridge"})
        said = self.adapt(bert, train, tmp_path / "run", "--dev", dev)
        assert "bridge" in said
        assert "known are ['doctor', 'river']" in said
        assert not (tmp_path / "run").exists()
        shutil.copytree(bert, tmp_path / "run")
        before = snapshot(tmp_path / "run")
        self.adapt(bert, train, tmp_path / "run", "--dev", dev, "--overwrite")
        assert snapshot(tmp_path / "run") == before

    def test_a_label_of_test_that_train_never_had_is_named(self, adapted, tmp_path):
        said = mistake("evaluate", adapted, examples(tmp_path / "d.jsonl", {"text": "x", "label": "bridge"}))
        assert "bridge" in said
        assert "never had" in said

    def test_a_text_longer_than_the_model_is_cut_and_counted(self, bert, tmp_path):
        long = {"text": " ".join(documents(3)), "label": "river"}
        ran = self.adapt(bert, examples(tmp_path / "t.jsonl", long, long), tmp_path / "run", call=works)
        assert "2 texts longer than 64 tokens, cut" in ran.err

    @pytest.mark.parametrize(
        "name,content,expected",
        [
            ("t.jsonl", '{"text": "x", "label": "a"}\n{"text": "x"}', 'line 2: has no "label"'),
            ("t.jsonl", '{"text": "x", "label": null}', 'line 1: has no "label"'),
            ("t.jsonl", '{"text": "x", "label": ""}', 'line 1: has no "label"'),
            ("t.csv", "text,label\nx,a\nx,\n", 'line 3: has no "label"'),
            ("t.csv", "text\nx\n", 'has no "label"'),
            ("t.jsonl", "text,label\nx,a\n", "line 1: not JSON"),
            ("t.csv", '{"text": "x", "label": "a"}\n{"text": "x", "label": "b"}', 'needs "text"'),
            ("t.jsonl", '{"text": "x", "label": "a"}\nx,b\n', "line 2: not JSON"),
            ("t.jsonl", '["x", "a"]', "not a JSON object"),
            ("t.jsonl", '{"text_a": "x", "label": "a"}', '"text_b"'),
            ("t.jsonl", '{"text": "x", "label": "a"}\n{"text_a": "x", "text_b": "y", "label": "b"}', "mixes"),
            ("t.jsonl", '{"text": " ", "label": "a"}', "the text is empty"),
            ("t.jsonl", '{"text": null, "label": "a"}', "line 1"),
            ("t.csv", "label,text\na\n", "line 2"),
            ("t.csv", "text,label\ngood, very good,a\n", "line 2"),
            ("t.jsonl", '{"text": "x", "label": "a"}', "two labels or more"),
            ("t.jsonl", "", "holds no examples"),
        ],
    )
    def test_a_file_of_examples_with_a_mistake_is_named_with_its_line(self, bert, tmp_path, name, content, expected):
        (tmp_path / name).write_text(content, encoding="utf-8")
        assert expected in self.adapt(bert, tmp_path / name, tmp_path / "run")
        assert not (tmp_path / "run").exists()

    def test_a_missing_file_is_named(self, bert, adapted, tmp_path):
        assert "no such file" in self.adapt(bert, tmp_path / "none.jsonl", tmp_path / "run")
        assert "no such file" in mistake("evaluate", adapted, tmp_path / "none.jsonl")
        assert "no such file" in mistake("embed", bert, tmp_path / "none.txt", "--out", tmp_path / "v.npy")

    def test_a_file_of_texts_that_is_missing_is_not_taken_for_a_text(self, adapted, tmp_path):
        assert "no such file" in mistake("predict", adapted, tmp_path / "none.jsonl")

    def test_a_second_text_beside_a_file_is_refused(self, adapted, tmp_path):
        (tmp_path / "t.txt").write_text("A text.\n")
        assert "second" in mistake("predict", adapted, tmp_path / "t.txt", "And another.").lower()

    @pytest.mark.parametrize("name", ["t.txt", "t.jsonl", "t.csv"])
    def test_texts_that_are_not_utf8_are_named(self, bert, tmp_path, name):
        (tmp_path / name).write_bytes('text\n{"text": "Caf\xe9"}\n'.encode("latin-1"))
        said = mistake("embed", bert, tmp_path / name, "--out", tmp_path / "v.npy")
        assert name in said
        assert "UTF-8" in said or "not JSON" in said

    @pytest.mark.parametrize("cut", [True, False])
    def test_a_damaged_gzip_of_examples_is_named(self, bert, tmp_path, cut):
        raw = gzip.compress(examples(tmp_path / "t.jsonl").read_bytes())
        (tmp_path / "t.jsonl.gz").write_bytes(raw[:-12] if cut else b"plain text")
        assert "t.jsonl.gz is damaged" in self.adapt(bert, tmp_path / "t.jsonl.gz", tmp_path / "run")

    def test_a_csv_as_spreadsheets_write_it_is_read(self, tmp_path):
        """With a byte order mark, quoted commas and line breaks, and a very long field."""
        rows = [("Good, very good.\nReally.", "a"), ("x" * 200_000, "b")]
        with (tmp_path / "t.csv").open("w", encoding="utf-8-sig", newline="") as file:
            csv.writer(file).writerows([("text", "label"), *rows])
        found = classify.read(tmp_path / "t.csv")
        assert [(e.text.a.replace("\r\n", "\n"), e.label) for e in found] == rows

    @pytest.mark.parametrize("name", ["t.tsv", "t.tsv.gz"])
    def test_tabs_part_the_columns_of_a_tsv(self, tmp_path, name):
        raw = b"text\tlabel\ngood, very good\ta\n"
        (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        (example,) = classify.read(tmp_path / name)
        assert (example.text.a, example.label) == ("good, very good", "a")

    @pytest.mark.parametrize(
        "setting,expected",
        [
            ("epoch=3", "did you mean epochs"),
            ("epochs=0", "over 0"),
            ("examples=0", "1 or more"),
            ("rate=-1", "over 0"),
            ("pool=max", "one of summary, mean"),
            ("dropout=1.5", "dropout"),
            ("warmup=5", "warmup"),
            ("length=1", "length"),
        ],
    )
    def test_an_impossible_way_to_adapt_is_refused_before_anything_is_written(self, bert, tmp_path, setting, expected):
        assert expected in self.adapt(bert, examples(tmp_path / "t.jsonl"), tmp_path / "run", "--set", setting)
        assert not (tmp_path / "run").exists()

    def test_an_adaptation_stopped_before_its_first_validation_does_not_claim_to_be_done(self, bert, tmp_path):
        from unmask.adapt import finetune

        rows = classify.read(examples(tmp_path / "t.jsonl"))
        task = Classify(examples=2, epochs=3)
        model = open_run(bert, device="cpu")
        records = list(finetune(model, rows, tmp_path / "run", dev=rows, task=task, stop=lambda: True))
        assert records[-1]["stopped"]
        assert (tmp_path / "run" / "weights.safetensors").is_file() or not (tmp_path / "run").exists()
