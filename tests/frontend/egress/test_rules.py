"""Learned rules: which texts can be one, and which files are believed."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.actions.targets import Learned
from frontend.egress.rules import (
    DOMAINS,
    KINDS,
    MAX_PER_ACTION,
    PATHS,
    InvalidRule,
    LearnedRule,
    Rules,
    by_action,
    count_of,
    decode_rules,
    encode_rules,
)
from ipc.texts.foreign_texts import clean_reason


def rule(text: str = "api.example.com", action_id: str = "a", **changes: Any) -> LearnedRule:
    whole: dict[str, Any] = {"source": "cli", "added_at": "2026-11-21T11:12:13.123Z", "added_by": "ada"}
    return LearnedRule(action_id, text, **(whole | changes))


@pytest.mark.parametrize(
    ("text", "normal"),
    [("API.Example.com", "api.example.com"), ("*.example.com", "*.example.com"), ("bücher.example", None)],
)
def test_a_domain_is_learned_in_its_normal_form(text: str, normal: str | None) -> None:
    assert DOMAINS.normal(text) == (normal or "xn--bcher-kva.example")


@pytest.mark.parametrize("text", ["", "*", "*.com", "localhost", "10.0.0.1", "a.b:80", "https://a.example", "a.b/c"])
def test_a_malformed_domain_can_not_be_learned(text: str) -> None:
    with pytest.raises(InvalidRule):
        DOMAINS.normal(text)


@pytest.mark.parametrize("text", ["notes/a.txt", "notes/**", "*.txt", "a?c", "**/x", "é/ü", "x" * 255])
def test_a_path_pattern_is_learned_as_it_is(text: str) -> None:
    assert PATHS.normal(text) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"), ("/etc/passwd", "absolute"), ("../a", "dot segment"), ("a/../b", "dot segment"),
        ("a//b", "empty segment"), ("a/", "empty segment"), ("a[b]", "bracket"), ("a\\b", "backslash"),
        ("a\nb", "control character"), ("a**b", "double star"), ("e\u0301", "not nfc"), ("a/" * 250 + "a", "longer"),
        ("**", "nothing but wildcards"), ("*", "nothing but wildcards"), ("*/**/?", "nothing but wildcards"),
        ("a\u202eb", "invisible character"), ("a /b", "space at end"),
    ],
)  # fmt: skip
def test_a_malformed_path_pattern_can_not_be_learned(text: str, why: str) -> None:
    with pytest.raises(InvalidRule, match=why) as refused:
        PATHS.normal(text)
    assert len(text) < 3 or text not in str(refused.value)


@given(st.sampled_from(KINDS), st.text(max_size=600) | st.text("ab.*/?é", max_size=12))
def test_what_can_be_learned_is_normal_and_evidence_holds_it_whole(kind: Any, text: str) -> None:
    try:
        normal = kind.normal(text)
    except InvalidRule:
        return
    assert kind.normal(normal) == normal
    assert clean_reason(normal) == normal
    rules = kind.put(Rules(), (rule(normal),))
    assert decode_rules(encode_rules(rules)) == rules


def test_a_file_holds_what_was_put_into_it_for_people_too() -> None:
    rules = Rules(domains=(rule("*.b.example", "x"), rule(), rule(action_id="b")), paths=(rule("a/**", "b"),))
    content = encode_rules(rules)
    assert decode_rules(content) == rules
    assert count_of(rules) == 4
    assert content.endswith(b"}\n")
    assert len(content.splitlines()) > 20
    assert by_action(rules) == {
        "x": Learned(("*.b.example",)),
        "a": Learned(("api.example.com",)),
        "b": Learned(("api.example.com",), ("a/**",)),
    }


def changed(**changes: Any) -> bytes:
    """A whole file with one rule, one member of which is changed."""
    one = {
        "action_id": "a", "text": "api.example.com", "source": "cli", "added_at": "2026-11-21T11:12:13.123Z",
        "added_by": "ada",
    }  # fmt: skip
    return json.dumps({"version": 1, "domains": [one | changes], "paths": []}).encode()


WHOLE = changed()
MALFORMED: list[tuple[str, bytes, str]] = [
    ("nothing", b"", "no file of learned rules"),
    ("half", WHOLE[: len(WHOLE) // 2], "no file of learned rules"),
    ("noise", b"\x00\xff", "no file of learned rules"),
    ("a list", b"[]", "no file of learned rules"),
    ("another object", b'{"domain": []}', "no file of learned rules"),
    ("a name twice", b'{"version":1,"version":1,"domains":[],"paths":[]}', "no file of learned rules"),
    ("deep", b"[" * 5000, "no file of learned rules"),
    ("another version", WHOLE.replace(b'"version": 1', b'"version": 2'), "version 2"),
    ("text as version", WHOLE.replace(b'"version": 1', b'"version": "1"'), "no file of learned rules"),
    ("unknown member", changed(more=1), "no file of learned rules"),
    ("no text", changed(text=None), "no file of learned rules"),
    ("upper case", changed(text="API.example.com"), "not in its normal form"),
    ("everything", changed(text="*.com"), "must be a domain name"),
    ("an address", changed(text="127.0.0.1"), "IP address"),
    ("a strange action", changed(action_id="../a"), "no action id"),
    ("a strange source", changed(source="root"), "unknown source"),
    ("no time", changed(added_at="yesterday"), "no time"),
]


@pytest.mark.parametrize(("content", "why"), [row[1:] for row in MALFORMED], ids=[row[0] for row in MALFORMED])
def test_a_malformed_file_is_refused_whole_with_its_place(content: bytes, why: str) -> None:
    with pytest.raises(InvalidRule, match=why):
        decode_rules(content)


def test_a_rule_that_stands_twice_or_one_too_many_is_refused_with_its_number() -> None:
    with pytest.raises(InvalidRule, match=r"paths\[1\] stands there twice"):
        decode_rules(encode_rules(Rules(paths=(rule("x"), rule("x")))))
    many = tuple(rule(f"n{number}.example") for number in range(MAX_PER_ACTION + 1))
    assert decode_rules(encode_rules(Rules(domains=many[1:])))
    with pytest.raises(InvalidRule, match=rf"domains\[{MAX_PER_ACTION}\] is one more"):
        decode_rules(encode_rules(Rules(domains=many)))


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode) | st.builds(changed, text=st.text()))
def test_no_file_makes_anything_but_rules_or_a_refusal(content: bytes) -> None:
    try:
        rules = decode_rules(content)
    except InvalidRule:
        return
    assert decode_rules(encode_rules(rules)) == rules
