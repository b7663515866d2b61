"""From texts to documents: token ids with the boundaries of words and sentences, found by offsets into the text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain

import numpy as np

from unmask.batch import Document
from unmask.text.boundaries import HAN, SPACE, Words, classes_of, codes_of, word_starts
from unmask.text.columns import BEGINS, CONTINUES, Column, join_columns, run_column
from unmask.text.fold_width import folded
from unmask.text.lexicon import LEVELS, Lexicon
from unmask.text.links import LINKS, UNLINKED, Linker, Mention
from unmask.text.sentences import sentence_starts
from unmask.text.tokenizer import Tokenizer
from unmask.text.user_words import OwnWords
from unmask.text.word_tokens import SPELLING, spellings

CAPITAL = "capital"  # the column of words that begin with a capital letter
SIDE = "side"  # the column of pairs: 0 in the source, 1 in the target
PLACES = "characters"  # the column of where each token begins and ends in its text: T 2, without the space before it


def encode_documents(
    texts: Sequence[str], tokenizer: Tokenizer, words: Words, lexicon: Lexicon | None = None, *,
    own: OwnWords | None = None, whole: bool = False, unknown: Counter[str] | None = None, places: bool = False,
    linker: Linker | None = None, mentions: Sequence[Sequence[Mention] | None] = (), notes: Counter[str] | None = None,
    capitals: bool = False,
) -> list[Document]:  # fmt: skip
    """Tokenise line by line, all lines in one call. A line keeps its line end, since some vocabularies have a token for it.

    `own`: the user's words for the Chinese segmenter. `whole`: keep blank lines and the white space at the end.
    `unknown`: a counter; the texts that became unknown tokens are added to it. `places`: add the column `PLACES`.
    `linker`: add the column `LINKS`. `mentions`: for each text its own links, which replace those that the linker finds;
    None: it has none. `notes`: a counter of what was left out. `capitals`: add the column `CAPITAL`."""
    if tokenizer.folds:  # boundaries must be those of the folded text
        texts = [folded(text) for text in texts]
    lines, lines_per_text, line_begins = _lines(texts, whole)
    encodings = tokenizer.encode_many(lines)
    counts = np.array([len(encoding) for encoding in encodings], dtype=np.int64)
    total = int(counts.sum())
    ids = np.fromiter(chain.from_iterable(e.ids for e in encodings), dtype=np.int64, count=total)
    pairs = chain.from_iterable(chain.from_iterable(e.offsets for e in encodings))  # start, end, start, end ...
    joined = [line if line.endswith("\n") else line + "\n" for line in lines]
    spans = np.fromiter(pairs, dtype=np.int64, count=2 * total).reshape(-1, 2)
    spans += np.repeat(_begin(np.array([len(line) for line in joined], dtype=np.int64)), counts)[:, None]
    text = "".join(joined)
    kinds = classes_of(codes_of(text))
    starts = _next_solid(kinds)[spans[:, 0]]  # a token may begin with the space before its word
    begins = word_starts(text, kinds, words, cutter=own and own.segmenter)
    word, sentence = _boundaries(text, kinds, begins, starts)
    # a token may end in the first bytes of the next word: then the next token continues the same unit
    word[1:] &= np.maximum.accumulate(spans[:-1, 1]) <= starts[1:]
    firsts = _begin(counts)[counts > 0]  # the first token of a line always begins a word and a sentence
    word[firsts] = True
    sentence[firsts] = True
    columns = {"word": run_column(word)}
    if lexicon is not None:
        ends = _ends(kinds, starts, spans[:, 1])
        matches = {level: lexicon.matches(text, kinds, level, begins=begins) for level in LEVELS}
        columns |= {level: Column(_units(found, starts, ends)) for level, found in matches.items()}
    if linker is not None:
        ends = _ends(kinds, starts, spans[:, 1])
        sizes = np.array([len(line) for line in joined], dtype=np.int64)
        own_lines = _Lines(lines_per_text, np.array(line_begins, dtype=np.int64), _begin(sizes), sizes)
        named = linker.matches(text, kinds, begins, own_lines.documents)
        columns[LINKS] = _links(linker, own_lines, named, mentions, starts, ends, notes)
    if capitals:
        columns[CAPITAL] = _capitals(text, starts, word)
    if tokenizer.keeps_spelling:
        columns[SPELLING] = spellings([text[a:b] for a, b in spans.tolist()])
    if places:
        moved = np.array(line_begins, dtype=np.int64) - _begin(np.array([len(line) for line in joined], dtype=np.int64))
        # a token of white space only is an empty place
        found = np.stack((np.minimum(starts, spans[:, 1]), spans[:, 1]), 1) + np.repeat(moved, counts)[:, None]
        columns[PLACES] = Column(found, "value", -1)
    if unknown is not None:
        _count_unknown(unknown, text, spans[ids == tokenizer.vocabulary.unknown])
    edges = np.concatenate(([0], np.cumsum(counts)))[np.concatenate(([0], np.cumsum(lines_per_text, dtype=np.int64)))]
    return [
        Document(ids[a:b], np.flatnonzero(sentence[a:b]), {name: column[a:b] for name, column in columns.items()})
        for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]


def _capitals(text: str, starts: np.ndarray, word: np.ndarray) -> Column:
    """The column of capital letters: 1 at the first token of a word that begins with one, 0 for another letter that could be
    one, -1 elsewhere."""
    codes, found = codes_of(text)[starts[word]], np.full(len(starts), -1, np.int8)
    known, each = np.unique(codes, return_inverse=True)
    cases = np.array([_case(chr(code)) for code in known.tolist()], np.int8)
    found[word] = cases[each]
    return Column(found, "value", -1)


def _case(character: str) -> int:
    """1 for a capital letter, 0 for a small letter, -1 for a character that is neither."""
    return 1 if character.isupper() else 0 if character.islower() else -1


def encode_pairs(
    texts: Sequence[str], tokenizer: Tokenizer, words: Words, lexicon: Lexicon | None = None, *,
    own: OwnWords | None = None, unknown: Counter[str] | None = None,
) -> list[Document]:  # fmt: skip
    """A document for each pair, which is two lines: the source and the target. The column `SIDE` says which is which."""
    sides = [side for text in texts for side in text.split("\n")]
    found = encode_documents(sides, tokenizer, words, lexicon, own=own, unknown=unknown)
    return [_pair(source, target) for source, target in zip(found[::2], found[1::2], strict=True)]


def _pair(source: Document, target: Document) -> Document:
    side = np.repeat(np.array([0, 1], dtype=np.int8), [len(source.ids), len(target.ids)])
    return Document(
        np.concatenate((source.ids, target.ids)),
        np.concatenate((source.sentences, target.sentences + len(source.ids))),
        join_columns([source.columns, target.columns]) | {SIDE: Column(side, "value", -1)},
    )


def encode_ids(texts: Sequence[str], tokenizer: Tokenizer) -> tuple[np.ndarray, np.ndarray]:
    """The token ids of all texts, one after another, and the number of tokens of each: those of `encode_documents`, which
    also finds words and sentences and takes longer."""
    if tokenizer.folds:
        texts = [folded(text) for text in texts]
    lines, lines_per_text, _ = _lines(texts, whole=False)
    encodings = (
        tokenizer.encode_many(lines)
        if tokenizer.of_words
        else tokenizer.backend.encode_batch_fast(lines, add_special_tokens=False)  # without offsets
    )
    sizes = np.fromiter(map(len, encodings), dtype=np.int64, count=len(encodings))
    ids = np.fromiter(chain.from_iterable(e.ids for e in encodings), dtype=np.int64, count=int(sizes.sum()))
    edges = np.concatenate(([0], np.cumsum(sizes)))[np.concatenate(([0], np.cumsum(lines_per_text, dtype=np.int64)))]
    return ids, np.diff(edges)


def kept(text: str, *, whole: bool = False) -> str:
    """The part of a text that is tokenised: without blank lines and without white space at the end. `whole`: all of it."""
    return "".join(_lines([text], whole)[0])


def _lines(texts: Sequence[str], whole: bool) -> tuple[list[str], list[int], list[int]]:
    """The lines of all texts without blank lines (`whole`: all lines), the number of lines of each text, and where each
    line begins in its text."""
    lines: list[str] = []
    lines_per_text: list[int] = []
    begins: list[int] = []
    for text in texts:
        every = text.splitlines(keepends=True)
        numbered = zip(accumulate(map(len, every), initial=0), every, strict=False)
        parts = [(begin, line) for begin, line in numbered if whole or line.strip()]
        begins += [begin for begin, _ in parts]
        found = [line for _, line in parts]
        if found and not whole:
            found[-1] = found[-1].rstrip()
        lines += found
        lines_per_text.append(len(found))
    return lines, lines_per_text, begins


def _boundaries(text: str, kinds: np.ndarray, begins: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each token, given its first character: whether it begins a word, and whether it begins a sentence.

    A token that begins inside a word continues that word, even if it reaches into the next word: units stay whole.
    """
    sentences = np.zeros(len(text) + 1, dtype=np.int64)
    sentences[sentence_starts(text, chinese=bool((kinds == HAN).any()))] = 1
    number = np.cumsum(sentences)[starts]
    # several tokens may share one character (its bytes): only the first token may begin a word
    return begins[starts] & _changes(starts), _changes(number)


