"""The parsing of an OPA's answers, and the data that is pushed into it."""

import json

import pytest

from frontend.policy.engine import PolicyRefused
from frontend.policy.opa.wire import Mark, NotUnderstood, OpaAnswer, document_in, documents_of, found_in, mark_in, patch


def found(body: str) -> object:
    return found_in(OpaAnswer(200, body.encode()))


def test_the_result_is_handed_on_as_it_was_written() -> None:
    assert document_in(found_in(OpaAnswer(200, b'{"decision_id": "x", "result": {"a" : 1.0}}'))) == '{"a" : 1.0}'
    assert document_in(found_in(OpaAnswer(200, b"{}"))) is None


@pytest.mark.parametrize(
    "body",
    [
        "", "[]", "null", '"x"', '{"result": ', '{"result": 1, "result": 2}', '{"result": NaN}', "{" * 5000,
        '{"result": {}, "provenance": 3}', '{"provenance": {"bundles": []}}', "\ufeff{}", '{"a": "\\ud800"',
    ],
)  # fmt: skip
def test_what_the_data_api_does_not_answer_is_not_understood(body: str) -> None:
    with pytest.raises(NotUnderstood):
        found(body)


@pytest.mark.parametrize("status", [204, 301, 400, 401, 404, 500, 503])
def test_another_status_is_told_with_what_opa_says_of_it(status: int) -> None:
    with pytest.raises(NotUnderstood, match=rf"^OPA answered {status} \(unauthorized: no.token\)$"):
        found_in(OpaAnswer(status, b'{"code": "unauthorized", "message": "no\\u001b token"}'))
    with pytest.raises(NotUnderstood, match=f"^OPA answered {status}$"):
        found_in(OpaAnswer(status, b"<html>"))


@pytest.mark.parametrize(
    ("provenance", "revision"),
    [
        ("{}", None),
        ('{"bundles": {}}', None),
        ('{"bundles": {"a": {"revision": "1"}}}', '[["a", "1"]]'),
        ('{"bundles": {"b": {"revision": "2"}, "a": {"revision": "1"}}}', '[["a", "1"], ["b", "2"]]'),
        ('{"bundles": {"a": {"revision": "1"}, "b": {}}}', None),
        ('{"bundles": {"a": {"revision": ""}}}', None),
    ],
)
def test_there_is_a_revision_where_every_bundle_tells_its_own(provenance: str, revision: str | None) -> None:
    assert found_in(OpaAnswer(200, f'{{"provenance": {provenance}}}'.encode())).revision == revision


@pytest.mark.parametrize("result", ["null", "3", '"x"', "[]", '{"digest": 3}', '{"documents": {}}', "{}"])
def test_a_mark_that_is_not_ours_is_none(result: str) -> None:
    assert mark_in(found_in(OpaAnswer(200, f'{{"result": {result}}}'.encode()))) == Mark()
    assert mark_in(found_in(OpaAnswer(200, b"{}"))) == Mark()


def test_a_push_replaces_our_documents_and_removes_those_that_are_gone() -> None:
    documents = documents_of('{"policy_version": "1", "a/b ~c": [1]}')
    steps = json.loads(patch(documents, Mark("before", ("old", "policy_version"))))
    assert steps[0] == {"op": "remove", "path": "/old"}
    assert {step["path"]: step["value"] for step in steps[1:]} == {
        "/policy_version": "1", "/a~1b%20~0c": [1],
        "/gateway_pushed": {"digest": documents.digest, "documents": ["a/b ~c", "policy_version"]},
    }  # fmt: skip
    assert {step["op"] for step in steps[1:]} == {"add"}


@pytest.mark.parametrize("name", ["gateway_pushed", "system"])
def test_names_that_are_taken_are_refused(name: str) -> None:
    with pytest.raises(PolicyRefused, match=name):
        documents_of(json.dumps({"policy_version": "1", name: {}}))
