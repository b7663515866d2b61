"""Texts, tokenizers, boundaries and layouts: every step from text to token ids."""

from unmask.text.boundaries import Words
from unmask.text.documents import Corpus
from unmask.text.encode import encode_documents
from unmask.text.lexicon import Lexicon
from unmask.text.links import Linker
from unmask.text.make_lexicon import make_lexicon
from unmask.text.phrases import Mining
from unmask.text.tokenizer import (
    BPE,
    KINDS,
    ByteBPE,
    Bytes,
    Characters,
    Kind,
    Tokenizer,
    Unigram,
    WholeWords,
    WordBPE,
    WordPiece,
    kind_named,
)
from unmask.text.training import train, train_to_file
from unmask.text.user_words import OwnWords

__all__ = [
    "BPE", "KINDS", "ByteBPE", "Bytes", "Characters", "Corpus", "Kind", "Lexicon", "Linker", "Mining", "OwnWords", "Tokenizer", "Unigram", "WholeWords", "WordBPE",
    "WordPiece",
    "Words", "encode_documents", "kind_named", "make_lexicon", "train", "train_to_file",
]  # fmt: skip
