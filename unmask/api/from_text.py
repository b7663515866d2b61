"""From text to prepared data: what `pretrain` and `compare` do when they are given text where prepared data is expected.

The recipe's kind of tokenizer is trained, and the text is prepared with the columns that the recipe needs. Both are kept
in the cache (`unmask.data.cache`), which notices when the text changes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unmask import run, text
from unmask.api.corpus import about_size, linking
from unmask.data import cache
from unmask.data.pack import SENTENCES
from unmask.data.prepare import HOLDOUT, prepare
from unmask.data.shards import MANIFEST, VERSION, Shards
from unmask.errors import UserError, require
from unmask.knowledge.folder import read_about
from unmask.pretraining.components import check_components
from unmask.pretraining.mixture import needed_columns, weighed
from unmask.recipe import Recipe
from unmask.recipe_file import files_used_by
from unmask.system import check_training
from unmask.text import layout as layouts
from unmask.text.boundaries import available
from unmask.text.documents import source_of
from unmask.text.encode import CAPITAL, SIDE
from unmask.text.lexicon import LEVELS
from unmask.text.links import LINKS

Records = Generator[dict[str, Any], None, Path]


@dataclass(frozen=True)
class Reading:
    """How text is read. These are options of 'unmask prepare'; None and empty values are its defaults."""

    tokenizer: Path | None = None  # a tokenizer.json or a run folder; None: a tokenizer of the recipe's kind is trained
    lexicon: tuple[Path, ...] = ()  # phrases and entities
    graph: Path | None = None  # a folder of 'unmask graph', whose entities are found in the text
    lines: bool = False  # every line of a .txt file is a document
    encoding: str | None = None
    holdout: float | None = None  # the share of tokens kept for validation

    @property
    def given(self) -> list[str]:
        """The names of the options that were given."""
        return [name for name, value in vars(self).items() if value is not None and value is not False and value != ()]

    @property
    def share(self) -> float:
        """The share of tokens kept for validation."""
        return HOLDOUT if self.holdout is None else self.holdout

    def corpus(self, arguments: Sequence[str | Path], *, whole: bool = False) -> text.Corpus:
        return text.Corpus(arguments, encoding=self.encoding or "utf-8", lines=self.lines, whole=whole)


@dataclass(frozen=True)
class Places:
    """Where the tokenizer and the data are, and how the data is prepared."""

    tokenizer: Path
    data: Path
    words: text.Words
    whole: bool
    capitals: bool
    state: dict[str, Any]  # of the text when the names of these folders were made


def data_from_text(
    recipe: Recipe, data: Sequence[str | Path], out: Path, reading: Reading, *, start: Path | None, resume: bool,
    overwrite: bool, stop: Callable[[], bool], shown: Callable[..., list[str]],
) -> Records:  # fmt: skip
    """Prepare text for a run in `out`; yields records, and returns the folder of the data.

    `shown`: gives the commands that this stands for."""
    began, files, notes = time.monotonic(), files_of(data), Counter[str]()
    check_text(recipe, data, reading, start)
    earlier = run.request_of(out) if resume else None
    if earlier is None:
        run.claim(out, overwrite=overwrite, base=start, reads=files, resume=resume)
    places = yield from _placed(recipe, data, reading, start, notes)
    require(
        earlier is None or str(places.data) in earlier["data"],
        "{out} was started with other text, or its text changed: give only --resume and --out to go on with the text as it "
        "was, or choose another --out",
        out=out,
    )
    trained = start is None and reading.tokenizer is None
    yield {"event": "commands", "commands": shown(data, reading, places, trained=trained)}
    yield from _filled(data, reading, places, stop, began, notes)
    return places.data


def data_to_compare(
    recipe: Recipe, data: Sequence[str | Path], reading: Reading, *, stop: Callable[[], bool], name: str
) -> Records:  # fmt: skip
    """Prepare text for an entry of a comparison; yields records, and returns the folder of the data. `name`: of the entry."""
    began, notes = time.monotonic(), Counter[str]()
    places = yield from _placed(recipe, data, reading, None, notes)
    for record in _filled(data, reading, places, stop, began, notes):
        yield record | {"for": name}
    return places.data


def check_text(recipe: Recipe, data: Sequence[str | Path], reading: Reading, start: Path | None) -> None:
    """Refuse text that a recipe cannot be trained on, or that cannot be read in this way, before any work is done."""
    files_of(data)
    check_reading(recipe, reading, start)
    check_pairs(recipe, reading.corpus(data))
    if reading.graph is not None:
        read_about(reading.graph)


def reading_of(recipe: Recipe, reading: Reading) -> Reading:
    """How text is read for one of several recipes: without the lexicons or the graph that only others need."""
    needed = needed_columns(recipe)
    return replace(
        reading,
        lexicon=reading.lexicon if needed & set(LEVELS) else (),
        graph=reading.graph if LINKS in needed else None,
    )


def _placed(
    recipe: Recipe, data: Sequence[str | Path], reading: Reading, start: Path | None, notes: Counter[str]
) -> Generator[dict[str, Any], None, Places]:
    """Find the tokenizer or train one, and find the place of the data."""
    tokenizer = yield from find_tokenizer(recipe, data, reading, start, notes)
    if start is None:
        check_tokenizer(recipe, text.Tokenizer.load(tokenizer))
    return place(recipe, data, reading, tokenizer)


def _filled(
    data: Sequence[str | Path],
    reading: Reading,
    places: Places,
    stop: Callable[[], bool],
    began: float,
    notes: Counter[str],
) -> Iterator[dict[str, Any]]:
    """Prepare the text, unless it is in the cache, and say how much it is."""
    cached = places.data.is_dir()
    yield from prepare_text(data, reading, places, stop)
    manifest = Shards(places.data, verify=False).manifest
    yield {"event": "prepared", "folder": str(places.data), "cached": cached,
           "seconds": time.monotonic() - began, "tokens": manifest["tokens"], "notes": dict(notes + Counter(manifest["notes"]))}  # fmt: skip


def check_cached(out: Path) -> None:
    """Refuse to resume a run whose prepared text was deleted from the cache."""
    earlier = run.request_of(out)
    for folder in map(Path, earlier["data"] if earlier else ()):
        require(
            folder.is_dir() or cache.cache_folder() not in folder.parents,
            "{folder}, the prepared text of {out}, is no longer in the cache: to resume, give the recipe and the text again, "
            "as when the run was started",
            folder=folder,
            out=out,
        )


def is_text(data: Sequence[str | Path]) -> bool:
    """Whether these arguments name text. Folders with a manifest are prepared data; both together are refused."""
    prepared = [one for one in map(str, data) if (Path(weighed(one)[0]) / MANIFEST).is_file()]
    texts = [one for one in map(str, data) if one not in prepared]
    require(
        not (prepared and texts),
        "{prepared} is prepared data and {text} is not: give only text, or prepare the text too: unmask prepare {text} "
        "--tokenizer {prepared} --out FOLDER",
        prepared=prepared[:1] and weighed(prepared[0])[0],
        text=texts[:1] and texts[0],
    )
    for one in texts:
        require(
            not (Path(one) / run.RECIPE).is_file(),
            "{one} is a run, not text and not prepared data: to continue from it, give new text and --from {one}",
            one=one,
        )
    return bool(texts)


def files_of(data: Sequence[str | Path]) -> list[Path]:
    """The text files that these arguments name."""
    try:
        return [file for one in data for file in source_of(str(one)).files]
    except UserError as error:
        raise UserError(
            "{error}. Data is text (files, folders or globs), or a folder made by 'unmask prepare'", error=error
        ) from None


def check_reading(recipe: Recipe, reading: Reading, start: Path | None) -> None:
    """Refuse options that do not fit the recipe, before any work is done."""
    if start is None:
        check_training(recipe)  # with a start, the network comes from that run
        check_components(recipe)
        _check_vectors(recipe)
    require(
        start is None or reading.tokenizer is None,
        "--tokenizer has no effect with --from, because {start} has a tokenizer: leave --tokenizer out",
        start=start,
    )
    needed = needed_columns(recipe)
    levels = " and ".join(sorted(needed & set(LEVELS)))
    require(
        not levels or bool(reading.lexicon),
        "{name} hides units of the levels {levels}. They come from a lexicon, and entities need a knowledge graph, so no "
        "lexicon is made automatically: make one with 'unmask lexicon TEXT --graph TRIPLES --out FILE' and give it with "
        "--lexicon FILE; or set hide.units=Words",
        name=recipe.name,
        levels=levels,
    )
    require(
        bool(levels) or not reading.lexicon,
        "--lexicon has no effect, because {name} hides no phrases or entities: leave --lexicon out",
        name=recipe.name,
    )
    require(
        LINKS not in needed or reading.graph is not None,
        "{name} reads the entities of a text, which come from a knowledge graph: learn their vectors with 'unmask graph TRIPLES "
        "--out FOLDER' and give them with --graph FOLDER",
        name=recipe.name,
    )
    require(
        LINKS in needed or reading.graph is None,
        "--graph has no effect, because {name} reads no entities: leave --graph out",
        name=recipe.name,
    )
    of_tokenizer = {fact.removeprefix("column:") for fact in recipe.tokenizer.gives}
    other = sorted(needed - {SENTENCES, SIDE, CAPITAL, LINKS, "word", *LEVELS} - of_tokenizer)
    require(
        not other,
        "{name} needs the columns {other}, which are not made from text: give prepared data that has them",
        name=recipe.name,
        other=", ".join(other),
    )


def _check_vectors(recipe: Recipe) -> None:
    """Refuse word vectors that cannot be the first embeddings of the network."""
    if recipe.start is not None:
        backbone = recipe.system.backbone
        recipe.start.check(backbone.embedding or backbone.width)


def check_pairs(recipe: Recipe, corpus: text.Corpus) -> None:
    """Refuse texts without targets for a recipe that learns from pairs."""
    require(
        SIDE not in needed_columns(recipe) or corpus.pairs,
        "{name} learns from pairs of a source and a target, but {file} holds texts: give JSON lines (.jsonl) in which each line "
        'has "source" and "target"',
        name=recipe.name,
        file=corpus.sources[0].files[0],
    )


def find_tokenizer(
    recipe: Recipe, data: Sequence[str | Path], reading: Reading, start: Path | None, notes: Counter[str]
) -> Records:
    """The tokenizer.json or run folder to use; if no tokenizer is given, one of the recipe's kind is trained and cached."""
    if start is not None or reading.tokenizer is not None:
        return start or reading.tokenizer  # type: ignore[return-value]
    kind: Any = recipe.tokenizer
    state = _state(data, reading)
    code = [file.sha256 for file in files_used_by(kind)]  # a kind of the user's own may change
    folder = cache.entry("tokenizers", kind=repr(kind), code=code, **state)
    if not folder.is_dir():
        yield {"event": "preparing", "text": f"training a tokenizer for {recipe.name}"}
        with cache.filled(folder) as draft:
            text.train_to_file(reading.corpus(data), draft / "tokenizer.json", kind, at_most=True)
            _check_state(state, _state(data, reading))
    found = folder / "tokenizer.json"
    notes.update(about_size(text.Tokenizer.load(found), kind))
    return found


