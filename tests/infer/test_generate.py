"""Generation: transformers writes the same tokens; alone as in a batch; beyond the context; piece by piece."""

import pytest
import torch
from transformers.convert_slow_tokenizer import bytes_to_unicode

import unmask
from tests.convert.parts import SENTENCES, model_of, recipe_of
from tests.infer.parts import PROMPTS, gpt2, theirs, twin
from unmask import chance, text
from unmask.errors import UserError
from unmask.infer import Beams, Greedy, Sampling, decoding, generate, stream
from unmask.infer.batches import left_padded
from unmask.infer.draw_token import addresses
from unmask.infer.sampling import pick

TOKENS = 24


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return gpt2(tmp_path_factory.mktemp("model"), ends=3.0)


@pytest.fixture(scope="module")
def network(model, tmp_path_factory):
    return twin(model, tmp_path_factory.mktemp("hf") / "model")


def written(model, prompts=PROMPTS, **options):
    return [list(found.ids) for found in generate(model, prompts, **{"tokens": TOKENS} | options).value]


@pytest.mark.parametrize("penalty", [1.0, 1.3, 0.8])
def test_that_the_likeliest_tokens_are_those_of_transformers(penalty, model, network):
    found = written(model, sampling=Greedy(penalty))
    expected = [theirs(network, model, p, max_new_tokens=TOKENS, repetition_penalty=penalty)[0] for p in PROMPTS]
    assert found == expected
    assert len({tuple(ids) for ids in found}) > 1


@pytest.mark.parametrize("beams, length, penalty, samples", [
    (1, 1.0, 1.0, 1), (3, 1.0, 1.0, 3), (4, 0.0, 1.0, 2), (4, 2.0, 1.0, 1), (5, -1.0, 1.0, 1), (4, 0.7, 1.2, 2), (6, 1.0, 3.0, 4),
])  # fmt: skip
def test_that_beams_find_the_texts_of_transformers(beams, length, penalty, samples, model, network):
    found = written(model, sampling=Beams(beams, length, penalty), samples=samples)
    expected = [
        row
        for prompt in PROMPTS
        for row in theirs(
            network,
            model,
            prompt,
            max_new_tokens=TOKENS,
            num_beams=beams,
            length_penalty=length,
            repetition_penalty=penalty,
            num_return_sequences=samples,
        )  # fmt: skip
    ]
    assert found == expected


def test_that_among_the_texts_compared_some_end_early_and_some_do_not(model):
    """Otherwise the comparisons above would say little."""
    several = [
        generate(model, PROMPTS, tokens=TOKENS, sampling=how).value for how in (Greedy(), Beams(4), Beams(4, 0.0))
    ]
    assert {found.ended for texts in several for found in texts} == {True, False}
    for found in (one for texts in several for one in texts):
        assert len(found.ids) < TOKENS if found.ended else len(found.ids) == TOKENS


@pytest.mark.parametrize("how", [
    Greedy(), Sampling(), Sampling(0.7, 20), Sampling(1.2, top_p=0.8, repetition_penalty=1.2), Beams(3),
])  # fmt: skip
def test_that_a_prompt_gives_the_same_text_alone_and_in_a_batch_with_a_cache_and_without(how, model):
    together = written(model, sampling=how, seed=5)
    assert together == [written(model, [prompt], sampling=how, seed=5)[0] for prompt in PROMPTS]
    assert together == written(model, sampling=how, seed=5, cached=False)
    assert together == written(model, PROMPTS[::-1], sampling=how, seed=5)[::-1]


def test_that_the_seed_and_the_number_of_the_sample_decide_what_is_drawn(model):
    first, again, other = (generate(model, PROMPTS, tokens=8, samples=3, seed=seed).value for seed in (0, 0, 1))
    assert first == again
    assert [f.ids for f in first] != [f.ids for f in other]
    assert [(f.prompt, f.sample) for f in first] == [(p, s) for p in PROMPTS for s in range(3)]
    for prompt in PROMPTS:
        mine = [f.ids for f in first if f.prompt == prompt]
        assert len(set(mine)) == 3
        assert mine[:1] == [f.ids for f in generate(model, [prompt], tokens=8, seed=0).value]


def test_that_many_prompts_come_back_in_order(model):
    prompts = [f"{SENTENCES[i % 4][: 1 + i % 23]}{i}" for i in range(40)]
    found = generate(model, prompts, tokens=2, sampling=Greedy()).value
    assert [f.prompt for f in found] == prompts
    assert all(f.text.startswith(f.prompt) for f in found)


