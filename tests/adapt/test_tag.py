"""Tagging: files, schemes, spans as seqeval counts them, a CRF as pytorch-crf computes it, long sentences in windows."""

import json
import random
import warnings

import pytest
import torch
from torchcrf import CRF as Oracle

import unmask
from tests.adapt.made import base_of, loud
from tests.command import mistake, works
from unmask.adapt import adapt
from unmask.errors import UserError
from unmask.infer import answer, open_run
from unmask.infer.model import save_run
from unmask.predict.crf import CRF
from unmask.tasks._entities import broken, entities, scheme_of, span_scores
from unmask.tasks._sentences import Sentence, read_sentences, sentence_of
from unmask.tasks.tag import Tag

BIO = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
BIOES = [*BIO, "E-PER", "S-PER", "E-LOC", "S-LOC"]


@pytest.mark.parametrize("tags", [BIO, BIOES])
def test_spans_are_counted_as_seqeval_counts_them_also_in_broken_sequences(tags):
    from seqeval.metrics import f1_score, precision_score, recall_score

    dice = random.Random(0)

    def drawn():
        return [[dice.choice(tags) for _ in range(n)] for n in (1, 5, 9, 20, 40)] * 4

    truth, predicted = drawn(), drawn()
    dice.shuffle(predicted[2])
    predicted[3] = truth[3]
    found = span_scores(truth, predicted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = [score(truth, predicted) for score in (f1_score, precision_score, recall_score)]
    assert [found[name] for name in ("f1", "precision", "recall")] == pytest.approx(wanted)
    assert 0 < found["f1"] < 1


def test_the_crf_gives_what_pytorch_crf_gives():
    torch.manual_seed(0)
    ours, theirs = CRF(4), Oracle(4, batch_first=True)
    with torch.no_grad():
        for own, other in (
            (ours.first, theirs.start_transitions),
            (ours.last, theirs.end_transitions),
            (ours.after, theirs.transitions),
        ):
            own.copy_(torch.randn(own.shape))
            other.copy_(own)
    scores, tags = torch.randn(5, 7, 4), torch.randint(0, 4, (5, 7))
    real = torch.arange(7) < torch.tensor([7, 1, 4, 2, 6])[:, None]
    torch.testing.assert_close(-ours(scores, tags, real), theirs(scores, tags, real, reduction="none"))
    best = ours.best(scores, real).argmax(2)
    assert [row[mask].tolist() for row, mask in zip(best, real, strict=True)] == theirs.decode(scores, real)
    assert ours(scores, tags, torch.zeros_like(real)).tolist() == [0.0] * 5  # a window without words


@pytest.mark.parametrize(
    "tags,scheme,place,why",
    [
        ("O I-PER", "BIO", 1, "'I-PER' follows 'O', but it must follow B-PER or I-PER"),
        ("B-LOC I-PER", "BIO", 1, "'I-PER' follows 'B-LOC'"),
        ("I-LOC", "BIO", 0, "'I-LOC' follows 'O'"),
        ("B-PER I-PER B-PER O", "BIO", None, ""),
        ("B-PER O", "BIOES", 0, "'B-PER' is followed by 'O', but it must be followed by I-PER or E-PER"),
        ("O B-PER I-PER", "BIOES", 2, "'I-PER' is followed by the end"),
        ("S-PER E-PER", "BIOES", 1, "'E-PER' follows 'S-PER'"),
        ("B-PER M-PER E-PER S-LOC", "BIOES", None, ""),
        ("I-X whatever", "plain", None, ""),
    ],
)
def test_a_sequence_that_breaks_its_scheme_is_found(tags, scheme, place, why):
    found = broken(tags.split(), scheme)
    assert (None if found is None else found[0]) == place
    assert found is None or why in found[1]


def test_the_scheme_follows_from_the_tags():
    assert [scheme_of(tags.split()) for tags in ("O B-X I-X", "O I-X", "S-X O", "NOUN O", "O", "B-X VERB")] == [
        "BIO",
        "BIO",
        "BIOES",
        *["plain"] * 3,
    ]
    assert entities("B-A I-A B-A O I-B".split()) == [("A", 0, 2), ("A", 2, 3), ("B", 4, 5)]


def test_columns_of_conll_are_sentences(tmp_path):
    content = "-DOCSTART- -X- O O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\n \nBerlin NNP B-NP B-LOC\n"
    (tmp_path / "t.conll").write_text(content)
    found = read_sentences(tmp_path / "t.conll")
    assert [(s.words, s.tags) for s in found] == [(("EU", "rejects"), ("B-ORG", "O")), (("Berlin",), ("B-LOC",))]
    assert [s.where for s in found] == [f"{tmp_path / 't.conll'}, line {n}" for n in (3, 7)]
    assert unmask.tasks.kind_of(tmp_path / "t.conll") == "tag"


@pytest.mark.parametrize(
    "name,content,expected",
    [
        ("t.jsonl", '{"tokens": ["a", "b"], "tags": ["O"]}', "line 1: there are 2 tokens and 1 tags"),
        ("t.jsonl", '{"tokens": ["a"], "tag": ["O"]}', "needs \"tokens\" and \"tags\"; the columns are 'tokens', 'tag'"),
        ("t.jsonl", '{"tokens": "a b", "tags": ["O"]}', '"tokens" must be a list of strings'),
        ("t.jsonl", '{"tokens": ["a", " "], "tags": ["O", "O"]}', r"line 1, word 2 \(' '\): the token is empty"),
        ("t.jsonl", '{"tokens": [], "tags": []}', "line 1: the sentence has no tokens"),
        ("t.jsonl", '{"tokens": ["a", "b"], "tags": ["B-X", "I-Y"]}', r"line 1, word 2 \('b'\): the tags follow BIO.*'I-Y' follows 'B-X'"),
        ("t.conll", "a B-X\nb O\n\nc O\nd I-X\n", r"line 5, word 2 \('d'\): the tags follow BIO"),
        ("t.conll", "a O\nb\n", "line 2: the line has a word and no tag"),
        ("t.conll", "\n", "holds no sentences"),
    ],
)  # fmt: skip
def test_a_wrong_sentence_is_named_with_its_line_and_place(tmp_path, name, content, expected):
    (tmp_path / name).write_text(content)
    with pytest.raises(UserError, match=expected) as raised:
        Tag().read(tmp_path / name, None)
    assert str(raised.value).startswith(str(tmp_path / name))


def test_words_are_joined_with_spaces_but_chinese_characters_without():
    sentence = Sentence(("北", "京", "is", "in", "中", "国", "。"))
    assert sentence.text == "北京 is in 中国。"
    assert [sentence.text[m.start : m.end] for m in sentence.places] == list(sentence.words)
    assert sentence_of("EU rejects 中国.", "x").words == ("EU", "rejects", "中", "国", ".")


def words(count, seed=0):
    """Sentences in which only the river is a place."""
    dice = random.Random(seed)
    made = []
    for _ in range(count):
        some = [dice.choice(["the", "doctor", "near", "report", "river"]) for _ in range(dice.randint(3, 8))]
        tags = ["B-LOC" if word == "river" else "O" for word in some]
        made.append(Sentence(tuple(some), tuple(tags)))
    return made


@pytest.mark.parametrize("crf", [False, True])
def test_a_model_learns_to_tag(crf, tokenizers, tmp_path):
    base = base_of("bert", tokenizers["wordpiece"], tmp_path / "base")
    some = words(60)
    records = list(
        adapt(base, some, tmp_path / "run", task=Tag(epochs=8, examples=12, rate=5e-3, crf=crf), dev=words(20, 1))
    )
    assert records[0]["scheme"] == "BIO"
    assert records[-1]["kept_epoch"]["dev_f1"] > 0.9
    model = open_run(tmp_path / "run", device="cpu")
    (found,) = answer(model, [["the", "doctor", "near", "report", "river"]]).answers
    assert found.tags == ("O", "O", "O", "O", "B-LOC")
    assert found.entities == [{"type": "LOC", "words": ["river"], "start": 4, "end": 5}]


def test_every_word_of_a_long_sentence_gets_a_tag_from_the_window_where_it_has_most_context(tokenizers, tmp_path):
    base = base_of("bert", tokenizers["wordpiece"], tmp_path / "base")
    list(adapt(base, words(8), tmp_path / "run", task=Tag(epochs=1, length=16)))
    model = open_run(tmp_path / "run", device="cpu")
    loud(model.system.predict["tags"])
    long = ["doctor", "report", "the", "near"] * 10
    found = answer(model, [long])
    assert found.notes == {"texts longer than 16 tokens, read in windows": 1}
    assert len(found.answers[0].tags) == 40
    first = answer(model, [long[:14]]).answers[0]  # what fits into the first window
    assert found.answers[0].tags[:10] == first.tags[:10]
    assert found.answers[0].probabilities[:10] == pytest.approx(first.probabilities[:10])


def test_tagging_from_the_command_line(tokenizers, tmp_path):
    save_run(base_of("roberta", tokenizers["byte-bpe"], tmp_path / "base"), tmp_path / "base")
    lines = ["\n".join(f"{w}\t{t}" for w, t in zip(s.words, s.tags, strict=True)) for s in words(12)]
    (tmp_path / "t.txt").write_text("\n\n".join(lines) + "\n")
    said = works(
        "adapt",
        tmp_path / "base",
        tmp_path / "t.txt",
        "--task",
        "tag",
        "--dev",
        tmp_path / "t.txt",
        "--out",
        tmp_path / "run",
        "--set",
        "epochs=1",
    )
    assert "dev f1" in said.err.lower()
    scores = json.loads(works("evaluate", tmp_path / "run", tmp_path / "t.txt", "--json").out)
    assert scores["examples"] == 12
    assert {"f1", "precision", "recall", "accuracy", "per_type"} <= set(scores)
    works("predict", tmp_path / "run", tmp_path / "t.txt", "--out", tmp_path / "out.jsonl")  # a text in each line
    (tmp_path / "new.jsonl").write_text(json.dumps({"tokens": ["the", "doctor"], "id": 7}))
    works("predict", tmp_path / "run", tmp_path / "new.jsonl", "--out", tmp_path / "new.out.jsonl")
    row = json.loads((tmp_path / "new.out.jsonl").read_text())
    assert row["id"] == 7
    assert len(row["tags"]) == 2
    (tmp_path / "bad.jsonl").write_text(json.dumps({"tokens": ["a"], "tags": ["B-NEW"]}))
    assert "no training sentence has the tag 'B-NEW'" in mistake("evaluate", tmp_path / "run", tmp_path / "bad.jsonl")
