"""gatectl audit watch: a log that grows is followed, and the first checkpoint that does not continue it is an alarm."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from gateway_client import AgentClient

from contrib.verify import oracle
from tests.support.gatectl import Gatectl, Ran, pointed_at
from tests.support.naive_tree import naive_consistency, naive_root
from tests.support.scripted_gateway import scripted_gateway

KEY = oracle.vkey(oracle.ORIGIN, oracle.LOG_KEY)
LEAVES = [str(number).encode() for number in range(12)]
FORK = [*LEAVES[:3], b"another", *LEAVES[4:]]


def note(leaves: list[bytes], **parts: Any) -> str:
    """A checkpoint of these leaves; `parts`: another key, another name."""
    name = parts.get("name", oracle.ORIGIN)
    return oracle.note(oracle.note_text(name, len(leaves), naive_root(leaves)), parts.get("key", oracle.LOG_KEY), name)


def shown(leaves: list[bytes], **parts: Any) -> dict[str, Any]:
    name, key = parts.get("name", oracle.ORIGIN), parts.get("key", oracle.LOG_KEY)
    return {
        "origin": name, "size": len(leaves), "root": oracle.b64(naive_root(leaves)), "time": oracle.TIME,
        "unresolved_intents": 3, "checkpoint": note(leaves, **parts), "keys": [oracle.vkey(name, key)],
    }  # fmt: skip


def proof(old_size: int, leaves: list[bytes], **parts: Any) -> dict[str, Any]:
    path = naive_consistency(old_size, leaves) if 0 < old_size < len(leaves) else []
    return {"old_size": old_size, "proof": [oracle.b64(one) for one in path], "checkpoint": note(leaves, **parts)}


def watched(gatectl: Gatectl, file: Path, answers: dict[str, Any], *arguments: str) -> Ran:
    listed = {f"GET /v1/audit/{name}": answer if isinstance(answer, tuple) else (200, answer)
              for name, answer in answers.items()}  # fmt: skip
    with scripted_gateway(listed) as server:
        return pointed_at(gatectl, server.url).here("audit", "watch", "--state", str(file), "--once", *arguments)


@pytest.fixture
def file(gatectl: Gatectl, tmp_path: Path) -> Path:
    """The state of a watch that has seen the first five leaves."""
    state = tmp_path / "log.state"
    assert watched(gatectl, state, {"checkpoint": shown(LEAVES[:5])}).code == 0
    return state


def test_a_real_log_is_followed_while_it_grows(gatectl: Gatectl, agent: AgentClient, tmp_path: Path) -> None:
    file = tmp_path / "log.state"
    watch = ("audit", "watch", "--state", str(file), "--once", "--json")
    first = gatectl.done(*watch)
    key = first.json["origin_key"]
    assert first.err == f"gatectl: pinned in {file}, since no --origin-key was given: {key}\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    agent.execute("text_digest", {"text": "more"})
    second = gatectl.done(*watch)
    assert (first.json["event"], second.json["event"], second.err) == ("first", "consistent", "")
    assert second.json["size"] > first.json["size"]
    assert json.loads(file.read_text()) == {"origin_key": key, "checkpoint": second.json["checkpoint"]}
    text = gatectl.done(*watch[:-1], "--origin-key", key).out
    assert f"  consistent  {second.json['origin']}  " in text
    assert [one.name for one in tmp_path.iterdir()] == ["log.state"]


@pytest.mark.parametrize("leaves", [LEAVES[:5], LEAVES[:6], LEAVES])
def test_a_checkpoint_that_continues_the_log_is_kept(gatectl: Gatectl, file: Path, leaves: list[bytes]) -> None:
    ran = watched(gatectl, file, {"consistency": proof(5, leaves)})
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(file.read_text())["checkpoint"] == note(leaves)


SHORTER = {"consistency": (404, {"error": "evidence_not_found"}), "checkpoint": shown(LEAVES[:4])}
ALARMS: dict[str, tuple[dict[str, Any], str]] = {
    "smaller": (SHORTER, "and has 4 at"),
    "smaller-with-a-proof": ({"consistency": proof(4, LEAVES[:4])}, "and has 4 at"),
    "not-proven": (SHORTER | {"checkpoint": shown(LEAVES)}, "not proven to begin with the 5 of"),
    "rewritten": ({"consistency": proof(5, FORK)}, "another root of the first 5 leaves"),
    "rewritten-at-its-size": ({"consistency": proof(5, FORK[:5])}, "There are two roots"),
    "no-proof": ({"consistency": proof(5, LEAVES) | {"proof": []}}, "too short"),
    "a-proof-of-noise": ({"consistency": proof(5, LEAVES) | {"proof": ["!"]}}, "not proven"),
    "another-key": ({"consistency": proof(5, LEAVES, key=oracle.STRANGER)}, "if the gateway's key was replaced"),
    "another-key-and-smaller": (SHORTER | {"checkpoint": shown(LEAVES[:4], key=oracle.STRANGER)}, "trusted key"),
    "another-log": ({"consistency": proof(5, LEAVES, name="gate.example.org")}, "of the log 'gate.example.org'"),
    "no-note": ({"consistency": proof(5, LEAVES) | {"checkpoint": "\x1b[31m"}}, "not a signed note"),
}


@pytest.mark.parametrize("name", ALARMS)
def test_a_checkpoint_that_does_not_continue_the_log_raises_an_alarm_and_changes_nothing(
    gatectl: Gatectl, file: Path, name: str
) -> None:
    answers, said = ALARMS[name]
    before = file.read_bytes()
    ran, as_json = watched(gatectl, file, answers), watched(gatectl, file, answers, "--json")
    assert (ran.code, as_json.code, file.read_bytes()) == (8, 8, before)
    assert ran.err.startswith("gatectl: log_inconsistent: ")
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert "\x1b" not in ran.out
    assert as_json.json["event"] == "alarm"
    assert as_json.json["checkpoint"] == answers.get("checkpoint", answers["consistency"])["checkpoint"]
    assert as_json.error["error"] == "log_inconsistent"


def test_another_log_is_an_alarm_also_with_a_key_of_its_own(gatectl: Gatectl, file: Path) -> None:
    name = "gate.example.org"
    other = oracle.vkey(name, oracle.STRANGER)
    ran = watched(
        gatectl, file, {"consistency": proof(5, LEAVES, name=name, key=oracle.STRANGER)}, "--origin-key", other
    )
    assert (ran.code, "shows the log 'gate.example.org'" in ran.err) == (8, True)


def test_a_key_that_was_replaced_is_followed_once_it_is_named(gatectl: Gatectl, file: Path) -> None:
    answers = {"consistency": proof(5, LEAVES, key=oracle.STRANGER)}
    new = oracle.vkey(oracle.ORIGIN, oracle.STRANGER)
    assert watched(gatectl, file, answers).code == 8
    assert watched(gatectl, file, answers, "--origin-key", new).code == 0
    assert json.loads(file.read_text())["origin_key"] == new
    assert watched(gatectl, file, {"consistency": proof(12, LEAVES, key=oracle.STRANGER)}).code == 0


def test_a_first_checkpoint_that_the_named_key_did_not_sign_is_not_kept(gatectl: Gatectl, tmp_path: Path) -> None:
    file = tmp_path / "log.state"
    stranger = shown(LEAVES, key=oracle.STRANGER)
    for answer in (stranger, shown(LEAVES) | {"checkpoint": "x"}):
        ran = watched(gatectl, file, {"checkpoint": answer}, "--origin-key", KEY)
        assert (ran.code, file.exists()) == (8, False)
    for answer in (stranger | {"keys": [KEY]}, stranger | {"keys": []}, stranger | {"keys": ["x"]}):
        ran = watched(gatectl, file, {"checkpoint": answer})
        assert (ran.code, file.exists()) == (8, False)
    assert watched(gatectl, file, {"checkpoint": shown(LEAVES)}, "--origin-key", KEY).err == ""


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"origin_key": 1, "checkpoint": 2}', json.dumps({"origin_key": KEY, "checkpoint": "x"}),
     json.dumps({"origin_key": KEY, "checkpoint": note(LEAVES).replace("\n12\n", "\n11\n")})],
)  # fmt: skip
def test_a_file_that_was_changed_is_not_followed(gatectl: Gatectl, tmp_path: Path, text: str) -> None:
    file = tmp_path / "log.state"
    file.write_text(text)
    file.chmod(0o600)
    ran = watched(gatectl, file, {"consistency": proof(11, LEAVES)})
    assert (ran.code, ran.err.split(":")[1], file.read_text()) == (2, " watch_state", text)


def test_a_file_that_others_can_read_is_not_followed(gatectl: Gatectl, file: Path) -> None:
    file.chmod(0o644)
    ran = watched(gatectl, file, {"consistency": proof(5, LEAVES)})
    assert (ran.code, f"chmod 600 {file}" in ran.err) == (2, True)


def test_a_file_that_can_not_be_written_is_a_failure(gatectl: Gatectl, tmp_path: Path) -> None:
    ran = watched(gatectl, tmp_path / "none" / "log.state", {"checkpoint": shown(LEAVES)})
    assert (ran.code, ran.err.split(":")[1]) == (1, " failed")


def test_looking_once_at_a_gateway_that_is_away_has_its_exit_code(gatectl: Gatectl, tmp_path: Path) -> None:
    watch = ("audit", "watch", "--state", str(tmp_path / "log.state"), "--once")
    assert gatectl.here("--address", "http://127.0.0.1:1", *watch).code == 6
    assert watched(gatectl, tmp_path / "log.state", {"checkpoint": (503, {"error": "ledger_unavailable"})}).code == 6
    assert watched(gatectl, tmp_path / "log.state", {}).code == 4, "a gateway without checkpoints"
