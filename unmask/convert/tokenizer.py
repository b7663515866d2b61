"""Read the tokenizers of Hugging Face folders, find their layout, and write them for export."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend

from unmask import text
from unmask.errors import UserError, require
from unmask.text import Tokenizer
from unmask.text import layout as layouts
from unmask.text.tokenizer import BERT_NAMES, GPT_NAMES, ROBERTA_NAMES, ROLES

if TYPE_CHECKING:
    from unmask.convert.family import Family

VOCABULARY = "vocab.txt"
TYPES: dict[str, Any] = {  # the types of the fields that are read from tokenizer_config.json
    "do_lower_case": bool, "strip_accents": bool | None, "tokenize_chinese_chars": bool, "add_prefix_space": bool,
}  # fmt: skip
_SPELLED = {role: word for word, role in layouts.SPECIALS.items()}


def load(folder: Path, settings: Mapping[str, Any], pickled: Mapping[str, str]) -> Tokenizer:
    """The tokenizer of a folder: read from tokenizer.json, or built from its vocabulary and tokenizer_config.json.

    `pickled`: files that are not read, each with the Python code that makes a tokenizer.json from it."""
    if (folder / "tokenizer.json").is_file():
        return Tokenizer.load(folder)
    if (folder / VOCABULARY).is_file():
        return Tokenizer(_wordpiece(folder, settings))
    if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
        return Tokenizer(_bpe(folder, settings))
    pickle = next((name for name in pickled if (folder / name).is_file()), None)
    require(
        pickle is None,
        (
            "{folder} holds its words as a pickle ({pickle}), which can run any code when it is read; where you "
            "trust it, make a tokenizer.json in that folder with Python: {pickled}"
        ),
        folder=folder,
        pickle=pickle,
        pickled=pickled.get(pickle or ""),
    )
    raise UserError(
        ("{folder} has no tokenizer: it needs tokenizer.json, or vocab.txt, or vocab.json and merges.txt"),
        folder=folder,
    )


def _wordpiece(folder: Path, settings: Mapping[str, Any]) -> Backend:
    backend = Backend(models.WordPiece.from_file(str(folder / VOCABULARY), unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(
        lowercase=settings.get("do_lower_case", True),
        strip_accents=settings.get("strip_accents"),
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    backend.add_special_tokens([name for name in BERT_NAMES if backend.token_to_id(name) is not None])
    return backend


def _bpe(folder: Path, settings: Mapping[str, Any]) -> Backend:
    files = str(folder / "vocab.json"), str(folder / "merges.txt")
    backend = Backend(models.BPE.from_file(*files))
    words = any(token.endswith("</w>") for token in backend.get_vocab())
    return _word_bpe(files) if words else _byte_bpe(backend, settings.get("add_prefix_space", False))


def _word_bpe(files: tuple[str, str]) -> Backend:
    backend, _ = text.WordBPE().blank()
    backend.model = models.BPE.from_file(*files, unk_token="<unk>", end_of_word_suffix="</w>")
    backend.add_special_tokens([name for name in GPT_NAMES if backend.token_to_id(name) is not None])
    return backend


def _byte_bpe(backend: Backend, prefix: bool) -> Backend:
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.ByteLevel(trim_offsets=True)
    # the mask includes the space before it, like a word of this vocabulary
    backend.add_special_tokens([
        AddedToken(name, lstrip=name in ROLES["mask"], special=True, normalized=False)
        for name in [*ROBERTA_NAMES, "<|endoftext|>"]
        if backend.token_to_id(name) is not None
    ])  # fmt: skip
    return backend


def kind_of(tokenizer: Tokenizer) -> Any:
    """The tokenizer part of a recipe that describes this tokenizer."""
    backend, vocab = tokenizer.backend, tokenizer.vocabulary.size
    model = type(backend.model).__name__
    if model == "WordPiece":
        return text.WordPiece(vocab=vocab, lowercase=bool(getattr(backend.normalizer, "lowercase", False)))
    if model == "BPE":
        marked = backend.model.end_of_word_suffix == "</w>"
        other = text.WordBPE(vocab=vocab) if marked else text.BPE(vocab=vocab)
        names: Any = "bert" if backend.token_to_id(BERT_NAMES[-1]) is not None else "roberta"
        return text.ByteBPE(vocab=vocab, names=names) if "ByteLevel" in repr(backend.pre_tokenizer) else other
    if model == "Unigram":
        return text.Unigram(vocab=vocab)
    return (
        text.WholeWords(vocab=vocab)
        if "WhitespaceSplit" in repr(backend.pre_tokenizer)
        else text.Characters(vocab=vocab)
    )


def layout_of(tokenizer: Tokenizer, otherwise: str) -> str:
    """The layout of the special tokens that a tokenizer adds to one text and to two; `otherwise` if it adds none."""
    one, two = _framed(tokenizer, "a"), _framed(tokenizer, "a", "a")
    if one == ["a"] and two == ["a", "b"]:
        return otherwise
    layout = " ".join(two)
    same = [_SPELLED.get(item.name, item.name) for item in layouts.items(layout, 1)] == one
    require(
        same,
        (
            "the tokenizer lays out one text as {one!r} and two as {layout!r}, and no one layout says both: change "
            "the post_processor in its tokenizer.json"
        ),
        one=" ".join(one),
        layout=layout,
    )
    return layout


def _framed(tokenizer: Tokenizer, a: str, b: str | None = None) -> list[str]:
    """The layout that this tokenizer makes for these texts, as a list of words."""
    try:
        encoding = tokenizer.backend.encode(a, b)
    except BaseException as error:  # a panic in Rust is not an Exception
        if type(error).__name__ != "PanicException":
            raise
        raise UserError(
            "tokenizer.json is damaged, it cannot lay out a text ({error}): download it again", error=error
        ) from None
    words: list[str] = []
    for index, source in zip(encoding.ids, encoding.sequence_ids, strict=True):
        word = _special(tokenizer, index) if source is None else layouts.TEXTS[source]
        if source is None or word not in words:
            words.append(word)
    return words


def _special(tokenizer: Tokenizer, index: int) -> str:
    # One token may have several of these roles. In GPT-2 one token has them all, and it is used to end texts.
    # In GPT the extract token ends texts.
    for role in ("start", "delimiter", "extract", "sep", "cls", "mask"):
        if tokenizer.roles.get(role) == index:
            return _SPELLED[role]
    raise UserError(
        (
            "the tokenizer adds {token!r} to texts, a layout can name {specials}: change the post_processor in its "
            "tokenizer.json"
        ),
        token=tokenizer.token(index),
        specials=", ".join(layouts.SPECIALS),
    )


def check_roles(tokenizer: Tokenizer, layout: str) -> None:
    """Refuse a layout with special tokens that the tokenizer does not have."""
    for word in layout.split():
        if word in layouts.SPECIALS:
            tokenizer.role(layouts.SPECIALS[word])


def check_summary(family: Family, layout: str) -> None:
    """Refuse a layout whose summary token is not the token that Hugging Face's heads read (the first or the last)."""
    for texts in (1, 2) if "b" in layout.split() else (1,):
        last = len(layouts.items(layout, texts)) - 1
        wanted = last if family.summary == "last" else 0
        require(
            layouts.summary(layout, texts) == wanted,
            (
                "Hugging Face's {model_type} reads a label from the {summary} token, got the layout {layout!r}: "
                "train with one such as {wanted!r}"
            ),
            model_type=family.model_type,
            summary=family.summary,
            layout=layout,
            wanted="a [SEP] b [SEP]" if wanted else "[CLS] a [SEP] b [SEP]",
        )


