"""A policy folder is read whole or not at all; the ACL is shown as the interface names it."""

import codecs
from pathlib import Path

import pytest

from frontend.policy.acl import MAX_POLICY_BYTES, MAX_POLICY_FILES, acl_view, principal_view, read_policy
from frontend.policy.data import AclEntry, PolicyData
from frontend.policy.engine import PolicyRefused

REGO = "package gateway\n\ndecision := 1\n"
DATA = '{"policy_version": "7"}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "gateway.rego").write_text(REGO)
    (tmp_path / "data.json").write_text(DATA)
    return tmp_path


def problems(folder: Path) -> tuple[str, ...]:
    with pytest.raises(PolicyRefused) as refusal:
        read_policy(str(folder))
    return refusal.value.problems


def test_modules_and_data_are_read(folder: Path) -> None:
    (folder / "b.rego").write_text("package b\n")
    files = read_policy(str(folder))
    assert files.sources.modules == {"b.rego": "package b\n", "gateway.rego": REGO}
    assert list(files.sources.modules) == ["b.rego", "gateway.rego"]
    assert files.sources.data == DATA
    assert files.sources.policy_version == "7"
    assert files.data == PolicyData("7")


def test_tests_hidden_files_and_other_files_are_left_alone(folder: Path) -> None:
    (folder / "gateway_test.rego").write_text("package x\n")
    (folder / ".hidden.rego").write_text("package x\n")
    (folder / "README.md").write_text("x")
    (folder / "folder").mkdir()
    (folder / "folder" / "README.md").write_text("x")
    assert list(read_policy(str(folder)).sources.modules) == ["gateway.rego"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert problems(tmp_path / "no") == (f"{tmp_path}/no: No such file or directory",)


def test_what_is_missing_is_named_all_at_once(tmp_path: Path) -> None:
    assert problems(tmp_path) == (f"{tmp_path}: holds no *.rego file", f"{tmp_path}/data.json: is missing")


def test_problems_of_all_files_are_named_with_file_and_line(folder: Path) -> None:
    (folder / "bad.rego").write_bytes(b"package a\n# \xff\n")
    (folder / "data.json").write_text('{\n  "policy_version": 1\n}')
    lines = problems(folder)
    assert lines[0] == f"{folder}/bad.rego:2: is not UTF-8"
    assert lines[1].startswith(f"{folder}/data.json:2: policy_version: ")


def test_a_file_that_can_not_be_read_is_named(folder: Path) -> None:
    (folder / "loop.rego").symlink_to("loop.rego")
    (folder / "data.json").write_bytes(b"\xff")
    of_data, of_loop = problems(folder)
    assert of_data == f"{folder}/data.json:1: is not UTF-8"
    assert of_loop.startswith(f"{folder}/loop.rego: is a link that leads to no readable file: ")


def test_without_rules_of_its_own_only_the_data_must_be_readable(folder: Path) -> None:
    (folder / "loop.rego").symlink_to("loop.rego")
    (folder / "opa").mkdir()
    (folder / "opa" / "gateway.rego").write_text(REGO)
    assert read_policy(str(folder), has_rules=False).sources.modules == {}
    (folder / "data.json").unlink()
    (folder / "data.json").symlink_to("nowhere")
    with pytest.raises(PolicyRefused, match="leads to no readable file"):
        read_policy(str(folder), has_rules=False)


def test_a_byte_order_mark_is_no_part_of_a_file(folder: Path) -> None:
    for name in ("gateway.rego", "data.json"):
        (folder / name).write_bytes(codecs.BOM_UTF8 + (folder / name).read_bytes())
    files = read_policy(str(folder))
    assert files.sources.modules == {"gateway.rego": REGO}
    assert files.sources.data == DATA


def test_more_than_a_megabyte_is_refused_before_it_is_read_whole(folder: Path) -> None:
    with (folder / "large.rego").open("wb") as file:
        file.truncate(10 << 30)
    assert problems(folder) == (f"{folder}: more than {MAX_POLICY_BYTES} bytes of policy",)


def test_too_many_files_are_refused(folder: Path) -> None:
    for number in range(MAX_POLICY_FILES):
        (folder / f"f{number}.rego").write_text("package f\n")
    assert problems(folder) == (f"{folder}: more than {MAX_POLICY_FILES} files",)


ACL = PolicyData(
    "7",
    acl={"billing": AclEntry(("pay", "audit", "gone"), ("http_write", "http_read"), True), "*": AclEntry(("audit",))},
    allowlist={"pay": {"billing": True, "b": True, "c": False}, "audit": {}},
    denied_actions={"export": "no"},
)


def test_the_full_view_shows_the_same_under_both_names() -> None:
    assert acl_view(ACL) == {
        "policy_version": "7",
        "principals": {
            "billing": {
                "actions": ["audit", "gone", "pay"],
                "sinks": ["http_read", "http_write"],
                "inherits_wildcard": True,
            },
            "*": {"actions": ["audit"], "sinks": [], "inherits_wildcard": False},
        },
        "acl": {
            "billing": {"allowed_actions": ["audit", "gone", "pay"], "allowed_sinks": ["http_read", "http_write"]},
            "*": {"allowed_actions": ["audit"], "allowed_sinks": []},
        },
        "allowlist": {"pay": ["b", "billing"], "audit": []},
        "denied_actions": {"export": "no"},
    }


def test_one_principal_is_shown_with_its_actions_by_risk() -> None:
    assert principal_view(ACL, "billing", {"pay": "critical", "audit": "low", "other": "high"}) == {
        "principal": "billing",
        "actions": ["audit", "gone", "pay"],
        "sinks": ["http_read", "http_write"],
        "inherits_wildcard": True,
        "policy_version": "7",
        "risk_breakdown": {"low": ["audit"], "medium": [], "high": [], "critical": ["pay"]},
    }


def test_a_principal_without_an_entry_has_no_view() -> None:
    assert principal_view(ACL, "stranger", {}) is None
