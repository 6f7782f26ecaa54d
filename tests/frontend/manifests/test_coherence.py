from typing import Any

import pytest

from tests.frontend.actions.conftest import Read, assert_refused


def schema(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"io": {"request_schema": {"type": "object", "properties": properties, "required": required}}}


def content_type(value: str) -> dict[str, Any]:
    return {"template": {"headers": {"Content-Type": value}}}


def secret(**changes: Any) -> dict[str, Any]:
    return {"secrets": [{"name": "t", "inject": {"header": "X-Token"}} | changes]}


def way(**inject: Any) -> dict[str, Any]:
    return {"secrets": [{"name": "t", "inject": inject}]}


TOKEN = "secrets[0].inject.oauth2_client_credentials."


def token(**changes: Any) -> dict[str, Any]:
    known = {"token_url": "https://login.example.com/token", "client_id": "c"}
    return way(oauth2_client_credentials=known | changes)


def query(text: str) -> dict[str, Any]:
    return {"template": {"url_template": f"https://api.example.com/{text}"}}


@pytest.mark.parametrize("kind", ["compute", "http", "files"])
def test_the_kinds_themselves_have_no_problem(read_kind: Read, kind: str) -> None:
    manifest, problems = read_kind(kind)
    assert problems == []
    assert manifest is not None
    assert manifest.profile == {"compute": "compute", "http": "http", "files": "fs"}[kind]


