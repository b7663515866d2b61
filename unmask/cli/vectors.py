"""The verbs about word vectors: vectors, near, analogy."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

import unmask
from unmask import screen
from unmask.cli import output
from unmask.cli.options import Encoding, Errors, Json, Lines, OptionalCorpora, Overwrite, Seed, refuse
from unmask.cli.program import verb
from unmask.errors import require

VectorFile = Annotated[
    Path, typer.Argument(metavar="VECTORS", help="A file of word vectors: .bin is binary, others are text.")
]
Nearest = Annotated[int, typer.Option("-k", help="How many words.")]


@verb("unmask vectors corpus/ --kind glove --out v.txt")
def vectors(
    corpus: OptionalCorpora = [],  # noqa: B006
    out: Annotated[
        Path | None, typer.Option(help="The file to write: binary if its name ends in .bin, otherwise text.")
    ] = None,
    kind: Annotated[str | None, typer.Option(help="skipgram (the default), cbow, fasttext or glove.")] = None,
    from_: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="VECTORS",
            help="Train nothing: read these vectors, say how much of CORPUS they cover, and write them to --out.",
        ),
    ] = None,
    dims: Annotated[int | None, typer.Option(help="Length of a vector; 100 by default.")] = None,
    window: Annotated[
        int | None, typer.Option(help="Words on each side of a word; by default 10 for glove, 5 for the others.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Passes; by default 50 (over the table of pairs) for glove, 5 for the others.")
    ] = None,
    least_count: Annotated[int | None, typer.Option(help="Rarer words get no vector; 5 by default.")] = None,
    components: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="For glove: the components of Chinese characters, 'character TAB components' in each line. They get vectors too, "
            "and a character that is not in the corpus gets a vector from its components.",
        ),
    ] = None,
    words: Annotated[str, typer.Option(help="Where words begin: auto, spaces, rjieba (Chinese) or none.")] = "auto",
    words_from: Annotated[
        list[Path], typer.Option(metavar="FILE", help="Your own words for the Chinese segmenter; repeatable.")
    ] = [],  # noqa: B006
    cased: Annotated[
        bool, typer.Option("--cased", help="Keep capital letters; otherwise all words are lower case.")
    ] = False,
    lines: Lines = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    seed: Seed = 0,
    workers: Annotated[
        int | None,
        typer.Option(help="Processes; by default one per core. With 1, the same seed gives the same vectors."),
    ] = None,
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Train word vectors on a corpus, or read a file of them: to convert it, or to see how much of a corpus it covers."""
    trained = {"--kind": kind, "--dims": dims, "--window": window, "--epochs": epochs, "--least-count": least_count,
               "--components": components}  # fmt: skip
    reading: dict[str, Any] = {"words": words, "words_from": words_from, "lowercase": not cased, "lines": lines, "encoding": encoding,
               "errors": errors, "seed": seed, "workers": workers}  # fmt: skip
    if from_ is not None:
        refuse(trained, "--from")
        _read(from_, corpus, out, reading, json_, overwrite)
        return
    require(bool(corpus), "there is nothing to train on: give a CORPUS, or vectors with --from")
    require(out is not None, "--out is missing: name the file of vectors to write, such as --out v.txt")
    assert out is not None
    chosen: dict[str, Any] = {
        name.strip("-").replace("-", "_"): value for name, value in trained.items() if value is not None
    }
    summary = unmask.make_vectors(
        corpus, out, **chosen, **reading, overwrite=overwrite, progress=output.progress(json_)
    )
    said = (
        f"{summary['words']:,} words, vectors of {summary['dims']}, {summary['coverage']:.1%} of the corpus covered, written to "
        f"{out}; try: unmask near {out} WORD"
    )
    output.done(summary, said, json_)


def _read(
    file: Path, corpus: list[str], out: Path | None, reading: dict[str, Any], json_: bool, overwrite: bool
) -> None:
    require(
        bool(corpus) or out is not None,
        "--from reads vectors: give a CORPUS to see how much of it they cover, or --out to write them",
    )
    said = output.Said(json_)
    opened = unmask.load_vectors(file)
    said({"notes": opened.vectors.notes})
    said.show_notes()
    result: dict[str, Any] = {"file": str(file), "words": len(opened.vectors.words), "dims": opened.vectors.dims}
    if corpus:
        found = opened.coverage(corpus, **reading, progress=output.progress(json_))
        result["coverage"] = dataclasses.asdict(found) | {"share": found.share}
        missing = ", ".join(found.missing) or "none"
        output.notice(
            f"{found.share:.1%} of {found.words:,} words of the corpus have a vector, and {found.different_known:,} of "
            f"{found.different:,} different ones; most frequent without: {missing}",
            json_,
        )
    if out is not None:
        opened.save(out, overwrite=overwrite)
    words = f"{result['words']:,} words, vectors of {result['dims']}"
    output.done(result, words + (f", written to {out}" if out else ""), json_)


@verb("unmask near v.txt paris")
def near(
    file: VectorFile, word: Annotated[str, typer.Argument(help="A word.")], k: Nearest = 10, json_: Json = False
) -> None:
    """The words whose vectors are nearest to the vector of a word, with their cosines."""
    _show(word, unmask.load_vectors(file).near(word, k=k), json_)


@verb("unmask analogy v.txt man king woman")
def analogy(
    file: VectorFile,
    a: Annotated[str, typer.Argument(help="A word, such as man,")],
    b: Annotated[str, typer.Argument(help="is to this one, such as king,")],
    c: Annotated[str, typer.Argument(help="as this one, such as woman,")],
    k: Nearest = 10,
    json_: Json = False,
) -> None:
    """A is to B as C is to which words? The answers, with their cosines."""
    _show(f"{a} : {b} = {c} : ?", unmask.load_vectors(file).analogy(a, b, c, k=k), json_)


def _show(title: str, found: list[Any], json_: bool) -> None:
    if json_:
        output.as_json([dataclasses.asdict(one) for one in found])
    else:
        screen.table(title.replace("[", r"\["), ["word", "cosine"], [[one.word, f"{one.score:.3f}"] for one in found])
