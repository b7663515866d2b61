"""A language model on a text: equal to loops over transformers' network, whichever way the text is read."""

import gzip
import json
import lzma
import math

import numpy as np
import pytest
import torch

import unmask
from tests.command import mistake, works
from tests.convert.parts import model_of, tokenizer
from tests.evaluate.parts import DOCUMENTS, LENGTH, exported, language_model, log_probability, stream_of, written
from unmask import evaluate, recipes
from unmask.backbone import TransformerXL
from unmask.errors import UserError
from unmask.evaluate.perplexity import Windowing, score_text, windows
from unmask.infer.batches import left_padded
from unmask.infer.likelihood import score
from unmask.infer.model import Model, save_run
from unmask.infer.passes import together
from unmask.system import Single

BYTES = sum(len(text.encode()) for text in DOCUMENTS)
CHARACTERS = sum(map(len, DOCUMENTS))
WORDS = sum(len(text.split()) for text in DOCUMENTS)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Model:
    home = tmp_path_factory.mktemp("language")
    made = language_model(home / "run")
    save_run(made, home / "run")
    return made


@pytest.fixture(scope="module")
def network(model):
    return exported(model, model.folder.parent / "hf")


@pytest.fixture
def text(tmp_path):
    return written(tmp_path / "text.txt")


def by_windows(network, ids, context, stride) -> float:
    """The loss as the papers describe it: window after window, each token scored once, in the first that holds it."""
    nats, scored = 0.0, 0
    for begin in range(0, len(ids), stride):
        window = ids[begin : begin + context]
        with torch.no_grad():
            logs = network(torch.tensor([window])).logits[0].double().log_softmax(-1)
        for place in range(1, len(window)):
            if begin + place > scored:
                nats -= float(logs[place - 1, window[place]])
                scored = begin + place
    assert scored == len(ids) - 1
    return nats


def test_sliding_equals_the_model_called_on_every_prefix(model, network, text):
    ids = stream_of(model)
    nats = -sum(log_probability(network, ids[max(0, i - LENGTH + 1) : i], ids[i]) for i in range(1, len(ids)))
    found = evaluate.evaluate_text(model, text, context=LENGTH, stride=1)
    assert (found["way"], found["exactness"]) == ("sliding", "exact")
    assert found["tokens"] == len(ids) - 1 > 2 * LENGTH
    assert found["loss"] == pytest.approx(nats / (len(ids) - 1), rel=1e-5)
    assert found["bits_per_character"] == pytest.approx(nats / math.log(2) / CHARACTERS, rel=1e-5)


@pytest.mark.parametrize("context,stride,way", [(LENGTH, None, "blocks"), (LENGTH, 7, "overlapping"), (9, 8, "blocks"),
                                                (LENGTH, 1, "sliding"), (None, 3, "overlapping")])  # fmt: skip
def test_every_way_equals_transformers_on_the_same_windows(model, network, text, context, stride, way):
    ids, length = stream_of(model), context or 16
    nats = by_windows(network, ids, length, stride or length - 1)
    found = evaluate.evaluate_text(model, text, context=context, stride=stride)
    assert found["way"] == way
    assert found["exactness"] == ("exact" if way == "sliding" else "approximation")
    assert (found["context"], found["stride"]) == (length, stride or length - 1)
    assert found["perplexity"] == pytest.approx(math.exp(nats / (len(ids) - 1)), rel=1e-4)
    assert found["perplexity_per_word"] == pytest.approx(math.exp(nats / WORDS), rel=1e-4)
    assert found["bits_per_byte"] == pytest.approx(nats / math.log(2) / BYTES, rel=1e-5)
    assert (found["bytes"], found["characters"], found["words"]) == (BYTES, CHARACTERS, WORDS)
    assert found["documents"] == len(DOCUMENTS)


