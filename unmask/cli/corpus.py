"""The verbs about text, before any model: tokenizer, prepare, lexicon."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

import unmask
from unmask import screen
from unmask.cli import options, output
from unmask.cli.options import (
    Corpora,
    Encoding,
    Errors,
    Fold,
    Json,
    Lines,
    OptionalCorpora,
    Overwrite,
    Seed,
    Settings,
    Variant,
    Whole,
)
from unmask.cli.program import verb


@verb("unmask tokenizer corpus/ --kind wordpiece --vocab 30000 --out tok.json")
def tokenizer(
    corpus: Corpora,
    out: Annotated[Path, typer.Option(help="The file to write; with --extend, the run folder.")],
    kind: Annotated[
        str | None,
        typer.Option(
            help="wordpiece (the default), bpe, word-bpe, byte-bpe, unigram, characters, bytes or whole-words."
        ),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option("--for", metavar="RECIPE", help="Instead of --kind: the kind, vocabulary and case of a recipe."),
    ] = None,
    variant: Variant = "paper",
    settings: Settings = [],  # noqa: B006
    vocab: Annotated[
        str | None,
        typer.Option(
            help="How many tokens. By default the usual number (30,000 for wordpiece), or as many as the text allows. With "
            "--extend: how many more, such as +2000."
        ),
    ] = None,
    extend: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="Add the most useful tokens of the corpus to the tokenizer of a run; --out is a new run folder, to "
            "continue from.",
        ),
    ] = None,
    fold: Fold = False,
    whole: Whole = False,
    lines: Lines = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    seed: Seed = 0,
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Train a tokenizer on a corpus, or add words of the corpus to the tokenizer and the network of a run."""
    said = output.Said(json_)
    if extend is not None:
        alone = {"--kind": kind, "--for": recipe, "--variant": variant != "paper", "--set": settings, "--fold": fold,
                 "--whole": whole, "--errors": errors != "strict", "--seed": seed}  # fmt: skip
        options.refuse(alone, "--extend")
        model = unmask.load(extend, device="cpu", tell=said).extend(
            corpus, out, tokens=options.more(vocab), lines=lines, encoding=encoding, overwrite=overwrite, tell=said
        )
        said.show_notes()
        size = model.tokenizer.vocabulary.size
        result = {"folder": str(out), "vocabulary": size, "notes": dict(said.notes)}
        output.done(result, f"{size:,} tokens, written to {out}", json_)
        return
    kind = kind if kind or recipe else "wordpiece"
    shown = f"{kind} tokenizer" if recipe is None else f"tokenizer for {recipe}"
    with screen.err.status(f"training a {shown}") if not json_ else contextlib.nullcontext():
        made = unmask.train_tokenizer(
            corpus, out, kind=kind, recipe=recipe, variant=variant, settings=settings, vocab=options.count(vocab),
            fold=fold, whole=whole, lines=lines, encoding=encoding, errors=errors, seed=seed, overwrite=overwrite, tell=said,
        )  # fmt: skip
    said.show_notes()
    size = made.vocabulary.size
    result = {
        "file": str(out),
        "kind": kind,
        "for": recipe,
        "vocabulary": size,
        "fold": fold,
        "notes": dict(said.notes),
    }
    output.done(result, f"{size:,} tokens, written to {out}", json_)


