"""How a found answer is scored against the right ones: exact match and F1, as SQuAD and CMRC 2018 define them."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

Scorer = Literal["squad", "cmrc"]

_HAN = re.compile("[\u4e00-\u9fa5]")
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
# the marks that CMRC's scorer leaves out; other marks count
_MARKS = str.maketrans("", "", "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_PIECES = re.compile(r"[\u4e00-\u9fa5]|[^\W\u4e00-\u9fa5]+(?:[.,'][^\W\u4e00-\u9fa5]+)*|[^\w\s]")


def scorer_of(texts: Sequence[str]) -> Scorer:
    """The rules for these texts: those of CMRC if most of them have Chinese characters."""
    return "cmrc" if 2 * sum(bool(_HAN.search(text)) for text in texts) > len(texts) else "squad"


def exact(answer: str, right: Sequence[str], scorer: Scorer) -> float:
    """1 if the answer is one of the right ones; (): the right answer is that there is none."""
    same: Callable[[str], str] = _normal if scorer == "squad" else _unmarked
    return float(any(same(answer) == same(one) for one in right or ("",)))


def f1(answer: str, right: Sequence[str], scorer: Scorer) -> float:
    """The best F1 of the answer against one of the right ones."""
    return max(_f1(answer, one, scorer) for one in right or ("",))


def _f1(answer: str, right: str, scorer: Scorer) -> float:
    if scorer == "squad":
        a, b = _normal(answer).split(), _normal(right).split()
        if not a or not b:
            return float(a == b)
        common = (Counter(a) & Counter(b)).total()
    else:
        a, b = (_PIECES.findall(_unmarked(text)) for text in (answer, right))
        if not answer or not right:  # CMRC has an answer to every question
            return float(answer == right)
        common = _longest_run(a, b)
    return 2 * common / (len(a) + len(b)) if common else 0.0


def _normal(text: str) -> str:
    """SQuAD: lower case, without punctuation, articles and repeated spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def _unmarked(text: str) -> str:
    """CMRC: lower case, without some marks."""
    return text.lower().strip().translate(_MARKS)


def _longest_run(a: Sequence[str], b: Sequence[str]) -> int:
    """The length of the longest run of pieces that both have (CMRC calls it LCS: it has no gaps)."""
    best, row = 0, [0] * (len(b) + 1)
    for one in a:
        row = [0, *(before + 1 if one == other else 0 for before, other in zip(row, b, strict=False))]
        best = max(best, *row)
    return best
