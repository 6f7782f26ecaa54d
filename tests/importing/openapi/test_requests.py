"""The request of an action and the HTTP request that is made of it."""

from pathlib import Path
from typing import Any

import pytest

from frontend.files.problems import Report
from frontend.manifests.reading import manifest_of, read_file
from frontend.manifests.templates import CompiledTemplate
from tests.support.openapi import SERVER, document, imported, json_body, manifest, one, operation, query

ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
REFUND = {
    "type": "object", "required": ["amount"],
    "properties": {"amount": {"type": "integer"}, "reason": {"type": "string"}},
}  # fmt: skip


def sent(folder: Path, request: dict[str, Any], action_id: str = "one") -> Any:
    """The HTTP request that the gateway would send."""
    report = Report("m")
    tree = read_file(folder / "actions" / f"{action_id}.yaml", report)
    assert tree is not None
    read = manifest_of(tree, report, has_proxy=False)
    assert read is not None, report.problems
    assert read.template is not None
    return CompiledTemplate(read.template).render(request)[0]


def test_parameters_and_members_of_the_body_stand_side_by_side(tmp_path: Path) -> None:
    fields = {"parameters": [ID, query("notify", {"type": "boolean"})], "requestBody": json_body(REFUND)}
    made = one(tmp_path, fields, path="/invoices/{id}/refunds")
    assert made["io"]["request_schema"] == {
        "type": "object", "additionalProperties": False, "required": ["id", "amount"],
        "properties": {
            "id": {"type": "string"}, "notify": {"type": "boolean"}, "amount": {"type": "integer"},
            "reason": {"type": "string"},
        },
    }  # fmt: skip
    request = sent(tmp_path, {"id": "a/b", "amount": 5, "notify": True})
    assert (request.method, request.url) == ("POST", f"{SERVER}/invoices/a%2Fb/refunds?notify=true")
    assert request.body == '{"amount":5}'


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"oneOf": [REFUND, {"type": "string"}]},
        {"type": "object", "properties": {"id": {"type": "string"}}},
        {"type": "object", "properties": {"a b": {"type": "string"}}},
    ],
    ids=["list", "map", "alternatives", "a name that a parameter has", "a name that no template can write"],
)
def test_any_other_body_is_the_property_body(tmp_path: Path, schema: dict[str, Any]) -> None:
    made = one(tmp_path, {"parameters": [ID], "requestBody": json_body(schema)}, path="/x/{id}")
    assert made["io"]["request_schema"]["required"] == ["id", "body"]
    assert made["template"]["body_template"] == "{body}"


def test_an_optional_body_with_required_members_is_given_whole_or_not_at_all(tmp_path: Path) -> None:
    one(tmp_path, {"requestBody": json_body(REFUND, required=False)})
    assert sent(tmp_path, {}).body is None
    assert sent(tmp_path, {"body": {"amount": 1}}).body == '{"amount":1}'


def test_all_of_is_taken_together_with_its_required_members(tmp_path: Path) -> None:
    schema = {"allOf": [REFUND, {"type": "object", "required": ["by"], "properties": {"by": {"type": "string"}}}]}
    made = one(tmp_path, {"requestBody": json_body(schema)})
    assert made["io"]["request_schema"]["required"] == ["amount", "by"]
    assert sorted(made["io"]["request_schema"]["properties"]) == ["amount", "by", "reason"]


@pytest.mark.parametrize(
    ("parameter", "request_value", "expected"),
    [
        (query("tags", {"type": "array", "items": {"type": "string"}}), ["a", "b"], "?tags=a&tags=b"),
        (query("tags", {"type": "array", "items": {"type": "string"}}, explode=False), ["a", "b"], "?tags=a,b"),
        (query("tags", {"oneOf": [{"type": "string"}, {"type": "array", "items": {}}]}), ["a"], "?tags=a"),
        (query("filter[state]"), "open", "?filter%5Bstate%5D=open"),
        (query("api-version"), "7&x=1", "?api-version=7%26x%3D1"),
        (query("$top", {"type": "integer"}), 3, "?%24top=3"),
    ],
)
def test_a_query_parameter_is_sent_under_its_own_name(
    tmp_path: Path, parameter: dict[str, Any], request_value: object, expected: str
) -> None:
    one(tmp_path, {"parameters": [parameter]}, method="get")
    assert sent(tmp_path, {parameter["name"]: request_value}).url == f"{SERVER}/things{expected}"
    assert sent(tmp_path, {}).url == f"{SERVER}/things"