def completed(tokenizer: Tokenizer, family: Family) -> tuple[Tokenizer, int]:
    """A copy with a token for every role that the family's recipe needs, and the number of tokens added at its end."""
    lacking = [name for role, name in family.added_tokens.items() if role not in tokenizer.roles]
    copy = Backend.from_str(tokenizer.backend.to_str())
    return (Tokenizer(copy), copy.add_special_tokens(lacking)) if lacking else (tokenizer, 0)


def with_own_pad(tokenizer: Tokenizer) -> Tokenizer:
    """A copy with its own padding token, added at the end of the vocabulary."""
    copy = Backend.from_str(tokenizer.backend.to_str())
    copy.add_special_tokens([ROLES["pad"][0]])
    return Tokenizer(copy)


def framed(tokenizer: Tokenizer, layout: str, segments: bool) -> Backend:
    """A copy that adds the special tokens of the layout to each text, as Hugging Face expects from tokenizer.json."""
    copy = Backend.from_str(tokenizer.backend.to_str())
    roles = [layouts.SPECIALS[word] for word in layout.split() if word in layouts.SPECIALS]
    template = processors.TemplateProcessing(
        single=_template(tokenizer, layout, 1, segments),
        pair=_template(tokenizer, layout, 2, segments) if "b" in layout.split() else ["$A:0", "$B:0"],
        special_tokens=[(tokenizer.token(tokenizer.role(role)), tokenizer.role(role)) for role in roles],
    )
    byte_level = "ByteLevel" in repr(copy.pre_tokenizer)  # then offsets must not include the space before a word
    copy.post_processor = processors.Sequence([processors.ByteLevel(), template]) if byte_level else template
    return copy


