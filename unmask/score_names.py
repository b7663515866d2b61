"""The names of scores as they are shown."""

from __future__ import annotations

_NAMES = {  # of some scores, as they are shown
    "macro_f1": "macro F1",
    "rouge_1": "ROUGE-1",
    "rouge_2": "ROUGE-2",
    "rouge_l": "ROUGE-L",
    "bleu": "BLEU",
    "chrf": "chrF",
    "bleu_signature": "BLEU signature",
    "exact": "exactly equal",
    "f1": "F1",
    "micro_f1": "micro F1",
    "mrr": "MRR",
    "map": "MAP",
    "ndcg_10": "nDCG@10",
    "mcc": "MCC",
    "mse": "mean squared error",
}


def score_name(name: str) -> str:
    """The name of a score as it is shown."""
    return _NAMES.get(name, name.replace("_", " "))