@pytest.mark.parametrize("kind", ["gpt2", "wordpiece", "unigram"])
def test_a_model_that_knows_nothing_has_the_loss_of_a_fair_die(tmp_path, text, kind):
    made = language_model(tmp_path / "run", kind=kind)
    with torch.no_grad():
        for parameter in made.system.parameters():
            parameter.zero_()
    found = evaluate.evaluate_text(made, text)
    size = made.tokenizer.vocabulary.size
    assert found["loss"] == pytest.approx(math.log(size))
    assert found["perplexity"] == pytest.approx(size)
    # bytes and words are those of the text, whatever the tokenizer makes of it
    assert found["bits_per_byte"] == pytest.approx(found["tokens"] * math.log2(size) / BYTES)
    assert found["words"] == WORDS
    lost = [note for note in found["notes"] if "tokenizer drops" in note]
    assert bool(lost) == (kind != "gpt2")


@pytest.mark.parametrize(
    "tokens,context,stride", [(50, 8, 7), (50, 8, 1), (50, 8, 3), (5, 8, 3), (8, 8, 7), (9, 8, 7), (2, 2, 1)]
)
def test_windows_score_every_token_once_and_in_order(tokens, context, stride):
    scored = []
    for begin, end, count in windows(tokens, context, stride):
        assert 0 <= begin < end <= tokens
        assert end - begin <= context
        assert count < end - begin  # something stands before each
        scored += range(end - count, end)
    assert scored == list(range(1, tokens))


def test_rows_of_any_length_are_scored_together_as_they_are_alone(model, monkeypatch):
    monkeypatch.setattr("unmask.infer.likelihood.SCORES", 1000)  # three places at a time
    dice = np.random.default_rng(0)
    rows = [dice.integers(0, 200, size) for size in (2, 9, 24, 5)]
    scored = [1, 8, 3, 2]
    together = score(model, rows, scored).split(scored)
    for row, count, part in zip(rows, scored, together, strict=True):
        alone = score(model, [row], [count])
        assert part.logs == pytest.approx(alone.logs, abs=1e-5)
        assert len(part.logs) == count
        assert part.likeliest.tolist() == alone.likeliest.tolist()


def test_passes_hold_every_row_once_and_not_too_many_tokens(monkeypatch):
    monkeypatch.setattr("unmask.infer.passes.PASS", 20)
    lengths = [3, 30, 5, 9, 9, 2, 7]
    found = [chosen.tolist() for chosen in together(lengths)]
    assert sorted(sum(found, [])) == list(range(7))
    assert all(len(some) == 1 or len(some) * max(lengths[i] for i in some) <= 20 for some in found)
    assert len(found) < 7


