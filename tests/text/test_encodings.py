"""Texts that are not in UTF-8 are recognised, named, and read on request."""

from __future__ import annotations

import gzip
import lzma

import pytest

import unmask
from unmask.errors import UserError
from unmask.tasks._labelled import read_texts
from unmask.text import Corpus, Lexicon
from unmask.text.encodings import encoding_named, recognised

SIMPLIFIED = "北京是中华人民共和国的首都。今天上午，他们在这里说了很多话，我没有听到。\n价格是3.5元 (Nov 2019)。\n\n第二个文件在这里。\n"
TRADITIONAL = (
    "臺北是這個國家最大的城市。今天上午，他們在這裡說了很多話，我沒有聽到。\n價格是三塊半。\n\n第二個文件在這裡。\n"
)
ENGLISH = "The doctor examined the patient.\nShe left.\n\nAnother document.\n"
FRENCH = "Le m\xe9decin a \xe9t\xe9 appel\xe9 \xe0 l'h\xf4pital; l'\xe9l\xe8ve l'a aid\xe9.\n" * 3
MADE = [
    ("gb18030", SIMPLIFIED), ("gb18030", SIMPLIFIED * 3000), ("gbk", SIMPLIFIED), ("big5", TRADITIONAL),
    ("utf-16", SIMPLIFIED), ("utf-16", ENGLISH), ("utf-16-le", SIMPLIFIED), ("utf-16-be", SIMPLIFIED),
    ("utf-16-le", ENGLISH), ("utf-16-be", ENGLISH), ("utf-16-le", TRADITIONAL * 3000), ("utf-32", ENGLISH),
]  # fmt: skip


@pytest.fixture(params=MADE, ids=lambda made: f"{made[0]}, {made[1][:3]} {len(made[1])}")
def foreign(request, tmp_path):
    encoding, text = request.param
    (tmp_path / "a.txt").write_bytes(text.encode(encoding))
    return tmp_path / "a.txt", text


def test_a_foreign_file_is_named_and_the_advice_reads_it(foreign):
    file, text = foreign
    with pytest.raises(UserError, match="a.txt is not UTF-8: it looks like") as said:
        list(Corpus([file]))
    assert "--errors" not in str(said.value)
    advised = str(said.value).partition("--encoding ")[2]
    assert "".join("".join(Corpus([file], encoding=advised)).split()) == "".join(text.split())
    assert len(list(Corpus([file], encoding=advised))) == text.count("\n\n") + 1


