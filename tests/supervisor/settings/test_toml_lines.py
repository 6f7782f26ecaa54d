"""Line numbers of keys: every path that tomllib finds has one, and it is the right one."""

import tomllib
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from supervisor.settings.toml_lines import Path, key_lines

SAMPLE = '''# a comment with [brackets] = and "quotes"
title = "x"           # 2
"quoted key" = 'y'    # 3
a.b."c.d" = 1         # 4

[table]               # 6
text = """
[not a table]
key = "no key" \\"""
"""                   # still line 7
after = 1             # 11
list = [              # 12
  1, # ] = ,          # 13
  [2, "]"],           # 14
]
inline = { x = 1, y = { z = [ { w = 2 } ] } }  # 16
literal = \'\'\'
it\'s\'\'\'\'              # 17
[[row]]               # 19
n = 1                 # 20
[row.sub]             # 21
m = 2                 # 22
[[row]]               # 23
n = 3                 # 24
[[row.deep]]          # 25
k = 4                 # 26
[ spaced . "out" ]    # 27
last = 2026-01-01T00:00:00Z'''


def paths_of(value: Any, path: Path = ()) -> list[Path]:
    paths = [path] if path else []
    if isinstance(value, dict):
        for key, child in value.items():
            paths += paths_of(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            paths += paths_of(child, (*path, index))
    return paths


def test_each_key_of_a_document_has_its_line() -> None:
    lines = key_lines(SAMPLE)
    assert sorted(map(str, paths_of(tomllib.loads(SAMPLE)))) == sorted(map(str, lines))
    expected: dict[Path, int] = {
        ("title",): 2, ("quoted key",): 3, ("a", "b", "c.d"): 4, ("a",): 4, ("table",): 6, ("table", "text"): 7,
        ("table", "after"): 11, ("table", "list"): 12, ("table", "list", 0): 13, ("table", "list", 1, 1): 14,
        ("table", "inline", "y", "z", 0, "w"): 16, ("table", "literal"): 17, ("row", 0): 19, ("row", 0, "n"): 20,
        ("row", 0, "sub", "m"): 22, ("row", 1): 23, ("row", 1, "n"): 24, ("row", 1, "deep", 0, "k"): 26,
        ("spaced", "out"): 27, ("spaced", "out", "last"): 28,
    }  # fmt: skip
    assert {path: lines[path] for path in expected} == expected


def test_carriage_returns_count_as_part_of_their_newline() -> None:
    assert key_lines("a = 1\r\n\r\nb = 2\r\n")[("b",)] == 3


def test_a_table_header_is_a_better_place_than_what_implied_the_table() -> None:
    assert key_lines("[a.b]\nx = 1\n[a]\ny = 2\n")[("a",)] == 3


VALUES = st.recursive(
    st.one_of(
        st.sampled_from(["1", "-2.5e3", "true", "inf", "0x1f", "1979-05-27", "07:32:00", '""', "''", '"""a\n"b""c"""']),
        st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_characters='"\\\x7f')).map('"{}"'.format),
        st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters="'")).map("'{}'".format),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[ " + ", ".join(items) + "]"),
        st.lists(inner, max_size=3).map(lambda items: "[\n# c ]\n" + ",\n".join(items) + "\n]"),
        st.lists(inner, max_size=3).map(
            lambda items: "{" + ", ".join(f"k{number} = {item}" for number, item in enumerate(items)) + "}"
        ),
    ),
    max_leaves=6,
)
KEYS = st.sampled_from(["a", "b", "a.b", '"a b"', "'c.d'", '"e\\u0041"', "-_9", " x . y "])
LINES = st.one_of(
    st.tuples(KEYS, VALUES).map(" = ".join),
    KEYS.map("[{}]".format),
    KEYS.map("[[{}]] # end".format),
    st.sampled_from(["", "# [x]", "\t"]),
)


@given(st.lists(LINES, max_size=8).map("\n".join))
@example('x = """"a"""""\ny = 1')
@example("x = ''''''\n[y]")
def test_every_path_of_any_valid_document_has_a_line_within_it(text: str) -> None:
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    lines = key_lines(text)
    assert set(paths_of(value)) == set(lines)
    assert all(1 <= line <= text.count("\n") + 1 for line in lines.values())