@pytest.mark.parametrize(
    ("kind", "change", "field", "words"),
    [
        ("http", {"required_imports": ["http", "fs"]}, "required_imports", "both http and fs"),
        ("files", {"required_imports": []}, "fs", "needs the import fs"),
        ("files", {"fs": None}, "required_imports", "there is no section fs"),
        ("http", {"egress": None}, "required_imports", "egress.profile is none"),
        ("http", {"egress": {"profile": "none"}}, "egress", "egress.profile is none"),
        ("http", {"egress": {"profile": "proxy_allowlist"}}, "egress.profile", "egress_proxy_url is not set"),
        ("compute", {"egress": {"profile": "direct_allowlist"}}, "egress.profile", "needs the import http"),
        ("http", {"template": None, "egress": {"allowed_methods": None}}, "egress", "allowed_methods is missing"),
        ("http", {"egress": {"allowed_methods": ["GET"]}}, "template.method", "not among egress.allowed_methods"),
        ("http", {"egress": {"allowed_methods": ["BREW"]}}, "egress.allowed_methods[0]", "must be one of GET"),
        ("http", {"egress": {"allowed_domains": ["API.example.com"]}}, "egress.allowed_domains", "api.example.com"),
        ("http", {"egress": {"allowed_domains": ["10.0.0.1"]}}, "egress.allowed_domains", "is an IP address"),
        ("http", {"egress": {"allowed_domains": ["*.com"]}}, "egress.allowed_domains", "with a dot"),
        ("http", {"required_imports": []}, "template", "needs the import http"),
        ("http", {"required_imports": []}, "secrets[0].inject.header", "needs the import http"),
        ("http", {"secrets": [{"name": "t", "inject": {"header": "Host"}}]}, "secrets[0].inject.header", "own"),
        ("http", way(header="HTTP2-Settings"), "secrets[0].inject.header", "own"),
        ("http", way(header="Proxy-Anything"), "secrets[0].inject.header", "own"),
        ("http", {"secrets": [{"name": "t", "inject": {"header": "x-kind"}}]}, "secrets[0].inject.header", "two sour"),
        ("http", {"secrets": [{"name": "t"}, {"name": "t"}]}, "secrets", "declared twice"),
        ("http", way(query="key", header="X-Key"), "secrets[0].inject.query", "has header and query"),
        ("http", way(query="key", format="k={value}"), "secrets[0].inject.format", "for inject.header alone"),
        ("http", way(), "secrets[0].inject.header", "is missing"),
        ("http", way(query="a b"), "secrets[0].inject.query", "must be the name of a query parameter"),
        ("http", way(query="key") | query("?key=1"), "secrets[0].inject.query", "two sources"),
        ("http", way(query="message") | query("?a=1&message={message}"), "secrets[0].inject.query", "two sources"),
        ("http", way(basic={"username": "a:b"}), "secrets[0].inject.basic.username", "without a colon"),
        ("http", way(basic={}), "secrets[0].inject.basic.username", "is missing"),
        ("http", token(token_url="https://10.0.0.1/t"), TOKEN + "token_url", "is an IP address"),
        ("http", token(token_url="https://login.example.com"), TOKEN + "token_url", "with a path"),
        ("http", token(scopes=["a b"]), TOKEN + "scopes[0]", "without spaces"),
        ("http", token(client_id=None), TOKEN + "client_id", "is missing"),
        ("http", {"secrets": [{"name": "t", "inject": {"basic": {"username": "a"}}},
                              {"name": "u", "inject": {"header": "authorization"}}]},
         "secrets[1].inject.header", "two sources"),
        ("http", {"secrets": [{"name": "t", "inject": {"header": "A", "format": "{value}{value}"}}]},
         "secrets[0].inject.format", "{value} in it once"),
        ("http", secret(domains=["other.example.com"]), "secrets[0].domains", "does not have api.example.com"),
        ("http", secret(domains=[]), "secrets[0].domains", "would never be sent"),
        ("http", secret(domains=["API.example.com"]), "secrets[0].domains", "Write api.example.com"),
        ("http", secret(domains=["api.example.com"], inject=None), "secrets[0].domains", "added to no request"),
        ("compute", {"verifier_kind": "http_status"}, "verifier_kind", "needs the import http"),
        ("compute", {"verifier_kind": "fs_hash"}, "verifier_kind", "needs the import fs"),
        ("http", {"verifier_kind": "fs_hash"}, "verifier_kind", "needs the import fs"),
        ("compute", {"verifier_kind": "response_schema"}, "verifier_kind", "needs io.response_schema"),
        ("compute", {"verification_config": {"expected": [200]}}, "verification_config.expected", "Remove it"),
        ("http", {"verifier_kind": "http_status", "verification_config": {"expected": ["200"]}},
         "verification_config.expected", "list of statuses"),
        ("http", {"verifier_kind": "http_status", "verification_config": {"expected": []}},
         "verification_config.expected", "list of statuses"),
        ("http", {"verifier_kind": "http_status", "verification_config": {"expected_status": [200]}},
         "verification_config.expected_status", "Did you mean expected?"),
        ("files", {"verifier_kind": "fs_hash", "verification_config": {"path_pointer": "/content"}},
         "verification_config.path_pointer", "another file"),
        ("files", {"verifier_kind": "fs_hash", "verification_config": {"content_pointer": "/nowhere"}},
         "verification_config.content_pointer", "does not require"),
        ("compute", {"verifier_kind": "response_schema", "verification_config": {"schema": {"type": 5}}},
         "verification_config.schema#/type", "not valid"),
        ("http", {"template": {"headers": {"Authorization": "Bearer x"}}}, "template.headers.Authorization", "cred"),
        ("http", {"template": {"headers": {"Content-Length": "1"}}}, "template.headers.Content-Length", "own"),
        ("http", content_type("application/x-www-form-urlencoded"), "template.headers.Content-Type", "makes JSON"),
        ("http", content_type("text/plain; charset=utf-8"), "template.headers.Content-Type", "Write application/json"),
        ("http", content_type("{message}"), "template.headers.Content-Type", "makes JSON"),
        ("http", {"template": {"headers": {"accept-encoding": "gzip"}}}, "template.headers.accept-encoding", "secrets"),
        ("http", {"template": {"headers": {"X-A": "a\r\nB: c"}}}, "template.headers.X-A", "printable ASCII"),
        ("http", {"template": {"headers": {"X A": "a"}}}, "template.headers.X A", "must be a header name"),
        ("http", {"template": {"headers": {"x-kind": "a"}}}, "template.headers.x-kind", "twice"),
        ("http", {"template": {"headers": {"X-A": "{nothing}"}}}, "template.headers.X-A", "does not declare"),
        ("http", {"template": {"body_template": {"a": "{mesage}"}}}, "template.body_template", "does not declare"),
        ("http", {"template": {"body_template": {"{message}": 1}}}, "template.body_template", "name of a member"),
        ("http", {"template": {"url_template": "https://a.example/{nowhere}"}}, "template.url_template", "declare"),
        ("http", {"template": {"url_template": "https://a.example/{q}"}}, "template.url_template", "does not require"),
        ("http", {"template": {"url_template": "https://api.example.com/{q:3}"}}, "template.url_template", "RFC 6570"),
        ("http", schema({"path": {"type": ["object", "null"]}, "q": True, "message": True}, ["path"]),
         "template.url_template", "neither text, a number, a flag nor a list"),
        ("http", {"io": {"request_schema": {"type": None}}}, "io.request_schema", "takes its values from an object"),
        ("files", {"fs": {"allowed_operations": []}}, "fs", "allowed_operations is missing"),
        ("files", {"fs": {"allowed_operations": ["read", "write"]}}, "fs.operation", "is missing"),
        ("files", {"fs": {"operation": "delete"}}, "fs.operation", "not among fs.allowed_operations"),
        ("files", {"fs": {"path_pointer": "path"}}, "fs.path_pointer", "JSON pointer"),
        ("files", {"fs": {"path_pointer": "/nowhere"}}, "fs.path_pointer", "does not require"),
        ("files", schema({"path": {"type": "string"}}, []), "fs.path_pointer", "does not require"),
        ("files", {"fs": {"root": "../etc"}}, "fs.root", "dot segment"),
        ("files", {"fs": {"root": "/etc"}}, "fs.root", "absolute"),
        ("files", {"fs": {"root": "keys"}}, "fs.root", "Move the folder into the one that files_dir names"),
        ("files", {"fs": {"root": "modules-cache"}}, "fs.root", "must be `files`, or a folder in it"),
        ("files", {"fs": {"root": "files-of-others"}}, "fs.root", "must be `files`, or a folder in it"),
        ("files", {"fs": {"allowed_paths": ["/notes"]}}, "fs.allowed_paths", "absolute"),
        ("files", {"fs": {"denied_paths": ["a/../b"]}}, "fs.denied_paths", "dot segment"),
        ("files", {"fs": {"max_file_bytes": 0}}, "fs.max_file_bytes", "1 or more"),
    ],
)  # fmt: skip
def test_sections_that_contradict_each_other_are_a_problem(
    read_kind: Read, kind: str, change: dict[str, Any], field: str, words: str
) -> None:
    assert_refused(read_kind(kind, change), field, words)


