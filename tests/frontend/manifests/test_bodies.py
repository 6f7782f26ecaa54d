import json
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.errors import GateError
from frontend.manifests.bodies import MAX_BODY_BYTES
from frontend.manifests.manifest import RequestTemplate
from frontend.manifests.placeholders import compiled, names_in_keys, slots
from frontend.manifests.templates import CompiledTemplate
from ipc.plan import PlannedRequest


def render(request: dict[str, Any], **body: Any) -> PlannedRequest:
    return CompiledTemplate(RequestTemplate("POST", "https://a.example/x", **body)).render(request)[0]


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ({"body_template": {}}, "application/json"),
        ({"body_form": {}}, "application/x-www-form-urlencoded"),
        ({"body_text": "a"}, "text/plain; charset=utf-8"),
    ],
)
def test_the_content_type_follows_the_kind_of_body(body: dict[str, Any], content_type: str) -> None:
    assert render({}, **body).headers == (("Content-Type", content_type),)


def test_a_content_type_of_the_template_is_kept_for_each_kind() -> None:
    headers = (("content-type", "text/markdown"),)
    assert render({}, body_text="a", headers=headers).headers == headers


@pytest.mark.parametrize(
    ("form", "request_", "body"),
    [
        ({"a": "{a}", "b": "fixed", "c": 5, "d": True}, {"a": "x y&z=é"}, "a=x+y%26z%3D%C3%A9&b=fixed&c=5&d=true"),
        ({"a": "{a}", "b": "{b}"}, {"a": 2500}, "a=2500"),
        ({"a": "{a}", "b": "{b}"}, {"a": None, "b": ""}, "b="),
        ({"ids[]": "{ids}"}, {"ids": ["x", None, 2]}, "ids%5B%5D=x&ids%5B%5D=2"),
        ({"ids[]": ["{a}", "fixed", "no {b}"]}, {"a": 1}, "ids%5B%5D=1&ids%5B%5D=fixed"),
        ({"note": "refund of {a} for {b}"}, {"a": "x", "b": False}, "note=refund+of+x+for+false"),
        ({"note": "refund of {a} for {b}"}, {"a": "x"}, ""),
        ({"a": "{{a}}"}, {"a": 1}, "a=%7Ba%7D"),
    ],
)
def test_a_form_has_a_field_for_each_value_that_is_there(
    form: dict[str, Any], request_: dict[str, Any], body: str
) -> None:
    assert render(request_, body_form=form).body == body


@pytest.mark.parametrize("value", [{"b": 1}, [[1]], [{}]])
def test_a_value_that_is_no_text_has_no_place_in_a_form(value: Any) -> None:
    with pytest.raises(GateError) as refused:
        render({"a": value}, body_form={"x": "{a}"})
    assert refused.value.extra["reason"] == "/a: can't be sent where the template puts it (type)"


@pytest.mark.parametrize(
    ("template", "body"),
    [
        ("deploy {a} at {b}", "deploy x\ny at 7"),
        ("{a}", "x\ny"),
        ('{ "literal": {} } {{a}} {{{a}}}', '{ "literal": {} } {a} {{a}}'),
        ('{"a":{b}}', '{"a":7}'),
    ],
)
def test_a_text_has_values_in_their_places(template: str, body: str) -> None:
    assert render({"a": "x\ny", "b": 7}, body_text=template).body == body


def test_a_text_lacks_no_value() -> None:
    with pytest.raises(GateError) as refused:
        render({"a": None}, body_text="say {a}")
    assert refused.value.extra["reason"] == "/a: can't be sent where the template puts it (required)"


@pytest.mark.parametrize(
    ("template", "request_", "body"),
    [
        ({"m": "refund of {a}, {n}"}, {"a": "x", "n": 1.0}, {"m": "refund of x, 1"}),
        ({"m": "refund of {a}", "o": 1}, {}, {"o": 1}),
        ({"m": "refund of {a}", "o": 1}, {"a": None}, {"o": 1}),
        (["{a}", "{a}{a}"], {"a": 5}, [5, "55"]),
        ({"m": "{{a}} is {a}"}, {"a": "x"}, {"m": "{a} is x"}),
        ({"m": "{%24id}"}, {"$id": [1]}, {"m": [1]}),
        ({"q": "query { user { id } }"}, {}, {"q": "query { user { id } }"}),
    ],
)
def test_texts_of_json_have_values_in_their_places(template: Any, request_: dict[str, Any], body: Any) -> None:
    planned = render(request_, body_template=template)
    assert planned.body is not None
    assert json.loads(planned.body) == body


@pytest.mark.parametrize(
    "body", [{"body_template": {"x": "no {a}"}}, {"body_text": "{a}"}, {"body_form": {"x": "n{a}"}}]
)
@pytest.mark.parametrize("value", [[1], {"b": 1}])
def test_a_list_or_object_has_no_place_inside_a_text(body: dict[str, Any], value: Any) -> None:
    with pytest.raises(GateError) as refused:
        render({"a": value}, **body)
    assert refused.value.extra["reason"] == "/a: can't be sent where the template puts it (type)"


@pytest.mark.parametrize("body", [{"body_form": {"x": ["{a}"] * 11}}, {"body_text": "{a}" * 11}])
def test_each_kind_of_body_is_bounded(body: dict[str, Any]) -> None:
    with pytest.raises(GateError) as refused:
        render({"a": "x" * (MAX_BODY_BYTES // 10)}, **body)
    assert refused.value.extra["reason"] == "(body): can't be sent where the template puts it (body too large)"


def test_the_names_in_a_template_are_found_where_values_go_and_in_keys() -> None:
    value = {"a": "{x}", "b": ["{y} z", {"{k}": 1}], "c": "{ no } {{no}}", "d": "{%5Be%5D}"}
    assert [slot.name for slot in slots(compiled(value))] == ["x", "y", "[e]"]
    assert names_in_keys(value) == ["k"]


@given(st.text(max_size=30), st.text(max_size=30))
def test_a_value_can_not_add_a_field_to_a_form(first: str, second: str) -> None:
    body = render({"a": first, "b": second}, body_form={"a": "{a}", "b": "<{b}>"}).body
    assert parse_qsl(body, keep_blank_values=True, strict_parsing=True) == [("a", first), ("b", f"<{second}>")]


@given(st.text(max_size=30))
def test_a_value_inside_a_text_can_not_add_a_member(value: str) -> None:
    body = render({"a": value}, body_template={"a": "<{a}>"}).body
    assert body is not None
    assert json.loads(body) == {"a": f"<{value}>"}
