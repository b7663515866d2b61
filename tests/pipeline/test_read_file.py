"""Mistakes in a pipeline file are found before anything is trained, and the line is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import mistake
from tests.pipeline.made import FILE, FakeRunner, folder
from unmask import run_pipeline
from unmask.errors import UserError

WRONG = [
    ("share = 6", "shares = 6", r"line 8: unknown field of a stage 'shares': did you mean share or names\?"),
    ('size = "tiny"', 'sizes = "tiny"', r"line 3: unknown field of a pipeline 'sizes': did you mean size"),
    ('size = "tiny"', 'size = "huge"', r"line 3: unknown size of bert 'huge'"),
    ('recipe = "bert"', 'recipe = "brt"', r"line 2: unknown recipe 'brt': did you mean bert"),
    ('recipe = "bert"\n', "", "line 1: recipe is missing"),
    ('out = "out"\n', "", "line 1: out is missing"),
    ('out = "out"', 'out = "wiki/out"', r"line 1: .*wiki/out is inside .*wiki, whose files \[general\] reads as text"),
    ("share = 6", 'share = "6"', r"line 8: share must be a number, got '6'"),
    ("share = 6", "share = 0", "line 8: share must be over 0, got 0"),
    ("share = 6", "", r"line 6: \[general\] has no share, and \[knowledge\] has one"),
    ('budget = "20steps"', 'budget = "20"', "line 4: a budget is a number with a unit"),
    ('budget = "20steps"', 'budget = "2steps"', "line 4: the budget 2steps is too small for 3 stages"),
    ('budget = "20steps"\n', "", "line 1: the budget is missing"),
    ("share = 6", 'budget = "5m"', r"line 8: \[general\] has a budget of its own, and there is a total"),
    ('text = "wiki/"', 'text = ["wiki/", "nowhere/"]', "line 7: no such corpus: .*nowhere is not a file"),
    ('text = "wiki/"', 'train = "train.jsonl"', r"line 8: share is a field of stages that pretrain .*, and \[general\] is none"),
    ('text = "wiki/"', 'text = "wiki/"\ntrain = "train.jsonl"', r"line 7: \[general\] has text, which pretrains, and train"),
    ('text = "wiki/"', "", r"line 6: \[general\] reads nothing: give text, triples or labelled"),
    ('text = "wiki/"', 'text = "wiki/"\nfrom = "runs/bert"', r"line 8: \[general\] starts from 'runs/bert', which is not a stage "
     r"\(general, knowledge, domain, task\), and there is no finished run at .*runs/bert"),
    ('text = "wiki/"', 'text = "wiki/"\nfrom = "domain"', "line 8: the stages start from each other in a cycle: general from domain "
     "from knowledge from general"),
    ('text = "wiki/"', 'text = "wiki/"\nfrom = "general"', "line 8: .*in a cycle: general from general"),
    ('text = "wiki/"', 'text = "wiki/"\nmix = 0.5', r"line 8: mix is the share of the steps that read .*, and \[general\] does not have both"),
    ('text = "wiki/"', 'text = "wiki/"\nset = "hide.budgt=0.2"', "line 8: .*budgt"),
    ('size = "tiny"', 'variant = "papr"', "line 3: unknown variant of bert 'papr': did you mean paper"),
    ('size = "tiny"', 'set = "hide=Next"', "line 7: hide=Next needs"),
    ('size = "tiny"', 'set = "hide.budgt=0.2"', "line 3: .*budgt"),
    ('size = "tiny"', 'lexicon = "graph.tsv"', "line 7: --lexicon has no effect"),
    ('text = "wiki/"', 'text = "wiki/"\nask = "tail"', r"line 8: ask says how triples are read, and \[general\] has none"),
    ('triples = "graph.tsv"', 'labelled = "graph.tsv"', "line 11: .*graph.tsv"),
    ('triples = "graph.tsv"', 'labelled = "nowhere/"', "line 11: there is no such file or folder: .*nowhere"),
    ('triples = "graph.tsv"', 'labelled = "wiki/"', "line 11: .*wiki/a.txt is left out|line 11: .*wiki has no task"),
    ('triples = "graph.tsv"', 'labelled = ["train.jsonl", "test.jsonl"]', r"line 11: \[knowledge\] has two tracks with the name"),
    ('triples = "graph.tsv"', 'labelled = "tokens.jsonl"', "line 11: bert has a track or a loss with the name 'tokens' already: rename .*tokens.jsonl"),
    ('triples = "graph.tsv"', 'text = "wiki/"\nrecipe = "ernie-2"\nset = "hide.units=Words"\nlabelled = "title.jsonl"', "line 14: ernie-2 has .* the name 'title' already"),
    ('triples = "graph.tsv"', 'labelled = "alike.jsonl"', r"line 11: .*alike.jsonl: a classifier needs two labels or more, but the examples have \['long'\]"),
    ('triples = "graph.tsv"', 'labelled = "type.jsonl"', "line 11: a track with labelled examples cannot be called 'type'"),
    ('triples = "graph.tsv"', 'triples = "graph.tsv"\nnames = "train.jsonl"', "line 12: .*train.jsonl, line 1: the line must have an entity and its name"),
    ('lines = true', 'recipe = "ernie-thu"\ngraph = "graph.tsv"\nnames = "train.jsonl"', "line 18: .*train.jsonl, line 1: the line must have"),
    ("[knowledge]", "[general]", "line 10: two stages are called general, the other in line 6"),
    ("[knowledge]", '["a b"]', "line 10: the name of a stage is made of letters, digits, - and _ .*, got 'a b'"),
    ("[knowledge]", "[tokenizer]", "line 10: tokenizer is a field of the pipeline, and no stage"),
    ('"graph.tsv"', '"graph.tv"', "line 11: there is no such file: .*graph.tv"),
    ('"graph.tsv"', '"train.jsonl"', "line 11: .*train.jsonl"),
    ('lines = true', 'graph = "graph.tsv"', r"line 16: graph has no effect, because the network of \[domain\] reads no entities"),
    ('lines = true', 'recipe = "ernie-thu"', r"line 16: the network of \[domain\] reads the entities of a text: name files of triples"),
    ('lines = true', 'recipe = "ernie-thu"\ngraph = "none.tsv"', "line 17: there is no such file: .*none.tsv"),
    ('lines = true', 'recipe = "ernie-thu"\ngraph = "wiki/"', "line 17: no vectors of a graph at .*wiki: make them with 'unmask graph"),
    ('lines = true', 'recipe = "ernie-thu"\ngraph = "train.jsonl"', "line 17: .*train.jsonl"),
    ('lines = true', 'recipe = "ernie-thu"\ngraph = "wiki/"\nnames = "graph.tsv"', "line 18: names has no effect, because the folder"),
    ('lines = true', 'recipe = "electra"', r"line 16: electra trains a GeneratorDiscriminator, but .* a run of bert"),
    ('triples = "graph.tsv"', 'triples = "graph.tsv"\ngraph = "graph.tsv"', r"line 12: the entities of graph are found in text, and \[knowledge\] has no text"),
    ('train = "train.jsonl"', 'train = "tran.jsonl"', "line 20: there is no such file: .*tran.jsonl"),
    ('train = "train.jsonl"', 'train = "reviews.txt"', r"line 20: .*reviews.txt"),
    ('"test.jsonl"', '"graph.tsv"', "line 22: .*graph.tsv"),
    ('set = "epochs=1"', 'set = "epoch=1"', "line 23: .*epoch"),
    ('set = "epochs=1"', 'tune = "lra"', "line 23: .*lra.*lora"),
    ('train = "train.jsonl"', 'train = "wiki/"', "line 21: dev is for the file of one task, and .*wiki is a folder of tasks"),
    ('train = "train.jsonl"\ndev = "dev.jsonl"\ntest = "test.jsonl"', 'train = "wiki/"', "line 20: .*wiki/a.txt|line 20: .*no task with a train"),
    ('set = "epochs=1"', 'tune = "cvt"', "line 23: --tune cvt learns from texts without labels too, and there are none"),
    ('set = "epochs=1"', 'unlabelled = "reviews.txt"', "line 23: --unlabelled has no effect with --tune full"),
    ('set = "epochs=1"', 'tune = "cvt"\nunlabelled = "none/"', "line 24: there is no such file or folder: .*none"),
    ('set = "epochs=1"', 'task = "tagg"', "line 23: unknown task 'tagg': did you mean tag"),
    ('set = "epochs=1"', "seeds = 0", "line 23: seeds must be 1 or more, got 0"),
    ('set = "epochs=1"', "share = 1", r"line 23: share is a field of stages that pretrain \(they have text, triples or labelled\)"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "said"), WRONG, ids=[after[:40] or before for before, after, _ in WRONG])
def test_a_mistake_names_its_line_and_nothing_is_begun(tmp_path, before, after, said):
    assert before in FILE
    file, runner = folder(tmp_path, FILE.replace(before, after, 1)), FakeRunner()
    for name in ("tokens", "title", "type"):
        (tmp_path / f"{name}.jsonl").write_text((tmp_path / "train.jsonl").read_text())
    (tmp_path / "alike.jsonl").write_text('{"text": "a river", "label": "long"}\n' * 3)
    with pytest.raises(UserError, match=r"mine\.toml, " + said):
        run_pipeline(file, progress=False, runner=runner)
    assert runner.calls == []
    assert not (tmp_path / "out").exists()


def test_a_triple_with_a_missing_field_names_the_line_of_the_pipeline_and_of_the_triples(tmp_path):
    file = folder(tmp_path)
    (tmp_path / "graph.tsv").write_text("a\tb\tc\na\tb\n")
    with pytest.raises(UserError, match=r"line 11: .*graph\.tsv.*2"):
        run_pipeline(file, progress=False, runner=FakeRunner())


ERNIE = FILE.replace('triples = "graph.tsv"', 'recipe = "ernie-thu"\ntext = "wiki/"\ngraph = "graph.tsv"')


def test_a_network_that_reads_entities_needs_the_same_graph_in_later_stages(tmp_path):
    for field, said in (
        ("", r"line 17: the network of \[domain\] reads the entities of a text"),
        (
            '\ngraph = "other.tsv"',
            r"line 19: \[domain\] continues the network of \[knowledge\], which knows .* another graph",
        ),
    ):
        file = folder(tmp_path, ERNIE.replace("lines = true", f"lines = true{field}"))
        (tmp_path / "other.tsv").write_text("a\tb\tc\n")
        with pytest.raises(UserError, match=r"mine\.toml, " + said):
            run_pipeline(file, progress=False, runner=FakeRunner())


def test_a_graph_that_nothing_reads_if_a_stage_is_left_out_is_refused_before_anything_is_trained(tmp_path):
    file, runner = folder(tmp_path, ERNIE.replace("lines = true", 'lines = true\ngraph = "graph.tsv"')), FakeRunner()
    with pytest.raises(UserError, match=r"line 19: without \[knowledge\], graph has no effect"):
        run_pipeline(file, ablate=True, progress=False, runner=runner)
    assert runner.calls == []


def test_a_task_that_comes_first_starts_from_nothing(tmp_path):
    file = folder(tmp_path, 'out = "out"\n[task]\ntrain = "train.jsonl"\n')
    with pytest.raises(UserError, match=r"line 2: \[task\] starts from nothing: put a stage that pretrains before it"):
        run_pipeline(file, progress=False, runner=FakeRunner())


def test_an_output_folder_with_other_files_is_refused(tmp_path):
    file = folder(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("x")
    with pytest.raises(UserError, match="line 1: .*out exists and holds something else"):
        run_pipeline(file, progress=False, runner=FakeRunner())


def test_options_that_name_no_stage_or_leave_none_are_refused(tmp_path):
    file = folder(tmp_path)
    with pytest.raises(UserError, match="unknown stage 'domane': did you mean domain"):
        run_pipeline(file, without=["domane"], progress=False)
    with pytest.raises(UserError, match="leaves no stage"):
        run_pipeline(file, without=["general", "knowledge", "domain", "task"], progress=False)
    with pytest.raises(UserError, match="--ablate compares scores, and no stage of .* has a test file"):
        run_pipeline(file, without=["task"], ablate=True, progress=False)


def test_the_command_line_says_a_mistake_in_one_line(tmp_path):
    file = folder(tmp_path, FILE.replace("share = 6", "shares = 6"))
    assert f"{file}, line 8: unknown field" in mistake("pipeline", file)
    assert "there is no such file" in mistake("pipeline", tmp_path / "none.toml", "--plan")


def test_paths_begin_at_the_folder_of_the_file_wherever_the_command_is_given(tmp_path, monkeypatch):
    file = folder(tmp_path / "project")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    runner = FakeRunner()
    run_pipeline(Path("../project/mine.toml"), progress=False, runner=runner)
    assert Path(str(runner.calls[0].out)).is_relative_to(tmp_path / "project" / "out")
    assert file.is_file()