def check_tokenizer(recipe: Recipe, tokenizer: text.Tokenizer) -> None:
    """Refuse a tokenizer without a special token that the recipe needs."""
    check_training(recipe, tokenizer.vocabulary)
    for texts in (1, 2) if "b" in recipe.layout.split() else (1,):
        for item in layouts.items(recipe.layout, texts):
            if not item.is_text:
                tokenizer.role(item.name)


def place(recipe: Recipe, data: Sequence[str | Path], reading: Reading, found: Path) -> Places:
    """Where the data prepared with a tokenizer is or will be."""
    tokenizer = text.Tokenizer.load(found)
    tracks = recipe.all_tracks().values()
    whole = tokenizer.of_bytes and not reading.lines and not any(track.arrange.classes for track in tracks)
    segmented = "word" in needed_columns(recipe) or reading.lexicon or reading.graph
    wanted: text.Words = "auto" if segmented else "none"
    words, state = available(wanted), _state(data, reading)  # a segmenter that is installed later changes the name
    how = {"words": words, "whole": whole, "holdout": reading.share, "lexicon": cache.state_of(reading.lexicon)}
    capitals = CAPITAL in needed_columns(recipe)
    how |= {"capitals": True} if capitals else {}
    how |= {"graph": cache.state_of(sorted(reading.graph.iterdir()))} if reading.graph else {}
    folder = cache.entry("data", tokenizer=tokenizer.checksum, format=VERSION, **state, **how)
    return Places(found, folder, wanted, whole, capitals, state)