def test_compressed_text_and_json_lines_are_the_same_text(model, text, tmp_path):
    data = text.read_bytes()
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(data))
    (tmp_path / "b.txt.xz").write_bytes(lzma.compress(data))
    (tmp_path / "c.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in DOCUMENTS))
    found = [evaluate.evaluate_text(model, tmp_path / name) for name in ("text.txt", "a.txt.gz", "b.txt.xz", "c.jsonl")]
    assert all(one["loss"] == found[0]["loss"] and one["bytes"] == BYTES for one in found)


def test_lines_as_documents_and_another_encoding_are_the_same_text(model, text, tmp_path):
    wanted = evaluate.evaluate_text(model, text)
    (tmp_path / "lines.txt").write_text("\n".join(" ".join(document.split("\n")) for document in DOCUMENTS))
    (tmp_path / "wide.txt").write_bytes(text.read_text(encoding="utf-8").encode("utf-16"))
    by_line = evaluate.evaluate_file(model, tmp_path / "lines.txt", lines=True)
    assert by_line["documents"] == wanted["documents"] == len(DOCUMENTS)
    assert evaluate.evaluate_file(model, tmp_path / "wide.txt", encoding="utf-16")["loss"] == wanted["loss"]
    words = ("evaluate", model.folder, tmp_path / "wide.txt", "--device", "cpu", "--json")
    assert "pass --encoding utf-16" in mistake(*words)
    assert json.loads(works(*words, "--encoding", "utf-16").out)["loss"] == pytest.approx(wanted["loss"])


def test_a_text_without_spaces_has_characters_and_no_words(model, tmp_path):
    found = evaluate.evaluate_text(model, written(tmp_path / "zh.txt", ["今天下雨了，我们在家里看书。"]))
    assert found["words"] is found["perplexity_per_word"] is None
    assert found["characters"] == 14
    assert found["bytes"] == 42
    assert "no spaces" in found["words_are"]


def test_a_text_shorter_than_the_context_is_scored_whole_and_told(model, network, tmp_path):
    found = evaluate.evaluate_text(model, written(tmp_path / "short.txt", ["The cat."]), context=LENGTH)
    ids = stream_of(model, ["The cat."])
    assert found["tokens"] == len(ids) - 1 < LENGTH - 1
    assert found["exactness"] == "exact"
    assert found["loss"] == pytest.approx(by_windows(network, ids, LENGTH, LENGTH) / (len(ids) - 1), rel=1e-5)
    assert (
        found["notes"][f"tokens in the text are fewer than the context of {LENGTH}: it is scored in one window"]
        == len(ids) - 1
    )


def test_progress_counts_up_to_all_tokens(model, text, monkeypatch):
    monkeypatch.setattr("unmask.evaluate.perplexity.PASS", 40)
    *records, last = score_text(model, text, stride=4)
    done = [record["tokens"] for record in records]
    assert len(done) > 3
    assert done == sorted(set(done))
    assert done[-1] == records[-1]["tokens_total"] == last["tokens"]
    assert records[-1]["loss"] == pytest.approx(last["loss"])


def test_a_length_or_stride_that_cannot_be_is_refused_with_numbers(model, text, tmp_path):
    for options, said in (
        ({"context": LENGTH + 1}, f"between 2 and {LENGTH} .* got {LENGTH + 1}"),
        ({"context": 1}, f"between 2 and {LENGTH} .* got 1"),
        ({"context": 8, "stride": 8}, "between 1 and 7 .* got 8"),
        ({"stride": 0}, "between 1 and 15 .* got 0"),
        ({"memory": 4}, "--memory 4 has no effect, because .* has no memory"),
    ):
        with pytest.raises(UserError, match=said):
            evaluate.evaluate_text(model, text, **options)
    (tmp_path / "empty.txt").write_text(" \n\n")
    with pytest.raises(UserError, match="holds no text"):
        evaluate.evaluate_text(model, tmp_path / "empty.txt")


def remembering(folder, layers, words=False, clamp=None) -> Model:
    """A small Transformer-XL; `words`: with clusters of rare tokens."""
    network = TransformerXL(layers=layers, width=16, heads=2, head=8, feedforward=24, memory=8, length=20, clamp=clamp,
                            cutoffs=(40, 120) if words else ())  # fmt: skip
    recipe = recipes.get("transformer-xl", size="tiny", variant="words" if words else "paper")
    recipe = recipe.replace(system=Single(backbone=network), schedule=(type(recipe.schedule[0])(length=9),))
    return model_of(recipe, tokenizer("gpt2"), folder)


@pytest.mark.parametrize("memory", [None, 5, 12])
def test_a_memory_is_carried_from_segment_to_segment(tmp_path, text, memory):
    made = remembering(tmp_path / "run", layers=1)  # which remembers embeddings: the same as reading the tokens again
    ids, nats = np.array(stream_of(made)), 0.0
    for begin in range(0, len(ids) - 1, 9):
        back = max(0, begin - (memory or 8))
        for at in range(begin, min(begin + 9, len(ids) - 1)):
            nats -= score(made, [ids[back : at + 2]], [1]).logs[0]
    found = evaluate.evaluate_text(made, text, memory=memory)
    assert (found["way"], found["memory"], found["exactness"]) == ("memory", memory or 8, "approximation")
    assert found["context"] == 9
    assert found["loss"] == pytest.approx(nats / (len(ids) - 1), rel=1e-5)


@pytest.mark.parametrize("words", [False, True])
def test_a_memory_as_long_as_the_text_is_one_long_pass(tmp_path, text, words):
    made = remembering(tmp_path / "run", layers=3, words=words)
    short, long = (evaluate.evaluate_text(made, text, memory=memory) for memory in (None, 150))
    whole = evaluate.evaluate_text(made, text, context=200, memory=0)
    assert whole["tokens"] < 150
    assert long["exactness"] == whole["exactness"] == "exact"
    assert long["loss"] == pytest.approx(whole["loss"], rel=1e-5)
    assert short["loss"] != pytest.approx(whole["loss"], rel=1e-5)
    assert evaluate.evaluate_text(made, text, memory=0)["way"] == "blocks"


def test_a_memory_longer_than_any_machine_holds_is_as_good_as_one_as_long_as_the_text(tmp_path, text):
    made = remembering(tmp_path / "run", layers=3)
    enough, endless = (evaluate.evaluate_text(made, text, memory=memory) for memory in (150, 10**12))
    assert endless["loss"] == pytest.approx(enough["loss"], rel=1e-6)
    assert (endless["memory"], endless["exactness"]) == (10**12, "exact")
    with pytest.raises(UserError, match=f"a memory of {10**12} tokens is longer than the largest distance, .*=20"):
        evaluate.evaluate_text(remembering(tmp_path / "run", layers=1, clamp=20), text, memory=10**12)


def test_segments_do_not_overlap_where_there_is_a_memory(tmp_path, text):
    with pytest.raises(UserError, match="leave --stride out, or give --memory 0"):
        evaluate.evaluate_text(remembering(tmp_path / "run", layers=1), text, stride=2)
    assert [Windowing(4, 4, memory).exact(9) for memory in (7, 8)] == [False, True]


def test_a_network_that_knows_distances_reads_windows_of_any_length(tmp_path, text):
    made = remembering(tmp_path / "run", layers=1)
    longer = 10 * made.recipe.system.backbone.length
    whole = evaluate.evaluate_text(made, text, context=longer, memory=0)
    assert whole["exactness"] == "exact"
    assert evaluate.evaluate_text(made, text, context=20, stride=1, memory=0)["exactness"] == "approximation"
    remembered = evaluate.evaluate_text(made, text, memory=longer)
    assert whole["loss"] == pytest.approx(remembered["loss"], rel=1e-5)
    assert remembered["notes"]["tokens of memory are more than the 8 in training"] == longer
    ids = np.array(stream_of(made))
    found = evaluate.context_curve(made, text, lengths=(len(ids) - 1,))["points"][0]["loss"]
    assert found == pytest.approx(-score(made, [ids], [1]).logs[0], rel=1e-5)
    with pytest.raises(UserError, match="2 tokens or more; got 1"):
        evaluate.evaluate_text(made, text, context=1)


def test_the_curve_gives_the_same_tokens_more_and_more_to_look_back_at(model, network, text, tmp_path):
    ids = stream_of(model)
    lengths = [1, 2, 4, 8, 15]
    curve = evaluate.context_curve(model, text)
    assert [point["back"] for point in curve["points"]] == lengths
    assert curve["tokens"] == len(ids) - 15
    for point in curve["points"]:
        logs = [log_probability(network, ids[i - point["back"] : i], ids[i]) for i in range(15, len(ids))]
        assert point["loss"] == pytest.approx(-np.mean(logs), rel=1e-5)
    some = evaluate.context_curve(
        model, text, lengths=(3,), tokens=3
    )  # in the middle and at the end, not at the second
    ends = [log_probability(network, ids[i - 3 : i], ids[i]) for i in (len(ids) // 2, len(ids) - 1)]
    assert some["points"][0]["loss"] == pytest.approx(-np.mean(ends), rel=1e-5)
    with pytest.raises(UserError, match=f"between 1 and {LENGTH - 1}"):
        evaluate.context_curve(model, text, lengths=(LENGTH,))
    with pytest.raises(UserError, match="no token .* has 15 tokens before it"):
        evaluate.context_curve(model, written(tmp_path / "short.txt", ["The cat."]))


def test_the_command_line_shows_the_scores_and_writes_the_curve(model, text, tmp_path):
    found = json.loads(
        works("evaluate", model.folder, text, "--stride", 4, "--curve", tmp_path / "c.json", "--json").out
    )
    again = unmask.load(model.folder, device="cpu").evaluate(text, stride=4)
    assert found["loss"] == pytest.approx(again["loss"])
    assert json.loads((tmp_path / "c.json").read_text())["points"] == found["curve"]
    pytest.importorskip("matplotlib")
    shown = works("evaluate", model.folder, text, "--context", LENGTH, "--curve", tmp_path / "c.png")
    assert "bits per byte" in shown.out
    assert "approximation" in shown.out
    assert f"note: {LENGTH} tokens of context are more than the 16" in shown.err
    assert (tmp_path / "c.png").read_bytes()[:4] == b"\x89PNG"
    assert "must end in .png or .json" in mistake("evaluate", model.folder, text, "--curve", tmp_path / "c.gif")


def test_the_notes_of_a_text_are_counted_once_with_a_curve_too(tmp_path):
    made = language_model(tmp_path / "run", kind="wordpiece")  # which does not keep accents
    save_run(made, tmp_path / "run")
    text = written(tmp_path / "text.txt", ["Où est l’été?", *DOCUMENTS])
    alone = works("evaluate", made.folder, text).err
    told = works("evaluate", made.folder, text, "--curve", tmp_path / "c.json").err
    notes = [[line for line in said.splitlines() if "tokenizer drops" in line] for said in (alone, told)]
    assert notes[0]
    assert notes[1] == notes[0]


def test_the_wrong_kind_of_file_is_told(model, text, tmp_path):
    (tmp_path / "t.jsonl").write_text('{"text": "a", "label": "x"}\n{"text": "b", "label": "y"}\n')
    assert "holds labelled examples" in mistake("evaluate", model.folder, tmp_path / "t.jsonl")
    works("adapt", model.folder, tmp_path / "t.jsonl", "--out", tmp_path / "task", "--set", "epochs=1")
    assert "is plain text" in mistake("evaluate", tmp_path / "task", text)
    assert "leave them out" in mistake("evaluate", tmp_path / "task", tmp_path / "t.jsonl", "--stride", 2)
    assert "leave it out" in mistake("evaluate", tmp_path / "task", tmp_path / "t.jsonl", "--curve", "c.json")
    works("evaluate", tmp_path / "task", tmp_path / "t.jsonl")


def test_a_whole_text_is_scored_with_its_blank_lines_and_the_space_at_its_end(model, tmp_path):
    raw = "The cat sat.\n\n\nThe dog ran away.  \n"
    (tmp_path / "raw.txt").write_text(raw)
    whole, lines = (evaluate.evaluate_text(model, tmp_path / "raw.txt", whole=whole) for whole in (True, False))
    assert (whole["bytes"], whole["documents"]) == (len(raw), 1)
    assert lines["bytes"] < len(raw)
    assert lines["documents"] == 2


def test_a_model_with_a_decoder_is_scored_by_what_its_objective_was_trained_on(tmp_path):
    made = language_model(tmp_path, "system.backbone.decoder=MaskDecoder", "system.backbone.norm=post")
    ids = stream_of(made)[:16]
    found = score(made, [np.array(ids)], [len(ids) - 1])
    batch, _ = made.system.hide(left_padded([ids], 0))
    loss = made.system.step(batch)[0]["tokens"]
    assert float(loss.count) == len(ids) - 1
    assert -found.logs.sum() == pytest.approx(float(loss.total.detach()), rel=1e-5)