@pytest.mark.parametrize(
    "value", ["application/json", "Application/JSON;charset=utf-8", "application/merge-patch+json",
              "application/x-amz-json-1.1"],
)  # fmt: skip
def test_a_body_may_be_sent_as_any_kind_of_json(read_kind: Read, value: str) -> None:
    assert read_kind("http", content_type(value))[1] == []
    assert read_kind("http", {"template": {"body_template": None, "headers": {"Content-Type": "text/plain"}}})[1] == []


@pytest.mark.parametrize(
    ("kind", "verifier", "config"),
    [
        ("http", "http_status", {"expected": [200, "3xx"]}),
        ("http", "http_status", {}),
        ("files", "fs_hash", {"path_pointer": "/path", "content_pointer": "/content"}),
        ("compute", "response_schema", {"schema": {"type": "object"}}),
    ],
)
def test_a_verifier_is_told_what_it_understands(
    read_kind: Read, kind: str, verifier: str, config: dict[str, Any]
) -> None:
    manifest, problems = read_kind(kind, {"verifier_kind": verifier, "verification_config": config})
    assert manifest is not None, [str(problem) for problem in problems]


def test_a_proxy_profile_is_taken_when_the_configuration_has_a_proxy(read_kind: Read) -> None:
    manifest, _ = read_kind("http", {"egress": {"profile": "proxy_allowlist"}}, has_proxy=True)
    assert manifest is not None


def test_a_static_host_outside_the_allow_list_is_no_problem_since_its_calls_are_held(read_kind: Read) -> None:
    manifest, _ = read_kind("http", {"egress": {"allowed_domains": ["other.example"]}})
    assert manifest is not None


def test_a_query_variable_may_be_optional(read_kind: Read) -> None:
    manifest, _ = read_kind("http", {"template": {"url_template": "https://api.example.com/a?q={q}"}})
    assert manifest is not None


def test_the_path_of_an_fs_action_may_stand_deeper_in_the_request(read_kind: Read) -> None:
    inner = {"type": "object", "properties": {"a/b": {"type": "string"}}, "required": ["a/b"]}
    change = {**schema({"file": inner}, ["file"]), "fs": {"path_pointer": "/file/a~1b"}}
    manifest, problems = read_kind("files", change)
    assert manifest is not None, [str(problem) for problem in problems]


@pytest.mark.parametrize(
    ("fragment", "words"),
    [
        ({"properties": {"text": {"type": "strin"}}}, "io.request_schema#/properties/text/type"),
        ({"required": "text"}, "io.request_schema#/required"),
        ({"properties": {"text": {"$ref": "https://example.com/s.json"}}}, "refers to something outside"),
        ({"properties": {"default": {"$ref": "other.json#/x"}}}, "refers to something outside"),
        ({"properties": {"text": {"$ref": "#/$defs/absent"}}}, "#/properties/text/$ref: refers to"),
        ({"properties": {"text": {"$ref": "#absent"}}}, "does not compile"),
        ({"properties": {"text": {"$id": "https://example.com/", "type": "string"}}}, "stands inside the schema"),
        ({"properties": {"text": {"pattern": "(?=x)"}}}, "#/properties/text/pattern: the pattern"),
        ({"properties": {"text": {"format": "int32"}}}, '#/properties/text/format: "int32" is no format'),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "draft 2020-12"),
    ],
)
def test_a_schema_that_can_not_be_used_is_a_problem(read_kind: Read, fragment: dict[str, Any], words: str) -> None:
    for kind in ("request_schema", "response_schema"):
        base = {"type": "object", "properties": {"text": {"type": "string"}}, "required": []}
        manifest, problems = read_kind("compute", {"io": {kind: {**base, **fragment}}})
        assert manifest is None
        assert any(words.replace("request_schema", kind) in str(problem) for problem in problems), list(
            map(str, problems)
        )


def test_a_reference_inside_data_is_no_reference(read_kind: Read) -> None:
    manifest, _ = read_kind("compute", {"io": {"response_schema": {"const": {"$ref": "https://example.com/"}}}})
    assert manifest is not None


def test_a_local_reference_is_followed(read_kind: Read) -> None:
    fragment = {"$defs": {"name": {"type": "string"}}, "properties": {"text": {"$ref": "#/$defs/name"}}}
    manifest, _ = read_kind("compute", {"io": {"request_schema": fragment}})
    assert manifest is not None