def _count_unknown(counts: Counter[str], text: str, spans: np.ndarray) -> None:
    """Count the texts of these spans. Single characters (most spans in Chinese) are counted in one call."""
    if not len(spans):
        return
    single = spans[:, 1] - spans[:, 0] == 1
    characters, times = np.unique(codes_of(text)[spans[single, 0]], return_counts=True)
    counts.update(dict(zip(map(chr, characters.tolist()), times.tolist(), strict=True)))
    counts.update(text[begin:end].strip() for begin, end in spans[~single].tolist())


def _units(matches: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The mark of each token: begins a match, continues a match, or outside. A match must begin and end at token edges."""
    column = np.zeros(len(starts) + 1, dtype=np.uint8)
    first, last, whole = _tokens_of(matches, starts, ends)
    inside = np.zeros(len(column), dtype=np.int8)  # +1 where a match begins, -1 after its end
    inside[first[whole]] += 1
    inside[last[whole]] -= 1
    column[np.cumsum(inside, dtype=np.int8) > 0] = CONTINUES
    column[first[whole]] = BEGINS
    return column[:-1]


def _tokens_of(matches: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each match: its first token, the token after its last, and whether it begins and ends at token edges."""
    if not len(starts):
        none = np.zeros(len(matches), dtype=np.int64)
        return none, none, none.astype(bool)
    # the end of the text covered by all tokens before this one
    reach = np.concatenate(([0], np.maximum.accumulate(ends)))
    first, last = np.searchsorted(starts, matches[:, 0]), np.searchsorted(starts, matches[:, 1])
    whole = (first < last) & (reach[first] <= matches[:, 0]) & (reach[last] <= matches[:, 1])
    whole &= starts[np.minimum(first, len(starts) - 1)] == matches[:, 0]
    return first, last, whole


@dataclass(frozen=True)
class _Lines:
    """Where the lines of all texts are in the joined text."""

    per_text: list[int]  # how many
    before: np.ndarray  # where each line begins in its own text
    begins: np.ndarray  # where each line begins in the joined text
    sizes: np.ndarray

    @cached_property
    def firsts(self) -> np.ndarray:
        """The first line of each text, and the number of lines."""
        return np.concatenate(([0], np.cumsum(self.per_text, dtype=np.int64)))

    @cached_property
    def documents(self) -> np.ndarray:
        """Where each text begins in the joined text."""
        end = self.begins[-1:] + self.sizes[-1:]
        found: np.ndarray = np.concatenate((self.begins, end, [0]))[self.firsts[:-1]]
        return found

    def moved(self, text: int, place: int) -> int:
        """A place in a text as a place in the joined text; -1 if its line was left out."""
        first, last = self.firsts[text], self.firsts[text + 1]
        line = int(first + np.searchsorted(self.before[first:last], place, side="right")) - 1
        inside = line >= first and place < self.before[line] + self.sizes[line]
        return int(self.begins[line] + place - self.before[line]) if inside else -1


def _links(
    linker: Linker, lines: _Lines, named: tuple[np.ndarray, np.ndarray], mentions: Sequence[Sequence[Mention] | None],
    starts: np.ndarray, ends: np.ndarray, notes: Counter[str] | None,
) -> Column:  # fmt: skip
    """The column of links: names that the linker found, and in texts with mentions the mentions instead."""
    spans, numbers = named
    given = [number for number, some in enumerate(mentions) if some is not None]
    text = np.searchsorted(lines.documents, spans[:, 0], side="right") - 1
    kept = ~np.isin(text, given)
    own, left = [], Counter[str]()
    for number in given:
        for mention in mentions[number] or ():
            place = lines.moved(number, mention.start)
            entity = linker.numbers.get(mention.entity)
            if entity is None:
                left["mentions of an entity that the graph lacks, left out"] += 1
            elif place >= 0:
                own.append((place, place + mention.end - mention.start, entity))
    rows = np.array(own, dtype=np.int64).reshape(-1, 3)
    spans, numbers = np.concatenate((spans[kept], rows[:, :2])), np.concatenate((numbers[kept], rows[:, 2]))
    first, _, whole = _tokens_of(spans, starts, ends)
    lost = int((~whole[len(spans) - len(rows) :]).sum())
    if lost:
        left["mentions that do not begin and end where tokens do, left out"] += lost
    if notes is not None:
        notes += left
    values = np.full(len(starts), UNLINKED, dtype=np.int32)
    values[first[whole]] = numbers[whole]
    return Column(values, "value", UNLINKED)


def _ends(kinds: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Where each token ends, without spaces at its end. A token of spaces only ends after the character that follows."""
    after = np.where(kinds != SPACE, np.arange(1, len(kinds) + 1), 0)
    # for each place, the end of the last character before it that is not a space
    solid = np.concatenate(([0], np.maximum.accumulate(after)))
    return np.maximum(solid[ends], starts + 1)


def _changes(values: np.ndarray) -> np.ndarray:
    changed = np.ones(len(values), dtype=bool)
    changed[1:] = values[1:] != values[:-1]
    return changed


def _next_solid(kinds: np.ndarray) -> np.ndarray:
    """For each character, the next one (or itself) that is not a space."""
    places = np.where(kinds != SPACE, np.arange(len(kinds)), len(kinds) - 1)
    return np.minimum.accumulate(places[::-1])[::-1]


def _begin(lengths: np.ndarray) -> np.ndarray:
    return np.cumsum(lengths) - lengths
