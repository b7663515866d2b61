"""The command line: one verb per thing a user does, each a thin call of the Python API."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from unmask import options, screen
from unmask.errors import Mistake
from unmask.options import Corpora, Device, Errors, Json, OptionalCorpora, Overwrite, Run, Seed, Settings, Size, Variant

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Pretrain, adapt, compare and serve the language models of 2017-2020 on your own text.",
)


def verb(example: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a verb, its example shown at the end of its help."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        name = function.__name__.strip("_")
        return app.command(name, epilog=f"Example: [cyan]{example}[/]")(function)

    return register


@verb("unmask demo --minutes 3")
def demo(
    minutes: Annotated[float, typer.Option(help="How long it may take.")] = 6.0,
    out: Annotated[Path, typer.Option(help="Where to put everything.")] = Path("demo"),
    seed: Seed = 0,
    device: Device = None,
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """The main job on text that is on every machine: pretrain on documentation strings, adapt, compare."""
    from unmask.demo import demo as run

    results = run(out, minutes=minutes, seed=seed, device=device, overwrite=overwrite, quiet=json_)
    if json_:
        _print(results)


@verb("unmask recipes")
def recipes(json_: Json = False) -> None:
    """The family, a line each: name, year, and what it hides, sees and predicts."""
    from unmask.recipes import entries

    found = entries()
    if json_:
        _print([dataclasses.asdict(entry) for entry in found])
        return
    screen.table("", ["recipe", "year", "idea"], [[e.name, e.year, e.idea] for e in found])


@verb("unmask show bert --size tiny --set hide.budget=0.2")
def show(
    recipe: Annotated[str, typer.Argument(help="A recipe's name.")],
    size: Size = "base",
    variant: Variant = "paper",
    settings: Settings = [],  # noqa: B006
    json_: Json = False,
) -> None:
    """Every value of a recipe, its parameter count and its training operations per token."""
    from unmask import recipes as family
    from unmask.recipe import flat, plain
    from unmask.system import cost

    chosen = family.get(recipe, size=size, variant=variant, settings=settings)
    price = cost(chosen, chosen.tokenizer.vocab)  # type: ignore[attr-defined]
    if json_:
        _print({"recipe": plain(chosen)} | price)
        return
    rows = [[name, value] for name, value in flat(chosen).items()]
    screen.table(f"{recipe} {size}", ["value", ""], rows)
    screen.out.print(f"parameters                      {price['parameters']:,}")
    screen.out.print(f"training operations per token   {price['flops_per_token']:.3g}")


@verb("unmask diff bert roberta")
def diff(
    first: Annotated[str, typer.Argument(help="A recipe's name.")],
    second: Annotated[str, typer.Argument(help="Another's.")],
    size: Size = "base",
    json_: Json = False,
) -> None:
    """What differs between two recipes."""
    from unmask import recipes as family
    from unmask.recipe import flat

    a, b = flat(family.get(first, size=size)), flat(family.get(second, size=size))
    names = [name for name in [*a, *(n for n in b if n not in a)] if name != "name" and a.get(name) != b.get(name)]
    if json_:
        _print({name: {first: a.get(name), second: b.get(name)} for name in names})
        return
    screen.table("", ["value", first, second], [[name, a.get(name, "-"), b.get(name, "-")] for name in names])


@verb('unmask explain bert "The doctor examined the patient." --picture bert.png')
def explain(
    recipe: Annotated[str, typer.Argument(help="A recipe's name, or a run folder.")],
    text: Annotated[str | None, typer.Argument(help="A text of yours; a blank line parts documents.")] = None,
    size: Annotated[str | None, typer.Option(help="tiny, mini, small, medium, base (the default) or large.")] = None,
    variant: Annotated[str | None, typer.Option(help="paper (the default), or another that the recipe names.")] = None,
    settings: Settings = [],  # noqa: B006
    tokenizer: Annotated[Path | None, typer.Option(help="A tokenizer.json; by default a small one is trained.")] = None,
    lexicon: Annotated[
        list[Path], typer.Option(metavar="FILE", help="Phrases and entities, for recipes that hide them; repeatable.")
    ] = [],  # noqa: B006
    stage: Annotated[int | None, typer.Option(help="Of the schedule, from 1; by default the last.")] = None,
    visit: Annotated[int, typer.Option(help="How often the text was read before.")] = 0,
    picture: Annotated[Path | None, typer.Option(help="Draw it into this PNG.")] = None,
    statistics: Annotated[
        str | None, typer.Option(metavar="DATA", help="Instead of a text: measure many rows of prepared data.")
    ] = None,
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """What a recipe does with a text: tokens and boundaries, what is hidden, who sees whom, what is predicted."""
    from unmask import api, explanation
    from unmask import recipes as family
    from unmask.recipe import from_json, override

    run = Path(recipe) if (Path(recipe) / "recipe.json").is_file() else None
    if run is not None and (size or variant):
        raise Mistake(f"the recipe comes from {run}: leave --size and --variant out")
    if (text is None) == (statistics is None):
        raise Mistake("give a TEXT to explain, or --statistics DATA to measure: one of them")
    chosen = (
        override(from_json((run / "recipe.json").read_text(encoding="utf-8")), settings)
        if run is not None
        else family.get(recipe, size=size or "base", variant=variant or "paper", settings=settings)
    )
    if statistics is not None:
        from unmask.explanation.statistics import measure, table

        if tokenizer or lexicon or picture:
            raise Mistake("--statistics reads prepared data: leave --tokenizer, --lexicon and --picture out")
        measured = measure(chosen, statistics, stage=stage, seed=seed, visit=visit)
        if json_:
            _print(explanation.to_json(measured))
            return
        screen.table(f"{chosen.name} on {statistics}", ["", "measured", "asked for"], list(table(measured)))
        _notes(measured.notes, json_)
        return
    tokenizer = tokenizer or (run / "tokenizer.json" if run is not None else None)
    found = api.explain(chosen, text or "", tokenizer=tokenizer, lexicon=lexicon, stage=stage, seed=seed, visit=visit)
    if picture is not None:
        from unmask.explanation.picture import draw

        draw(found, picture)
    if json_:
        _print(explanation.to_json(found))
        return
    from unmask.explanation.screen import render

    screen.out.print(render(found), soft_wrap=False)
    if picture is not None:
        screen.err.print(f"[dim]drawn into {picture}[/]")


@verb("unmask tokenizer corpus/ --kind wordpiece --vocab 30000 --out tok.json")
def tokenizer(
    corpus: Corpora,
    out: Annotated[Path, typer.Option(help="The file to write.")],
    kind: Annotated[str, typer.Option(help="wordpiece, bpe, byte-bpe, unigram or characters.")] = "wordpiece",
    vocab: Annotated[int, typer.Option(help="How many tokens.")] = 30_000,
    errors: Errors = "strict",
    seed: Seed = 0,
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Train a tokenizer on a corpus."""
    from unmask import text

    stream = text.Corpus(corpus, errors=errors, seed=seed)
    with screen.err.status(f"training a {kind} tokenizer") if not json_ else contextlib.nullcontext():
        made = text.train_to_file(stream, out, text.kind_named(kind, vocab), overwrite)
    result = {"file": str(out), "kind": kind, "vocabulary": made.vocabulary.size, "notes": dict(stream.notes)}
    _notes(stream.notes, json_)
    _done(result, f"{made.vocabulary.size:,} tokens, written to {out}", json_)


