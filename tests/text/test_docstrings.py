"""Documentation strings are found, read and told apart without importing anything."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from unmask.errors import UserError
from unmask.text.docstrings import docstrings

LONG = "A text that is long enough to count as language"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "sample_package"
    (folder / "inner").mkdir(parents=True)
    (folder / "__init__.py").write_text(f'"""{LONG}: the package."""\nraise SystemExit("it was imported")\n')
    (folder / "broken.py").write_text(f'"""{LONG}: broken."""\ndef (\n')
    (folder / "short.py").write_text('"""Too short."""\n')
    (folder / "escape.py").write_text('"""' + LONG + ': half a character \\ud800."""\n')
    (folder / "inner" / "again.py").write_text(f'"""{LONG}: the package."""\n')
    (folder / "code.py").write_text(
        f'class A:\n    """{LONG}: a class.\n\n    On another line.\n    """\n    def f(self):\n'
        f'        "{LONG}: a method."\n'
        f'try:\n    pass\nexcept OSError:\n    async def g():\n        """{LONG}: inside a branch."""\n'
        f'x = """{LONG}: not documentation."""\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder.name


def test_every_documentation_string_comes_once_and_in_order(package: str) -> None:
    found = list(docstrings([package], workers=1))
    assert {name for name, _ in found} == {package}
    assert [text.removeprefix(f"{LONG}: ") for _, text in found] == [
        "the package.",
        "a class.\n\nOn another line.",
        "a method.",
        "inside a branch.",
    ]


def test_workers_do_not_change_the_result() -> None:
    packages = ["email", "json", "http", "urllib"]
    assert list(docstrings(packages, workers=2)) == list(docstrings(packages, workers=1))


def test_the_standard_library_is_read_without_its_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("", "email", "test", "unittest/test", "site-packages/numpy", "idlelib", "lib2to3"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "code.py").write_text(f'"""{LONG}: {folder or "top"}."""\n')
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    assert list(docstrings(["stdlib"], workers=1)) == [("stdlib", f"{LONG}: top."), ("stdlib", f"{LONG}: email.")]


def test_a_module_of_one_file_is_read() -> None:
    assert any("CSV" in text for _, text in docstrings(["csv"], workers=1))


def test_a_package_that_cannot_be_read_is_a_mistake() -> None:
    with pytest.raises(UserError, match="'no_such_package' is not installed"):
        docstrings(["no_such_package"])
    with pytest.raises(UserError, match="no Python source"):
        docstrings(["sys"])
    with pytest.raises(UserError, match="no package given"):
        docstrings([])


def test_torch_is_not_imported() -> None:
    code = "import sys, unmask.text.docstrings as d; list(d.docstrings(['json'])); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
