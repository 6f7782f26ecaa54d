"""Patterns of certificates' names: examples of the form, and properties over all of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.texts.san_patterns import ANY, DNS, EMAIL, URI, SanPattern, most_special, parse_pattern, parse_san

SEGMENTS = st.sampled_from(["a", "b", "ab", "a-b"])
KINDS = st.sampled_from([URI, DNS])


def written(kind: str, parts: list[str]) -> str:
    return "spiffe://corp/" + "/".join(parts) if kind == URI else ".".join([*parts, "example"])


NAMES = st.builds(written, KINDS, st.lists(SEGMENTS, min_size=1, max_size=3))
PATTERNS = st.builds(written, KINDS, st.lists(st.one_of(SEGMENTS, st.just(ANY)), min_size=1, max_size=3))


def pattern(text: str) -> SanPattern:
    found = parse_pattern(text)
    assert found is not None, text
    return found


def matches(text: str, kind: str, name: str) -> bool:
    found = parse_san(kind, name)
    return found is not None and pattern(text).covers(found)


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("spiffe://corp/agent/*", URI, "spiffe://corp/agent/billing"),
        ("spiffe://corp/agent/*", URI, "spiffe://corp/agent/A.b_c~d-e"),
        ("spiffe://corp/ns/*/sa/*", URI, "spiffe://corp/ns/default/sa/agent"),
        ("spiffe://corp", URI, "spiffe://corp"),
        ("*.agents.example", DNS, "a1.agents.example"), ("*.agents.example", DNS, "xn--bcher-kva.agents.example"),
        ("agent", DNS, "agent"), ("bob.b+x@corp.example", EMAIL, "bob.b+x@corp.example"),
    ],
)  # fmt: skip
def test_a_pattern_matches_names_of_its_form(text: str, kind: str, name: str) -> None:
    assert matches(text, kind, name)


@pytest.mark.parametrize(
    "name",
    [
        "spiffe://corp/agent", "spiffe://corp/agent/", "spiffe://corp/agent/a/", "spiffe://corp/agent/a/b",
        "spiffe://corp/agent//a", "spiffe://corp//agent/a", "spiffe://corp/agent/..", "spiffe://corp/agent/.",
        "spiffe://corp/agent/*", "spiffe://corp/agent/a%2Fb", "spiffe://corp/agent/a%00", "spiffe://corp/agent/a\0",
        "spiffe://corp/agent/a?b", "spiffe://corp/agent/a#b", "spiffe://corp/agent/a b", "spiffe://corp/agent/a\n",
        "spiffe://corp/agent/é", "spiffe://corp/agent/\uff41", "spiffe://Corp/agent/a", "SPIFFE://corp/agent/a",
        "spiffe://corp/Agent/a", "spiffe://corp:443/agent/a", "spiffe://x@corp/agent/a", "spiffe://corp.evil/agent/a",
        "spiffe://evil/corp/agent/a", "spiffe:/corp/agent/a", "xspiffe://corp/agent/a",
        "spiffe://corp/agent/" + "a" * 600, "", "corp/agent/a", "spiffe:///agent/a",
    ],
)  # fmt: skip
def test_a_wildcard_is_one_whole_segment_of_a_path(name: str) -> None:
    assert not matches("spiffe://corp/agent/*", URI, name)


@pytest.mark.parametrize(
    "name",
    [
        "agents.example", ".agents.example", "a.b.agents.example", "*.agents.example", "a*.agents.example",
        "A.agents.example", "a.Agents.example", "a.agents.example.", "a.agents.example\0", "a\0.agents.example",
        "a_b.agents.example", "-a.agents.example", "a-.agents.example", "bücher.agents.example",
        "a.agents.exampl\u0435", "a" * 64 + ".agents.example", "a.agents.example\n", " a.agents.example", "",
    ],
)  # fmt: skip
def test_a_wildcard_is_one_whole_label_of_a_name(name: str) -> None:
    assert not matches("*.agents.example", DNS, name)


@pytest.mark.parametrize(
    "name",
    ["Bob@corp.example", "bob@CORP.example", "bob@corp.example.", "bob@corp.example\0", "x@bob@corp.example",
     "bob@corp", "<bob@corp.example>", '"bob"@corp.example', "bob@[10.0.0.1]", "*@corp.example", ""],
)  # fmt: skip
def test_an_address_is_matched_whole(name: str) -> None:
    assert not matches("bob@corp.example", EMAIL, name)


@pytest.mark.parametrize("kind", [URI, DNS, EMAIL])
@pytest.mark.parametrize("text", ["spiffe://corp/a", "a.example", "bob@corp.example"])
def test_a_name_of_another_kind_matches_nothing(kind: str, text: str) -> None:
    assert matches(text, kind, text) == (pattern(text).kind == kind)


@pytest.mark.parametrize(
    "text",
    ["", "*", "*.*", "example.*", "a*.example", "**.example", "A.example", "bücher.example", "a..example", "a.example.",
     "a b.example", "spiffe://*/a", "*://corp/a", "spiffe://corp/a*", "spiffe://corp/**", "spiffe://corp/a/", "spiffe://",
     "Spiffe://corp/a", "spiffe://corp/a/../b", "*@corp.example", "bob@*.example", "bob@", "@corp.example",
     "urn:uuid:1", "spiffe://corp/" + "a" * 600],
)  # fmt: skip
def test_a_text_that_could_match_too_much_or_nothing_is_no_pattern(text: str) -> None:
    assert parse_pattern(text) is None


@given(PATTERNS, NAMES)
def test_matching_is_equality_part_by_part(text: str, name: str) -> None:
    kind = URI if "://" in name else DNS
    mine, its = (
        text.replace("://", ".").replace("/", ".").split("."),
        name.replace("://", ".").replace("/", ".").split("."),
    )
    same = ("://" in text) == ("://" in name) and len(mine) == len(its)
    assert matches(text, kind, name) == (
        same and all(one in (ANY, other) for one, other in zip(mine, its, strict=False))
    )


@given(st.lists(PATTERNS, max_size=5, unique=True), NAMES)
def test_of_patterns_that_are_not_ambiguous_exactly_one_is_most_special(texts: list[str], name: str) -> None:
    patterns: list[SanPattern] = []
    for one in map(pattern, texts):
        if not any(one.is_ambiguous_with(other) for other in patterns):
            patterns.append(one)
    shown = parse_san(URI if "://" in name else DNS, name)
    assert shown is not None
    found = most_special(patterns, shown)
    matching = [one for one in patterns if one.covers(shown)]
    assert (found is None) == (not matching)
    assert all(other is found or (other.covers(found) and not found.covers(other)) for other in matching if found)


@given(PATTERNS, PATTERNS, NAMES)
def test_two_patterns_that_match_one_name_are_ordered_or_told(one: str, other: str, name: str) -> None:
    kind = URI if "://" in name else DNS
    mine, its = pattern(one), pattern(other)
    assert mine.is_ambiguous_with(its) == its.is_ambiguous_with(mine)
    if matches(one, kind, name) and matches(other, kind, name):
        assert mine.is_ambiguous_with(its) or mine.covers(its) or its.covers(mine)


@given(st.text(max_size=40), st.sampled_from([URI, DNS, EMAIL]))
def test_a_name_that_is_read_is_printable_and_is_the_text(text: str, kind: str) -> None:
    found = parse_san(kind, text)
    if found is not None:
        assert ("/" if kind == URI else ".").join(found.parts) == text
        assert ANY not in text
        assert text.isascii()
        assert text.isprintable()


ANY_NAME = st.one_of(
    st.tuples(
        st.just(URI), st.from_regex(r"(?:spiffe|a\.b|x-y)://[a-z.:-]{1,3}(?:/[a-z.:]{1,2}){0,3}", fullmatch=True)
    ),
    st.tuples(st.just(DNS), st.from_regex(r"[a-z.:-]{1,8}", fullmatch=True)),
    st.tuples(st.just(EMAIL), st.from_regex(r"[a-z.:-]{1,4}@[a-z.:]{1,4}", fullmatch=True)),
)


@given(ANY_NAME, ANY_NAME)
def test_two_names_are_never_spelled_alike(one: tuple[str, str], other: tuple[str, str]) -> None:
    mine, its = parse_san(*one), parse_san(*other)
    if mine is not None and its is not None and mine.text != its.text:
        assert mine.spelled != its.spelled
