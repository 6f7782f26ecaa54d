"""The document says of every row what the table says, in a form that validators and generators take."""

import json
import os
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import click
import jsonschema_rs
import pytest
from gateway_client.cli.main import cli
from openapi_spec_validator import OpenAPIV31SpecValidator

from frontend.api.describe import main
from frontend.api.openapi.document import document, encoded
from frontend.api.openapi.texts import GATECTL, RATES, SERVERS
from frontend.api.route import Auth, Route
from frontend.api.routes import ROUTES
from frontend.errors import STATUS
from frontend.limits.rates import PER_SECOND
from ipc.settings import Settings
from supervisor.dev.settings import DEFAULT_LISTEN

ROOT = Path(__file__).resolve().parents[4]
DOCUMENT = document(ROUTES)
COMPONENTS = DOCUMENT["components"]
OPERATIONS = [
    (method, path, operation) for path, item in DOCUMENT["paths"].items() for method, operation in item.items()
]


def ids(value: Any) -> str:
    return value if isinstance(value, str) else ""


def response_of(operation: dict[str, Any], status: str) -> dict[str, Any]:
    response: dict[str, Any] = operation["responses"][status]
    return COMPONENTS["responses"][response["$ref"].rpartition("/")[2]] if "$ref" in response else response


def rows_of(method: str, path: str) -> list[Route]:
    return [route for route in ROUTES if (route.method.lower(), route.path) == (method, path)]


@cache
def validator(schema: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator({**json.loads(schema), "components": COMPONENTS})


def check(schema: dict[str, Any], value: Any) -> None:
    validator(json.dumps(schema)).validate(value)


def test_the_file_in_docs_is_what_the_code_says() -> None:
    """Stale: run `python -m frontend.api.describe`."""
    assert (ROOT / "docs" / "openapi.json").read_bytes() == encoded(DOCUMENT)


@pytest.mark.large
def test_the_document_is_openapi() -> None:
    OpenAPIV31SpecValidator(json.loads(encoded(DOCUMENT))).validate()


def test_it_is_the_same_whenever_it_is_made(tmp_path: Path) -> None:
    """Not by the order of sets, which each process has of its own."""
    command = [sys.executable, "-m", "frontend.api.describe", "--output", str(tmp_path / "openapi.json")]
    environment = os.environ | {"PYTHONHASHSEED": "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=120)
    assert (tmp_path / "openapi.json").read_bytes() == encoded(DOCUMENT)


def test_a_stale_file_is_reported_and_a_fresh_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "openapi.json"
    monkeypatch.setattr(sys, "argv", ["openapi", "--check", "--output", str(file)])
    assert main() == 1
    file.write_bytes(encoded(DOCUMENT).replace(b"drain", b"train"))
    assert main() == 1
    assert f"{file} is stale: run python -m frontend.api.describe" in capsys.readouterr().err
    file.write_bytes(encoded(DOCUMENT))
    assert main() == 0


def test_every_row_is_an_operation_and_every_operation_a_row() -> None:
    assert {(method, path) for method, path, _ in OPERATIONS} == {(row.method.lower(), row.path) for row in ROUTES}
    names = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS, ids=ids)
def test_an_operation_lists_every_code_of_its_rows_with_an_example(
    method: str, path: str, operation: dict[str, Any]
) -> None:
    rows = rows_of(method, path)
    listed = {
        code: int(status)
        for status in operation["responses"]
        for code in response_of(operation, status)["content"].get("application/json", {}).get("examples", ())
    }
    assert listed == {code: STATUS[code] for row in rows for code in row.codes}
    for status in operation["responses"]:
        response = response_of(operation, status)
        headers = response.get("headers", {})
        assert ("WWW-Authenticate" in headers) == (status == "401")
        assert status != "429" or "Retry-After" in headers
        assert "X-Trace-Id" in headers


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS, ids=ids)
def test_every_example_is_what_its_schema_says(method: str, path: str, operation: dict[str, Any]) -> None:
    if "requestBody" in operation:
        content = operation["requestBody"]["content"]["application/json"]
        check(content["schema"], content["example"])
    for parameter in operation.get("parameters", ()):
        if "example" in parameter:
            check(parameter["schema"], parameter["example"])
    for status in operation["responses"]:
        for content in response_of(operation, status)["content"].values():
            if "example" in content:
                check(content["schema"], content["example"])
            for example in content.get("examples", {}).values():
                check(content["schema"], COMPONENTS["examples"][example["$ref"].rpartition("/")[2]]["value"])


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS, ids=ids)
def test_an_operation_says_where_it_is_and_who_may_call(method: str, path: str, operation: dict[str, Any]) -> None:
    rows = rows_of(method, path)
    assert operation["servers"][0] == SERVERS["merged"]
    assert operation["servers"][1:] == [SERVERS[name] for name in dict.fromkeys(s for row in rows for s in row.sockets)]
    ways = {next(iter(way)) for way in operation["security"]}
    expected = {
        Auth.OPERATOR: {"operator"}, Auth.LEASE: {"lease"}, Auth.PIPELINE: {"lease"}, Auth.NONE: set(), Auth.DEV: set(),
    }  # fmt: skip
    assert ways == set().union(*(expected[row.auth] for row in rows))
    assert all("proof" in way for way in operation["security"])


def test_nothing_is_without_a_description() -> None:
    for method, path, operation in OPERATIONS:
        assert operation["summary"], (method, path)
        for parameter in operation.get("parameters", ()):
            assert parameter.get("description"), (method, path, parameter["name"])
        assert all(response_of(operation, status)["description"] for status in operation["responses"])
    assert all(schema["description"] for schema in COMPONENTS["schemas"].values())
    assert all("summary" in example for example in COMPONENTS["examples"].values())
    assert all(tag["description"] != tag["name"] for tag in DOCUMENT["tags"])


def test_every_reference_leads_somewhere_and_every_schema_is_used() -> None:
    text = encoded(DOCUMENT).decode()
    for kind in ("schemas", "responses", "examples", "headers"):
        for name in COMPONENTS[kind]:
            is_used = f'"#/components/{kind}/{name}"' in text
            assert is_used or kind in ("responses", "headers"), f"{kind}/{name}"
    for word in text.split('"'):
        if word.startswith("#/"):
            _, _, kind, name = word.split("/")
            assert name in COMPONENTS[kind]


def test_addresses_and_rates_are_those_of_the_code() -> None:
    defaults = Settings(state_dir="", public_base_url="")
    assert SERVERS["merged"]["url"] == f"http://{DEFAULT_LISTEN}"
    assert SERVERS["client"]["description"].endswith(defaults.listen_uds_path)
    assert SERVERS["admin"]["description"].endswith(defaults.listen_admin_uds_path)
    for name in PER_SECOND.keys() - {"scrape"}:  # of a socket that the document leaves out
        rate = PER_SECOND[name]
        assert f"At most {rate} a second" in RATES["lease" if name == "unidentified" else name]
    assert str(defaults.limits.session_requests_per_second) in RATES["session"]


def test_gatectl_takes_every_command_that_the_document_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "request.json").write_text("{}")
    samples = [(op["operationId"], one["source"]) for _, _, op in OPERATIONS for one in op.get("x-codeSamples", ())]
    assert {operation_id for operation_id, _ in samples} == GATECTL.keys()
    for _, source in samples:
        name, *words = shlex.split(source)
        assert name == "gatectl"
        command: click.Command = cli
        while isinstance(command, click.Group):
            command = command.commands[words.pop(0)]
        command.make_context(command.name, words)