@verb("unmask prepare corpus/ --tokenizer tok.json --out data/wiki")
def prepare(
    corpus: Corpora,
    tokenizer: Annotated[Path, typer.Option(help="A tokenizer.json, or a run folder.")],
    out: Annotated[Path, typer.Option(help="The data folder to write.")],
    words: Annotated[str, typer.Option(help="Where words begin: auto, spaces, rjieba (Chinese) or none.")] = "auto",
    lexicon: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE", help="Phrases and entities to find, made by 'unmask lexicon' or by hand; repeatable."
        ),
    ] = [],  # noqa: B006
    holdout: Annotated[str, typer.Option(help="Share of documents kept for validation.")] = "0.5%",
    errors: Errors = "strict",
    seed: Seed = 0,
    workers: Annotated[int | None, typer.Option(help="Processes; by default one per core.")] = None,
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Tokenise a corpus once, with its word and sentence boundaries, for every recipe to use."""
    from unmask.data.prepare import prepare as run
    from unmask.text import Corpus, Lexicon, Tokenizer
    from unmask.text.boundaries import words_named

    known = Lexicon.load(lexicon) if lexicon else None
    records = run(Corpus(corpus, errors=errors, seed=seed), Tokenizer.load(tokenizer), out, words=words_named(words),
                  lexicon=known, holdout=options.share(holdout), workers=workers, overwrite=overwrite)  # fmt: skip
    manifest: dict[str, Any] = {}
    for manifest in screen.reading(records, "preparing", json_):
        pass
    _notes(manifest["notes"], json_)
    held = sum(shard["documents"] for shard in manifest["splits"]["holdout"])
    said = f"{manifest['tokens']:,} tokens in {manifest['documents']:,} documents ({held:,} held out), written to {out}"
    shown = ("tokens", "documents", "vocabulary", "words", "lexicon", "notes")
    _done({name: manifest[name] for name in shown}, said, json_)


@verb("unmask lexicon corpus/ --graph triples.tsv --out phrases.tsv")
def lexicon(
    out: Annotated[Path, typer.Option(help="The file to write: an entry, its level and its numbers a line.")],
    corpus: OptionalCorpora = [],  # noqa: B006
    graph: Annotated[
        list[Path],
        typer.Option(metavar="FILE", help="Triples, .jsonl (head, relation, tail) or .tsv: their names; repeatable."),
    ] = [],  # noqa: B006
    least_count: Annotated[int, typer.Option(help="How often a phrase must come.")] = 10,
    least_pmi: Annotated[
        float, typer.Option(help="How bound its words must be: normalised mutual information, 1 is always together.")
    ] = 0.5,
    least_entropy: Annotated[
        float, typer.Option(help="How freely it must stand: bits of what comes before and after it.")
    ] = 2.0,
    most_ngrams: Annotated[
        int,
        typer.Option(help="Word sequences counted at a time; beyond, the rarest are dropped. A million takes 50 MB."),
    ] = 10_000_000,
    errors: Errors = "strict",
    seed: Seed = 0,
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Phrases mined from a corpus, and the entities of a knowledge graph, for 'unmask prepare --lexicon'."""
    from unmask.text import Corpus, Mining, make_lexicon

    mining = Mining(least_count=least_count, least_pmi=least_pmi, least_entropy=least_entropy, most_ngrams=most_ngrams)
    if not corpus and mining != Mining():
        raise Mistake("nothing is mined without a CORPUS: give one, or leave --least-... and --most-ngrams out")
    stream = Corpus(corpus, errors=errors, seed=seed) if corpus else None
    records = make_lexicon(stream, out, graph=graph, mining=mining if corpus else None, overwrite=overwrite)
    summary: dict[str, Any] = {}
    for summary in screen.reading(records, "mining", json_, unit="words"):
        pass
    _notes(summary["notes"], json_)
    _done(summary, f"{summary['phrases']:,} phrases and {summary['entities']:,} entities, written to {out}", json_)


