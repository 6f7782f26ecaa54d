"""The request of `gatectl execute`: a file, JSON on the command line, or `key=value` by the action's schema.

Errors never quote the request.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gateway_client.agents import AgentClient
from gateway_client.cli.display.safe import safe
from gateway_client.cli.exits import usage
from gateway_client.errors import NotFound, ProtocolViolation
from gateway_client.operators import OperatorClient
from gateway_client.wire.decoding import parse_json

MAX_REQUEST = 1_048_576
"""docs/contract.md, "Limits"."""
Schema = dict[str, Any] | None


def request_of(given: str | None, values: Sequence[str], schema_of: Callable[[], Schema]) -> Any:
    """The request to send. `given`: JSON that begins with `{`, `-` for standard input, or the name of a file; `values`:
    members as `key=value`. `schema_of` is asked where values are given alone. Raises Failure usage."""
    if given is not None and values:
        raise usage("--request and key=value are two ways to say one thing", "use one of them")
    if values:
        return _members(values, schema_of() or {})
    if given is None:
        return {}
    if given.lstrip().startswith("{"):
        return _parsed(given.encode(), "--request")
    return _parsed(_read(given), given)


def schema_of(client: AgentClient | OperatorClient, action: str) -> Schema:
    """The JSON Schema of this action's request; None where it declares none. Raises GatewayError."""
    try:
        return client.request_schema(action)
    except NotFound:
        return None


def _read(name: str) -> bytes:
    file = Path(name)
    if name != "-" and not file.is_file():
        raise usage(f"there is no file {safe(name)}", "a file, - for standard input, or JSON: '{…}'")
    with sys.stdin.buffer if name == "-" else file.open("rb") as opened:
        return opened.read(MAX_REQUEST + 1)


def _parsed(data: bytes, name: str) -> Any:
    if len(data) > MAX_REQUEST:
        raise usage("the request is larger than 1 MB")
    try:
        return parse_json(data, "the request")
    except ProtocolViolation as error:
        raise usage(f"{error.reason}: {safe(name)}", "one JSON value, no name twice") from None


def _members(values: Sequence[str], schema: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    rules = properties if isinstance(properties, dict) else {}
    members: dict[str, Any] = {}
    for one in values:
        name, equals, text = one.partition("=")
        if not name or not equals:
            raise usage("a member of the request is given as key=value", "or all of it as --request '{…}'")
        if name in members:
            raise usage(f"{safe(name)} is given twice")
        members[name] = _value(text, rules.get(name))
    return members


def _value(text: str, rule: object) -> Any:
    """A string where the schema asks for one; otherwise JSON, or the text itself where it is not JSON."""
    wanted = rule.get("type") if isinstance(rule, dict) else None
    if wanted == "string":
        return text
    try:
        return parse_json(text.encode(), "the value")
    except ProtocolViolation:
        return text
