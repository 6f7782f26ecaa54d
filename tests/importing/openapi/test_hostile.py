"""Documents that were made to harm: bounds while reading, and texts that would become fields of a manifest."""

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from importing.openapi.reading import value_of
from importing.refusal import ImportRefused
from tests.support.openapi import document, imported, json_body, manifest, one, operation, query

BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
TOP = "openapi: 3.1.0\ninfo: {title: A, version: '1'}\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (TOP + BOMB, "has more than 3000000 values"),
        (TOP + "a: &a [*a]\n", "has an alias inside the value that it stands for"),
        (TOP + "a: " + "[" * 200 + "]" * 200, "is nested deeper than 100"),
        (TOP + "a: 1\n---\nb: 2\n", "begins a second document"),
        (TOP + "a: &b {x: 1}\nc:\n  <<: *b\n", "merges mappings"),
        (TOP + "a: 1\na: 2\n", "has a name twice"),
        (TOP + "a: !!python/object:os.system {}\nb: [", "is not YAML"),
        ('{"openapi": "3.1.0", "a": ' + "[" * 100_000, "is nested deeper than 100|is not JSON"),
        ('{"a": ' + "[" * 150 + "]" * 150 + "}", "is nested deeper than 100"),
        ('{"openapi": "3.1.0", "openapi": "3.0.0"}', "a name stands twice"),
        ('{"a": NaN}', "is no number of JSON"),
        ('{"a": 1' + "0" * 5000 + "}", "a number is too large"),
        ("", "is no mapping"),
        ("- 1\n", "is no mapping"),
        ("\x00\x01", "is not YAML"),
    ],
)
def test_a_document_beyond_the_bounds_is_refused_in_one_sentence(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(ImportRefused, match=reason) as refused:
        value_of(text.encode(), "api.yaml")
    assert "\n" not in refused.value.sentence


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_any_bytes_are_a_mapping_or_a_refusal(data: bytes) -> None:
    with contextlib.suppress(ImportRefused):
        assert isinstance(value_of(data, "x"), dict)


def test_yaml_is_read_as_json_with_numbers_as_names() -> None:
    text = "responses: {200: {when: 2024-01-31, no: no, yes: yes, n: 1e3, s: '7', t: 1:30}}\nb: &b [1]\nc: *b\n"
    assert value_of(text.encode(), "x") == {
        "responses": {"200": {"when": "2024-01-31", "no": "no", "yes": "yes", "n": 1000.0, "s": "7", "t": "1:30"}},
        "b": [1], "c": [1],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("top", "reason"),
    [
        ({"swagger": "2.0"}, "is Swagger 2.0. Convert it to OpenAPI 3"),
        ({"openapi": "4.0.0"}, "is OpenAPI 4.0.0: 3.0 and 3.1 are read."),
        ({"openapi": 3.0}, "has `openapi: 3.0`, which is no whole version. Write `openapi: 3.0.0`."),
        ({"openapi": 3.1}, "has `openapi: 3.1`, which is no whole version. Write `openapi: 3.1.0`."),
        ({"openapi": "3.2.0"}, "is OpenAPI 3.2.0"),
        ({}, "has no `openapi: 3.0.x` or `3.1.x` at its top."),
        ({"openapi": "3.1.0"}, "has no operations"),
        ({"openapi": "3.1.0", "paths": {"/a": {"get": 1, "$ref": 7}, "/b": None}}, "has no operations"),
    ],
)
def test_another_document_is_refused_with_the_way_out(tmp_path: Path, top: dict[str, Any], reason: str) -> None:
    told = imported(tmp_path, json.dumps(top))
    assert told.code == 78
    assert reason in told.refusal


EVIL = "x\nrisk_level: low\r\n# \u2028egress:\u202e {}\x1b[31m\x00"


def test_a_text_of_the_document_begins_no_line_of_a_manifest(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "description": EVIL, "pattern": f"(?={EVIL})"}}}
    fields = {"summary": EVIL, "parameters": [query(EVIL, {"type": "object"})], "requestBody": json_body(schema)}
    given = document({"/a": {"delete": operation(EVIL, **fields)}}, info={"title": EVIL, "version": EVIL})
    told = imported(tmp_path, given)
    assert told.code == 0, told
    (path,) = (tmp_path / "actions").iterdir()
    text = path.read_text()
    made = yaml.safe_load(text)
    assert made["risk_level"] == "high"
    assert made["egress"]["allowed_domains"] == ["billing.corp.example"]
    assert not {"\u2028", "\u202e", "\x1b", "\x00", "\r"} & set(text + told.out)
    assert text.count("\nrisk_level:") == 1


@pytest.mark.parametrize(
    "text", ["1e5", "0x10", "no", "null", "~", "- a", "a: b", "*a", "&a b", "{x}", "!a", "1:30", ""]
)
def test_a_text_stays_a_text_in_yaml(tmp_path: Path, text: str) -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [text, 7]}, text or "b": {"const": text}}}
    made = one(tmp_path, {"requestBody": json_body(schema)})
    assert text in json.dumps(made["io"]["request_schema"])