@verb("unmask pretrain bert data/wiki --size small --budget 20m --out runs/bert")
def pretrain(
    recipe: Annotated[str, typer.Argument(help="A recipe's name: see 'unmask recipes'.")],
    data: Annotated[list[str], typer.Argument(help="Folders made by 'unmask prepare'; FOLDER:0.3 for its weight.")],
    out: Annotated[Path, typer.Option(help="The run folder to write.")],
    size: Annotated[str | None, typer.Option(help="tiny ... large; base by default, or that of --from.")] = None,
    variant: Variant = "paper",
    budget: Annotated[str, typer.Option(help="20m, 2h, 1e9tok, 5000steps or 1e17flop.")] = "20m",
    start: Annotated[Path | None, typer.Option("--from", help="A run to continue from, on new text.")] = None,
    settings: Settings = [],  # noqa: B006
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was cut off.")] = False,
    compiled: Annotated[bool | None, typer.Option("--compile/--no-compile", help="By default on a GPU.")] = None,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write TensorBoard files.")] = False,
    seed: Seed = 0,
    device: Device = None,
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Train a recipe on prepared data within a budget; the rate's curve spans the whole budget."""
    from unmask import pretraining
    from unmask import recipes as family

    if resume and overwrite:
        raise Mistake("--resume goes on with a run and --overwrite begins it anew: give one of them")
    if start is not None and (size or any(setting.startswith("system.") for setting in settings)):
        raise Mistake(f"the network comes from {start}: leave --size and --set system... out, or leave --from out")
    chosen = family.get(recipe, size=size or family.size_of(recipe, start), variant=variant, settings=settings)
    records = pretraining.pretrain(chosen, data, out, budget=budget, start=start, seed=seed, device=device, compiled=compiled,
                                   resume=resume, overwrite=overwrite, tensorboard=tensorboard, stop=options.interrupt())  # fmt: skip
    last: dict[str, Any] = {}
    for record in screen.training(records, f"{recipe} {size or ''}".strip(), json_):
        last = record if "step" in record else last
    if last.get("stopped"):
        command = shlex.join(word for word in sys.argv[1:] if word not in ("--resume", "--overwrite"))
        _done(last, f"saved at step {last['step']:,}; go on with: unmask {command} --resume", json_)
        raise typer.Exit(130)
    _done(last, f"written to {out}; try: unmask {_next_verb(chosen)} {out} ...", json_)


@verb("unmask adapt runs/bert train.jsonl --dev dev.jsonl --out runs/bert-sst2")
def adapt(
    run: Run,
    train: Annotated[
        Path,
        typer.Argument(
            help='Examples: JSON lines or CSV with "text" (or "text_a", "text_b") and "label"; to write: "source", "target".'
        ),
    ],
    out: Annotated[Path, typer.Option(help="The run folder to write.")],
    task: Annotated[str, typer.Option(help="classify, or write: a text from a source text.")] = "classify",
    dev: Annotated[Path | None, typer.Option(help="Examples to choose the best epoch by.")] = None,
    settings: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="epochs, examples, rate, warmup, decay, length, dropout, pool, activation, hidden.",
        ),
    ] = [],  # noqa: B006, E501
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start from random weights: the control of a comparison.")
    ] = False,
    seed: Seed = 0,
    device: Device = None,
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Fine-tune a pretrained model to tell labels apart, or to write one text from another."""
    from unmask import adapt as adapting
    from unmask.errors import unknown
    from unmask.infer import open_run
    from unmask.recipe import override
    from unmask.tasks import KINDS

    if task not in KINDS:
        raise unknown("task", task, KINDS)
    records = adapting.adapt_to_files(open_run(run, device=device), train, out, dev=dev,
                                      task=override(KINDS[task](), settings), seed=seed, fresh=fresh,
                                      overwrite=overwrite, stop=options.interrupt())  # fmt: skip
    last: dict[str, Any] = {}
    for record in screen.training(records, f"adapting {run.name}", json_):
        last = record if "step" in record else last
    if last.get("stopped"):
        _done(last, f"stopped at step {last['step']:,}; the weights so far are in {out}", json_)
        raise typer.Exit(130)
    _done(last, f"written to {out}; try: unmask evaluate {out} TEST", json_)


@verb("unmask evaluate runs/bert-sst2 test.jsonl")
def evaluate(
    run: Run,
    test: Annotated[Path, typer.Argument(help="Labelled examples.")],
    device: Device = None,
    json_: Json = False,
) -> None:
    """Accuracy, F1, Matthews' correlation and the confusion matrix of an adapted model; of one that writes, ROUGE-L."""
    from unmask import api

    model = api.load(run, device=device)
    scores = model.evaluate(test)
    _notes(model.inner.notes, json_)
    if json_:
        _print(scores)
        return
    numbers = [
        [name, f"{scores[name]:.4f}"] for name in ("accuracy", "f1", "mcc", "rouge_l", "exact") if name in scores
    ]
    screen.table(f"{run} on {test}", ["score", ""], [["examples", f"{scores['examples']:,}"], *numbers])
    if "confusion" in scores:
        rows = [[name, *row] for name, row in zip(scores["labels"], scores["confusion"], strict=True)]
        screen.table("truth in rows, prediction in columns", ["", *scores["labels"]], rows)