@pytest.mark.parametrize("encoding", ["utf-16", "UTF16"])
@pytest.mark.parametrize("kept", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_read_with_and_without_a_mark_in_either_order(tmp_path, kept, encoding):
    for number, text in enumerate((SIMPLIFIED, ENGLISH, "\u4e0a\u0a0a \u010a\n" + SIMPLIFIED)):  # with 0x0a inside
        (tmp_path / "a.txt").write_bytes(text.encode(kept))
        assert "\n\n".join(Corpus([tmp_path / "a.txt"], encoding=encoding)) == text.replace("\n\n", "\n\n\n"), number


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_compressed_files_are_recognised_and_read_too(tmp_path, suffix, pack):
    file = tmp_path / f"a.txt{suffix}"
    file.write_bytes(pack((SIMPLIFIED * 3000).encode("gb18030")))
    with pytest.raises(UserError, match="--encoding gb18030"):
        list(Corpus([file]))
    corpus = Corpus([file], encoding="gb2312")
    assert len(list(corpus)) == 3001
    assert corpus.bytes_done == corpus.bytes_total


@pytest.mark.parametrize("encoding", ["gb18030", "utf-16"])
@pytest.mark.parametrize("kept", [20, 0.7])
def test_a_damaged_file_is_named_in_any_encoding(tmp_path, encoding, kept):
    noise = "".join(map(chr, range(0x4E00, 0x9F00))) + SIMPLIFIED * 50
    raw = gzip.compress((SIMPLIFIED * 20 + noise).encode(encoding))
    (tmp_path / "a.txt.gz").write_bytes(raw[: kept if kept > 1 else int(kept * len(raw))])
    with pytest.raises(UserError, match="a.txt.gz is damaged"):
        list(Corpus([tmp_path / "a.txt.gz"], encoding=encoding))


def test_json_lines_are_read_in_another_encoding(tmp_path):
    (tmp_path / "a.jsonl").write_bytes('{"text": "北京的上午"}\n{"text": "我在这里"}\n'.encode("gb18030"))
    assert list(Corpus([tmp_path / "a.jsonl"], encoding="gb18030")) == ["北京的上午", "我在这里"]


def test_a_file_in_another_encoding_than_was_said_is_refused_and_the_advice_reads_it(tmp_path):
    file = tmp_path / "a.txt"
    for kept, text, said, advice in (
        ("utf-8", SIMPLIFIED, "gb18030", "leave --encoding out"), ("gb18030", SIMPLIFIED, "big5", "--encoding gb18030"),
        ("big5", TRADITIONAL, "gb18030", "--encoding big5"), ("utf-16", ENGLISH, "latin-1", "--encoding utf-16"),
    ):  # fmt: skip
        file.write_bytes(text.encode(kept))
        with pytest.raises(UserError, match=advice):
            list(Corpus([file], encoding=said))


def test_replacing_is_advised_only_where_little_would_be_lost(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes(b"Fine.\n" * 5000 + b"Caf\xe9.\n" + b"Fine.\n" * 20)
    with pytest.raises(UserError, match="--errors replace"):
        list(Corpus([file]))
    file.write_bytes(FRENCH.encode("latin-1"))
    with pytest.raises(UserError, match="not UTF-8: byte 0xe9 at offset 4; pass its --encoding$"):
        list(Corpus([file]))
    assert "".join(Corpus([file], encoding="latin-1")) == FRENCH


def test_damaged_lines_are_replaced_and_counted_on_request(tmp_path):
    file = tmp_path / "a.txt"
    place = len(SIMPLIFIED.encode("gb18030"))
    file.write_bytes(SIMPLIFIED.encode("gb18030") + b"\xff\xff bad\n" + SIMPLIFIED.encode("gb18030"))
    with pytest.raises(UserError, match=rf"not gb18030: byte 0xff at offset {place:,};.*--errors replace"):
        list(Corpus([file], encoding="gb18030"))
    corpus = Corpus([file], encoding="gb18030", errors="replace")
    assert "".join(corpus).startswith("北京是")
    assert corpus.notes["lines with bytes that are not gb18030, replaced"] == 1


def test_other_scripts_are_not_taken_for_chinese():
    assert recognised(FRENCH.encode("latin-1")) is None
    assert recognised("Москва - столица России. Сегодня утром было холодно.".encode("cp1251")) is None
    assert recognised("今日は天気がいいですから、散歩しましょう。".encode("shift_jis")) is None
    assert recognised(bytes(range(256)) * 4) is None
    assert recognised(FRENCH.encode()) == "utf-8"


def test_an_unknown_encoding_is_refused():
    for name in ("gb99", "base64", ""):
        with pytest.raises(UserError, match="unknown encoding"):
            encoding_named(name)
    assert encoding_named("UTF8") == encoding_named("utf-8-sig") == "utf-8"


def test_files_that_must_be_utf_8_name_the_encoding_and_say_how_to_convert_it(tmp_path):
    (tmp_path / "a.tsv").write_bytes(("北京大学在这里\tphrase\n" * 9).encode("gb18030"))
    with pytest.raises(UserError, match="GB18030; convert it: iconv -f gb18030 -t utf-8"):
        Lexicon.load([tmp_path / "a.tsv"])
    (tmp_path / "a.txt").write_bytes(TRADITIONAL.encode("big5"))
    with pytest.raises(UserError, match="BIG5; convert it: iconv -f big5 -t utf-8"):
        read_texts(tmp_path / "a.txt")


def test_a_file_in_another_encoding_is_found_before_the_files_before_it_are_read(tmp_path):
    (tmp_path / "a.txt").write_text(ENGLISH)
    (tmp_path / "b.txt").write_bytes(SIMPLIFIED.encode("gb18030"))
    with pytest.raises(UserError, match="b.txt is not UTF-8"):
        Corpus([tmp_path])


def test_python_reads_lines_and_encodings_as_the_command_line_does(tmp_path):
    file, tok = tmp_path / "a.txt", tmp_path / "tok.json"
    file.write_bytes((SIMPLIFIED * 5).encode("gb18030"))
    read = {"lines": True, "encoding": "gb18030"}
    assert unmask.train_tokenizer(file, tok, kind="characters", fold=True, **read).folds
    manifest = unmask.prepare(file, tmp_path / "data", tokenizer=tok, holdout=0.1, workers=1, **read)
    assert manifest["documents"] == 15
    assert (manifest["lines"], manifest["encoding"], manifest["fold"]) == (True, "gb18030", True)
    mining = unmask.text.Mining(least_count=2, least_pmi=-1, least_entropy=0)
    assert unmask.make_lexicon(file, tmp_path / "known.tsv", mining=mining, **read)["phrases"] > 0
