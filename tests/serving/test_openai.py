"""OpenAI's own client against the service: every answer is the one that the Python API gives."""

import numpy as np
import pytest

import unmask
from tests.convert.parts import SENTENCES as TEXTS
from tests.serving.conftest import NAMES, STORED, running, service_of
from unmask.infer.likelihood import score


@pytest.fixture(scope="module")
def client(url):
    import openai

    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="module")
def gpt2(runs):
    return unmask.load(runs / "gpt2", device="cpu")


@pytest.fixture(scope="module")
def bert(runs):
    return unmask.load(runs / "bert", device="cpu")


def test_the_models_are_listed_by_their_names(client):
    assert [one.id for one in client.models.list()] == list(NAMES)


@pytest.mark.parametrize("format_", ["float", None])
def test_embeddings_are_those_of_the_api(client, bert, format_):
    options = {"encoding_format": format_} if format_ else {}  # without it the client asks for base64
    found = client.embeddings.create(model="bert", input=TEXTS, **options)
    np.testing.assert_allclose([one.embedding for one in found.data], bert.embed(TEXTS), atol=1e-5)
    assert found.usage.prompt_tokens == sum(len(bert.tokenizer.encode(text)) for text in TEXTS)


def test_embeddings_of_token_ids_are_those_of_their_text(client, bert):
    ids = [bert.tokenizer.encode(text) for text in TEXTS]
    found = client.embeddings.create(model="bert", input=ids)
    np.testing.assert_allclose([one.embedding for one in found.data], bert.embed(TEXTS), atol=1e-5)
    single = client.embeddings.create(model="bert", input=ids[0])
    np.testing.assert_allclose(single.data[0].embedding, bert.embed(TEXTS[0])[0], atol=1e-5)


@pytest.mark.parametrize("options", [{"seed": 3}, {"temperature": 0}, {"seed": 5, "top_p": 0.8, "temperature": 0.7}])
def test_a_completion_is_the_text_that_the_api_generates(client, gpt2, options):
    found = client.completions.create(model="gpt2", prompt=TEXTS[0], max_tokens=12, **options)
    mine = {"greedy": True} if options.get("temperature") == 0 else options
    assert TEXTS[0] + found.choices[0].text == gpt2.generate(TEXTS[0], tokens=12, **mine)
    assert found.usage.completion_tokens == 12
    assert found.choices[0].finish_reason == "length"


def test_several_prompts_and_samples_are_those_of_the_api(client, gpt2):
    found = client.completions.create(model="gpt2", prompt=TEXTS, max_tokens=6, n=2, seed=1, echo=True)
    assert [one.text for one in found.choices] == gpt2.generate(TEXTS, tokens=6, samples=2, seed=1)


@pytest.mark.parametrize("stop", [None, ["e", "zz"]])
def test_a_stream_gives_the_same_text_as_a_plain_answer(client, stop):
    options = {"model": "gpt2", "prompt": TEXTS[:2], "max_tokens": 20, "seed": 2, "stop": stop, "logprobs": 2}
    plain = client.completions.create(**options).choices
    texts, reasons, tokens = {0: "", 1: ""}, {}, {0: [], 1: []}
    for event in client.completions.create(**options, stream=True):
        choice = event.choices[0]
        texts[choice.index] += choice.text
        reasons[choice.index] = choice.finish_reason
        tokens[choice.index] += choice.logprobs.tokens
    assert texts == {one.index: one.text for one in plain}
    assert reasons == {one.index: one.finish_reason for one in plain}
    assert tokens == {one.index: one.logprobs.tokens for one in plain}
    if stop:
        assert all("e" not in text for text in texts.values())


def test_the_probabilities_of_a_prompt_and_of_new_tokens_are_those_of_the_model(client, gpt2):
    found = client.completions.create(model="gpt2", prompt=TEXTS[0], max_tokens=5, echo=True, logprobs=3, temperature=0)
    chances = found.choices[0].logprobs
    prompt = gpt2.tokenizer.encode(TEXTS[0])
    (written,) = gpt2.generate_records([TEXTS[0]], tokens=5, sampling=unmask.decoding(greedy=True))
    ids = [*gpt2.opening, *prompt, *written.ids]
    scored = min(len(ids) - 1, len(prompt) + len(written.ids))
    expected = score(gpt2, [np.array(ids)], [scored]).logs
    got = chances.token_logprobs[-scored:]
    assert len(chances.tokens) == len(prompt) + 5
    np.testing.assert_allclose(got, expected, atol=1e-4)
    assert "".join(chances.tokens) == found.choices[0].text
    places = [found.choices[0].text[place:] for place in chances.text_offset]
    assert all(text.startswith(token) for text, token in zip(places, chances.tokens, strict=True))


def test_a_stream_ends_with_its_usage_if_it_is_asked_for(client):
    options = {"model": "gpt2", "prompt": "The", "max_tokens": 3, "temperature": 0}
    events = list(client.completions.create(**options, stream=True, stream_options={"include_usage": True}))
    assert events[-1].usage == client.completions.create(**options).usage
    assert events[-1].choices == []


def test_a_stream_that_is_closed_midway_ends_its_work(client, service):
    stream = client.completions.create(model="gpt2", prompt="The", max_tokens=4_000, stream=True)
    next(iter(stream))
    stream.close()
    found = client.completions.create(model="gpt2", prompt="The", max_tokens=2, temperature=0)
    assert found.choices[0].text
    written = service.metrics.written._value.get()
    assert written < 4_000


def test_a_model_that_writes_from_a_source_takes_the_prompt_as_its_source():
    import openai

    model, sources = unmask.load(STORED / "unilm-write", device="cpu"), ["a b c", "d"]
    with running(service_of(STORED, "unilm-write")) as url:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
        options = {"model": "unilm-write", "prompt": sources, "max_tokens": 4}
        plain = client.completions.create(**options, temperature=0, echo=True, logprobs=1)
        drawn = client.completions.create(**options, seed=3)
    assert [one.text for one in plain.choices] == model.generate(sources, tokens=4, greedy=True)
    assert [one.text for one in drawn.choices] == model.generate(sources, tokens=4, seed=3)