@verb('unmask predict runs/bert-sst2 "a great film"')
def predict(
    run: Run,
    input_: Annotated[
        str, typer.Argument(metavar="FILE_OR_TEXT", help="A text, or a file of texts (.jsonl, .csv, .txt).")
    ],
    second: Annotated[str | None, typer.Argument(metavar="SECOND_TEXT", help="The second text of a pair.")] = None,
    device: Device = None,
    json_: Json = False,
) -> None:
    """The label of a text, or of every text of a file."""
    from unmask.data.given import Text
    from unmask.infer import classify, open_run
    from unmask.tasks.classify import read_texts

    file = Path(input_)
    if second is None and (file.is_file() or file.suffix in (".jsonl", ".csv", ".tsv", ".txt")):
        texts = read_texts(file)
    elif file.is_file():
        raise Mistake(f"{file} is a file: a second text goes with a text, pairs in a file have text_a and text_b")
    else:
        texts = [Text(input_, second)]
    model = open_run(run, device=device)
    found_all = classify(model, texts)
    _notes(model.notes, json_)
    for text, found in zip(texts, found_all, strict=True):
        if json_:
            _print({"text": text.a} | dataclasses.asdict(found), lines=True)
        else:
            screen.out.print(f"{found.label}\t{found.probabilities[found.label]:.3f}\t{text.a[:80]}", markup=False)


