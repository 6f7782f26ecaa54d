"""The result of an action whose manifest chooses parts of the upstream's answer.

Headers are those that the host saw, never those that a provider names. A choice that can't be made fails the call, so
that no result looks whole and is not.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from ipc.plan import ResponseRules
from ipc.texts.canonical import NotCanonical, canonical_bytes
from ipc.texts.pointers import value_at
from workers.host.wire import Headers
from workers.runtime.output import BadOutput

MAX_HEADER_BYTES = 8192


def shaped(result: dict[str, Any], rules: ResponseRules, headers: Headers) -> str:
    """The JSON text of `result` with the chosen headers and members. Raises BadOutput."""
    changed = dict(result)
    if rules.headers:
        changed["headers"] = dict(_chosen(rules, headers))
    if rules.pick:
        changed["body"] = _picked(result, rules)
    try:
        return canonical_bytes(changed).decode()
    except NotCanonical:
        raise BadOutput("the upstream's answer has a number that a double can't hold") from None


def _chosen(rules: ResponseRules, headers: Headers) -> Iterator[tuple[str, str]]:
    for name in rules.headers:
        values = [value for other, value in headers if other == name.lower()]
        joined = ", ".join(values)
        if len(joined.encode()) > MAX_HEADER_BYTES:
            raise BadOutput(f"the upstream's header {name} has more than {MAX_HEADER_BYTES} bytes")
        if values:
            yield name, joined


def _picked(result: dict[str, Any], rules: ResponseRules) -> dict[str, Any]:
    body = result.get("body")
    if body in ("", None):  # as of 204 No Content
        return {}
    if "body_encoding" in result or not isinstance(body, dict | list):
        raise BadOutput("the upstream's body is no JSON object or list, from which response.pick could take members")
    picked: dict[str, Any] = {}
    for name, pointer in rules.pick.items():
        with suppress(LookupError):
            picked[name] = value_at(body, pointer)
    return picked
