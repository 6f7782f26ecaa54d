"""Intents without a receipt over the public interface: shown, looked at again by their verifier, and resolved."""

import hashlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.conformance.underway import stand_still
from tests.support.background import Background
from tests.support.gateway import Gateway, gateway, wait_for
from tests.support.manifests import patient
from tests.support.unresolved import file_terms, leave_intents

ONES = ("matches", "differs", "absent", "unreadable", "resolved")
CONTENT = b"hello"


def sha256(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the calls were to write to, as it is now."""
    folder = tmp_path_factory.mktemp("gate") / "state" / "files" / "written"
    (folder / "notes").mkdir(parents=True)
    folder.parents[1].chmod(0o700)
    for name in ("matches", "resolved"):
        (folder / "notes" / name).write_bytes(CONTENT)
    (folder / "notes" / "differs").write_bytes(b"something else")
    os.mkfifo(folder / "notes" / "unreadable")
    return folder


@pytest.fixture(scope="module")
def left(files: Path) -> Iterator[tuple[Gateway, dict[str, str]]]:
    """A gateway that finds intents of the one before, and their ids."""
    folder = files.parents[2]
    ids = leave_intents(folder / "state", *(file_terms(files, f"notes/{name}", CONTENT) for name in ONES))
    with gateway(folder) as running:
        yield running, dict(zip(ONES, ids, strict=True))


def path_of(intent_id: str, verb: str = "") -> str:
    return f"/v1/admin/intents/{intent_id}{verb and '/' + verb}"


def listed(gate: Gateway) -> list[str]:
    return [one["intent_id"] for one in gate.operator().get("/v1/admin/intents").json()["intents"]]


@pytest.mark.parametrize("state", ONES[:4])
def test_a_file_verifier_looks_again_and_says_what_is_there(
    left: tuple[Gateway, dict[str, str]], files: Path, state: str
) -> None:
    gate, ids = left
    answer = gate.operator().post(path_of(ids[state], "verify"))
    assert answer.status_code == 200
    digest = {"matches": sha256(CONTENT), "differs": sha256(b"something else")}.get(state)
    seen = {
        "verifier_kind": "fs_hash", "path": f"notes/{state}", "expected_sha256": sha256(CONTENT), "state": state,
        "sha256": digest,
    }  # fmt: skip
    shown = gate.operator().get(path_of(ids[state])).json()
    assert answer.json() == {
        "intent_id": ids[state], "trace_id": shown["trace_id"], "action_id": "file_write", "seen": seen,
    }  # fmt: skip
    (event,) = gate.events(event_type="IntentVerification", trace_id=shown["trace_id"])
    assert (event["intent_id"], event["principal"], event["decision"]) == (ids[state], "operator:dev", "allow")
    assert event["seen"] == {name: value for name, value in seen.items() if value is not None}
    last = shown["verifier"]["last_look"]
    assert (last["event_id"], last["principal"], last["seen"]) == (event["event_id"], "operator:dev", seen)
    # It was a look, and no more than that.
    assert ids[state] in listed(gate)
    assert not [one for one in gate.events(trace_id=shown["trace_id"]) if "receipt_id" in one]
    assert sorted(one.name for one in (files / "notes").iterdir()) == ["differs", "matches", "resolved", "unreadable"]


def test_the_outcome_stays_the_operator_s_word_beside_what_the_verifier_saw(
    left: tuple[Gateway, dict[str, str]],
) -> None:
    gate, ids = left
    intent_id = ids["resolved"]
    shown = gate.operator().get(path_of(intent_id)).json()
    assert shown["verifier"]["can_look_again"]
    assert shown["verifier"]["last_look"] is None
    assert shown["verifier"]["expected"] == {
        "path": "notes/resolved", "sha256": sha256(CONTENT), "bytes": len(CONTENT)
    }  # fmt: skip
    assert (shown["sinks"], shown["is_under_way"], shown["risk_level"]) == (["fs_write"], False, "medium")
    seen = gate.operator().post(path_of(intent_id, "verify")).json()["seen"]
    resolved = gate.operator().post(path_of(intent_id, "resolve"), {"outcome": "did_not_happen", "note": "ann"})
    assert resolved.status_code == 200
    (event,) = gate.events(event_type="IntentResolved")
    assert (event["change"], event["reason"], event["seen"]) == (
        {"outcome": "did_not_happen"}, "ann", seen
    )  # fmt: skip
    assert intent_id not in listed(gate)
    for again in (gate.operator().get(path_of(intent_id)), gate.operator().post(path_of(intent_id, "verify"))):
        assert (again.status_code, again.json()["error"]) == (404, "intent_not_found")
    assert gate.operator().get("/v1/audit/verify").json()["intact"]


def test_what_a_call_was_to_write_is_known_of_it_after_its_gateway_was_killed(tmp_path: Path) -> None:
    """The workers stand still, so that the call is under way when the whole gateway is killed."""
    config = patient(tmp_path / "actions")
    with gateway(tmp_path, config) as gate:
        agent = gate.agent()
        assert agent.execute("file_write", {"path": "before", "content": "x"}).status_code == 200
        template = gate.child("template")
        stand_still([template])  # so that no worker is born unseen
        stand_still(template.children())
        template.resume()
        call = Background(lambda: agent.execute("file_write", {"path": "notes/a", "content": "hello"}))
        (intent_id,) = wait_for(lambda: listed(gate), "the intent of the call")
        shown = gate.operator().get(path_of(intent_id)).json()
        assert (shown["is_under_way"], shown["verifier"]["can_look_again"]) == (True, False)
        for verb, body in (("verify", None), ("resolve", {"outcome": "happened"})):
            refused = gate.operator().post(path_of(intent_id, verb), body)
            assert (refused.status_code, refused.json()["error"]) == (409, "intent_under_way")
        processes = gate.children()
        stand_still(processes)  # or its front would withdraw what no worker has begun
        gate.stop(signal.SIGKILL)
        assert call.answer() is None
        psutil.wait_procs(processes, timeout=60)
    with gateway(tmp_path, config) as gate:
        after = gate.operator().get(path_of(intent_id)).json()
        assert after["verifier"]["expected"] == {"path": "notes/a", "sha256": sha256(b"hello"), "bytes": 5}
        kept = ("plan_hash", "request_hash", "session_id", "sinks", "policy_rule", "dispatched_at", "action_version")
        assert {name: after[name] for name in kept} == {name: shown[name] for name in kept}
        assert after["sinks"] == ["fs_write"]
