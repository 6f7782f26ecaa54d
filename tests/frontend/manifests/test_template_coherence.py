from typing import Any

import pytest

from tests.frontend.actions.conftest import Read, assert_refused

PROPERTIES: dict[str, Any] = {
    "id": {"type": "string"}, "q": {"type": "string"}, "ids": {"type": "array", "items": {"type": "integer"}},
    "flag": {"type": "boolean"}, "open": {"type": "object"}, "free": True, "f[a]": {"type": ["string", "null"]},
    "rows": {"type": "array", "items": {"type": "object"}},
    "flat": {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False},
    "deep": {"type": "object", "properties": {"a": {"type": "object"}}, "additionalProperties": False},
    "mixed": {"type": ["string", "object"]},
}  # fmt: skip


def template(**members: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": PROPERTIES, "required": ["id", "open"]}
    base = {"url_template": "https://api.example.com/x", "body_template": None}
    return {"io": {"request_schema": schema}, "template": base | members}


def url(path: str) -> dict[str, Any]:
    return template(url_template=f"https://api.example.com{path}")


def typed(value: str, **body: Any) -> dict[str, Any]:
    return template(headers={"Content-Type": value}, **body)


@pytest.mark.parametrize(
    "change",
    [
        url("/{id}{?q,ids,flag,f%5Ba%5D,flat,free}"),
        url("/{id}{?ids*,flat*}"),
        url("{/q}{.flag}{;ids*}?fixed=1{&q}"),
        template(headers={"X-A": "by {id}, {flag}", "X-B": "{{nothing}}"}),
        template(body_template={"note": "refund of {id} for {q}", "any": "{open}", "{{id}}": "{{nothing}} { open }"}),
        template(body_form={"a": "{ids}", "b": "no {q}", "c": 5, "d": True, "e": ["{id}", "x"]}),
        template(body_text="say {id}: {{q}}"),
        template(body_text="{id}"),
        typed("application/x-www-form-urlencoded; charset=UTF-8", body_form={"a": "x"}),
        typed("text/markdown", body_text="x"),
        typed("text/csv;charset=utf-8", body_text="x"),
    ],
)
def test_a_template_may_take_each_property_where_it_can_be_written(read_kind: Read, change: dict[str, Any]) -> None:
    assert list(map(str, read_kind("http", change)[1])) == []


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        (url("/{q}"), "template.url_template", "write it as {/name} or {?name}"),
        (url("/{id,q}"), "template.url_template", "does not require it"),
        (url("/{+q}"), "template.url_template", "does not require it"),
        (url("/x{?nothing}"), "template.url_template", "does not declare"),
        (url("/x{?f%5Bb%5D}"), "template.url_template", "does not declare"),
        (url("/x{?open}"), "template.url_template", "nor a list of them"),
        (url("/x{?rows}"), "template.url_template", "nor a list of them"),
        (url("/x{?deep}"), "template.url_template", "nor a list of them"),
        (url("/x{?mixed*}"), "template.url_template", "additionalProperties: false"),
        (url("/x{?free*}"), "template.url_template", "additionalProperties: false"),
        (url("/{id:3}"), "template.url_template", "Remove the prefix"),
        (url("/x{#q}"), "template.url_template", "fragment"),
        (url("/x{?q}&r=1"), "template.url_template", "?fixed=1{&a,b}"),
        (template(url_template="https://{ids}/"), "template.url_template", "neither text, a number nor a flag"),
        (template(headers={"X-A": "say {nothing}"}), "template.headers.X-A", "Write {{nothing}} for the text"),
        (template(headers={"X-A": "{ids}"}), "template.headers.X-A", "neither text, a number nor a flag"),
        (template(body_template={"a": "say {open}"}), "template.body_template", "neither text, a number nor a flag"),
        (template(body_template={"a": "say {nothing}"}), "template.body_template", "{{nothing}}"),
        (template(body_form={"a": "{open}"}), "template.body_form.a", "nor a list of them"),
        (template(body_form={"a": {"b": 1}}), "template.body_form.a", "must be text, a number, a flag or a list"),
        (template(body_form={"a": [None]}), "template.body_form.a", "must be text, a number, a flag or a list"),
        (template(body_form={"a": "say {ids}"}), "template.body_form", "neither text, a number nor a flag"),
        (template(body_form={"{id}": "x"}), "template.body_form", "name of a member"),
        (template(body_form=["a"]), "template.body_form", "must be a mapping"),
        (template(body_form={"a": {"id": None}}), "template.body_form.a", "must be text"),
        (template(body_text={"id": None}), "template.body_text", "must be text"),
        (template(body_text="say {q}"), "template.body_text", "does not require it"),
        (template(body_text="{open}"), "template.body_text", "neither text, a number nor a flag"),
        (template(body_text="x", body_form={}), "template.body_text", "body_form and body_text"),
        (template(body_template={}, body_form={}), "template.body_form", "body_template and body_form"),
        (template(headers={"Host": "a"}), "template.headers.Host", "the gateway's own"),
        (template(headers={"HTTP2-Settings": "a"}), "template.headers.HTTP2-Settings", "the gateway's own"),
        (template(headers={"Proxy-Anything": "a"}), "template.headers.Proxy-Anything", "the gateway's own"),
        (template(headers={"Proxy-Authorization": "a"}), "template.headers.Proxy-Authorization", "holds credentials"),
        (typed("application/json", body_form={"a": "x"}), "template.headers.Content-Type", "makes a form"),
        (typed("application/json", body_text="x"), "template.headers.Content-Type", "makes plain text"),
        (typed("text/html", body_text="x"), "template.headers.Content-Type", "makes plain text"),
        (typed("text/plain; charset=latin-1", body_text="x"), "template.headers.Content-Type", "makes plain text"),
        (typed("text/{id}", body_text="x"), "template.headers.Content-Type", "makes plain text"),
    ],
)
def test_a_template_that_contradicts_the_request_is_a_problem(
    read_kind: Read, change: dict[str, Any], field: str, words: str
) -> None:
    assert_refused(read_kind("http", change), field, words)
