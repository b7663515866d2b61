"""The program around the verbs: its version, errors for programs, and logs that are not wrapped."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import unmask
from tests.command import run, works
from unmask import cli, screen


def unmask_in_a_pipe(*words, **environment):
    """The program as a process of its own, its output in pipes."""
    known = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    return subprocess.run(
        [sys.executable, "-m", "unmask", *words], capture_output=True, text=True, env=known | environment
    )


def test_the_version_is_shown():
    assert works("--version").out == f"unmask {unmask.__version__}\n"


@pytest.mark.parametrize(
    "words, expected",
    [
        (["fill", "nowhere", "x"], "no run at nowhere"),
        (["fill"], "Missing argument 'RUN'"),
        (["nothing"], "No such command 'nothing'"),
        (["recipes", "--wrong"], "No such option"),
        (["fill", "run", "x", "--top", "many"], "--top"),
        (["show", "brt"], "did you mean bert"),
    ],
)
def test_with_json_an_error_is_one_line_of_json_on_the_error_output(words, expected):
    ran = run(*words, "--json")
    assert (ran.code, ran.out) == (1, "")
    (line,) = ran.err.splitlines()
    assert expected in json.loads(line)["error"]


def test_with_json_help_and_results_are_as_always():
    assert run("recipes", "--json", "--help").code == 0
    assert "bert" in [entry["name"] for entry in json.loads(works("recipes", "--json").out)]


def test_nothing_is_wrapped_in_a_pipe():
    long = "x" * 150
    ran = unmask_in_a_pipe("fill", long, "a [MASK]")
    assert ran.stderr == f"error: no run at {long}: make one with 'unmask pretrain' or 'unmask import'\n"
    table = unmask_in_a_pipe("recipes").stdout.splitlines()
    assert len([line for line in table if "electra" in line]) == 1
    assert any("predict which tokens were replaced" in line for line in table)
    assert max(map(len, unmask_in_a_pipe("recipes", COLUMNS="60").stdout.splitlines())) <= 60


def records(*, validated):
    """Records of a training, validated at these steps."""
    for step in range(1, 7):
        record = {"step": step, "steps": 6, "tokens": 100 * step, "seconds": 20.0 * step, "loss": 2.0}
        yield record | ({"validation_loss": float(step)} if step in validated else {}) | {"done": True}


def test_a_progress_line_is_one_line_and_keeps_the_last_held_out_loss(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)  # which says how wide lines may be
    monkeypatch.setattr(screen, "err", screen._console(stderr=True))
    for _ in screen.training(records(validated={2, 5}), "a long title " * 12):
        pass
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 6
    found = [re.search(r"held-out ([\d.]+)", line) for line in lines]
    assert [hit and hit.group(1) for hit in found] == [None, "2.000", "2.000", "2.000", "5.000", "5.000"]


def test_a_table_has_numbers_on_the_right_and_words_on_the_left(capsys):
    screen.table("", ["name", "count", "idea"], [["a", "1,000", "short"], ["b", "2", "a longer one"]])
    lines = capsys.readouterr().out.splitlines()
    assert any("│     2 │ a longer one │" in line for line in lines)
    assert any("│ 1,000 │ short        │" in line for line in lines)


def test_the_wheel_says_that_the_package_has_types(tmp_path):
    source = Path(unmask.__file__).parents[1]
    shutil.copytree(source / "unmask", tmp_path / "unmask", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(source / name, tmp_path)
    build = "from setuptools.build_meta import build_wheel; build_wheel('dist')"
    (tmp_path / "dist").mkdir()
    built = subprocess.run([sys.executable, "-c", build], cwd=tmp_path, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert "unmask/py.typed" in zipfile.ZipFile(wheel).namelist()


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        *(
            f"docs/{name}.md"
            for name in ("adapt", "compare", "hugging_face", "many_tasks", "pipeline", "search", "tour", "vectors")
        ),
    ],
)
def test_a_page_names_only_verbs_that_exist(page):
    verbs = {command.name or command.callback.__name__ for command in cli.app.registered_commands}
    written = (Path(unmask.__file__).parents[1] / page).read_text(encoding="utf-8")
    named = set(re.findall(r"(?:^|`)unmask ([a-z][a-z-]*)", written, re.MULTILINE))
    assert named <= verbs, named - verbs


def test_what_is_promised_in_a_sentence_is_a_verb():
    verbs = {command.name or command.callback.__name__ for command in cli.app.registered_commands}
    project = Path(unmask.__file__).parents[1]
    first = (project / "README.md").read_text(encoding="utf-8").split("It is for")[0]
    described = re.search(r'description = "(.*)"', (project / "pyproject.toml").read_text())
    for text in (first, described.group(1), unmask.__doc__, works("--help").out.split("Options")[0]):
        assert "compare" in text
        for promised in ("pretrain", "adapt", "compare", "serve"):
            assert promised in verbs or promised not in text


def test_dir_shows_what_there_is():
    assert set(unmask.__all__) <= set(dir(unmask))
    assert "__version__" in dir(unmask)