@verb('unmask fill runs/bert "Paris is the [MASK] of France."')
def fill(
    run: Run,
    text: Annotated[str, typer.Argument(help="A text with [MASK] where a word is missing.")],
    top: Annotated[int, typer.Option(help="How many guesses.")] = 5,
    device: Device = None,
    json_: Json = False,
) -> None:
    """What a masked model puts at each [MASK]."""
    from unmask import api

    guesses = api.load(run, device=device).fill(text, top=top)
    if json_:
        _print([[dataclasses.asdict(guess) for guess in place] for place in guesses])
        return
    for number, place in enumerate(guesses, 1):
        screen.table(
            f"[MASK] {number}".replace("[", r"\["),
            ["token", "probability"],
            [[g.token, f"{g.probability:.3f}"] for g in place],
        )


@verb('unmask generate runs/gpt2 "Once upon a time" --tokens 60 --top-p 0.9')
def generate(
    run: Run,
    prompt: Annotated[str, typer.Argument(help="How the text begins.")],
    tokens: Annotated[int, typer.Option(help="How many new tokens at most.")] = 50,
    temperature: Annotated[
        float, typer.Option(help="0 takes the likeliest token; below 1 is safer, above 1 wilder.")
    ] = 1.0,
    top_k: Annotated[int | None, typer.Option(help="Draw among so many tokens.")] = None,
    top_p: Annotated[
        float | None, typer.Option(help="Draw among the likeliest with this probability together.")
    ] = None,
    seed: Seed = 0,
    device: Device = None,
    json_: Json = False,
) -> None:
    """Go on with a text; a model that was adapted to write writes a text from it."""
    from unmask.infer import Sampling, open_run, write
    from unmask.infer import generate as run_on

    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p)
    model = open_run(run, device=device)
    second = model.recipe.see.writes == "second"  # type: ignore[attr-defined]
    pieces = (write if second else run_on)(model, prompt, tokens=tokens, sampling=sampling, seed=seed)
    if json_:
        _print({"text": "".join(pieces)})
        return
    for piece in pieces:
        sys.stdout.write(piece)
        sys.stdout.flush()
    sys.stdout.write("\n")
    _notes(model.notes, json_)


