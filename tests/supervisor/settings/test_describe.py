"""The JSON Schema of the configuration against the code that checks it."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given

from supervisor.settings.describe import configuration_schema
from tests.supervisor.settings.parsed import NEEDED, checked
from tests.supervisor.settings.test_config import JKT
from tests.supervisor.settings.test_config_sources import DOCUMENT
from tests.supervisor.test_cli import PRODUCTION, here

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = configuration_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
NOT_A_MATTER_OF_FORM = re.compile(
    r"must not be above|must differ from|is there twice|share one key|must have the form key-|cannot be read"
    r"|at most 107 bytes|is not a URL|http or https URL|nor fragment|IP address and a port|can't be connected to"
    r"|is not set|is replaced in a path|is not a user id|PostgreSQL|must be a number of seconds"
)
"""Beyond one value, beyond a pattern, or beyond JSON: the schema may let it pass."""


def problems_of(text: str) -> list[str]:
    return [str(problem) for problem in checked(text).problems]


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_the_configurations_of_documents_and_tests_fit() -> None:
    (shown,) = re.findall(r"```toml\n(state_dir.*?)```", (ROOT / "docs" / "configuration.md").read_text(), re.DOTALL)
    shown = shown.replace('api_key_sha256 = "…"', f'api_key_sha256 = "{"0" * 64}"').replace('"…"', f'"{JKT}"')
    for text in (shown, NEEDED, PRODUCTION):
        VALIDATOR.validate(tomllib.loads(text))
        assert problems_of(text) == []


@pytest.mark.parametrize(
    "line",
    [
        "state_dir = 3", 'state_dir = ""', 'state_dir = "a\\u0000"', 'public_base_url = "gate.example"',
        'listen_http_addr = "gate.example:80"', 'unsafe_expose_http = "yes"', "front_processes = 65",
        "lease_ttl_seconds = 0", "lease_ttl_seconds = 3601", "lease_ttl_seconds = true", "lease_ttl_seconds = 1.5",
        'response_schema_enforcement = "off"', 'opa_url = "ftp://127.0.0.1:8181"', 'store.redis_url = "http://h"',
        'ledger.url = "mysql://h/d"', "limits = 3", "operators = 3", "operators = [3]", "limits.drain_seconds = -1",
        "workers.http.max = 0", 'identity.provider = "oidc"', 'identity.peercred.principals.root.principal = "a"',
        'identity.peercred.principals.1 = {principal = "a", scopes = []}', "unknown = 1", "limits.max_in_flght = 1",
        'identity.peercred.principals.1 = {principal = "a", scopes = ["call"]}', '[[webhooks]]\nname = "w"',
        'identity.peercred.principals.1 = {owner = "a"}', 'egress.unsafe_resolve = {"A.test" = "127.0.0.1:1"}',
        'egress.unsafe_resolve = {"a.test" = "b.test:80"}', 'secrets.age_identity_file = "k"', "dev_mode = true",
        '[[operators]]\nname = "ada"', '[[operators]]\nname = "ada"\napi_key = "a"\napi_key_file = "b"',
        '[[operators]]\napi_key = "a"', '[[operators]]\nname = "a/b"\napi_key = "a"',
        '[[operators]]\nname = "ada"\ndpop_jkt = "short"\napi_key = "a"',
        f'[[operators]]\nname = "ada"\ndpop_jkt = "{"x" * 43}"\napi_key = "a"',
        '[[operators]]\nname = "ada"\napi_key_sha256 = "abc"',
    ],
)  # fmt: skip
def test_the_schema_refuses_every_form_that_the_gateway_refuses(line: str) -> None:
    key = re.split(r"[ .]", line)[0]
    kept = [one for one in NEEDED.splitlines() if not one.startswith(key)]
    text = "\n".join([*kept, line])
    assert problems_of(text)
    assert not VALIDATOR.is_valid(tomllib.loads(text))


def plain(value: Any) -> Any:
    """TOML as the schema sees it; None where it holds what JSON has not (times, infinities)."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        return None


@given(DOCUMENT)
def test_gateway_and_schema_agree_about_any_document(text: str) -> None:
    whole = NEEDED + text
    try:
        document = plain(tomllib.loads(whole))
    except ValueError:
        return
    if document is None:
        return
    problems = [problem for problem in problems_of(whole) if not NOT_A_MATTER_OF_FORM.search(problem)]
    if VALIDATOR.is_valid(document):
        assert not problems
    else:
        assert problems_of(whole)


def test_the_command_prints_it(tmp_path: Path) -> None:
    done = here(tmp_path, "schema", "config")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == SCHEMA