def prepare_text(
    data: Sequence[str | Path], reading: Reading, places: Places, stop: Callable[[], bool]
) -> Iterator[dict[str, Any]]:
    """Prepare the text, unless it is in the cache."""
    if places.data.is_dir():
        return
    lexicon = text.Lexicon.load(reading.lexicon) if reading.lexicon else None
    corpus, tokenizer = reading.corpus(data, whole=places.whole), text.Tokenizer.load(places.tokenizer)
    with cache.filled(places.data) as draft:
        for record in prepare(
            corpus,
            tokenizer,
            draft,
            words=places.words,
            lexicon=lexicon,
            capitals=places.capitals,
            holdout=reading.share,
            overwrite=True,
            **linking(reading.graph, None, None),
        ):
            require(not stop(), "stopped while the text was prepared: no run was begun")
            if "bytes_total" in record:
                yield {"event": "preparing", "text": "preparing the text"} | record
        _check_state(places.state, _state(data, reading))


def _state(data: Sequence[str | Path], reading: Reading) -> dict[str, Any]:
    """What the text is: its files, the share of their documents, and how it is read."""
    sources = [source_of(str(one)) for one in data]
    files = [(source.share, cache.state_of(source.files)) for source in sources]
    return {"files": files, "lines": reading.lines, "encoding": reading.encoding}


def _check_state(before: dict[str, Any], now: dict[str, Any]) -> None:
    require(before == now, "the text changed while it was read: run the command again when its files do not change")