@pytest.mark.parametrize("cached", [True, False])
def test_that_the_window_slides_beyond_the_context(cached, tmp_path):
    """By explicit loops: all of a text is in sight until it has outgrown the context, then its end, half as long."""
    model = gpt2(tmp_path, "system.backbone.length=32", ends=-20.0)
    prompts = [SENTENCES[0], "rain", "The old"]
    found = written(model, prompts, sampling=Sampling(), tokens=90, cached=cached)
    for prompt, address, ids in zip(prompts, addresses(prompts, 1, 0), found, strict=True):
        text, begin, expected = model.tokenizer.encode(prompt), 0, []
        for number in range(len(ids)):
            if len(text) - begin > 32:
                begin = len(text) - 16
            batch = left_padded([text[begin:]], 0)
            with torch.no_grad():
                scores = model.system.predict["tokens"].decode(model.system.look(batch), batch)[:, -1]
            expected.append(int(pick(scores, Sampling(), chance.uniform(address[None], number))))
            text.append(expected[-1])
        assert ids == expected
        assert len(ids) == 90


def test_that_beams_go_beyond_the_context_too(tmp_path):
    model = gpt2(tmp_path, "system.backbone.length=32")
    found = written(model, ["rain", SENTENCES[0]], sampling=Beams(3), tokens=60)
    assert found == written(model, ["rain", SENTENCES[0]], sampling=Beams(3), tokens=60, cached=False)
    assert [len(ids) for ids in found] == [60, 60]


def test_that_a_prompt_too_long_is_refused_or_cut_from_the_left(tmp_path):
    model = gpt2(tmp_path, "system.backbone.length=32")
    long = " ".join(SENTENCES)
    ids = model.tokenizer.encode(long)
    with pytest.raises(
        UserError, match=f"'The cat .* has {len(ids)} tokens, but the model reads at most 32: .* --cut-left"
    ):
        generate(model, [long])
    with pytest.raises(UserError, match=f"'The cat .* has {len(ids)} tokens"):
        generate(model, ["rain", long])
    several = generate(model, [long], tokens=5, sampling=Greedy(), cut_left=True)
    (found,) = several.value
    assert several.notes == {"prompts longer than 32 tokens, cut on the left": 1}
    assert found.text.startswith(long)
    end = model.tokenizer.decode(ids[-32:])
    assert model.tokenizer.encode(end) == ids[-32:]  # a prompt of exactly the context is read whole
    assert found.ids == generate(model, [end], tokens=5, sampling=Greedy()).value[0].ids


def test_that_an_empty_prompt_begins_a_document(model):
    (found,) = generate(model, [""], tokens=6, sampling=Greedy(1.5)).value
    network_begins = generate(model, ["<|endoftext|>"], tokens=6, sampling=Greedy(1.5)).value[0]
    assert found.ids == network_begins.ids
    assert found.text == model.tokenizer.decode(found.ids).replace("\ufffd", "")
    assert "".join(stream(model, "", tokens=6, sampling=Greedy(1.5)).value) == found.text


@pytest.mark.parametrize("seed", range(4))
def test_that_what_is_streamed_is_never_half_a_character_and_in_the_end_the_text(seed, tmp_path):
    model = gpt2(tmp_path)
    prompt = "The 猫 sat é"
    parts, so_far = list(stream(model, prompt, tokens=40, seed=seed).value), ""
    (found,) = generate(model, [prompt], tokens=40, seed=seed).value
    assert parts[0] == prompt
    assert len(parts) > 5
    for part in parts:
        so_far += part
        assert found.text.startswith(so_far)
        assert not so_far.endswith("\ufffd")
        so_far.encode()
    assert so_far == found.text


@pytest.mark.parametrize("kind", [text.Bytes(), text.ByteBPE(vocab=290)], ids=["bytes", "byte-bpe"])
@pytest.mark.parametrize("seed", range(4))
def test_that_bytes_of_chinese_that_are_no_character_are_never_shown(tmp_path, kind, seed):
    chinese = ["今天天气很好，我们去公园。", "明天下雨，所以在家看书。", "我喜欢吃苹果和香蕉。😀"]
    model = model_of(recipe_of("gpt2"), text.train(kind, chinese * 3), tmp_path)
    prompt = "今天\ufffd"  # what a user wrote stays
    (found,) = generate(model, [prompt], tokens=40, seed=seed).value
    unicode = {character: byte for byte, character in bytes_to_unicode().items()}
    raw = bytes(unicode[character] for i in found.ids for character in model.tokenizer.token(i))
    with pytest.raises(UnicodeDecodeError):
        raw.decode()  # random weights write halves of characters
    assert found.text == prompt + raw.decode(errors="ignore")
    parts = list(stream(model, prompt, tokens=40, seed=seed).value)
    assert "".join(parts) == found.text
    assert not any("\ufffd" in part for part in parts[1:])


