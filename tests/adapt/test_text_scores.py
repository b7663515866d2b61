"""Scores of written texts: those of rouge-score and sacrebleu, for English, German and Chinese."""

import pytest
import sacrebleu
from rouge_score.rouge_scorer import RougeScorer

from unmask.tasks._text_scores import Words, is_chinese, text_scores

ENGLISH = ["The cat sat on the mat.", "It's a well-known, 3.5 km long road!", "no"]
WRITTEN = ["A cat sat on a mat", "It is a known road of 3 km.", "yes"]


def test_english_is_scored_as_the_libraries_score_it_by_themselves():
    found = text_scores(ENGLISH, WRITTEN)
    plain = RougeScorer(["rouge1", "rouge2", "rougeL"])
    for ours, name in (("rouge_1", "rouge1"), ("rouge_2", "rouge2"), ("rouge_l", "rougeL")):
        expected = [plain.score(target, text)[name].fmeasure for target, text in zip(ENGLISH, WRITTEN, strict=True)]
        assert found[ours] == pytest.approx(sum(expected) / 3)
    assert found["bleu"] == pytest.approx(sacrebleu.corpus_bleu(WRITTEN, [ENGLISH]).score)
    assert found["chrf"] == pytest.approx(sacrebleu.corpus_chrf(WRITTEN, [ENGLISH]).score)
    assert "tok:13a" in found["bleu_signature"]


def test_chinese_is_scored_by_characters():
    targets, written = ["今天天气很好。", "我喜欢看GPT的书"], ["今天天气不好。", "我喜欢书"]
    found = text_scores(targets, written)
    assert "tok:zh" in found["bleu_signature"]
    assert found["bleu"] == pytest.approx(sacrebleu.corpus_bleu(written, [targets], tokenize="zh").score)
    assert found["rouge_1"] == pytest.approx((5 / 6 + 2 * 4 / (7 + 4)) / 2)  # characters in common, counted by hand
    assert Words().tokenize("我看GPT-2的书") == ["我", "看", "gpt", "2", "的", "书"]
    assert not is_chinese([*ENGLISH, "东京"])


def test_letters_beyond_a_to_z_are_not_dropped():
    assert Words().tokenize("Über die Straße_!") == ["über", "die", "straße"]
    assert text_scores(["größer"], ["kleiner"])["rouge_1"] == 0
    assert text_scores(["größer"], ["größer"])["rouge_1"] == 1
