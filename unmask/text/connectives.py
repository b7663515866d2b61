"""Connectives: words that name the relation between two texts, such as "however", in a table for each language."""

from __future__ import annotations

from pathlib import Path

from unmask.errors import UserError, require, unknown
from unmask.text.lines import numbered_lines

RELATIONS = ("contrast", "result", "cause", "condition", "addition", "example", "time", "restatement", "summary")
_TABLES = {
    "en": {
        "contrast": "however, but, yet, nevertheless, nonetheless, in contrast, by contrast, on the other hand, on the contrary, "
        "conversely, instead, rather, still, even so, whereas, although, though",
        "result": "therefore, thus, consequently, as a result, hence, accordingly, so, for this reason, as a consequence",
        "cause": "because, since",
        "condition": "if, unless, otherwise, in that case, provided that",
        "addition": "moreover, furthermore, in addition, additionally, also, besides, likewise, similarly, and",
        "example": "for example, for instance, in particular, specifically, notably",
        "time": "then, afterwards, later, meanwhile, subsequently, finally, previously, eventually, at the same time, "
        "after that, before that, when, while, until",
        "restatement": "in other words, that is, in fact, indeed, namely, actually",
        "summary": "in conclusion, in summary, overall, in short, to sum up, all in all",
    },
    "zh": {
        "contrast": "但是, 但, 然而, 不过, 可是, 相反, 反之, 尽管如此, 虽然, 尽管, 却, 而是",
        "result": "因此, 所以, 因而, 于是, 从而, 结果, 由此, 以致",
        "cause": "因为, 由于",
        "condition": "如果, 只要, 只有, 除非, 否则, 假如, 若",
        "addition": "此外, 另外, 而且, 并且, 同样, 还有, 再者, 不仅如此, 并",
        "example": "例如, 比如, 譬如, 尤其是, 特别是",
        "time": "然后, 随后, 之后, 接着, 后来, 最后, 最终, 此前, 同时, 当时, 不久, 直到",
        "restatement": "也就是说, 换句话说, 换言之, 即, 事实上, 其实, 实际上",
        "summary": "总之, 总的来说, 综上所述, 总而言之, 简而言之",
    },
}  # fmt: skip
LANGUAGES = tuple(_TABLES)


def table(language: str, file: str | None = None) -> dict[str, str]:
    """The relation of each connective of a language, and of those in a file.

    Each line of the file is a connective, a tab and a relation. It may name known connectives again."""
    require(
        language in _TABLES or file is not None,
        "there is no table of connectives for the language {language!r}, only for {known}: give a file with tracks.TRACK.arrange.file=FILE, "
        "in which each line is a connective, a tab and a relation; or leave the task out with schedule.*.turns.TRACK=0",
        language=language,
        known=" and ".join(LANGUAGES),
    )
    found = {
        word.strip(): relation for relation, words in _TABLES.get(language, {}).items() for word in words.split(",")
    }
    for number, line in numbered_lines(Path(file)) if file is not None else ():
        if not line.strip():
            continue
        word, _, relation = (part.strip() for part in line.partition("\t"))
        if not word or not relation:
            raise UserError(
                "{file}, line {number:,}: a line must be a connective, a tab and a relation, got {line!r}",
                file=file,
                number=number,
                line=line,
            )
        if relation not in RELATIONS:
            raise UserError(
                "{file}, line {number:,}: {reason}",
                file=file,
                number=number,
                reason=unknown("relation", relation, RELATIONS),
            )
        found[word] = relation
    return found
