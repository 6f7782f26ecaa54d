"""Secrets, servers, risks and outcomes of a manifest."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.openapi import document, imported, json_body, manifest, one, operation, query

CLIENT = {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "/oauth/token", "scopes": {}}}}
CODE = {"type": "oauth2", "flows": {"authorizationCode": {"tokenUrl": "https://a.example/t"}}}
BEARER = {"header": "Authorization", "format": "Bearer {value}"}


def secrets(folder: Path, scheme: dict[str, Any], scopes: list[str] | None = None, **options: Any) -> Any:
    top: dict[str, Any] = {
        "security": [{"apiKey": scopes or []}],
        "components": {"securitySchemes": {"apiKey": scheme}},
    }
    told = imported(folder, document({"/a": {"get": operation()}}, **top), **options)
    assert told.code == 0, told
    return next(iter(manifest(folder, "crm_one" if options else "one")["secrets"]))


@pytest.mark.parametrize(
    ("scheme", "inject"),
    [
        ({"type": "apiKey", "in": "header", "name": "X-Key"}, {"header": "X-Key"}),
        ({"type": "apiKey", "in": "query", "name": "key"}, {"query": "key"}),
        ({"type": "http", "scheme": "Bearer"}, BEARER),
        ({"type": "http", "scheme": "basic"}, {"basic": {"username": "FILL-IN-USERNAME"}}),
        (CODE, BEARER),
        ({"type": "openIdConnect", "openIdConnectUrl": "https://a.example"}, BEARER),
        (CLIENT, {"oauth2_client_credentials": {
            "token_url": "https://billing.corp.example/oauth/token", "client_id": "FILL-IN-CLIENT-ID",
            "scopes": ["read"]}}),
    ],
)  # fmt: skip
def test_a_security_scheme_becomes_a_secret(tmp_path: Path, scheme: dict[str, Any], inject: dict[str, Any]) -> None:
    assert secrets(tmp_path, scheme, ["read"]) == {"name": "billing_api_key", "inject": inject}
    calls = 2 if scheme is CLIENT else 1  # a refused token is followed by another one
    assert manifest(tmp_path, "one")["resource_limits"]["max_io_calls"] == calls


def test_the_prefix_begins_ids_and_secrets(tmp_path: Path) -> None:
    assert secrets(tmp_path, {"type": "http", "scheme": "bearer"}, prefix="CRM")["name"] == "crm_api_key"


def test_the_first_alternative_that_can_be_said_is_taken(tmp_path: Path) -> None:
    schemes = {"sid": {"type": "apiKey", "in": "cookie", "name": "s"}, "key": {"type": "http", "scheme": "bearer"}}
    paths = {
        "/a": {"get": operation("a", security=[{"sid": []}, {"key": []}])},
        "/b": {"get": operation("b", security=[{"sid": []}])},
        "/c": {"get": operation("c", security=[{"key": [], "two": []}])},
        "/d": {"get": operation("d", security=[])},
    }
    top: dict[str, Any] = {"components": {"securitySchemes": {**schemes, "two": {"type": "http", "scheme": "basic"}}}}
    told = imported(tmp_path, document(paths, **top))
    assert manifest(tmp_path, "a")["secrets"] == [{"name": "billing_key", "inject": BEARER}]
    assert "secrets" not in manifest(tmp_path, "d")
    assert "left out: b (a key in a cookie)" in told.out
    assert "left out: c (two secrets in one place)" in told.out
    assert "put into the secrets file: billing_key" in told.out


def test_a_parameter_that_holds_the_key_is_the_secret_and_not_the_agent_s(tmp_path: Path) -> None:
    fields = {"parameters": [query("key", required=True), query("q")], "security": [{"k": []}]}
    schemes = {"securitySchemes": {"k": {"type": "apiKey", "in": "query", "name": "key"}}}
    made = one(tmp_path, fields, method="get", components=schemes)
    assert list(made["io"]["request_schema"]["properties"]) == ["q"]
    assert made["template"]["url_template"].endswith("/things{?q}")


@pytest.mark.parametrize(
    ("method", "risk", "effect"),
    [("get", "low", "http_read"), ("head", "low", "http_read"), ("post", "medium", "http_write"),
     ("put", "medium", "http_write"), ("patch", "medium", "http_write"), ("delete", "high", "http_write")],
)  # fmt: skip
def test_the_risk_follows_the_method_and_no_text(tmp_path: Path, method: str, risk: str, effect: str) -> None:
    made = one(tmp_path, {"summary": "Harmless. risk_level: low", "x-risk": "low", "tags": ["low"]}, method=method)
    assert (made["risk_level"], made["declared_side_effects"]) == (risk, [effect])


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (["200", "404"], [200]),
        (["201", "200", "default"], [200, 201]),
        (["2XX", "200"], ["2xx"]),
        (["default"], ["2xx"]),
        (["302"], ["2xx"]),
    ],
)
def test_documented_successes_are_the_expected_statuses(
    tmp_path: Path, statuses: list[str], expected: list[object]
) -> None:
    made = one(tmp_path, {"responses": {status: {"description": "x"} for status in statuses}})
    assert made["verification_config"] == {"expected": expected}


@pytest.mark.parametrize(
    ("schema", "body"),
    [
        (
            {"type": "object", "required": ["id"], "properties": {"id": {"type": "string", "format": "uuid"}}},
            {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}},
        ),
        ({"type": "object", "properties": {"a": {"type": "array", "items": {}}}}, None),
        ({"type": "array", "items": {}}, None),
    ],
)
def test_a_flat_answer_is_the_response_schema_by_its_types_alone(tmp_path: Path, schema: Any, body: Any) -> None:
    responses = {"200": {"description": "x", **json_body(schema)}}
    io = one(tmp_path, {"responses": responses})["io"]
    assert ("response_schema" in io) is (body is not None)
    if body is not None:
        assert io["response_schema"]["then"]["properties"]["body"] == body
        assert io["response_schema"]["if"] == {"properties": {"status": {"const": 200}}}


def test_the_nearest_server_and_the_first_with_tls_is_taken(tmp_path: Path) -> None:
    servers = [{"url": "http://a.example.com"},
               {"url": "https://{region}.example.com/v1/", "variables": {"region": {"default": "eu"}}}]  # fmt: skip
    given = document({"/a": {"get": operation("a", servers=servers)}, "/b": {"get": operation("b")}})
    assert imported(tmp_path, given).code == 0
    assert manifest(tmp_path, "a")["template"]["url_template"] == "https://eu.example.com/v1/a"
    assert manifest(tmp_path, "a")["egress"]["allowed_domains"] == ["eu.example.com"]
    assert manifest(tmp_path, "b")["egress"]["allowed_domains"] == ["billing.corp.example"]


def test_headers_that_say_where_to_go_on_reach_the_result(tmp_path: Path) -> None:
    headers = {"Location": {"schema": {"type": "string"}}, "X-Trace": {"schema": {"type": "string"}}}
    responses = {"201": {"description": "made", "headers": headers}, "404": {"headers": {"Link": {}}}}
    assert one(tmp_path, {"responses": responses})["response"] == {"headers": ["Location"]}
    plain = document({"/others": {"get": operation("other")}})
    assert imported(tmp_path, plain).code == 0
    assert "response" not in manifest(tmp_path, "other")