@verb("unmask embed runs/bert texts.txt --out vectors.npy")
def embed(
    run: Run,
    file: Annotated[Path, typer.Argument(help="Texts: a line each (.txt), or .jsonl or .csv with text.")],
    out: Annotated[Path, typer.Option(help="The .npy file to write.")],
    pool: Annotated[str, typer.Option(help="mean, or summary for the summary token.")] = "mean",
    layer: Annotated[int, typer.Option(help="Which layer; 0 is the embeddings, -1 the last.")] = -1,
    device: Device = None,
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """One vector per text."""
    import numpy as np

    from unmask import infer
    from unmask.errors import require
    from unmask.tasks.classify import read_texts

    require(overwrite or not out.exists(), f"{out} exists already: choose another --out, or pass --overwrite")
    texts = [text.a for text in read_texts(file)]
    model = infer.open_run(run, device=device)
    vectors = infer.embed(model, texts, pool=pool, layer=layer)  # type: ignore[arg-type]
    _notes(model.notes, json_)
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("wb") as target:
        np.save(target, vectors)
    _done(
        {"file": str(out), "shape": list(vectors.shape)},
        f"{len(texts):,} vectors of {vectors.shape[1]}, written to {out}",
        json_,
    )


@verb("unmask export runs/bert exported/")
def export(
    run: Run,
    out: Annotated[Path, typer.Argument(help="The folder to write.")],
    generator: Annotated[bool, typer.Option("--generator", help="Write ELECTRA's generator instead.")] = False,
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Write a model in Hugging Face format."""
    from unmask import api

    made = api.load(run, device="cpu").export(out, generator=generator, overwrite=overwrite)
    if made.left_out and not json_:
        screen.note(f"{made.architecture} has no place for, and leaves out: {', '.join(made.left_out)}")
    _done(dataclasses.asdict(made), f"{made.architecture}, {', '.join(made.files)}, written to {out}", json_)


@verb("unmask import bert-base-uncased/ --out runs/bert")
def import_(
    folder: Annotated[Path, typer.Argument(metavar="HF_FOLDER", help="A folder in Hugging Face format.")],
    out: Annotated[Path, typer.Option(help="The run folder to write.")],
    generator: Annotated[
        Path | None, typer.Option(metavar="HF_FOLDER", help="ELECTRA's generator, beside its discriminator.")
    ] = None,
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Bring in a model in Hugging Face format."""
    from unmask import convert

    report = convert.import_hf(folder, out, generator=generator, overwrite=overwrite)
    if json_:
        _print(dataclasses.asdict(report))
        return
    for name, value in dataclasses.asdict(report).items():
        shown = ", ".join(map(str, value)) or "nothing" if isinstance(value, list | tuple) else value
        screen.out.print(f"{name.replace('_', ' '):12s} {shown}", markup=False)
    screen.err.print(f"[dim]written to {out}[/]")


def _next_verb(recipe: Any) -> str:
    """What to try with a new run."""
    from unmask.predict import Tokens

    if not any(isinstance(part, Tokens) for part in recipe.predict.values()):
        return "adapt"
    return "generate" if recipe.see.writes == "onward" else "fill"


def _notes(notes: dict[str, int], quiet: bool) -> None:
    for name, count in notes.items() if not quiet else ():
        screen.note(f"{count:,} {name}")


def _done(result: Any, said: str, as_json: bool) -> None:
    if as_json:
        _print(result)
    else:
        screen.done(said)


def _print(value: Any, lines: bool = False) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=None if lines else 1) + "\n")


def main() -> None:
    try:
        app()
    except Mistake as mistake:
        screen.fail(str(mistake))
    except OSError as error:  # a full disk, a folder that may not be written
        screen.fail(f"{error.strerror or error}: {error.filename or 'no file named'}")


if __name__ == "__main__":
    main()
