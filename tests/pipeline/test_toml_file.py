"""The line of a field in a TOML file, however the field is written."""

from __future__ import annotations

import pytest

from unmask.errors import UserError
from unmask.pipeline.toml_file import TomlFile

TEXT = '''\
# a comment with [general]
out = "runs"   # and one more

[general]
note = """
[domain]
share = 7
"""
text = [
  "a/",   # out = 1
  "b/",
]
share = 0.6

[ "domain" ]
"share" = 0.4
text = "c]#\\"d"
'''


def read(tmp_path, text: str) -> TomlFile:
    path = tmp_path / "p.toml"
    path.write_text(text, encoding="utf-8")
    return TomlFile.read(path)


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (("out",), 2),
        (("general",), 4),
        (("general", "note"), 5),
        (("general", "text"), 9),
        (("general", "share"), 13),
        (("domain",), 15),
        (("domain", "share"), 16),
        (("domain", "text"), 17),
        (("nowhere",), 1),
        (("general", "nowhere"), 1),
    ],
)
def test_the_line_of_a_field_is_found_among_comments_lists_and_long_texts(tmp_path, keys, line):
    assert read(tmp_path, TEXT).line(*keys) == line


def test_dotted_keys_and_inline_tables_have_lines_too(tmp_path):
    text = 'out = "x"\ngeneral.text = "a"\ngeneral."share" = 1\ntask = { train = "t", dev = "d" }\n'
    file = read(tmp_path, text)
    assert file.data["general"] == {"text": "a", "share": 1}
    assert [file.line("general"), file.line("general", "share"), file.line("task", "dev")] == [2, 3, 4]


def test_lines_that_end_as_on_windows_and_a_byte_order_mark_are_read(tmp_path):
    path = tmp_path / "p.toml"
    path.write_bytes(b'\xef\xbb\xbfout = "x"\r\n\r\n[a]\r\nshare = 1\r\n')
    assert TomlFile.read(path).line("a", "share") == 4


def test_two_stages_of_one_name_name_both_lines(tmp_path):
    with pytest.raises(UserError, match=r"line 5: two stages are called general, the other in line 1: give one"):
        read(tmp_path, "[general]\nshare = 1\n[b]\n\n[general]\n")


def test_a_syntax_error_names_its_line(tmp_path):
    with pytest.raises(UserError, match=r"p\.toml, line 2: Invalid value"):
        read(tmp_path, "[general]\ntext = wiki/\n")


def test_an_error_begins_with_the_file_and_the_line(tmp_path):
    file = read(tmp_path, TEXT)
    with pytest.raises(UserError, match=r"p\.toml, line 13: share is 0\.6"):
        file.require(False, ("general", "share"), "share is {share}", share=0.6)
