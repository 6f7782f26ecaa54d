"""The body of a call that is explained or previewed is read as that of a call, and refused for the same reasons."""

from typing import Any, Final

import pytest

from tests.support.front_core import Core, action

SMALL: Final = action("small", io={"max_request_bytes": 64, "request_schema": {"type": "object", "required": ["n"]}})
BODIES: Final = {
    "a name twice": b'{"n": 1, "n": 2}',
    "a name twice inside": b'{"n": {"a": 1, "a": 2}}',
    "an integer beyond a double": b'{"n": 9007199254740993}',
    "a number out of range": b'{"n": 1e999}',
    "too deep": b'{"n": ' + b"[" * 32 + b"]" * 32 + b"}",
    "a noncharacter": b'{"n": "\\ufffe"}',
    "bytes that are no UTF-8": b'{"n": "\xff"}',
    "an array": b"[1]",
    "a text": b'"n"',
    "nothing of what is required": b"{ }",
}

pytestmark = pytest.mark.front(action(preview=True), SMALL, workers=0)


async def explained(core: Core, request: bytes, action_id: str = "echo") -> tuple[int, Any]:
    form = b'{"principal": "dev:anonymous", "action_id": "%s", "request": %s}' % (action_id.encode(), request)
    return await core.operate("POST", "/v1/admin/policy/explain", form)


async def previewed(core: Core, request: bytes, action_id: str = "echo") -> tuple[int, Any]:
    form = b'{"principal": "dev:anonymous", "request": %s}' % request
    return await core.operate("POST", f"/v1/admin/actions/{action_id}/preview", form)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
async def test_a_body_that_a_call_refuses_is_refused_alike_where_it_is_supposed(core: Core, body: bytes) -> None:
    status, refused = await (await core.agent()).call("echo", body)
    assert status == 422, refused
    assert await previewed(core, body) == (422, refused)
    status, explanation = await explained(core, body)
    assert (status, explanation["decision"], explanation["error_code"]) == (200, "deny", "schema_violation")
    assert explanation["reason"] == refused["reason"]


async def test_a_body_with_more_bytes_than_the_action_takes_is_refused_alike(core: Core) -> None:
    spaced = b'{"n":' + b" " * 64 + b"1}"
    assert (await (await core.agent()).call("small", spaced))[0] == 413
    assert await previewed(core, spaced, "small") == (413, {"error": "body_too_large"})
    _, explanation = await explained(core, spaced, "small")
    assert (explanation["decision"], explanation["error_code"]) == ("deny", "body_too_large")


async def test_a_supposed_body_has_the_hash_that_the_call_has(core: Core) -> None:
    body = b'{"z": "\\u00e9\\ud83d\\ude00", "n": 1.0, "x": [1e2, -0.0, {"b": true, "a": "\\"n\\":"}]}'
    _, explanation = await explained(core, body)
    answer = await (await core.agent()).send("POST", "/v1/actions/echo/preview", body)
    _, shown = await previewed(core, body)
    assert answer.status == 200
    assert explanation["request_hash"] == shown["shown"]["request_hash"]
    assert explanation["request_hash"].encode() in answer.body


async def test_a_member_of_the_form_that_is_given_twice_is_refused(core: Core) -> None:
    twice = b'{"principal": "a", "action_id": "echo", "request": {"n": 1}, "request": {"n": 2}}'
    refused = (400, {"error": "invalid_request", "message": "the body must be a JSON object"})
    assert await core.operate("POST", "/v1/admin/policy/explain", twice) == refused
    again = b'{"principal": "a", "request": {"n": 1}, "principal": "b"}'
    assert await core.operate("POST", "/v1/admin/actions/echo/preview", again) == refused
