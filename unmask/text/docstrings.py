"""Documentation strings of installed packages: real text that every machine has, without a download."""

from __future__ import annotations

import ast
import gc
import importlib.util
import multiprocessing
import os
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from unmask.errors import UserError, require

STDLIB = "stdlib"  # the name for the whole standard library
SHORTEST = 40  # characters; a shorter text is a label, not language
_CHUNK = 32  # files handed to a worker at a time
_SKIPPED = frozenset({"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3"})
_BODIES = ("body", "orelse", "handlers", "finalbody", "cases")  # fields of a statement that hold other statements
_HALF = re.compile("[\ud800-\udfff]")  # a lone surrogate: an escape can write it, UTF-8 cannot encode it
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstrings(packages: Sequence[str], *, workers: int | None = None) -> Iterator[tuple[str, str]]:
    """(package, text) for every module, class and function of these packages. No package is imported.

    A package is given by its import name; "stdlib" is the whole standard library. Each text is yielded once.
    """
    require(
        bool(packages),
        "no package given: name installed packages, or {stdlib!r} for the standard library",
        stdlib=STDLIB,
    )
    require(workers is None or workers >= 1, "workers must be 1 or more, got {workers}", workers=workers)
    files = [(package, file) for package in packages for file in _files(package)]
    return _distinct(files, workers or os.cpu_count() or 1)


def _distinct(files: list[tuple[str, Path]], workers: int) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for (package, _), texts in zip(files, _read_all([file for _, file in files], workers), strict=True):
        for text in texts:
            if text not in seen:
                seen.add(text)
                yield package, text


def _read_all(files: list[Path], workers: int) -> Iterator[list[str]]:
    workers = min(workers, -(-len(files) // _CHUNK))
    if workers <= 1:
        yield from map(_read, files)
        return
    # Forked workers start fast. They use only the parser, never torch. Garbage collection is off: a syntax tree has no
    # reference cycles, and the search for cycles takes a third of the time.
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    with ProcessPoolExecutor(workers, context, gc.disable) as pool:
        yield from pool.map(_read, files, chunksize=_CHUNK)


def _files(package: str) -> list[Path]:
    """The source files of a package, sorted."""
    if package == STDLIB:
        root = Path(sysconfig.get_path("stdlib"))
        return sorted(f for f in root.rglob("*.py") if not _SKIPPED.intersection(f.relative_to(root).parts[:-1]))
    require(
        package.isidentifier(), "a package is given by its import name, such as numpy, got {package!r}", package=package
    )
    try:
        spec = importlib.util.find_spec(package)  # finds a top-level name without importing it
    except ValueError:  # a module that runs as a script has no spec
        spec = None
    if spec is None:
        raise UserError(
            ("the package {package!r} is not installed: pip install {package}, or name another package"),
            package=package,
        )
    files = [Path(spec.origin)] if spec.origin and spec.origin.endswith(".py") else []
    for folder in spec.submodule_search_locations or ():
        files += Path(folder).rglob("*.py")
    require(
        bool(files), "the package {package!r} has no Python source files to read: name another package", package=package
    )
    return sorted(set(files))


def _read(file: Path) -> list[str]:
    """The texts of one file; an empty list if it does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about escapes in the strings of other packages
            tree = ast.parse(file.read_bytes())
        texts = [text.strip() for text in _texts(tree)]
    except (SyntaxError, ValueError, RecursionError):
        return []
    return [text for text in texts if len(text) >= SHORTEST and not _HALF.search(text)]


def _texts(node: ast.AST) -> Iterator[str]:
    """The documentation strings of a node and of its children, from top to bottom. Expressions have none."""
    if isinstance(node, _DOCUMENTED):
        yield ast.get_docstring(node) or ""
    for name in _BODIES:
        for child in getattr(node, name, ()):
            yield from _texts(child)
