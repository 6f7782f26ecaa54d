from collections.abc import Callable
from typing import Any

import pytest

from frontend.actions.registry import Action
from frontend.actions.targets import NOTHING_LEARNED, Learned, Targets, targets_of
from frontend.errors import GateError
from ipc.settings import Settings

ActionOf = Callable[..., Action]
FILES = "/srv/agents"
SETTINGS = Settings("/var/lib/gateway", "http://localhost", files_dir=FILES)


def targets(action: Action, request: Any, learned: Learned = NOTHING_LEARNED) -> Targets:
    return targets_of(action, action.accept(request), learned, SETTINGS)


def test_a_compute_action_touches_nothing(action_of: ActionOf) -> None:
    assert targets(action_of("compute"), {"text": "x"}) == Targets()


def test_an_http_action_names_its_request(action_of: ActionOf) -> None:
    touched = targets(action_of("http"), {"path": "/items", "message": "hi"})
    assert touched.targets == ("POST https://api.example.com/items?q=",)
    assert touched.sinks == ("http_write",)
    assert touched.unresolved_domains == ()
    assert touched.http_request is not None
    assert touched.http_request.body == '{"fixed":[1,null],"message":"hi"}'


def test_a_host_outside_the_allow_list_is_unresolved_until_it_is_learned(action_of: ActionOf) -> None:
    action = action_of("http", {"egress": {"allowed_domains": ["*.example.org"]}})
    assert targets(action, {"path": "a"}).unresolved_domains == ("api.example.com",)
    assert targets(action, {"path": "a"}, Learned(domains=("api.example.com",))).unresolved_domains == ()


def test_a_host_from_the_request_is_matched_in_its_normal_form(action_of: ActionOf) -> None:
    schema = {"type": "object", "properties": {"host": {"type": "string"}}, "required": ["host"]}
    template = {"url_template": "https://{host}/", "body_template": None}
    action = action_of(
        "http", {"io": {"request_schema": {**schema, "properties": schema["properties"]}}, "template": template}
    )
    assert targets(action, {"host": "API.Example.com"}).unresolved_domains == ()
    assert targets(action, {"host": "evil.example"}).unresolved_domains == ("evil.example",)


def test_an_fs_action_names_its_file(action_of: ActionOf) -> None:
    touched = targets(action_of("files"), {"path": "notes/a.txt", "content": ""})
    assert touched.targets == ("fs:write notes/a.txt",)
    assert touched.fs_path == "notes/a.txt"
    assert touched.unresolved_paths == ()
    assert touched.files is not None
    assert touched.files.root == "/srv/agents"
    assert touched.files.denied_paths == ("notes/private/**",)


def test_a_path_outside_the_allowed_ones_is_unresolved_until_it_is_learned(action_of: ActionOf) -> None:
    action, request = action_of("files"), {"path": "other/a.txt", "content": ""}
    assert targets(action, request).unresolved_paths == ("other/a.txt",)
    touched = targets(action, request, Learned(paths=("other/*",)))
    assert touched.unresolved_paths == ()
    assert touched.files is not None
    assert touched.files.allowed_paths == ("other/a.txt",)


@pytest.mark.parametrize(("path", "allowed"), [("notes/a", ("notes/a",)), ("other/a", ())])
def test_a_provider_gets_the_path_that_was_decided_about_and_no_pattern(
    action_of: ActionOf, path: str, allowed: tuple[str, ...]
) -> None:
    touched = targets(action_of("files"), {"path": path, "content": ""}, Learned(paths=("learned/**",)))
    assert touched.files is not None
    assert touched.files.allowed_paths == allowed


@pytest.mark.parametrize("path", ["notes/private", "notes/private/a", "notes/private/a/b"])
def test_a_denied_path_is_denied_even_when_it_was_learned(action_of: ActionOf, path: str) -> None:
    with pytest.raises(GateError) as denied:
        targets(action_of("files"), {"path": path, "content": ""}, Learned(paths=("**",)))
    assert (denied.value.code, denied.value.status) == ("policy_denied", 403)
    assert denied.value.extra == {"deny_reason": "the action's manifest denies this path"}


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("/etc/passwd", "absolute"), ("../x", "dot segment"), ("notes/../../x", "dot segment"),
        ("a//b", "empty segment"), ("a\x00", "control character"), ("", "empty"), ("notes/*", "wildcard character"),
        ("e\u0301", "not nfc"),
    ],
)  # fmt: skip
def test_a_path_with_another_spelling_is_a_violation(action_of: ActionOf, path: str, rule: str) -> None:
    with pytest.raises(GateError) as refused:
        targets(action_of("files"), {"path": path, "content": ""})
    assert refused.value.code == "schema_violation"
    assert refused.value.extra == {"reason": f"/path: must be a plain relative path ({rule})"}


def test_a_path_is_found_where_the_pointer_says(action_of: ActionOf) -> None:
    inner = {"type": "object", "properties": {"a/b": True}, "required": ["a/b"]}
    schema = {"type": "object", "properties": {"file": inner}, "required": ["file"]}
    action = action_of("files", {"io": {"request_schema": schema}, "fs": {"path_pointer": "/file/a~1b"}})
    assert targets(action, {"file": {"a/b": "notes/x"}}).fs_path == "notes/x"
    with pytest.raises(GateError) as refused:
        targets(action, {"file": {"a/b": 5}})
    assert refused.value.extra == {"reason": "/file/a~1b: must be a string"}
