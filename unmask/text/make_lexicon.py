"""Make a lexicon file: phrases mined from a corpus and entities from a knowledge graph, best first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from unmask.errors import require
from unmask.text.atomic_write import check_free, drafted
from unmask.text.documents import COMPRESSIONS, Corpus
from unmask.text.knowledge_graph import names_in
from unmask.text.phrases import Miner, Mining, Phrase


def make_lexicon(
    corpus: Corpus | None,
    out: str | Path,
    *,
    graph: Sequence[str | Path] = (),
    mining: Mining | None = None,
    overwrite: bool = False,
) -> Iterator[dict[str, Any]]:
    """Write the lexicon atomically and yield a progress record per chunk; the last record is the summary."""
    out = Path(out)
    require(
        corpus is not None or bool(graph), "there is nothing to make a lexicon from: give a corpus, or --graph, or both"
    )
    require(
        corpus is not None or mining is None,
        "options of mining need a corpus, and none was given: give a corpus, or leave these options out",
    )
    check_free(out, overwrite=overwrite)
    require(
        out.suffix not in COMPRESSIONS,
        "a lexicon is written without compression, got {out}: choose another --out, and compress the file later",
        out=out,
    )
    names, notes = names_in(graph)
    phrases: list[Phrase] = []
    words = 0
    with drafted(out) as draft:
        if corpus is not None:
            miner = Miner(corpus, mining or Mining())
            yield from miner.read()
            phrases, words = miner.phrases(), miner.words
            notes += corpus.notes + _lost(miner)
        require(
            bool(phrases or names),
            "no phrase was found: give more text, or lower --least-count, --least-pmi or --least-entropy",
        )
        draft.write_text("".join(_lines(phrases, names)), encoding="utf-8", newline="\n")
    yield {"file": str(out), "phrases": len(phrases), "entities": len(names), "words": words, "notes": dict(notes)}


def _lost(miner: Miner) -> Counter[str]:
    """A note on phrases that may be missing, because the table of counts was full."""
    floor = miner.table.floor
    text = "occurrences are needed to find a phrase for certain, because the table was full: raise --most-ngrams"
    return Counter({text: floor + 1} if floor >= miner.mining.least_count else {})


def _lines(phrases: Sequence[Phrase], names: Sequence[tuple[str, int]]) -> list[str]:
    lines = [f"{p.text}\tphrase\t{p.count}\t{p.pmi:.3f}\t{p.entropy:.2f}\n" for p in phrases]
    return lines + [f"{name}\tentity\t{count}\n" for name, count in names]
