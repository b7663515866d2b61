"""Beam search and its limits: the texts and scores of transformers; of all texts, the best one; sequences that never repeat."""

import itertools

import pytest
import torch

from tests.infer.parts import PROMPTS, gpt2, theirs, twin
from unmask.infer import Beams, Greedy, Sampling, generate
from unmask.infer.beam_search import first_search, follow
from unmask.infer.generation_loop import last, searches
from unmask.infer.limits import Before, limited
from unmask.infer.next_token import NextToken

TOKENS = 16


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return gpt2(tmp_path_factory.mktemp("model"), ends=3.0)


@pytest.fixture(scope="module")
def network(model, tmp_path_factory):
    return twin(model, tmp_path_factory.mktemp("hf") / "model")


@pytest.mark.parametrize(
    "how, options",
    [
        (Beams(4, 0.0, least=12), {"num_beams": 4, "length_penalty": 0.0, "min_new_tokens": 12}),
        (Greedy(no_repeat=2), {"no_repeat_ngram_size": 2}),
        (Greedy(1.2, no_repeat=1), {"no_repeat_ngram_size": 1, "repetition_penalty": 1.2}),
        (Beams(4, no_repeat=3), {"num_beams": 4, "no_repeat_ngram_size": 3}),
        (Beams(4, early=True), {"num_beams": 4, "early_stopping": True}),
        (Beams(3, 2.0, early=True, least=5), {"num_beams": 3, "length_penalty": 2.0, "early_stopping": True, "min_new_tokens": 5}),
        (Beams(5, 0.6, least=9, no_repeat=2), {"num_beams": 5, "length_penalty": 0.6, "min_new_tokens": 9, "no_repeat_ngram_size": 2}),
    ],
)  # fmt: skip
def test_the_limits_and_the_early_stop_are_those_of_transformers(how, options, model, network):
    found = [list(one.ids) for one in generate(model, PROMPTS, tokens=TOKENS, sampling=how).value]
    assert found == [theirs(network, model, prompt, max_new_tokens=TOKENS, **options)[0] for prompt in PROMPTS]
    plain = generate(model, PROMPTS, tokens=TOKENS, sampling=type(how)()).value
    assert found != [list(one.ids) for one in plain]  # the limit had an effect


def test_the_scores_of_all_beams_are_those_of_transformers(model, network):
    how, end = Beams(4, 0.8), model.tokenizer.role("sep")
    for prompt in PROMPTS[:2]:
        ids = torch.tensor([model.tokenizer.encode(prompt)])
        found = last(NextToken(model), searches(NextToken(model), ids.tolist(), how, TOKENS))
        expected = network.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=TOKENS, num_beams=4, length_penalty=0.8,
            num_return_sequences=4, eos_token_id=end, pad_token_id=end, return_dict_in_generate=True, output_scores=True,
        )  # fmt: skip
        torch.testing.assert_close(found.score[0], expected.sequences_scores, atol=1e-4, rtol=1e-4)


def language(vocabulary: int, seed: int) -> torch.Tensor:
    """V V, the scores of the token after each token: a language in which only the last token matters."""
    return torch.randn(vocabulary, vocabulary, generator=torch.Generator().manual_seed(seed)) * 2


@pytest.mark.parametrize(
    "how",
    [
        Beams(300),
        Beams(300, 0.6, length_offset=5),
        Beams(300, -1.0),
        Beams(300, 0.0, least=3),
        Beams(300, 2.0, no_repeat=2),
    ],
)
def test_a_wide_beam_finds_the_best_of_all_texts(how):
    """By the formulas and explicit loops over every text of up to four tokens out of four; the token 0 ends a text."""
    size, tokens, end = 4, 4, 0
    table = language(size, 1)
    best: dict[tuple[int, ...], float] = {}
    for length in range(1, tokens + 1):
        for text in itertools.product(range(size), repeat=length):
            ended = text[-1] == end
            allowed = end not in text[:-1] and (ended or length == tokens) and not (ended and length - 1 < how.least)
            if not allowed or (how.no_repeat and len(set(itertools.pairwise(text))) < length - 1):
                continue
            steps = zip((end, *text), text, strict=False)
            total = sum(float(table[before].log_softmax(-1)[after]) for before, after in steps)
            best[text] = total / ((how.length_offset + length) / (how.length_offset + 1)) ** how.length_penalty
    search, scores = None, table[end][None].expand(how.beams, -1)
    search = first_search(None, scores, how, tokens, [[]] * how.beams)
    for _ in range(tokens):
        search = follow(search, scores, how, end)
        scores = table[search.last]
    found = [tuple(ids[:n]) for ids, n in zip(search.finished[0].tolist(), search.length[0].tolist(), strict=True)]
    ranked = sorted(best, key=lambda text: -best[text])
    assert found[:5] == ranked[:5]
    torch.testing.assert_close(search.score[0, :5], torch.tensor([best[text] for text in ranked[:5]]))


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_what_would_repeat_a_sequence_is_found_as_by_loops(size):
    """Prompts of different lengths, one of them empty, at every number of new tokens."""
    draws = torch.Generator().manual_seed(0)
    prompts = [torch.randint(0, 3, (n,), generator=draws).tolist() for n in (0, 2, 9)]
    written = torch.randint(0, 3, (3, 12), generator=draws)
    scores, how = torch.zeros(3, 4), Greedy(no_repeat=size)
    before, any_forbidden = Before.of(prompts, scores, how), False
    for number in range(13):
        found = limited(scores, before, written, torch.tensor(number), how, end=3).isinf()
        for row, prompt in enumerate(prompts):
            text = [*prompt, *written[row, :number].tolist()]
            known = {tuple(text[i : i + size]) for i in range(len(text) - size + 1)}
            tail = tuple(text[len(text) - size + 1 :])
            expected = [len(tail) == size - 1 and (*tail, token) in known for token in range(4)]
            assert found[row].tolist() == expected
            any_forbidden |= any(expected)
    assert any_forbidden


def test_drawn_texts_keep_the_limits_too(model):
    for one in generate(model, PROMPTS, tokens=TOKENS, samples=4, sampling=Sampling(0.5, least=8, no_repeat=1)).value:
        whole = [*model.tokenizer.encode(one.prompt), *one.ids]
        assert len(one.ids) >= 8
        assert not set(one.ids) & set(model.tokenizer.encode(one.prompt)), whole
        assert len(set(one.ids)) == len(one.ids)
