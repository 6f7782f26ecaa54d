"""Secrets of a whole gateway, in a file that the real sops has encrypted: who gets them, how they change while it runs,
what a broken file does, and where their values are found afterwards."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.gateway import Gateway, config_for, gateway
from tests.support.manifests import example, open_policy, patient, write_manifests
from tests.support.processes import memory_of, pids
from tests.support.sops import encrypted_by_sops, new_identity
from tests.support.upstream import Upstream

FIRST, SECOND, UNUSED = "sops-first-3f81c6a2", "sops-second-9d07be15", "sops-unused-64aa1f70"
POST = {"path": "/messages", "message": "hi"}
NEEDY = example(
    "http_post", action_id="needs_another",
    secrets=[{"name": "never_given", "inject": {"header": "Authorization", "format": "Bearer {value}"}}],
)  # fmt: skip


@dataclass(frozen=True)
class Sealed:
    """A gateway whose secrets are in a SOPS file."""

    gate: Gateway
    file: Path
    identity: Path
    recipient: str

    def seal(self, **values: str) -> None:
        """Put other values in place of those that there are, as an operator does."""
        encrypted_by_sops(self.file, values, self.recipient)


@pytest.fixture(scope="module")
def sealed(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sealed]:
    folder: Path = tmp_path_factory.mktemp("sealed")
    top = patient(folder / "actions")
    write_manifests(folder / "actions", NEEDY)
    policy = open_policy(folder / "policy", "needs_another")
    file, identity = folder / "vault" / "secrets.json", folder / "vault" / "identity"
    file.parent.mkdir()
    recipient = new_identity(identity)
    encrypted_by_sops(file, {"upstream_token": FIRST, "unused": UNUSED}, recipient)
    tables = f'[secrets]\nfile = "{file}"\nage_identity_file = "{identity}"\n'
    with gateway(folder, config_for(up.address, f'{top}policy_dir = "{policy}"\n') + tables) as running:
        yield Sealed(running, file, identity, recipient)


def test_a_call_has_the_secret_that_its_action_declares_and_follows_a_rotation_at_once(
    sealed: Sealed, up: Upstream
) -> None:
    agent = sealed.gate.agent()
    sealed.seal(upstream_token=FIRST, unused=UNUSED)
    for value in (FIRST, SECOND):
        sealed.seal(upstream_token=value, unused=UNUSED)
        assert agent.execute("http_post", POST).status_code == 200
        assert up.seen[-1].headers["authorization"] == f"Bearer {value}"


def test_a_required_secret_that_is_missing_fails_the_call_before_anything_is_dispatched(
    sealed: Sealed, up: Upstream
) -> None:
    agent, sent = sealed.gate.agent(max_calls=1), len(up.seen)
    answer = agent.execute("needs_another", POST)
    assert (answer.status_code, answer.json()) == (502, {"error": "action_execution_failed"})
    (event,) = sealed.gate.events(session_id=agent.session_id, event_type="ActionCall")
    assert (event["decision"], event["error_code"]) == ("error", "action_execution_failed")
    assert "never_given" in event["reason"]
    assert "intent_id" not in event
    assert "receipt_id" not in event
    assert len(up.seen) == sent
    assert agent.execute("http_post", POST).status_code == 200, "the call was given back to the budget"


def test_a_file_that_is_half_written_fails_calls_that_need_it_by_name_and_no_others(
    sealed: Sealed, up: Upstream
) -> None:
    agent, sent = sealed.gate.agent(), len(up.seen)
    whole = sealed.file.read_bytes()
    sealed.file.write_bytes(whole[: len(whole) // 2])
    try:
        answer = agent.execute("http_post", POST)
        assert (answer.status_code, answer.json()) == (503, {"error": "secrets_unavailable"})
        assert agent.execute("text_digest", {"text": "x"}).status_code == 200
    finally:
        sealed.file.write_bytes(whole)
    assert len(up.seen) == sent
    event = sealed.gate.events(session_id=agent.session_id, decision="error")[0]
    assert event["reason"].startswith(f"{sealed.file}: ")
    assert agent.execute("http_post", POST).status_code == 200, "it is whole again, and read at once"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may look into a process that is not dumpable")
def test_no_value_is_found_in_logs_state_arguments_environments_or_the_memory_of_processes_that_need_none(
    sealed: Sealed, up: Upstream
) -> None:
    agent = sealed.gate.agent()
    sealed.seal(upstream_token=SECOND, unused=UNUSED)
    for _ in range(3):
        assert agent.execute("http_post", POST).status_code == 200
        assert agent.execute("text_digest", {"text": "x"}).status_code == 200
    assert up.seen[-1].headers["authorization"] == f"Bearer {SECOND}"
    key = next(line for line in sealed.identity.read_text().splitlines() if line.startswith("AGE-SECRET-KEY-"))
    secret = {"first": FIRST, "second": SECOND, "unused": UNUSED, "identity": key}
    files = [sealed.gate.log, *(one for one in sealed.gate.state.rglob("*") if one.is_file())]
    assert len(files) > 5
    assert [(str(one), name) for one in files for name in found_in(one.read_bytes(), secret)] == []
    processes = pids(sealed.gate)
    assert len(processes) > 6
    for title, pid in processes.items():
        told = Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes()
        assert not found_in(told, secret), title
    held = {title: names for title, pid in processes.items() if (names := in_memory(pid, secret))}
    assert "second" in held.pop("front 1"), "the search finds a value where it is"
    of_workers = {name for title in list(held) if title.startswith("worker http") for name in held.pop(title)}
    assert of_workers <= {"first", "second"}, "a worker is given what its action declares"
    assert held == {}


def in_memory(pid: int, secrets: dict[str, str]) -> set[str]:
    """Names of the secrets whose value lies in what a process can read of its memory."""
    return {name for piece in memory_of(pid, "r") for name in found_in(piece, secrets)}


def found_in(data: bytes, secrets: dict[str, str]) -> list[str]:
    """Names of the secrets whose value stands in `data`."""
    return [name for name, value in secrets.items() if value.encode() in data]
