"""Patterns: which are taken, which are refused, and where in them."""

import re

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.schemas import characters
from frontend.schemas.ambiguity import refuse_exponential
from frontend.schemas.pattern import MAX_CHARACTERS, MAX_REPETITION, PatternRefused
from frontend.schemas.regexes import parse_pattern


def judged(pattern: str) -> PatternRefused | None:
    try:
        refuse_exponential(parse_pattern(pattern))
    except PatternRefused as refused:
        return refused
    return None


LINEAR = [
    "",
    "^$",
    "^[a-z]{1,32}$",
    r"^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$",
    r"^[^@\s]+@[^@\s]+\.[^@\s]+$",
    r"^[A-Z]{2}[0-9]{2}[A-Z0-9]{1,30}$",
    "^[a-z]+(-[a-z]+)*$",
    r"(\p{L}+\.)*",
    "^.*foo.*bar.*$",
    "(a{10})*",
    "(a|b)*?",
    "(a|b){0,1000}",
    "(?:[0-9a-f]{2}:){5}[0-9a-f]{2}",
    r"^(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$",
    r'"(\\.|[^"\\])*"',
    r"(.|\n)*",
    r"(?<year>\d{4})-\d{2}",
    r"[-a][a-][\-\]\\]\/\-\u00e9\u{1F600}\x41\cA\t\b\B\P{Lu}",
]


@pytest.mark.parametrize("pattern", LINEAR)
def test_a_pattern_with_one_way_to_match_each_text_is_taken(pattern: str) -> None:
    assert judged(pattern) is None
    jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions())


@pytest.mark.parametrize(
    ("pattern", "position"),
    [
        ("^(a+)+$", 3), ("(a|a)*", 2), ("(.*a)*x", 2), (r"(\w+\s?)*$", 2), ("([a-z]+-?)+", 2), ("(a{1,64})+", 2),
        ("(a(b?|c?))*", 2), ("(a|ab|b)*", 2), ("(x+x+)+y", 2), ("(a|[^b])*", 2), ("(a{2}|a{3})*", 2), (r"(\s|.)*", 2),
        ("(a{5,10})*b", 2), ("([a-z]{1,9},?){1,9}", 12), ("^ab(?:c|(?:de+)+)*$", 12), (r"^(\p{Lu}|\p{L})+$", 3),
    ],
)  # fmt: skip
def test_a_pattern_with_exponentially_many_ways_is_refused_at_its_place(pattern: str, position: int) -> None:
    refused = judged(pattern)
    assert refused is not None
    assert (str(refused), refused.position) == ("can be matched in exponentially many ways", position)
    assert "in one way only" in refused.mend


@pytest.mark.parametrize(
    ("pattern", "words", "position"),
    [
        ("a(?=b)", "looks ahead (`(?=`), which needs backtracking", 2),
        ("a(?!b)", "looks ahead (`(?!`), which needs backtracking", 2),
        ("(?<=a)b", "looks behind (`(?<=`), which needs backtracking", 1),
        ("(?<!a)b", "looks behind (`(?<!`), which needs backtracking", 1),
        (r"(a)\1", r"refers back (`\1`), which needs backtracking", 4),
        (r"(?<n>a)\k<n>", r"refers back (`\k`), which needs backtracking", 8),
        ("(a?b?)*", "repeats what may be empty", 2),
        ("(a*){2}", "repeats what may be empty", 2),
        ("()*", "repeats what may be empty", 1),
        ("(?P<n>a)", "that begins no group of ECMA-262", 1),
        ("(?i)a", "that begins no group of ECMA-262", 1),
        ("(?>a)", "that begins no group of ECMA-262", 1),
        ("a++", "repeats a repetition", 2),
        ("a{2}{3}", "repeats a repetition", 2),
        ("a{,3}", "that begins no repetition", 2),
        ("a{3,2}", "ends before it begins", 2),
        ("*a", "repeats nothing", 1),
        ("^*", "repeats a place", 1),
        ("(a", "`(` that is not closed", 1),
        ("a)", "`)` that closes nothing", 2),
        ("[a", "`[` that is not closed", 1),
        ("[]", "empty `[ ]`", 1),
        ("[a&&b]", "which engines read differently", 3),
        ("[[:alpha:]]", "which engines read differently", 2),
        ("[z-a]", "without two ends in order", 1),
        (r"[\d-z]", "without two ends in order", 1),
        (r"a\A", "no escape of ECMA-262", 2),
        (r"\_", "no escape of ECMA-262", 1),
        (r"\u{110000}", "names no character", 1),
        ("a\\", "ends in a backslash", 2),
        ("x" * (MAX_CHARACTERS + 1), f"more than {MAX_CHARACTERS} characters", MAX_CHARACTERS + 1),
        ("a{1001}", f"counts beyond {MAX_REPETITION}", 2),
        ("a{0,1001}", f"counts beyond {MAX_REPETITION}", 2),
        ("(a{1000}){1000}", "multiply to more than", 1),
        ("(" * 50 + ")" * 50, "nested deeper than", 42),
        ("(.{0,80}x.{0,80}){1,1000}", "multiply to more than", 1),
    ],
)  # fmt: skip
def test_what_engines_backtrack_for_or_read_differently_is_refused(pattern: str, words: str, position: int) -> None:
    refused = judged(pattern)
    assert refused is not None
    assert words in str(refused)
    assert (refused.position, bool(refused.mend)) == (position, True)


def test_a_pattern_too_tangled_to_be_judged_is_refused() -> None:
    refused = judged("(" + "|".join(chr(0x400 + number) for number in range(450)) + ")*")
    assert refused is not None
    assert str(refused) == "is too tangled to be judged"


PIECES = st.sampled_from(
    ["a", "b", ".", "[ab]", "[^a]", r"\d", r"\w", "(", "(?:", ")", "|", "*", "+", "?", "{2}", "{1,3}"]
)


@given(st.lists(PIECES, max_size=12).map("".join) | st.text(r"ab()[]{}|*+?\^$-,01&pP<>:=!", max_size=12))
def test_whatever_is_taken_compiles_here_and_elsewhere(pattern: str) -> None:
    if judged(pattern) is None:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions())
        if r"\p" not in pattern.lower():
            re.compile(pattern)


@given(st.text(max_size=40))
def test_any_text_is_a_pattern_or_refused(pattern: str) -> None:
    refused = judged(pattern)
    assert refused is None or 1 <= refused.position <= len(pattern) + 1


CODES = st.integers(0, characters.LAST)
RANGES = st.lists(st.tuples(CODES, CODES).map(lambda ends: ((min(ends), max(ends)),)), max_size=4)


@given(RANGES, RANGES, CODES)
def test_sets_of_characters_behave_like_sets(
    one: list[characters.Ranges], two: list[characters.Ranges], c: int
) -> None:
    def holds(ranges: characters.Ranges) -> bool:
        return any(low <= c <= high for low, high in ranges)

    left, right = characters.union(*one), characters.union(*two)
    assert holds(characters.without(left)) != holds(left)
    assert characters.without(characters.without(left)) == left
    assert characters.meet(left, characters.without(left)) is False
    if holds(left) and holds(right):
        assert characters.meet(left, right)