def test_that_a_character_of_several_tokens_waits_for_its_last(model):
    from unmask.infer.decode_text import pieces

    ids = model.tokenizer.encode("a猫é")
    assert len(ids) == 6
    assert list(pieces(model.tokenizer, ids[:1], ids[1:])) == ["猫", "é"]
    assert list(pieces(model.tokenizer, ids[:1], ids[1:-1])) == ["猫"]


def test_that_special_tokens_are_never_written_but_for_the_end(tokenizers, tmp_path):
    from tests.convert.parts import model_of, recipe_of

    model = model_of(recipe_of("gpt2"), tokenizers["byte-bpe"], tmp_path)
    special = set(model.tokenizer.vocabulary.special)
    with torch.no_grad():
        weight = model.system.backbone.embed.token.weight
        weight[sorted(special - {model.tokenizer.role("sep")})] *= 30
    drawn = {i for found in generate(model, ["The"], tokens=40, samples=8).value for i in found.ids}
    assert len(drawn) > 20
    assert not drawn & special


@pytest.mark.parametrize("options, expected", [
    ({"temperature": 0.0}, "temperature must be over 0, got 0: for the most likely token write --greedy"),
    ({"temperature": -1.0}, "temperature must be over 0, got -1: for the most likely token write --greedy"),
    ({"top_k": 0}, "top-k must be 1 or more, got 0"),
    ({"top_p": 0.0}, r"top-p must be in \(0, 1\], got 0.0"),
    ({"top_p": 1.5}, r"top-p must be in \(0, 1\], got 1.5"),
    ({"repetition_penalty": 0.0}, "repetition-penalty must be over 0, got 0"),
    ({"beams": 0}, "beams must be 1 or more, got 0"),
    ({"beams": 2, "top_k": 3}, "--beams draws nothing at random and cannot be combined with --top-k"),
    ({"beams": 2, "temperature": 1.0}, "--beams draws nothing at random and cannot be combined with --temperature"),
    ({"greedy": True, "top_p": 0.5, "top_k": 3}, "--greedy draws nothing at random and cannot be combined with --top-k, --top-p"),
    ({"greedy": True, "beams": 2}, "--greedy and --beams cannot be used together"),
    ({"length_penalty": 2.0}, "--length-penalty has an effect only with --beams"),
    ({"greedy": True, "samples": 2}, "--greedy gives one text per prompt, got --samples 2"),
    ({"beams": 2, "samples": 3}, "--samples 3 is more than --beams 2"),
    ({"samples": 0}, "samples must be 1 or more, got 0"),
    ({"tokens": 0}, "tokens must be 1 or more, got 0"),
])  # fmt: skip
def test_that_what_cannot_be_is_refused_in_one_line(options, expected, model):
    with pytest.raises(UserError, match=expected) as caught:
        unmask.Model.of(model).generate(["The"], **options)
    assert "\n" not in str(caught.value)


def test_that_one_text_and_many_are_told_apart(model):
    python = unmask.Model.of(model)
    assert python.generate("The", tokens=3, greedy=True) == python.generate(["The"], tokens=3, greedy=True)[0]
    assert python.generate([]) == []
    with pytest.raises(UserError, match=r"generate\(\[prompt\], samples=2\)"):
        python.generate("The", samples=2)
    with pytest.raises(UserError, match="prompts must be a list of texts"):
        generate(model, "The")
    with pytest.raises(UserError, match="stream cannot use beams"):
        list(stream(model, "The", sampling=Beams(2)).value)


def test_that_options_make_the_way_they_describe():
    assert decoding() == Sampling()
    assert decoding(temperature=0.5, top_k=3, top_p=0.9, repetition_penalty=1.1) == Sampling(0.5, 3, 0.9, 1.1)
    assert decoding(greedy=True, repetition_penalty=1.1) == Greedy(1.1)
    assert decoding(beams=3, length_penalty=0.5) == Beams(3, 0.5)