def _template(tokenizer: Tokenizer, layout: str, texts: int, segments: bool) -> list[str]:
    return [
        f"{f'${item.name.upper()}' if item.is_text else tokenizer.token(tokenizer.role(item.name))}:"
        f"{item.segment if segments else 0}"
        for item in layouts.items(layout, texts)
    ]


def ends(tokenizer: Tokenizer, layout: str) -> tuple[int | None, int | None]:
    """The tokens that begin and end a text. If the layout has no first token, the end token is also the first one."""
    first, end = layouts.items(layout, 1)[0], tokenizer.roles.get("sep")
    return (end if first.is_text else tokenizer.roles.get(first.name)), end


def vocabulary_file(tokenizer: Tokenizer) -> dict[str, str]:
    """The contents of vocab.txt, for programs that read a WordPiece vocabulary from it; empty for other tokenizers."""
    if not _like_bert(tokenizer):
        return {}
    known = tokenizer.backend.get_vocab()
    return {VOCABULARY: "".join(f"{token}\n" for token in sorted(known, key=known.__getitem__))}


def notes(tokenizer: Tokenizer, family: Family) -> tuple[str, ...]:
    """Notes that a user of the folder must know."""
    usual = family.tokenizer
    if usual is None or _like_bert(tokenizer):
        return ()
    what = type(kind_of(tokenizer)).__name__
    return (f"open the tokenizer with AutoTokenizer: it is {what}, and {usual} would split texts in another way",)


def _like_bert(tokenizer: Tokenizer) -> bool:
    """Whether BertTokenizer splits texts in the same way."""
    backend = tokenizer.backend
    parts = (backend.model, backend.normalizer, backend.pre_tokenizer)
    return [type(part).__name__ for part in parts] == ["WordPiece", "BertNormalizer", "BertPreTokenizer"]


def _cased(tokenizer: Tokenizer) -> dict[str, Any]:
    """The settings of upper case and accents for BertTokenizer, which does not read tokenizer.json."""
    if not _like_bert(tokenizer):
        return {}
    normalizer = tokenizer.backend.normalizer
    return {
        "do_lower_case": normalizer.lowercase,
        "strip_accents": normalizer.strip_accents,
        "tokenize_chinese_chars": normalizer.handle_chinese_chars,
    }


def settings(tokenizer: Tokenizer, family: Family, layout: str, length: int, segments: bool) -> dict[str, Any]:
    """The contents of tokenizer_config.json."""
    begin, end = ends(tokenizer, layout)
    roles = tokenizer.roles | {name: index for name, index in (("bos", begin), ("eos", end)) if index is not None}
    return (
        {
            "tokenizer_class": "PreTrainedTokenizerFast",  # this class reads tokenizer.json without changes
            "model_max_length": length,
            "padding_side": family.padding_side,
            "model_input_names": ["input_ids", *(["token_type_ids"] if segments else []), "attention_mask"],
            "clean_up_tokenization_spaces": False,
        }
        | _cased(tokenizer)
        | {f"{role}_token": tokenizer.token(index) for role, index in sorted(roles.items())}
    )
