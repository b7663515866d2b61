"""Tokenizers: eight kinds to train, and one wrapper to use them. Hugging Face `tokenizers` does the work."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

from tokenizers import AddedToken, Encoding, Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as Backend

from unmask.axes import Part
from unmask.batch import Vocabulary
from unmask.errors import UserError, require, unknown
from unmask.text.fold_width import folding, folds
from unmask.text.word_tokens import SPELLING, WordEncoding, word_spans

# The roles of special tokens, and the names of each role in the published models. If a tokenizer has several of these
# names, the first is used. GPT-2 and Transformer-XL have one token for all ends. GPT's extract token represents a whole
# example and also ends it.
ROLES = {
    "pad": ("[PAD]", "<pad>", "<|endoftext|>", "<eos>"),
    "unk": ("[UNK]", "<unk>", "<|endoftext|>"),
    "cls": ("[CLS]", "<cls>", "<s>", "<|endoftext|>"),
    "sep": ("[SEP]", "<sep>", "</s>", "<|endoftext|>", "<extract>", "<eos>"),
    "mask": ("[MASK]", "<mask>"),
    "start": ("<start>",),
    "delimiter": ("<delimiter>",),
    "extract": ("<extract>",),
}
BERT_NAMES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
GPT_NAMES = ["<unk>", "<pad>", "<start>", "<delimiter>", "<extract>"]
ROBERTA_NAMES = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
# WordPiece treats every Chinese character as a word, and decoding writes spaces between words: these are removed.
_CHINESE = "[\u3001-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uff65\U00020000-\U0003ffff]"
_MARK = "[\u2014\u2018\u2019\u201c\u201d\u2026]"  # dashes, quotes and dots that other languages use too
_BETWEEN = re.compile(f"(?<={_CHINESE}) (?={_CHINESE}|{_MARK})|(?<={_MARK}) (?={_CHINESE})")


_WORDS, _SPELLED = "(?#words)", "(?#spelled)"  # comments in the pattern of a tokenizer of words


class Tokenizer:
    """Text to ids and back: a thin wrapper that knows the roles of the special tokens."""

    def __init__(self, backend: Backend) -> None:
        backend.no_truncation()
        backend.no_padding()
        self.backend = backend

    @classmethod
    def load(cls, path: str | Path) -> Tokenizer:
        path = Path(path)
        path = path / "tokenizer.json" if path.is_dir() else path
        require(
            path.is_file(), "no tokenizer at {path}: make one with 'unmask tokenizer CORPUS --out {path}'", path=path
        )
        try:
            return cls(Backend.from_file(str(path)))
        except Exception as error:  # the Rust code raises plain Exceptions
            raise UserError(
                "{path} is not a tokenizer.json of Hugging Face tokenizers: {error}", path=path, error=error
            ) from None

    def save(self, path: str | Path) -> None:
        Path(path).write_text(self.backend.to_str(pretty=False), encoding="utf-8")

    @cached_property
    def checksum(self) -> str:
        return hashlib.sha256(self.backend.to_str(pretty=False).encode()).hexdigest()

    @cached_property
    def folds(self) -> bool:
        """Whether full-width characters are read as half-width ones."""
        return folds(json.loads(self.backend.to_str())["normalizer"])

    def folding(self) -> Tokenizer:
        """The same tokenizer with folding (see `fold_width.py`)."""
        if self.folds:
            return self
        backend = Backend.from_str(self.backend.to_str())
        backend.normalizer = folding(backend.normalizer)
        return Tokenizer(backend)

    def with_special(self, names: Sequence[str]) -> Tokenizer:
        """The same tokenizer with more special tokens, at the end of its vocabulary."""
        backend = Backend.from_str(self.backend.to_str())
        backend.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names])
        return Tokenizer(backend)

    @cached_property
    def of_bytes(self) -> bool:
        """Whether every byte is a token: nothing was merged, so blank lines are tokens too."""
        model = json.loads(self.backend.to_str())["model"]
        return model["type"] == "BPE" and not model["merges"]

    @cached_property
    def _pattern(self) -> str:
        """The pattern at which a text is split; "" if it is split in another way."""
        found = json.loads(self.backend.to_str())["pre_tokenizer"] or {}
        return str(found.get("pattern", {}).get("Regex", ""))

    @property
    def of_words(self) -> bool:
        """Whether every word is a token, also in Chinese: words are found before the text is tokenised."""
        return self._pattern.startswith(_WORDS)

    @property
    def has_pieces(self) -> bool:
        """Whether a word that is no token is read as several smaller tokens; otherwise it is unknown as a whole."""
        return not isinstance(self.backend.model, models.WordLevel)

    @property
    def keeps_spelling(self) -> bool:
        """Whether the spelling of every token is kept."""
        return _SPELLED in self._pattern

    @cached_property
    def roles(self) -> dict[str, int]:
        """The token id of each role that this tokenizer has."""
        found = {}
        for role, names in ROLES.items():
            ids = [self.backend.token_to_id(name) for name in names]
            present = [i for i in ids if i is not None]
            if present:
                found[role] = present[0]
        return found

    def role(self, name: str) -> int:
        require(
            name in self.roles,
            (
                "the tokenizer has no {name} token (none of {roles}): train a tokenizer with 'unmask tokenizer CORPUS "
                "--for RECIPE', or choose a recipe that does not need this token"
            ),
            name=name,
            roles=", ".join(ROLES[name]),
        )
        return self.roles[name]

    @cached_property
    def vocabulary(self) -> Vocabulary:
        added = {i for i, token in self.backend.get_added_tokens_decoder().items() if token.special}
        return Vocabulary(
            size=self.backend.get_vocab_size(),
            pad=self.role("pad"),
            special=tuple(sorted(added | set(self.roles.values()))),
            mask=self.roles.get("mask"),
            unknown=self.roles.get("unk"),
            end=self.roles.get("sep"),
        )

    def encode(self, text: str) -> list[int]:
        if self.of_words:
            return self.encode_many([text])[0].ids
        return self.backend.encode(self.with_mask(text), add_special_tokens=False).ids

    def encode_many(self, texts: Sequence[str]) -> Sequence[Encoding | WordEncoding]:
        """The ids of each text, and where each token begins and ends."""
        if not self.of_words:
            found: list[Encoding] = self.backend.encode_batch(texts, add_special_tokens=False)
            return found
        several, known, unknown = word_spans(texts), self._ids, self.role("unk")
        pairs = [[(int(a), int(b)) for a, b in spans] for spans in several]
        looked_up = str.lower if self._lowers else str  # a spelling keeps its capitals
        return [
            WordEncoding([known.get(looked_up(text[a:b]), unknown) for a, b in spans], spans)
            for text, spans in zip(texts, pairs, strict=True)
        ]

    @cached_property
    def _lowers(self) -> bool:
        """Whether words are looked up in lower case, in a tokenizer of words."""
        return json.loads(self.backend.to_str())["normalizer"] == {"type": "Lowercase"}

    @cached_property
    def _ids(self) -> dict[str, int]:
        found: dict[str, int] = self.backend.get_vocab(with_added_tokens=False)
        special = {self.token(i) for i in self.vocabulary.special}
        return {word: i for word, i in found.items() if word not in special}

    def decode(self, ids: Sequence[int]) -> str:
        text = self.backend.decode(list(ids), skip_special_tokens=False)
        return _BETWEEN.sub("", text) if self.of_words or isinstance(self.backend.model, models.WordPiece) else text

    def token(self, index: int) -> str:
        return self.backend.id_to_token(index) or f"<{index}>"

    def readable(self, index: int) -> str:
        """A token as readable text: 'Ġword' of a byte-level vocabulary becomes ' word'."""
        token = self.token(index)
        if index in self.vocabulary.special or token.startswith("##"):
            return token
        return self.decode([index]) or token

    def spelled(self) -> list[str | None]:
        """The word that each token spells; None: it is special, a piece inside a word, or not text."""
        special = set(self.vocabulary.special)
        texts = [None if index in special else self.readable(index).strip() for index in range(self.vocabulary.size)]
        return [text if text and not text.startswith("##") else None for text in texts]

    def texts(self) -> list[str]:
        """The characters of each token, without the mark of a piece; "" for a special token."""
        special = set(self.vocabulary.special)
        size = self.vocabulary.size
        return ["" if index in special else self.readable(index).removeprefix("##") for index in range(size)]

    def with_mask(self, text: str) -> str:
        """The text with [MASK] and <mask> replaced by the mask token of this tokenizer."""
        if "mask" in self.roles:
            for name in ROLES["mask"]:
                text = text.replace(name, self.token(self.roles["mask"]))
        return text


class Kind(Protocol):
    """A kind of tokenizer, before training."""

    @property
    def vocab(self) -> int: ...

    @property
    def at_most(self) -> bool:
        """Whether `vocab` is only a limit, and the corpus decides the number of tokens."""

    def blank(self) -> tuple[Backend, Any]:
        """An untrained tokenizer and its trainer; the trainer is None if there is nothing to learn."""


@dataclass(frozen=True)
class WordPiece(Part):
    """Pieces of words, with '##' inside a word; each Chinese character is a word (BERT)."""

    vocab: int = 30_000  # number of tokens, special ones included
    lowercase: bool = True  # fold case and strip accents

    at_most = False

    def blank(self) -> tuple[Backend, Any]:
        backend = Backend(models.WordPiece(unk_token="[UNK]"))
        backend.normalizer = normalizers.BertNormalizer(lowercase=self.lowercase)
        backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        backend.decoder = decoders.WordPiece()
        return backend, trainers.WordPieceTrainer(
            vocab_size=self.vocab, special_tokens=BERT_NAMES, min_frequency=2, show_progress=False
        )


@dataclass(frozen=True)
class ByteBPE(Part):
    """Byte-level BPE: it can encode every text, without unknown tokens (GPT-2, RoBERTa, ModernBERT)."""

    vocab: int = 50_000  # number of tokens, special ones included
    names: Literal["roberta", "bert"] = "roberta"  # of the special tokens: <s>, </s> ... or [CLS], [SEP] ...

    at_most = False

    def blank(self) -> tuple[Backend, Any]:
        backend = Backend(models.BPE())
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = decoders.ByteLevel()
        backend.post_processor = processors.ByteLevel(trim_offsets=True)
        return backend, trainers.BpeTrainer(
            vocab_size=self.vocab,
            special_tokens=BERT_NAMES if self.names == "bert" else ROBERTA_NAMES,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            min_frequency=2,
            show_progress=False,
        )


@dataclass(frozen=True)
class BPE(Part):
    """BPE over characters, with '▁' for a space; punctuation is split off."""

    vocab: int = 40_000  # number of tokens, special ones included

    at_most = False

    def blank(self) -> tuple[Backend, Any]:
        backend = Backend(models.BPE(unk_token="[UNK]"))
        backend.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " ")])
        backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation()])
        backend.decoder = decoders.Metaspace()
        return backend, trainers.BpeTrainer(
            vocab_size=self.vocab,
            special_tokens=BERT_NAMES,
            min_frequency=2,
            limit_alphabet=10_000,
            show_progress=False,
        )


@dataclass(frozen=True)
class WordBPE(Part):
    """BPE inside lowercased words; the last piece of a word ends with '</w>'; punctuation is split off (GPT)."""

    vocab: int = 40_482  # number of tokens, special ones included

    at_most = False

    def blank(self) -> tuple[Backend, Any]:
        backend = Backend(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
        backend.normalizer = normalizers.BertNormalizer(lowercase=True)
        backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        backend.decoder = decoders.BPEDecoder(suffix="</w>")
        return backend, trainers.BpeTrainer(
            vocab_size=self.vocab,
            special_tokens=GPT_NAMES,
            end_of_word_suffix="</w>",
            min_frequency=2,
            limit_alphabet=10_000,
            show_progress=False,
        )


@dataclass(frozen=True)
class Unigram(Part):
    """SentencePiece's unigram model, with '▁' for a space (XLNet, ALBERT)."""

    vocab: int = 32_000  # number of tokens, special ones included

    at_most = False

    def blank(self) -> tuple[Backend, Any]:
        backend = Backend(models.Unigram())
        backend.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " ")])
        backend.pre_tokenizer = pre_tokenizers.Metaspace()
        backend.decoder = decoders.Metaspace()
        return backend, trainers.UnigramTrainer(
            vocab_size=self.vocab, special_tokens=BERT_NAMES, unk_token="[UNK]", show_progress=False
        )


