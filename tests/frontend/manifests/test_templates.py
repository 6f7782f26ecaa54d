import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.errors import GateError
from frontend.manifests.bodies import MAX_BODY_BYTES
from frontend.manifests.manifest import RequestTemplate
from frontend.manifests.templates import CompiledTemplate
from ipc.plan import PlannedRequest

URL = "https://a.example/x"


def render(request: dict[str, Any], body: Any = None, headers: tuple[tuple[str, str], ...] = ()) -> PlannedRequest:
    return CompiledTemplate(RequestTemplate("POST", URL, headers, body)).render(request)[0]


def test_a_template_without_a_body_sends_none() -> None:
    assert render({"a": 1}) == PlannedRequest("POST", URL, (), None)


@pytest.mark.parametrize(
    ("template", "request_", "body"),
    [
        ({"m": "{a}"}, {"a": "x"}, {"m": "x"}),
        ({"m": "{a}"}, {"a": 5}, {"m": 5}),
        ({"m": "{a}"}, {"a": {"b": [1, None]}}, {"m": {"b": [1, None]}}),
        ({"m": "{a}", "n": [{"o": "{b}"}, "{b}", "{a}"]}, {"a": None}, {"m": None, "n": [{}, None]}),
        (
            {"m": "{a}", "fixed": "{not here}", "n": 1},
            {"a": '"}, {"x": "'},
            {"m": '"}, {"x": "', "fixed": "{not here}", "n": 1},
        ),
        ("{a}", {"a": [1]}, [1]),
        ([], {}, []),
    ],
)
def test_slots_are_filled_with_values_of_their_own_type(template: Any, request_: dict[str, Any], body: Any) -> None:
    planned = render(request_, template)
    assert planned.body is not None
    assert json.loads(planned.body) == body


def test_a_body_is_canonical_json_and_says_so() -> None:
    planned = render({"b": 2, "a": "é"}, {"b": "{b}", "a": "{a}"})
    assert planned.body == '{"a":"é","b":2}'
    assert planned.headers == (("Content-Type", "application/json"),)


def test_a_content_type_of_the_template_stays() -> None:
    headers = (("content-type", "application/vnd.x+json"),)
    assert render({}, {}, headers).headers == headers


def test_a_body_that_is_one_absent_value_is_no_body() -> None:
    assert render({}, "{a}").body is None


def test_a_body_is_bounded_however_often_a_value_is_repeated() -> None:
    with pytest.raises(GateError) as refused:
        render({"a": "x" * (MAX_BODY_BYTES // 10)}, ["{a}"] * 11)
    assert refused.value.extra["reason"] == "(body): can't be sent where the template puts it (body too large)"


def test_a_header_may_be_one_whole_value() -> None:
    headers = (("X-A", "{a}"), ("X-N", "{n}"), ("X-Absent", "{absent}"), ("X-Null", "{null}"))
    planned = render({"a": "value 1", "n": 7, "null": None}, headers=headers)
    assert planned.headers == (("X-A", "value 1"), ("X-N", "7"))


def test_a_header_may_have_text_around_values() -> None:
    headers = (("X-A", "by {a}, {n} times"), ("X-B", "{{a}}"), ("X-Absent", "by {absent}"))
    assert render({"a": "x", "n": 7}, headers=headers).headers == (("X-A", "by x, 7 times"), ("X-B", "{a}"))


@pytest.mark.parametrize("template", ["{a}", "by {a}", "{a} and {a}"])
@pytest.mark.parametrize("value", ["a\r\nB: c", "a\nb", "é", "a ", "a\x00", "x" * 1025, [1], {"a": 1}])
def test_a_header_value_can_not_become_another_header(template: str, value: Any) -> None:
    with pytest.raises(GateError) as refused:
        render({"a": value}, headers=(("X-A", template),))
    place = "/a: can't be sent where the template puts it"
    assert refused.value.extra["reason"] in {f"{place} (header value)", f"{place} (type)"}


@pytest.mark.parametrize("value", ["", " a"])
def test_a_header_value_is_not_empty_and_begins_with_no_space(value: str) -> None:
    with pytest.raises(GateError) as refused:
        render({"a": value}, headers=(("X-A", "{a}"),))
    assert refused.value.extra["reason"] == "/a: can't be sent where the template puts it (header value)"


@given(st.text(max_size=30), st.text(max_size=30))
def test_a_value_can_not_add_a_member(first: str, second: str) -> None:
    planned = render({"a": first, "b": second}, {"a": "{a}", "b": {"c": "{b}"}})
    assert planned.body is not None
    assert json.loads(planned.body) == {"a": first, "b": {"c": second}}
