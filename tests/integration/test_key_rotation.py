"""Signing keys are followed by others while the gateway serves: nothing fails, everything old still verifies."""

import json
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ipc.process.exits import Exit
from tests.support.background import Background, in_flight
from tests.support.coded import Coded
from tests.support.gateway import Bearer, Gateway, gateway, wait_for
from tests.support.key_files import PURPOSES, follow, keys_command, lease_key_ids, new_key, rotations
from tests.support.manifests import PATIENT, example, open_policy, write_manifests
from tests.support.pace import Paces
from tests.support.processes import GATEWAY
from tests.support.production import PRINCIPAL, Production, production

HELD = example("text_digest", action_id="held", risk_level="critical", **PATIENT)
LONG = "lease_ttl_seconds = 3600\n"


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Production]:
    """A production gateway, its keys apart from its state."""
    folder: Path = tmp_path_factory.mktemp("rotation")
    write_manifests(folder / "actions", example("text_digest", **PATIENT), example("spin", **PATIENT), HELD)
    data = open_policy(folder / "policy", "held") / "data.json"
    policy = json.loads(data.read_text())
    policy["acl"][PRINCIPAL] = policy["acl"]["dev:anonymous"]
    data.write_text(json.dumps(policy))
    top = "front_processes = 2\n"
    top += f'manifests_dir = "{folder / "actions"}"\npolicy_dir = "{folder / "policy"}"\nlease_ttl_seconds = 3600'
    with production(folder, top) as running:
        yield running


def rotate(gate: Production, purpose: str, *more: str) -> list[dict[str, Any]]:
    """Rotate with the command; the events of this purpose, newest first, once the gateway has followed."""
    before = len(rotations(gate, purpose))
    done = keys_command("rotate", "--purpose", purpose, "--config", gate.log.with_name("gateway.toml"), *more)
    assert (done.returncode, done.stderr) == (0, "")
    events = follow(gate, purpose, before)
    assert events[0]["key_id"] in done.stdout
    assert events[0]["previous_key_id"] in done.stdout
    return events


@pytest.fixture(scope="module")
def before(gate: Production) -> dict[str, Any]:
    """Ids of the keys before those in force: here, every key has been followed by another at least once."""
    for purpose in PURPOSES:
        if not rotations(gate, purpose):
            rotate(gate, purpose)
    return {purpose: rotations(gate, purpose)[0]["previous_key_id"] for purpose in PURPOSES}


class Load:
    """Agents that call until the end, one with its first lease, one with a new lease for each call.

    Both keep below the rates of the contract by themselves, whatever the machine.
    """

    def __init__(self, gate: Production) -> None:
        self._gate = gate
        self._stop = threading.Event()
        self.receipts: list[str] = []
        self.failed: list[str] = []

    def run(self, renews: bool) -> None:
        agent, pace = self._gate.agent(), Paces.session()
        while not self._stop.is_set():
            pace.wait()
            with self._gate.over("client_socket") as http:
                asker = self._gate.agent(http=http) if renews else Bearer(http, agent.base, agent.token, agent.prover)
                answer = asker.execute("text_digest", {"text": "x"})
            if answer.status_code == 200:
                self.receipts.append(answer.json()["receipt_id"])
            else:
                self.failed.append(f"{answer.status_code} {answer.text}")

    def stop(self) -> None:
        self._stop.set()


@contextmanager
def load(gate: Production) -> Iterator[Load]:
    running = Load(gate)
    with ThreadPoolExecutor(2) as pool:
        ends = [pool.submit(running.run, renews) for renews in (True, False)]
        try:
            yield running
        finally:
            running.stop()
        for end in ends:
            end.result(300)


def test_no_call_fails_while_each_key_is_followed_by_another(gate: Production) -> None:
    waiting = gate.agent()
    held = waiting.execute("held", {"text": "x"})
    assert held.status_code == 202, held.text
    with load(gate) as running:
        wait_for(lambda: running.receipts, "the load")
        for purpose in PURPOSES:
            under_way = Background(lambda: waiting.execute("spin", {"seconds": 0.3}))
            wait_for(lambda: in_flight(gate) > 0, "a call in flight")
            rotate(gate, purpose)
            done = len(running.receipts)
            wait_for(lambda: len(running.receipts) > done + 5, "calls with the next key")  # noqa: B023
            assert under_way.status() == 200
    assert running.failed == []
    # The current key grants a call that was held before all rotations.
    answer = gate.operator().post(f"/v1/approvals/{held.json()['approval_id']}/approve")
    assert answer.status_code == 200, answer.text
    # Receipts of all three keys are shown as what they are.
    shown = [
        waiting.get(f"/v1/receipts/{receipt_id}").json()
        for receipt_id in running.receipts[:10] + running.receipts[-10:]
    ]
    assert {receipt["signature_status"] for receipt in shown} == {"verified"}
    assert len({receipt["signing_key_id"] for receipt in shown}) == 2