@verb("unmask prepare corpus/ --tokenizer tok.json --out data/wiki")
def prepare(
    corpus: Corpora,
    tokenizer: Annotated[Path, typer.Option(help="A tokenizer.json, or a run folder.")],
    out: Annotated[Path, typer.Option(help="The data folder to write.")],
    words: Annotated[str, typer.Option(help="Where words begin: auto, spaces, rjieba (Chinese) or none.")] = "auto",
    words_from: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE",
            help="Your own words for the Chinese segmenter: one a line, or jieba's 'word frequency tag'; repeatable.",
        ),
    ] = [],  # noqa: B006
    lexicon: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE", help="Phrases and entities to find, made by 'unmask lexicon' or by hand; repeatable."
        ),
    ] = [],  # noqa: B006
    graph: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Vectors of 'unmask graph': their entities are found, as the column links."
        ),
    ] = None,
    link_by: Annotated[
        str | None,
        typer.Option(help="Which entity of several with one name: prior (most triples, the default) or context."),
    ] = None,
    mention_id: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The field of the id in the mentions that JSON lines bring; id by default."),
    ] = None,
    capitals: Annotated[
        bool, typer.Option("--capitals", help="Keep which words begin with a capital letter, as the column capital.")
    ] = False,
    holdout: Annotated[
        str, typer.Option(help="Share of the tokens kept for validation, as whole documents where possible.")
    ] = "0.5%",
    fold: Fold = False,
    whole: Whole = False,
    lines: Lines = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    seed: Seed = 0,
    workers: Annotated[int | None, typer.Option(help="Processes; by default one per core.")] = None,
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Tokenise a corpus once, with its word and sentence boundaries, for every recipe to use."""
    manifest = unmask.prepare(
        corpus, out, tokenizer=tokenizer, words=words, words_from=words_from, lexicon=lexicon,
        graph=graph, link_by=link_by, mention_id=mention_id, capitals=capitals, holdout=options.share(holdout), fold=fold, whole=whole, lines=lines, encoding=encoding, errors=errors, seed=seed,
        workers=workers, overwrite=overwrite, progress=output.progress(json_),
    )  # fmt: skip
    held = sum(shard["tokens"] for shard in manifest["splits"]["holdout"])
    counted = f"{manifest['tokens']:,} tokens" + ("" if whole else f" in {manifest['documents']:,} documents")
    counted += (
        f", {100 * manifest['unknown']['share']:.2g}% of the tokens unknown" if manifest["unknown"]["tokens"] else ""
    )
    shown = ("tokens", "documents", "vocabulary", "unknown", "words", "words_from", "lexicon", "links", "fold", "notes")
    output.done(
        {name: manifest[name] for name in shown}, f"{counted} ({held:,} tokens held out), written to {out}", json_
    )


@verb("unmask lexicon corpus/ --graph triples.tsv --out phrases.tsv")
def lexicon(
    out: Annotated[Path, typer.Option(help="The file to write: an entry, its level and its numbers a line.")],
    corpus: OptionalCorpora = [],  # noqa: B006
    graph: Annotated[
        list[Path],
        typer.Option(metavar="FILE", help="Triples, .jsonl (head, relation, tail) or .tsv: their names; repeatable."),
    ] = [],  # noqa: B006
    least_count: Annotated[int, typer.Option(help="The minimum count of a phrase.")] = 10,
    least_pmi: Annotated[
        float, typer.Option(help="Minimum normalised mutual information of its words; 1: they always occur together.")
    ] = 0.5,
    least_entropy: Annotated[
        float, typer.Option(help="Minimum entropy, in bits, of what comes before and after it.")
    ] = 2.0,
    most_ngrams: Annotated[
        int,
        typer.Option(help="Word sequences counted at a time; beyond, the rarest are dropped. A million takes 50 MB."),
    ] = 10_000_000,
    lines: Lines = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    seed: Seed = 0,
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Phrases mined from a corpus, and the entities of a knowledge graph, for 'unmask prepare --lexicon'."""
    mining = unmask.Mining(
        least_count=least_count, least_pmi=least_pmi, least_entropy=least_entropy, most_ngrams=most_ngrams
    )
    summary = unmask.make_lexicon(
        corpus, out, graph=graph, mining=mining, lines=lines, encoding=encoding, errors=errors, seed=seed,
        overwrite=overwrite, progress=output.progress(json_),
    )  # fmt: skip
    output.done(
        summary, f"{summary['phrases']:,} phrases and {summary['entities']:,} entities, written to {out}", json_
    )
