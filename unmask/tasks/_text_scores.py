"""Compare written texts with their targets: ROUGE (rouge-score), BLEU and chrF (sacrebleu)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from unmask.errors import UserError

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_HAN}]|[^\W_{_HAN}]+")  # a Chinese character, or a run of other letters and digits
_CHINESE = 0.25  # texts with a larger share of Chinese characters are scored as Chinese


class Words:
    """The words of a text for ROUGE, in lower case; a Chinese character is a word.

    rouge-score's own tokenizer gives the same words for English, but drops every letter that is not in a-z."""

    def tokenize(self, text: str) -> list[str]:
        return _WORD.findall(text.lower())


def text_scores(targets: Sequence[str], written: Sequence[str]) -> dict[str, Any]:
    """ROUGE-1, ROUGE-2 and ROUGE-L: the mean F1 of the texts, from 0 to 1, without stemming. BLEU and chrF: of all texts
    together, from 0 to 100; the signature says how BLEU was computed."""
    try:
        from rouge_score.rouge_scorer import RougeScorer
        from sacrebleu.metrics import BLEU, CHRF
    except ImportError:
        raise UserError(
            "written texts are scored with rouge-score and sacrebleu, and one of them is not installed: run pip install "
            "'unmask[scores]'"
        ) from None
    rouge = RougeScorer(["rouge1", "rouge2", "rougeL"], tokenizer=Words())
    each = [rouge.score(target, text) for target, text in zip(targets, written, strict=True)]
    means = {name: sum(one[name].fmeasure for one in each) / len(each) for name in rouge.rouge_types}
    bleu, chrf = BLEU(tokenize="zh" if is_chinese(targets) else "13a"), CHRF()
    found = bleu.corpus_score(list(written), [list(targets)])
    return {
        "rouge_1": means["rouge1"],
        "rouge_2": means["rouge2"],
        "rouge_l": means["rougeL"],
        "bleu": float(found.score),
        "chrf": float(chrf.corpus_score(list(written), [list(targets)]).score),
        "bleu_signature": str(bleu.get_signature()),
    }


def is_chinese(texts: Sequence[str]) -> bool:
    """Whether the texts are scored as Chinese."""
    solid = re.sub(r"\s", "", "".join(texts))
    return len(re.findall(f"[{_HAN}]", solid)) > _CHINESE * len(solid)