@pytest.mark.parametrize(
    ("parameter", "reason"),
    [
        (query("where", {"type": "object"}, style="deepObject"), "query parameter where: an object"),
        (query("ids", {"type": "array"}, style="pipeDelimited", explode=False), "a list in the style pipeDelimited"),
        ({"name": "sid", "in": "cookie", "schema": {"type": "string"}}, "cookies are not sent"),
        ({"name": "q", "in": "query", "content": {"application/json": {}}}, "its value is a document of its own"),
        ({"name": "X-L", "in": "header", "schema": {"type": "array", "items": {}}}, "a list in a header"),
        ({"name": "X-é", "in": "header", "schema": {"type": "string"}}, "a name that no template can say"),
        ({"name": "Host", "in": "header", "schema": {"type": "string"}}, "only the gateway writes it"),
        (
            {"name": "X-HTTP-Method-Override", "in": "header", "schema": {"type": "string"}},
            "another method, host or path",
        ),
        ({"name": "Expect", "in": "header", "schema": {"type": "string"}}, "only the gateway writes it"),
        ({"name": "Cookie", "in": "header", "schema": {"type": "string"}}, "it holds credentials"),
    ],
)
def test_a_parameter_that_no_template_says_is_left_out_or_leaves_its_operation_out(
    tmp_path: Path, parameter: dict[str, Any], reason: str
) -> None:
    given = document({"/a": {"get": operation("a", parameters=[parameter])},
                      "/b": {"get": operation("b", parameters=[{**parameter, "required": True}])}})  # fmt: skip
    told = imported(tmp_path, given)
    assert told.code == 0
    assert "left out: b (" in told.out
    assert reason in told.out
    assert manifest(tmp_path, "a")["io"]["request_schema"]["properties"] == {}
    assert f"# Review: without the {parameter['in']} parameter" in (tmp_path / "actions" / "a.yaml").read_text()


def test_a_form_and_a_text_are_sent_as_what_they_are(tmp_path: Path) -> None:
    form = json_body(REFUND, "application/x-www-form-urlencoded", required=False)
    told = imported(
        tmp_path,
        document(
            {
                "/f": {"post": operation("f", requestBody=form)},
                "/t": {"post": operation("t", requestBody=json_body({}, "text/plain"))},
            }
        ),
    )
    assert told.code == 0
    assert manifest(tmp_path, "f")["io"]["request_schema"]["required"] == ["amount"]
    request = sent(tmp_path, {"amount": 1, "reason": "a b"}, "f")
    assert sorted((request.body or "").split("&")) == ["amount=1", "reason=a+b"]
    assert sent(tmp_path, {"body": "hello"}, "t").body == "hello"


@pytest.mark.parametrize(
    ("media_type", "reason"),
    [("multipart/form-data", "multipart body"), ("application/xml", "body of application/xml")],
)
def test_an_upload_is_left_out_with_its_reason(tmp_path: Path, media_type: str, reason: str) -> None:
    given = document({"/a": {"post": operation("upload", requestBody=json_body({}, media_type))},
                      "/b": {"get": operation("b")}})  # fmt: skip
    told = imported(tmp_path, given)
    assert f"left out: upload ({reason})" in told.out
    assert sorted(path.name for path in (tmp_path / "actions").iterdir()) == ["b.yaml"]


def test_a_json_media_type_of_its_own_is_sent_as_such(tmp_path: Path) -> None:
    one(tmp_path, {"requestBody": json_body(REFUND, "application/merge-patch+json")}, method="patch")
    assert ("Content-Type", "application/merge-patch+json") in sent(tmp_path, {"amount": 1}).headers


def test_the_operation_s_own_parameter_replaces_that_of_its_path(tmp_path: Path) -> None:
    own = {**ID, "schema": {"type": "integer"}}
    given = document({"/x/{id}": {"parameters": [ID], "get": operation(parameters=[own])}})
    assert imported(tmp_path, given).code == 0
    assert manifest(tmp_path)["io"]["request_schema"]["properties"]["id"] == {"type": "integer"}


@pytest.mark.parametrize("is_required", [False, True])
def test_a_key_of_idempotency_is_the_gateway_s_and_not_the_agent_s(tmp_path: Path, is_required: bool) -> None:
    key = {"name": "Idempotency-Key", "in": "header", "required": is_required, "schema": {"type": "string"}}
    made = one(tmp_path, {"parameters": [key], "requestBody": json_body(REFUND)})
    assert made["idempotency"] == {"header": "Idempotency-Key"}
    assert sorted(made["io"]["request_schema"]["properties"]) == ["amount", "reason"]
