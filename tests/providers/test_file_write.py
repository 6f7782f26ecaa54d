"""file_write and the fs side of the guest library."""

import hashlib

import pytest

from tests.providers.conftest import Call
from tests.support.provider_host import Host


@pytest.mark.parametrize(
    "content", ["", "hello\n", "grüße 👋\x00", "x" * 1_048_576], ids=["empty", "text", "unicode", "large"]
)
def test_it_writes_what_it_was_given_and_says_what_it_wrote(content: str, call: Call, host: Host) -> None:
    output = call("file_write", {"path": "notes/a b.txt", "content": content}).output
    assert host.files == {"notes/a b.txt": content}
    digest = hashlib.sha256(content.encode()).hexdigest()
    assert output == {"path": "notes/a b.txt", "bytes": len(content.encode()), "sha256": digest}


def test_a_path_that_needs_escaping_comes_back_as_it_was(call: Call) -> None:
    path = 'a"b\\c\nd/ü\x01'
    assert call("file_write", {"path": path, "content": ""}).output["path"] == path


@pytest.mark.parametrize(
    ("request_", "field"),
    [({"content": ""}, "path"), ({"path": "a"}, "content"), ({"path": "a", "content": 1}, "content")],
)
def test_a_request_with_a_field_missing_writes_nothing(request_: object, field: str, call: Call, host: Host) -> None:
    failure = call("file_write", request_).failure
    assert failure is not None
    assert (failure.kind, failure.details) == ("invalid-input", {"field": field})
    assert host.files == {}


def test_what_the_host_refuses_is_passed_on_whole(call: Call, host: Host) -> None:
    host.refuse("denied", "the path is outside of the allowed ones", '{"path":"../x"}', retryable=False)
    failure = call("file_write", {"path": "../x", "content": ""}).failure
    assert failure is not None
    assert (failure.kind, failure.message, failure.details) == (
        "denied", "the path is outside of the allowed ones", {"path": "../x"},
    )  # fmt: skip


def test_the_guest_library_carries_every_file_operation_and_goes_on_after_an_error(call: Call, host: Host) -> None:
    steps = [
        {"operation": "read", "path": "a"},
        {"operation": "write", "path": "a", "data": "one"},
        {"operation": "append", "path": "a", "data": " two", "encoding": "utf8"},
        {"operation": "read", "path": "a", "encoding": "base64"},
        {"operation": "stat", "path": "a"},
        {"operation": "write", "path": "b", "data": ""},
        {"operation": "list", "path": ""},
        {"operation": "delete", "path": "b"},
        {"operation": "delete", "path": "b"},
        {"operation": "list", "path": ""},
    ]
    missing = {"error": {"kind": "not_found", "message": "no such file", "details": None, "retryable": False}}
    one = {"name": "a", "kind": "file", "size": 7}
    assert call("fs_probe", {"steps": steps}).output["results"] == [
        missing,
        {"size": 3},
        {"size": 7},
        {"data": "one two"},
        {"entry": one},
        {"size": 0},
        {"entries": [one, {"name": "b", "kind": "file", "size": 0}]},
        {},
        missing,
        {"entries": [one]},
    ]
    assert host.files == {"a": "one two"}


def test_an_empty_folder_lists_as_an_empty_list(call: Call) -> None:
    assert call("fs_probe", {"steps": [{"operation": "list", "path": ""}]}).output == {"results": [{"entries": []}]}


def test_log_lines_reach_the_host_with_their_levels(call: Call, host: Host) -> None:
    lines = ["a", "ü", "", "x" * 10_000, "b"]
    assert call("log_probe", {"lines": lines}).output == {"logged": 5}
    assert host.logged == list(zip(["debug", "info", "warn", "error", "debug"], lines, strict=True))