@dataclass(frozen=True)
class Characters(Part):
    """One token per character (Chinese BERT, the character Transformer); the rarest are unknown."""

    vocab: int = 10_000  # most tokens, special ones included

    at_most = True

    def blank(self) -> tuple[Backend, Any]:
        backend = Backend(models.WordLevel(unk_token="[UNK]"))
        backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
        backend.decoder = decoders.Fuse()
        return backend, trainers.WordLevelTrainer(vocab_size=self.vocab, special_tokens=BERT_NAMES, show_progress=False)


@dataclass(frozen=True)
class Bytes(Part):
    """One token per UTF-8 byte: it can encode any text in any language (the character Transformer on enwik8)."""

    vocab: int = len(BERT_NAMES) + 256  # number of tokens, special ones included; no other value is allowed

    at_most = False

    def __post_init__(self) -> None:
        size = len(BERT_NAMES) + 256
        require(
            self.vocab == size,
            ("a tokenizer of bytes always has {size} tokens, got {vocab:,}: leave --vocab out"),
            size=size,
            vocab=self.vocab,
        )

    def blank(self) -> tuple[Backend, Any]:
        names = [*BERT_NAMES, *sorted(pre_tokenizers.ByteLevel.alphabet())]
        backend = Backend(models.BPE(vocab={name: i for i, name in enumerate(names)}, merges=[]))
        backend.add_special_tokens(BERT_NAMES)
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        backend.decoder = decoders.ByteLevel()
        return backend, None


