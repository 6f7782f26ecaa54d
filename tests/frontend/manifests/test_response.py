from collections.abc import Callable
from typing import Any

import pytest

from frontend.actions.registry import Action
from ipc.plan import INTENT_ID, ResponseRules
from tests.frontend.actions.conftest import Read, assert_refused


def test_the_planned_request_has_the_rules_of_its_answer_and_a_place_for_the_intents_id(
    action_of: Callable[..., Action],
) -> None:
    response = {"headers": ["Location", "link"], "pick": {"id": "/data/id"}}
    action = action_of("http", {"response": response, "idempotency": {"header": "Idempotency-Key"}})
    assert action.template is not None
    planned, _ = action.template.render({"path": "x", "message": "hi"})
    assert planned.response == ResponseRules(("Location", "link"), {"id": "/data/id"})
    assert planned.headers[-1] == ("Idempotency-Key", INTENT_ID)
    assert planned.idempotency_header == "Idempotency-Key"


def headers(*names: str) -> dict[str, Any]:
    return {"response": {"headers": list(names)}}


def key(header: str) -> dict[str, Any]:
    return {"idempotency": {"header": header}}


@pytest.mark.parametrize(
    ("kind", "change", "field", "words"),
    [
        ("http", headers("Set-Cookie"), "response.headers[0]", "may hold credentials"),
        ("http", headers("X-A", "WWW-Authenticate"), "response.headers[1]", "may hold credentials"),
        ("http", headers("X-A", "x-a"), "response.headers[1]", "twice"),
        ("http", headers("X A"), "response.headers[0]", "header name"),
        ("http", headers(*(f"X-{number}" for number in range(33))), "response.headers", "more than 32"),
        ("http", {"response": {"pick": {"a": "data"}}}, "response.pick.a", "JSON pointer"),
        ("http", {"response": {"pick": {f"m{n}": "/a" for n in range(65)}}}, "response.pick", "more than 64"),
        ("http", {"response": {"picks": {}}}, "response.picks", "Did you mean pick?"),
        ("http", headers("X-A") | {"provider_module_digest": "sha256:" + "ab" * 32}, "response", "builtin:http"),
        ("compute", headers("X-A"), "response", "builtin:http with a template"),
        ("compute", key("Idempotency-Key"), "idempotency", "needs a template"),
        ("http", key("X-Kind"), "idempotency.header", "two sources"),
        ("http", key("x-token") | {"secrets": [{"name": "t", "inject": {"header": "X-Token"}}]}, "idempotency.header",
         "two sources"),
        ("http", key("Content-Type"), "idempotency.header", "meaning of its own"),
        ("http", key("Authorization"), "idempotency.header", "meaning of its own"),
        ("http", key("Host"), "idempotency.header", "meaning of its own"),
        ("http", {"idempotency": {}}, "idempotency.header", "is missing"),
    ],
)  # fmt: skip
def test_a_section_that_could_not_be_followed_is_a_problem(
    read_kind: Read, kind: str, change: dict[str, Any], field: str, words: str
) -> None:
    assert_refused(read_kind(kind, change), field, words)


def test_sections_that_choose_nothing_change_nothing(read_kind: Read) -> None:
    manifest, _ = read_kind("http", {"response": {"headers": [], "pick": {}}})
    assert manifest is not None
    assert manifest.response is None
