"""A decoder with beams: the texts and scores of transformers' Bart with the same weights; sources of different lengths."""

import pytest
import torch
import transformers as hf

from tests.convert.parts import SENTENCES, model_of, recipe_of, tokenizer
from unmask.convert import export_hf
from unmask.infer import Beams, Greedy, Sampling, generate, stream
from unmask.infer.decoder_token import DecoderToken
from unmask.infer.generation_loop import last, searches

TOKENS, SOURCES = 14, ["The cat sat on", "A", SENTENCES[2], "rain"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    found = model_of(recipe_of("bart"), tokenizer("byte"), tmp_path_factory.mktemp("model"))
    with torch.no_grad():
        table = found.system.backbone.embed.token.weight
        table.mul_(3.0)  # so that some tokens are much more likely than others
        table[found.tokenizer.role("sep")] *= 1.2  # so that some texts end
        for block in found.system.backbone.decoder_blocks:
            block.cross.out.weight.mul_(20.0)  # so that the source matters
            block.cross.query.weight.mul_(20.0)
            block.attention.out.weight.mul_(10.0)
    return found


@pytest.fixture(scope="module")
def network(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hf") / "model"
    export_hf(model, folder)
    found = hf.BartForConditionalGeneration.from_pretrained(folder).eval()
    never = [i for i in model.tokenizer.vocabulary.special if i != model.tokenizer.role("sep")]
    found.final_logits_bias[0, never] = -1e4  # as here, special tokens have no probability
    return found


def theirs(network, model, source: str, **options):
    """What transformers writes from a source, after the two tokens that every text of BART begins with."""
    begin, end = model.tokenizer.role("cls"), model.tokenizer.role("sep")
    ids = torch.tensor([[begin, *model.tokenizer.encode(source), end]])
    found = network.generate(
        ids, attention_mask=torch.ones_like(ids), decoder_input_ids=torch.tensor([[end, begin]]), max_new_tokens=TOKENS,
        do_sample=False, eos_token_id=end, pad_token_id=model.tokenizer.vocabulary.pad, forced_bos_token_id=None,
        forced_eos_token_id=None, return_dict_in_generate=True, output_scores=True, **options,
    )  # fmt: skip
    rows = [row[: row.index(end)] if end in row else row for row in found.sequences[:, 2:].tolist()]
    return rows, getattr(found, "sequences_scores", None)


@pytest.mark.parametrize(
    "how, options",
    [
        (Greedy(), {}),
        (Beams(4), {"num_beams": 4}),
        (Beams(3, 0.6, least=6, no_repeat=2), {"num_beams": 3, "length_penalty": 0.6, "min_new_tokens": 6, "no_repeat_ngram_size": 2}),
        (Beams(4, 2.0, early=True), {"num_beams": 4, "length_penalty": 2.0, "early_stopping": True}),
    ],
)  # fmt: skip
def test_the_texts_are_those_of_transformers(how, options, model, network):
    found = [list(one.ids) for one in generate(model, SOURCES, tokens=TOKENS, sampling=how).value]
    assert found == [theirs(network, model, source, **options)[0][0] for source in SOURCES]
    assert len({tuple(ids) for ids in found}) > 1


def test_an_exported_model_begins_its_texts_with_the_token_that_it_learned(model, network):
    begin, end = model.tokenizer.role("cls"), model.tokenizer.role("sep")
    source = torch.tensor([[begin, *model.tokenizer.encode(SOURCES[0]), end]])
    theirs = network.generate(source, max_new_tokens=TOKENS + 2, do_sample=False)[0].tolist()  # with its own settings
    ours = generate(model, SOURCES[:1], tokens=TOKENS, sampling=Greedy()).value[0].ids
    assert theirs[: 2 + len(ours)] == [end, begin, *ours]


def test_all_beams_and_their_scores_are_those_of_transformers(model, network):
    reader, how = DecoderToken(model), Beams(4, 0.8)
    sources = [reader.source(model.tokenizer.encode(source), TOKENS)[0] for source in SOURCES]
    found = last(reader, searches(reader, sources, how, TOKENS))
    for row, source in enumerate(SOURCES):
        expected, scores = theirs(network, model, source, num_beams=4, length_penalty=0.8, num_return_sequences=4)
        torch.testing.assert_close(found.score[row], scores, atol=1e-4, rtol=1e-4)
        assert found.finished[row, 0, : len(expected[0])].tolist() == expected[0]


@pytest.mark.parametrize("how", [Greedy(), Sampling(0.8), Beams(3)])
def test_a_source_gives_the_same_text_alone_and_among_others(how, model):
    together = generate(model, SOURCES, tokens=TOKENS, sampling=how, seed=3).value
    assert together == [generate(model, [source], tokens=TOKENS, sampling=how, seed=3).value[0] for source in SOURCES]
    if not isinstance(how, Beams):
        assert "".join(stream(model, SOURCES[0], tokens=TOKENS, sampling=how, seed=3).value) == together[0].text
