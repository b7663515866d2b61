"""Who sees whom is shown as the view says."""

import pytest

from tests.explanation.given import CHINESE, MASKED, PAIR, screen, tiny
from unmask.errors import UserError
from unmask.explanation import explain
from unmask.see import Everything
from unmask.text import Tokenizer


@pytest.mark.parametrize("text", [PAIR, CHINESE])
def test_unilm_shows_one_of_its_tracks_and_says_which(text: str, trained: dict[str, Tokenizer]) -> None:
    segments = {"main": (0, 1), "left": (2, 2), "right": (3, 3), "prefix": (4, 5)}
    shares = {"main": 1 / 3, "prefix": 1 / 3, "left": 1 / 6, "right": 1 / 6}
    for track in segments:
        found = explain(tiny("unilm"), text, track=track, tokenizer=trained["unilm"])
        (drawn,) = found.drawn
        assert (found.track, drawn.axis, drawn.name) == (track, "track", track)
        assert drawn.share == pytest.approx(shares[track])
        for q, query in enumerate(found.tokens):
            assert query.segment == segments[drawn.name][query.half]
            for k, key in enumerate(found.tokens):
                allowed = {
                    "main": True,
                    "left": k <= q,
                    "right": k >= q,
                    "prefix": not key.half or (bool(query.half) and k <= q),
                }
                assert found.visible[q][k] == (query.example == key.example and allowed[drawn.name])
        assert bool(found.answers) == (track == "main")
        assert ("predict sentence" in {choice.axis for choice in found.choices}) == (track == "main")
        told = " ".join(screen(found, 200).split())
        assert f"{drawn.name}: {drawn.meaning}" in told
        assert f"{drawn.share:.0%} of the rows are of this track" in told
        assert ("not computed in the track" in told) == (not found.answers)


def test_a_track_that_does_not_exist_is_a_mistake_that_lists_the_tracks(trained: dict[str, Tokenizer]) -> None:
    with pytest.raises(UserError, match="unilm has the tracks main, prefix, left, right, got 'both'"):
        explain(tiny("unilm"), PAIR, track="both", tokenizer=trained["unilm"])
    with pytest.raises(UserError, match="bert has only the track main, got 'prefix'"):
        explain(tiny("bert"), PAIR, track="prefix", tokenizer=trained["bert"])


def test_gpt2_sees_what_stands_before(trained: dict[str, Tokenizer]) -> None:
    explanation = explain(tiny("gpt2"), PAIR, tokenizer=trained["gpt2"])
    size = len(explanation.tokens)
    assert explanation.visible == tuple(tuple(key <= query for key in range(size)) for query in range(size))
    assert [(t.at, t.place) for t in explanation.targets] == [(i, i + 1) for i in range(size - 1)]
    assert [(t.sees, t.span) for t in explanation.targets] == [(i + 1, (i + 1, i + 1)) for i in range(size - 1)]
    assert not any(token.hidden for token in explanation.tokens)
    assert not explanation.answers


@pytest.mark.parametrize("name", [name for name in MASKED if tiny(name).see == Everything()])
def test_bert_sees_its_whole_example_and_no_other(name: str, trained: dict[str, Tokenizer]) -> None:
    for text in (PAIR, f"{PAIR}\n\nSnow fell. It was cold.\n\nShe left. It rained."):
        explanation = explain(tiny(name), text, tokenizer=trained[name])
        examples = [token.example for token in explanation.tokens]
        assert explanation.visible == tuple(tuple(query == key for key in examples) for query in examples)


def test_what_a_second_stream_predicts_it_does_not_see(trained: dict[str, Tokenizer]) -> None:
    explanation = explain(tiny("xlnet"), PAIR, tokenizer=trained["xlnet"])
    assert explanation.targets
    for target in explanation.targets:
        row = explanation.visible[target.place]
        assert row[target.place]  # the stream that reads the tokens
        assert (target.blind, target.sees) == (True, sum(row) - 1)
    assert "nothing" in screen(explanation)
    assert not any(target.blind for target in explain(tiny("bert"), PAIR, tokenizer=trained["bert"]).targets)
