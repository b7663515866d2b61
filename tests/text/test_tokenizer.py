"""Tokenizers are trained, saved, opened, and know their special tokens."""

from __future__ import annotations

import json

import pytest

from tests.conftest import documents
from unmask.convert.tokenizer import kind_of
from unmask.errors import UserError
from unmask.infer.decode_text import pieces
from unmask.text import (
    BPE,
    KINDS,
    ByteBPE,
    Bytes,
    Characters,
    Tokenizer,
    Unigram,
    WordBPE,
    WordPiece,
    kind_named,
    train,
    train_to_file,
)  # fmt: skip
from unmask.text.tokenizer import BERT_NAMES, ROBERTA_NAMES

SMALL = [WordPiece(vocab=150), BPE(vocab=150), ByteBPE(vocab=300), Unigram(vocab=100), Characters(vocab=60), Bytes()]
TEXTS = documents(40)


@pytest.fixture(scope="module", params=SMALL, ids=lambda kind: type(kind).__name__)
def made(request) -> tuple[object, Tokenizer]:
    return request.param, train(request.param, TEXTS)


def test_the_vocabulary_has_the_size_asked_for(made):
    kind, tokenizer = made
    size = tokenizer.vocabulary.size
    assert size == kind.vocab if not isinstance(kind, Characters) else size <= kind.vocab


def test_special_tokens_come_first_and_are_all_known(made):
    kind, tokenizer = made
    names = ROBERTA_NAMES if isinstance(kind, ByteBPE) else BERT_NAMES
    assert [tokenizer.token(i) for i in range(5)] == names
    assert tokenizer.vocabulary.special == (0, 1, 2, 3, 4)
    assert tokenizer.token(tokenizer.vocabulary.mask) == names[4]
    assert tokenizer.token(tokenizer.vocabulary.pad).strip("[]<>").lower() == "pad"
    assert tokenizer.token(tokenizer.vocabulary.unknown).strip("[]<>").lower() == "unk"
    assert len(set(tokenizer.roles.values())) == 5


def test_text_survives_encoding_and_decoding(made):
    kind, tokenizer = made
    text = TEXTS[3].splitlines()[0]
    expected = text.lower() if isinstance(kind, WordPiece) else text
    assert tokenizer.decode(tokenizer.encode(text)).replace(" ", "") == expected.replace(" ", "")


def test_chinese_is_written_without_spaces_and_other_words_with_them():
    text = "他说：“我用 python 写。” 是 吗？ yes"
    tokenizer = train(WordPiece(vocab=39), [text] * 3)
    assert tokenizer.decode(tokenizer.encode(text)) == "他说：“我用 python 写。”是吗？ yes"


def test_a_saved_tokenizer_opens_to_the_same_one(made, tmp_path):
    _, tokenizer = made
    tokenizer.save(tmp_path / "tokenizer.json")
    for path in (tmp_path, tmp_path / "tokenizer.json", str(tmp_path)):
        opened = Tokenizer.load(path)
        assert opened.checksum == tokenizer.checksum
        assert opened.encode(TEXTS[0]) == tokenizer.encode(TEXTS[0])


def test_no_special_token_is_added_and_nothing_is_padded_or_cut(made):
    _, tokenizer = made
    tokenizer.backend.enable_truncation(4)
    tokenizer.backend.enable_padding(length=8)
    again = Tokenizer(tokenizer.backend)
    short, long = (e.ids for e in again.encode_many(["the", TEXTS[0].splitlines()[0]]))
    assert len(short) < 8
    assert len(long) > 4
    assert not set(long) & set(tokenizer.vocabulary.special)


def test_both_spellings_of_the_mask_mean_the_tokenizers_own(made):
    _, tokenizer = made
    for name in ("[MASK]", "<mask>"):
        assert tokenizer.encode(f"the {name}").count(tokenizer.vocabulary.mask) == 1


def test_bytes_write_any_text_back():
    tokenizer = train(ByteBPE(vocab=300), TEXTS)
    text = " 北京 😀\tİ\n\nend  "
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.readable(tokenizer.encode(" the")[0]).startswith(" ")


@pytest.mark.parametrize("names, cls, mask", [("roberta", "<s>", "<mask>"), ("bert", "[CLS]", "[MASK]")])
def test_byte_bpe_names_its_special_tokens_as_roberta_or_as_bert_does(names, cls, mask):
    tokenizer = train(ByteBPE(vocab=300, names=names), TEXTS)
    assert [tokenizer.token(tokenizer.role(role)) for role in ("cls", "mask")] == [cls, mask]
    assert kind_of(tokenizer) == ByteBPE(vocab=300, names=names)
    assert train(ByteBPE(vocab=300), TEXTS).encode("the") == train(ByteBPE(vocab=300, names="bert"), TEXTS).encode(
        "the"
    )


def test_characters_are_one_token_each_and_rare_ones_are_unknown():
    tokenizer = train(Characters(vocab=8), ["aaa bbb c"])
    assert tokenizer.vocabulary.size == 8
    ids = tokenizer.encode("ab\nc")
    assert len(ids) == 4
    assert ids[2] == tokenizer.role("unk")