@dataclass(frozen=True)
class WholeWords(Part):
    """One token per word; rare words are unknown (Transformer-XL on WikiText, AWD-LSTM, ELMo)."""

    vocab: int = 200_000  # most tokens, special ones included
    # words end at spaces only; or also at punctuation, and Chinese words are those of the segmenter
    split: Literal["spaces", "words"] = "spaces"
    spelled: bool = False  # the bytes of every word are kept in a column, for networks that read characters (ELMo)

    at_most = True

    def __post_init__(self) -> None:
        require(
            self.split == "words" or not self.spelled,
            "tokenizer.spelled=true keeps the bytes of words, got split=spaces: set tokenizer.split=words",
        )

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({f"column:{SPELLING}"} if self.spelled else ())

    def blank(self) -> tuple[Backend, Any]:
        backend = Backend(models.WordLevel(unk_token="[UNK]"))
        backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        if self.split == "words":  # the comment in the pattern tells how the text is made ready: see `of_words`
            pattern = f"{_WORDS}{_SPELLED if self.spelled else ''}\\s+"
            backend.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "removed")
        return backend, trainers.WordLevelTrainer(vocab_size=self.vocab, special_tokens=BERT_NAMES, show_progress=False)


KINDS: dict[str, type[Kind]] = {
    "wordpiece": WordPiece,
    "bpe": BPE,
    "word-bpe": WordBPE,
    "byte-bpe": ByteBPE,
    "unigram": Unigram,
    "characters": Characters,
    "whole-words": WholeWords,
    "bytes": Bytes,
}


def kind_named(name: str, vocab: int | None = None) -> Kind:
    """The kind with this name and vocabulary size; None: the default size of the kind."""
    if name not in KINDS:
        raise unknown("kind of tokenizer", name, KINDS)
    return KINDS[name]() if vocab is None else KINDS[name](vocab=vocab)  # type: ignore[call-arg]