@pytest.mark.parametrize(
    ("name", "action_id"),
    [
        ("../../etc/passwd", "etc_passwd"),
        ("/abs", "abs"),
        ("listInvoices", "list_invoices"),
        ("HTTPServerGet", "http_server_get"),
        ("Größe ändern", "groe_andern"),
        ("日本語", "get_a"),
        ("..", "get_a"),
        ("trusted_modules", "trusted_modules_2"),
        ("x" * 400, "x" * 100),
    ],
)
def test_an_id_is_a_plain_name_whatever_the_document_calls_it(tmp_path: Path, name: str, action_id: str) -> None:
    assert imported(tmp_path, document({"/a": {"get": operation(name)}})).code == 0
    assert [path.name for path in (tmp_path / "actions").iterdir()] == [f"{action_id}.yaml"]
    assert manifest(tmp_path, action_id)["action_id"] == action_id


def test_names_that_meet_get_numbers_whichever_are_imported(tmp_path: Path) -> None:
    names = ("get-it", "getIt", "get_it", "GET IT")
    given = document({f"/{number}": {"get": operation(name)} for number, name in enumerate(names)})
    assert imported(tmp_path, given, operations=("GET /2",)).code == 0
    assert [path.name for path in (tmp_path / "actions").iterdir()] == ["get_it_3.yaml"]
    assert imported(tmp_path, given).code == 0
    assert sorted(path.stem for path in (tmp_path / "actions").iterdir()) == [
        "get_it",
        "get_it_2",
        "get_it_3",
        "get_it_4",
    ]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://169.254.169.254/latest", "is an IP address"),
        ("https://localhost:8443", "must be a domain name with a dot"),
        ("https://user:secret@api.example.com", "no plain https:// address"),
        ("/v2", "name it with --server"),
        ("file:///etc/passwd", "name it with --server"),
        ("https://{tenant}.example.com", "must be a domain name"),
        ("https://api.example.com:99999", "is no address"),
        ("https://api.example.com:0", "is no address"),
    ],
)
def test_a_server_that_is_no_public_name_is_left_out_until_a_person_names_one(
    tmp_path: Path, url: str, reason: str
) -> None:
    given = document({"/a": {"get": operation()}}, servers=[{"url": url}])
    told = imported(tmp_path, given)
    assert told.code == 1
    assert reason in told.out
    assert "--server" in told.out
    assert imported(tmp_path, given, server="https://Api.Example.com/v1/").code == 0
    assert manifest(tmp_path)["template"]["url_template"] == "https://api.example.com/v1/a"


def test_parts_of_another_form_leave_their_operation_out_and_no_other(tmp_path: Path) -> None:
    paths = {
        "/good": {"get": operation("good")},
        "/a": {"get": operation("a", parameters=[7])},
        "/b": {"get": operation("b", parameters=[{"name": "x", "in": "mind"}])},
        "/c": {"post": operation("c", requestBody=[1])},
        "/d": {"post": operation("d", requestBody={"content": {"application/json": 5}})},
        "/e/{x}": {"get": operation("e")},
        "/f?x=1": {"get": operation("f")},
        "/g": {"get": operation("g", security=[{"unknown": []}])},
        "/h": {"trace": operation("h")},
        "/i": {"get": operation("i", responses=[1], security=7, servers={"a": 1}, parameters="x")},
        "/j": {"get": operation("j", parameters=[{"$ref": "#/paths/~1j/get/parameters/0"}])},
    }
    told = imported(tmp_path, document(paths))
    assert told.code == 0, told
    assert sorted(path.stem for path in (tmp_path / "actions").iterdir()) == ["good", "i"]
    left_out = re.findall(r"^left out: ([a-z, ]+) \(", told.out, re.MULTILINE)
    assert sorted(name for names in left_out for name in names.split(", ")) == list("abcdefghj")


HALF = "a\ud800"
"""Half a pair of surrogates, which JSON can escape."""
CHAIN = {f"s{number}": {"$ref": f"#/components/schemas/s{number + 1}"} for number in range(600)} | {"s600": {}}
OAUTH = {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://["}}}


@pytest.mark.parametrize(
    ("path", "fields", "reason"),
    [
        (f"/{HALF}", {}, "a path that is no Unicode"),
        ("/b", {"requestBody": json_body({"properties": {HALF: {"enum": [HALF]}}})}, "its texts are no Unicode"),
        ("/b", {"parameters": [query(HALF, required=True)]}, "a name that is no Unicode"),
        ("/b", {"requestBody": json_body({"$ref": "#/components/schemas/s0"})}, "references inside each other"),
        ("/{b}", {"parameters": [{"name": "b", "in": "path", "style": []}]}, None),
        ("/b", {"security": [{"oauth": []}]}, None),
    ],
)  # fmt: skip
def test_an_operation_in_an_odd_form_keeps_no_other_from_its_manifest(
    tmp_path: Path, path: str, fields: dict[str, Any], reason: str | None
) -> None:
    paths = {"/a": {"get": operation("sound")}, path: {"post": operation("odd", **fields)}}
    parts = {"schemas": CHAIN, "securitySchemes": {"oauth": OAUTH}}
    told = imported(tmp_path, document(paths, components=parts))
    assert told.code == 0, told
    made = {file.name for file in (tmp_path / "actions").iterdir()}
    assert made == {"sound.yaml"} | ({"odd.yaml"} if reason is None else set())
    assert (reason or "") in told.out