def test_characters_come_back_as_they_were_in_any_language():
    text = "  two  spaces,\ta tab\r\n\n北京在哪里？😀é\n"
    tokenizer = train(Characters(), [text])
    assert len(tokenizer.encode(text)) == len(text)
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_a_byte_is_a_token_and_any_text_comes_back_without_a_corpus():
    tokenizer = train(Bytes(), iter(()))
    text = "".join(map(chr, range(0x250))) + "  北京 😀\u2028\x85\r\n\n"
    ids = tokenizer.encode(text)
    assert len(ids) == len(text.encode())
    assert len(set(tokenizer.encode("".join(map(chr, range(128)))))) == 128
    assert tokenizer.decode(ids) == text
    with pytest.raises(UserError, match="has 261 tokens, got 300: leave --vocab out"):
        kind_named("bytes", 300)


def test_bytes_are_written_on_character_by_character():
    """A character's bytes come one at a time: nothing is shown before the last of them."""
    tokenizer = train(Bytes(), iter(()))
    assert list(pieces(tokenizer, [], tokenizer.encode("a北😀é"))) == ["a", "北", "😀", "é"]


def test_wordpiece_folds_case_only_if_asked():
    folded, kept = train(WordPiece(vocab=80), TEXTS), train(WordPiece(vocab=80, lowercase=False), TEXTS)
    assert folded.encode("THE") == folded.encode("the")
    assert kept.encode("THE") != kept.encode("the")


def test_word_bpe_is_what_transformers_makes_of_its_vocabulary_and_has_the_special_tokens_of_gpt():
    import transformers

    tokenizer = train(WordBPE(vocab=120), TEXTS)
    known = json.loads(tokenizer.backend.to_str())["model"]
    theirs = transformers.OpenAIGPTTokenizer(vocab=known["vocab"], merges=[tuple(merge) for merge in known["merges"]])
    for text in (*TEXTS, "THE Café, 北京\tit's"):
        assert tokenizer.encode(text) == theirs(text)["input_ids"]
    assert tokenizer.decode(tokenizer.encode("The  the")) == "the the"
    assert {role: tokenizer.token(i) for role, i in tokenizer.roles.items()} == {
        "pad": "<pad>", "unk": "<unk>", "sep": "<extract>", "start": "<start>", "delimiter": "<delimiter>",
        "extract": "<extract>",
    }  # fmt: skip


def test_readable_keeps_the_marks_of_pieces_and_specials():
    tokenizer = train(WordPiece(vocab=150), TEXTS)
    piece = next(i for i in range(150) if tokenizer.token(i).startswith("##"))
    assert tokenizer.readable(piece) == tokenizer.token(piece)
    assert tokenizer.readable(tokenizer.role("cls")) == "[CLS]"
    assert tokenizer.token(99_999) == "<99999>"


@pytest.mark.parametrize(
    "kind", [WordPiece(), ByteBPE(), BPE(), WordBPE(), Unigram()], ids=lambda kind: type(kind).__name__
)
def test_a_corpus_too_small_for_the_vocabulary_is_an_error_with_the_size_that_fits(kind):
    with pytest.raises(
        UserError, match=r"large enough for [\d,]+ tokens only, but vocab is .*: use --vocab \d+ or less"
    ):
        train(kind, ["a few words only, a few words"])


def test_a_vocabulary_smaller_than_the_special_tokens_is_an_error():
    with pytest.raises(UserError, match=r"vocab must be more than 5 .*, got 5"):
        train(Characters(vocab=5), TEXTS)


def test_kinds_are_named_and_the_nearest_name_is_offered():
    assert set(KINDS) == {"wordpiece", "bpe", "word-bpe", "byte-bpe", "unigram", "characters", "bytes", "whole-words"}
    assert kind_named("wordpiece", 77) == WordPiece(vocab=77)
    assert kind_named("byte-bpe") == ByteBPE()
    with pytest.raises(UserError, match="unknown kind of tokenizer 'wordpeace': did you mean wordpiece"):
        kind_named("wordpeace")


def test_a_missing_or_broken_file_is_an_error(tmp_path):
    with pytest.raises(UserError, match="no tokenizer at .*: make one with 'unmask tokenizer"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": 1}))
    with pytest.raises(UserError, match="is not a tokenizer.json"):
        Tokenizer.load(tmp_path)


def test_an_existing_file_is_kept_unless_told(tmp_path):
    out = tmp_path / "new" / "tokenizer.json"
    first = train_to_file(TEXTS, out, Characters(vocab=60))
    with pytest.raises(UserError, match="exists already.*--overwrite"):
        train_to_file(TEXTS, out, Characters(vocab=20))
    assert Tokenizer.load(out).checksum == first.checksum
    train_to_file(TEXTS, out, Characters(vocab=20), overwrite=True)
    assert Tokenizer.load(out).vocabulary.size == 20


def test_a_missing_role_says_which_tokens_were_looked_for():
    from tokenizers import Tokenizer as Backend
    from tokenizers import models

    bare = Tokenizer(Backend(models.WordLevel({"<|endoftext|>": 0, "a": 1}, unk_token="<|endoftext|>")))
    assert bare.vocabulary.mask is None
    assert bare.vocabulary.pad == bare.role("sep") == 0
    with pytest.raises(UserError, match=r"no mask token \(none of \[MASK\], <mask>\)"):
        bare.role("mask")
    assert bare.with_mask("[MASK]") == "[MASK]"