def test_keys_list_shows_every_key_with_its_state(gate: Production, before: dict[str, Any]) -> None:
    done = keys_command("list", "--config", gate.log.with_name("gateway.toml"))
    assert (done.returncode, done.stderr) == (0, "")
    head, *rows = [line.split() for line in done.stdout.splitlines()]
    assert head[:3] == ["PURPOSE", "STATE", "KEY"]
    current = {row[0]: row for row in rows if row[1] == "current"}
    assert list(current) == list(PURPOSES)
    assert current["lease"][2] == lease_key_ids(gate)[0]
    assert current["grant"][2] == rotations(gate, "grant")[0]["key_id"]
    receipts = [key["kid"] for key in gate.operator().get("/v1/receipt-keys").json()["keys"]]
    assert [row[2] for row in rows if row[0] == "receipt"] == receipts
    assert {row[4] for row in current.values()} == {"-"}
    assert {(row[0], row[2]) for row in rows if row[1] == "previous"} >= {
        (purpose, before[purpose]) for purpose in ("lease", "receipt")
    }
    assert all(row[4] != "-" for row in rows if row[1] == "previous")
    assert {Path(row[5]).exists() for row in rows} == {True}


def test_leases_of_earlier_keys_end_at_once_when_they_are_forgotten(gate: Production) -> None:
    old = gate.agent()
    rotate(gate, "lease", "--forget-previous")
    # Evidence may have been shown by one front, and the lease be sent to another.
    wait_for(lambda: len(lease_key_ids(gate)) == 1, "the set without the key that is forgotten")
    answer = old.execute("text_digest", {"text": "x"})
    assert (answer.status_code, answer.json()) == (401, Coded("invalid_lease"))
    assert gate.agent().execute("text_digest", {"text": "x"}).status_code == 200


# ------------------------------------------------------------------ one front, by hand, and across restarts


def hang_up(gate: Gateway) -> dict[str, Any]:
    """Reload; the event that says how it went."""
    before = gate.events(event_type="AdminReload", limit=1)
    gate.process.send_signal(signal.SIGHUP)

    def found() -> list[dict[str, Any]] | None:
        events = gate.events(event_type="AdminReload", limit=1)
        return events if events != before else None

    event: dict[str, Any] = wait_for(found, "the event of the reload")[0]
    return event


def verify(ledger: str, keys: Path) -> "subprocess.CompletedProcess[str]":
    command = [GATEWAY, "ledger", "verify", ledger, "--keys", str(keys)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_keys_by_hand_across_restarts_and_in_a_ledger_read_without_the_service(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with gateway(tmp_path, LONG) as gate:
        agent = gate.agent()
        assert agent.execute("text_digest", {"text": "x"}).status_code == 200
        first = lease_key_ids(gate)
        new_key(state / "keys" / "lease.pem")
        assert hang_up(gate)["decision"] == "allow"
        assert follow(gate, "lease", 0)[0]["previous_key_id"] == first[0]
        assert lease_key_ids(gate)[1:] == first
        for spoil, mend, sentence in (
            (_hide, _show, "lease.pem: cannot read it: No such file or directory."),
            (_open, _close, "lease.pem: mode 0644 lets others in. Use chmod 0600."),
        ):
            spoil(state / "keys" / "lease.pem")
            event = hang_up(gate)
            assert event["decision"] == "error"
            assert sentence in event["reason"]
            assert gate.agent().execute("text_digest", {"text": "x"}).status_code == 200
            mend(state / "keys" / "lease.pem")
        assert hang_up(gate)["decision"] == "allow"
        whole = (state / "receipt-keys.jwks.json").read_bytes()
        (state / "receipt-keys.jwks.json").write_text('{"keys": [{"kty": "RSA"}]}')
        assert "receipt-keys.jwks.json: keys[0] has no crv" in hang_up(gate)["reason"]
        assert agent.execute("text_digest", {"text": "x"}).status_code == 200
        (state / "receipt-keys.jwks.json").write_bytes(whole)
        assert len(rotations(gate)) == 1
    # No gateway runs, and the next one to start has nothing but the files.
    told = {purpose: keys_command("rotate", "--purpose", purpose, "--state-dir", state) for purpose in PURPOSES}
    assert [done.returncode for done in told.values()] == [0] * len(PURPOSES), told
    with gateway(tmp_path, LONG) as gate:
        agent = Bearer(gate.http, gate.base, agent.token, agent.prover)
        answer = agent.execute("text_digest", {"text": "y"})
        assert answer.status_code == 200, answer.text
        assert len(lease_key_ids(gate)) == 3
        (started, before) = gate.events(event_type="GatewayStarted")
        assert all(started["signing_keys"][purpose] in told[purpose].stdout for purpose in PURPOSES)
        assert all(started["signing_keys"][purpose] != before["signing_keys"][purpose] for purpose in PURPOSES)
        keys = gate.operator().get("/v1/receipt-keys").json()
    (tmp_path / "all.json").write_text(json.dumps(keys))
    (tmp_path / "latest.json").write_text(json.dumps({"keys": keys["keys"][:1]}))
    copy = str(shutil.copy(state / "ledger.sqlite3", tmp_path / "copy.sqlite3"))
    for name in (tmp_path / "all.json", state / "receipt-keys.jwks.json"):
        done = verify(copy, name)
        assert done.returncode == Exit.OK, done.stdout + done.stderr
    done = verify(copy, tmp_path / "latest.json")
    assert done.returncode == Exit.CHECK_FAILED
    assert "signed by a key that" in done.stdout


def _hide(path: Path) -> None:
    path.rename(path.with_suffix(".hidden"))


def _show(path: Path) -> None:
    path.with_suffix(".hidden").rename(path)


def _open(path: Path) -> None:
    path.chmod(0o644)


def _close(path: Path) -> None:
    path.chmod(0o600)
