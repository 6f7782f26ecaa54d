import json
from typing import Any

import pytest

from ipc.plan import ResponseRules
from workers.runtime.output import BadOutput
from workers.runtime.shaping import MAX_HEADER_BYTES, shaped

HEADERS = (("location", "/r/1"), ("link", "<a>"), ("link", "<b>"), ("x-name", "caf\xe9"), ("set-cookie", "secret"))
BODY = {"data": {"id": 7, "tags": ["x", "y"]}, "a/b": None, "token": "secret"}


def result(rules: ResponseRules, body: Any = BODY, **more: Any) -> Any:
    return json.loads(shaped({"status": 201, "body": body} | more, rules, HEADERS))


def test_a_result_has_the_chosen_headers_under_the_names_of_the_manifest() -> None:
    rules = ResponseRules(("Location", "LINK", "X-Name", "X-Absent"))
    assert result(rules) == {
        "status": 201, "body": BODY, "headers": {"Location": "/r/1", "LINK": "<a>, <b>", "X-Name": "café"},
    }  # fmt: skip


def test_a_body_has_the_picked_members_and_nothing_else() -> None:
    pick = {
        "id": "/data/id",
        "second": "/data/tags/1",
        "nothing": "/a~1b",
        "absent": "/data/name",
        "far": "/data/tags/9",
    }
    assert result(ResponseRules(pick=pick)) == {"status": 201, "body": {"id": 7, "second": "y", "nothing": None}}
    assert result(ResponseRules(pick={"first": "/0/id"}), [{"id": 1}]) == {"status": 201, "body": {"first": 1}}


@pytest.mark.parametrize("body", ["", None])
def test_nothing_is_picked_from_an_answer_without_a_body(body: str | None) -> None:
    assert result(ResponseRules(pick={"id": "/id"}), body)["body"] == {}


@pytest.mark.parametrize("body", ["<html>", 5, True, '{"id":1'])
def test_a_body_that_is_no_json_object_or_list_fails_the_pick(body: Any) -> None:
    with pytest.raises(BadOutput, match="no JSON object or list"):
        result(ResponseRules(pick={"id": "/id"}), body)


def test_bytes_are_not_taken_for_a_body_without_members() -> None:
    with pytest.raises(BadOutput, match="no JSON object or list"):
        result(ResponseRules(pick={"id": "/id"}), "/wA=", body_encoding="base64")


def test_a_header_beyond_its_bound_fails_the_call() -> None:
    with pytest.raises(BadOutput, match="header Link has more than"):
        shaped({"status": 200}, ResponseRules(("Link",)), (("link", "x" * (MAX_HEADER_BYTES + 1)),))
