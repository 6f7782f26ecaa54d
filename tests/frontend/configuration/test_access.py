"""Changes of authority by operators: evidence, file, engine, in this order, and what is left when one of them fails."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
import trio
from msgspec.structs import replace

from frontend.notary.errors import NotaryUnavailable
from frontend.policy.acl import MAX_POLICY_BYTES
from frontend.policy.engine import PolicyRefused
from frontend.policy.file import PolicyFile
from ipc.messages.control import PolicyEdited
from tests.support.front_core import Core, action, refuses, registry_of, then
from tests.support.hanging_files import hanging
from tests.support.patience import PATIENT
from tests.support.policed import ACTIONS, DATA, policed, sent, write_policy
from tests.support.worker_desk import until

pytestmark = pytest.mark.policed(workers=0)

FULL = NotaryUnavailable("the disk is full")
GRANT, REVOKE, ALLOWLIST = (f"/v1/admin/policy/{name}" for name in ("grant", "revoke", "allowlist"))
NOTE = {"principal": "billing", "actions": ["note"]}


def data_of(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "policy" / "data.json").read_text())
    return document


async def told(core: Core) -> list[tuple[str, str, str | None]]:
    return [
        (event["event_type"], event["decision"], event.get("error_code"))
        for event in reversed(await core.events())
        if event["event_type"].startswith("Policy")
    ]


def in_force(core: Core) -> Any:
    files = core.services.configuration.current.policy_files
    assert files is not None
    return files


async def is_unchanged(core: Core, folder: Path) -> bool:
    return data_of(folder) == DATA and in_force(core).data.policy_version == "v1" and len(core.policy.loaded) == 1


# ------------------------------------------------------------------ what a change is


async def test_a_change_is_answered_when_it_is_in_evidence_on_the_disk_and_in_force(core: Core, tmp_path: Path) -> None:
    status, body = await core.operate("POST", GRANT, NOTE)
    version = body["policy_version"]
    assert (status, body) == (
        200,
        {
            "principal": "billing", "actions": ["note", "read"], "sinks": ["fs_write", "http_read"],
            "inherits_wildcard": True, "policy_version": version,
        },
    )  # fmt: skip
    on_disk = data_of(tmp_path)
    assert on_disk["acl"]["billing"]["actions"] == ["read", "note"]
    assert on_disk["of_the_author"] == DATA["of_the_author"]
    assert version == on_disk["policy_version"] == core.policy.loaded[-1].policy_version
    assert version.startswith("v1+")
    (event,) = await core.events(event_type="PolicyGranted")
    assert event["change"] == {"principal": "billing", "actions": ["note"]}
    assert (event["principal"], event["policy_version"]) == ("operator:op", version)
    assert event["operator_sender_binding"] == core.operator_key.jkt
    assert await sent(core) == [PolicyEdited(in_force(core).sources.digest)]
    assert (await core.operate("GET", "/v1/admin/policy"))[1]["policy_version"] == version


async def test_evidence_comes_before_the_file_and_the_file_before_the_engine(core: Core, tmp_path: Path) -> None:
    seen: list[tuple[bool, int]] = []
    core.client.faults["WriteEvent"] = then(lambda: seen.append((data_of(tmp_path) == DATA, len(core.policy.loaded))))
    assert (await core.operate("POST", GRANT, NOTE))[0] == 200
    assert seen == [(True, 1)]
    assert data_of(tmp_path) != DATA


@pytest.mark.parametrize(
    ("method", "path", "body", "kind", "found"),
    [
        ("POST", GRANT, NOTE, "PolicyGranted", {"change": {"principal": "billing", "actions": ["note"]}}),
        ("POST", REVOKE, {"principal": "dev:anonymous", "actions": ["pay"]}, "PolicyRevoked",
         {"change": {"principal": "dev:anonymous", "actions": ["pay"]}}),
        ("POST", ALLOWLIST, {"action_id": "pay", "agent_id": "a"}, "PolicyAllowlistAdded",
         {"action_id": "pay", "change": {"agent_id": "a"}}),
        ("DELETE", ALLOWLIST, {"action_id": "pay", "agent_id": "billing"}, "PolicyAllowlistRemoved",
         {"action_id": "pay", "change": {"agent_id": "billing"}}),
    ],
)  # fmt: skip
async def test_each_kind_of_change_fails_whole_and_leaves_its_evidence(
    core: Core, tmp_path: Path, method: str, path: str, body: dict[str, Any], kind: str, found: dict[str, Any]
) -> None:
    core.client.faults["WriteEvent"] = refuses(FULL)
    assert await core.operate(method, path, body) == (503, {"error": "evidence_store_unavailable"})
    core.client.faults.clear()
    core.policy.refusal = PolicyRefused(("gateway.rego:1: no",))
    assert await core.operate(method, path, body) == (500, {"error": "policy_refused"})
    core.policy.refusal = None
    assert await is_unchanged(core, tmp_path)
    assert await sent(core) == []
    assert (await core.operate(method, path, body))[0] == 200
    assert await told(core) == [(kind, "error", "policy_refused"), (kind, "allow", None)]
    for event in await core.events(event_type=kind):
        assert found.items() <= event.items()


async def test_an_existing_entry_is_reported_and_not_written_again(core: Core, tmp_path: Path) -> None:
    before = (tmp_path / "policy" / "data.json").stat().st_ino
    status, body = await core.operate("POST", GRANT, {"principal": "billing", "actions": ["read", "read"]})
    assert (status, body["policy_version"]) == (200, "v1")
    status, body = await core.operate("POST", ALLOWLIST, {"action_id": "pay", "agent_id": "billing"})
    assert (status, body) == (200, {"ok": True, "action_id": "pay", "agent_id": "billing", "policy_version": "v1"})
    assert (tmp_path / "policy" / "data.json").stat().st_ino == before
    assert await is_unchanged(core, tmp_path)
    assert await told(core) == [("PolicyGranted", "allow", None), ("PolicyAllowlistAdded", "allow", None)]


async def test_changes_at_once_lose_none_and_each_builds_on_the_one_before(tmp_path: Path) -> None:
    async with policed(tmp_path, workers=0) as core, trio.open_nursery() as nursery:
        codes: list[int] = []

        async def allow(agent_id: str) -> None:
            codes.append((await core.operate("POST", ALLOWLIST, {"action_id": "pay", "agent_id": agent_id}))[0])

        for number in range(12):
            nursery.start_soon(allow, f"agent-{number}")
        await until(lambda: len(codes) == 12)
        assert set(codes) == {200}
        assert set(data_of(tmp_path)["allowlist"]["pay"]) == {"billing", *(f"agent-{number}" for number in range(12))}
        assert len({source.policy_version for source in core.policy.loaded}) == 13
        assert json.loads(core.policy.loaded[-1].data) == data_of(tmp_path)


# ------------------------------------------------------------------ the file


async def test_a_folder_that_can_not_be_written_is_said_and_nothing_is_changed(core: Core, tmp_path: Path) -> None:
    lock = tmp_path / "policy" / "data.json.lock"
    lock.mkdir()  # as if another program had made it: the lock can not be taken
    assert await core.operate("POST", GRANT, NOTE) == (500, {"error": "policy_not_writable"})
    lock.rmdir()
    assert await is_unchanged(core, tmp_path)
    assert await told(core) == []


async def test_a_file_that_can_not_be_written_is_in_evidence_too_and_nothing_is_changed(
    core: Core, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync

    def full(descriptor: int) -> None:
        if b"data.json" in os.readlink(f"/proc/self/fd/{descriptor}").encode():
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    assert await core.operate("POST", GRANT, NOTE) == (500, {"error": "policy_not_writable"})
    monkeypatch.undo()
    assert await is_unchanged(core, tmp_path)
    assert await told(core) == [
        ("PolicyGranted", "allow", None), ("PolicyGranted", "error", "policy_not_writable"),
    ]  # fmt: skip
    assert sorted(os.listdir(tmp_path / "policy")) == ["data.json", "data.json.lock", "gateway.rego"]
    assert (await core.operate("POST", GRANT, NOTE))[0] == 200


async def test_the_file_keeps_its_mode_and_a_link_stays_a_link(core: Core, tmp_path: Path) -> None:
    data = tmp_path / "policy" / "data.json"
    data.rename(tmp_path / "elsewhere.json")
    data.symlink_to(tmp_path / "elsewhere.json")
    data.chmod(0o644)
    assert (await core.operate("POST", GRANT, NOTE))[0] == 200
    assert data.is_symlink()
    assert stat.S_IMODE(data.stat().st_mode) == 0o644
    assert data_of(tmp_path)["acl"]["billing"]["actions"] == ["read", "note"]


@pytest.mark.parametrize("edited", ["data", "rules", "another file", "half a file", "no rules", "no data"])
async def test_a_file_that_a_person_is_editing_is_neither_overwritten_nor_applied(
    core: Core, tmp_path: Path, edited: str
) -> None:
    folder = tmp_path / "policy"
    whole = {path: path.read_text() for path in folder.iterdir()}
    match edited:
        case "data":
            write_policy(folder, denied_actions={"pay": "not today"})
        case "rules":
            (folder / "gateway.rego").write_text(whole[folder / "gateway.rego"] + "\n# more to come\n")
        case "another file":
            (folder / "more.rego").write_text("package more\n")
        case "half a file":
            (folder / "data.json").write_text('{"policy_version": "v2", "acl": {')
        case "no rules":
            (folder / "gateway.rego").unlink()
        case "no data":
            (folder / "data.json").unlink()
    edited_files = {path: path.read_text() for path in folder.iterdir()}
    for method, path, body in (
        ("POST", GRANT, NOTE),
        ("DELETE", ALLOWLIST, {"action_id": "pay", "agent_id": "billing"}),
    ):
        status, answer = await core.operate(method, path, body)
        assert (status, answer["error"]) == (409, "policy_changed_on_disk")
        assert "reload first" in answer["message"]
    assert {path: path.read_text() for path in folder.iterdir() if path.suffix != ".lock"} == edited_files
    assert in_force(core).data.policy_version == "v1"
    assert len(core.policy.loaded) == 1
    assert await told(core) == []
    for file in edited_files:
        file.unlink()
    for file, text in whole.items():
        file.write_text(text)
    assert (await core.operate("POST", GRANT, NOTE))[0] == 200


async def test_a_folder_that_does_not_answer_is_given_up(core: Core, tmp_path: Path) -> None:
    core.services.configuration.policy_file.deadlines = replace(PATIENT.policy, read_seconds=0.2)
    with hanging(tmp_path / "policy" / "slow.rego", "frontend.policy.acl"):
        with pytest.raises(PolicyRefused, match=r"was not read within 0\.2 s"):
            await core.services.configuration.policy_file.read()
        status, answer = await core.operate("POST", GRANT, NOTE)
    assert (status, answer["error"]) == (409, "policy_changed_on_disk")


async def test_a_caller_that_waits_too_long_for_a_load_is_told_to_retry(tmp_path: Path) -> None:
    deadlines = replace(PATIENT, configuration=replace(PATIENT.configuration, turn_seconds=0.1))
    async with policed(tmp_path, workers=0, deadlines=deadlines) as core:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_holds, core.services.configuration.policy_turn)
            await until(core.services.configuration.policy_turn.locked)
            assert await core.operate("POST", GRANT, NOTE) == (503, {"error": "overloaded"})
            nursery.cancel_scope.cancel()
        assert (await core.operate("POST", GRANT, NOTE))[0] == 200


async def _holds(lock: trio.Lock) -> None:
    async with lock:
        await trio.sleep_forever()


async def test_a_front_that_leaves_in_the_middle_of_a_change_finishes_it(core: Core, tmp_path: Path) -> None:
    with trio.CancelScope() as scope:
        core.client.faults["WriteEvent"] = then(scope.cancel)
        await core.operate("POST", GRANT, NOTE)
    assert data_of(tmp_path)["acl"]["billing"]["actions"] == ["read", "note"]
    assert in_force(core).data.policy_version == data_of(tmp_path)["policy_version"]
    assert (await core.operate("POST", GRANT, {"principal": "billing", "actions": ["pay"]}))[0] == 200


# ------------------------------------------------------------------ loads beside it


async def test_an_action_that_a_reload_took_away_meanwhile_is_not_granted(tmp_path: Path) -> None:
    async with policed(tmp_path, workers=0) as core, trio.open_nursery() as nursery:
        configuration = core.services.configuration
        answers: list[tuple[int, Any]] = []

        async def grant() -> None:
            answers.append(await core.operate("POST", GRANT, NOTE))

        async with configuration.policy_turn:
            nursery.start_soon(grant)
            await until(lambda: configuration.policy_turn.statistics().tasks_waiting == 1)
            configuration.current.registry = registry_of(tmp_path / "fewer", action("echo"))
        await until(lambda: bool(answers))
        assert (answers[0][0], answers[0][1]["error"]) == (400, "unknown_action")
        assert await is_unchanged(core, tmp_path)


async def test_an_action_that_is_registered_no_more_can_still_be_revoked(core: Core, tmp_path: Path) -> None:
    core.services.configuration.current.registry = registry_of(tmp_path / "fewer", action("echo"))
    body = {"principal": "dev:anonymous", "actions": ["pay"]}
    status, answer = await core.operate("POST", REVOKE, body)
    assert (status, answer["actions"], answer["sinks"]) == (200, ["echo"], [])
    pair = {"action_id": "pay", "agent_id": "billing"}
    assert (await core.operate("DELETE", ALLOWLIST, pair))[0] == 200
    assert (await core.operate("POST", ALLOWLIST, pair))[1] == {"error": "action_not_found"}
    assert "pay" not in data_of(tmp_path)["allowlist"]


async def test_sinks_follow_from_all_actions_as_they_are_registered_now(core: Core, tmp_path: Path) -> None:
    changed = action("pay", declared_side_effects=["http_write", "mail_send"])
    core.services.configuration.current.registry = registry_of(tmp_path / "other", changed, *ACTIONS[2:])
    status, answer = await core.operate("POST", GRANT, {"principal": "dev:anonymous", "actions": ["read"]})
    assert (status, answer["sinks"]) == (200, ["http_read", "http_write", "mail_send"])


async def test_another_front_follows_and_what_it_does_not_know_it_leaves(core: Core, tmp_path: Path) -> None:
    configuration = core.services.configuration
    other = PolicyFile(str(tmp_path / "policy"))
    await configuration.follow_policy("0" * 64)  # not what lies there
    assert in_force(core).data.policy_version == "v1"
    write_policy(tmp_path / "policy", policy_version="v2")
    digest = (await other.read()).sources.digest
    await configuration.follow_policy(digest)
    await configuration.follow_policy(digest)
    assert [source.policy_version for source in core.policy.loaded] == ["v1", "v2"]
    assert in_force(core).data.policy_version == "v2"
    assert (await core.operate("POST", GRANT, NOTE))[0] == 200


async def test_nothing_is_shown_or_changed_before_a_policy_is_in_force(core: Core) -> None:
    core.services.configuration.current.policy_files = None
    for method, path, body in (("GET", "/v1/admin/policy", b""), ("POST", GRANT, NOTE)):
        assert await core.operate(method, path, body) == (503, {"error": "policy_engine_unavailable"})
    await core.services.configuration.follow_policy("0" * 64)
    assert core.services.configuration.current.policy_files is None


async def test_more_than_a_policy_may_have_is_the_operators_to_mend(tmp_path: Path) -> None:
    folder = tmp_path / "policy"
    write_policy(folder)
    used = sum(file.stat().st_size for file in folder.iterdir())
    (folder / "large.rego").write_text("package large\n".ljust(MAX_POLICY_BYTES - used, "#"))
    async with policed(tmp_path, workers=0) as core:
        status, answer = await core.operate("POST", GRANT, NOTE)
        assert (status, answer) == (
            400,
            {"error": "invalid_input", "message": f"the policy would have more than {MAX_POLICY_BYTES} bytes"},
        )
        assert await is_unchanged(core, tmp_path)
