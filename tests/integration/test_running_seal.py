"""`gateway ledger seal` of a gateway that runs: calls go on, the ledger shrinks, and the whole log verifies."""

import json
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.process.clock import iso
from supervisor.programs import INTERPRETER
from tests.notary.running import Running, stored
from tests.notary.sealing.sealed_ledger import AGE, keys_of, verify, write_calls
from tests.support.gateway import Gateway, gateway, wait_for
from tests.support.pace import Paces
from tests.support.processes import GATEWAY

CONFIG = '[evidence]\norigin = "localhost"\n'
TEXT = {"text": "x"}


class OldState:
    """A folder with the state of a gateway that has calls of three ages."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out = folder, folder / "segments"
        start = time.time() - 10 * AGE
        notary = Running(folder / "state")
        for age in range(3):
            write_calls(notary, start + age * AGE)
        notary.close()
        self.ledger, self.keys = notary.path, keys_of(notary, folder / "keys.json")
        self.before = start + 2 * AGE
        (self.receipt_id,) = stored(notary.path, "SELECT receipt_id FROM receipts ORDER BY seq LIMIT 1")
        self.first, *_ = [json.loads(one) for one in stored(notary.path)]

    @property
    def command(self) -> list[str]:
        """The command that seals the older two thirds."""
        before, state = iso(self.before), self.folder / "state"
        return [GATEWAY, "ledger", "seal", "--before", before, "--out", str(self.out), "--state-dir", str(state)]

    def seal(self) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(self.command, capture_output=True, text=True, timeout=300, check=False)

    def check(self) -> None:
        ran = verify(self.ledger, "--segments", self.out, "--keys", self.keys)
        assert ran.returncode == 0, ran.stdout + ran.stderr

    def old_rows(self) -> int:
        """Rows of events from before the time of the cut."""
        (count,) = stored(self.ledger, "SELECT count(*) FROM events WHERE time < ?", round(self.before * 1000))
        return int(count)

    def sealed(self) -> list[dict[str, str]]:
        """The changes that the events `LedgerSealed` tell of."""
        events = [json.loads(one) for one in stored(self.ledger)]
        return [one["change"] for one in events if one["event_type"] == "LedgerSealed"]


@pytest.fixture
def old(tmp_path: Path) -> OldState:
    return OldState(tmp_path)


@pytest.fixture
def running(old: OldState) -> Iterator[Gateway]:
    with gateway(old.folder, CONFIG) as made:
        yield made


def test_calls_go_on_while_the_ledger_is_sealed(old: OldState, running: Gateway) -> None:
    agent, answers, is_over, pace = running.agent(), list[int](), threading.Event(), Paces.session()

    def call() -> None:
        while not is_over.is_set():
            pace.wait()
            answers.append(agent.execute("text_digest", TEXT).status_code)

    caller = threading.Thread(target=call)
    caller.start()
    try:
        wait_for(lambda: len(answers) > 2, "calls")
        ran = old.seal()
        count = len(answers)
        wait_for(lambda: len(answers) > count + 2, "calls after it")
    finally:
        is_over.set()
        caller.join()
    assert ran.returncode == 0, ran.stderr
    assert "20 events and 10 intents" in ran.stdout
    assert set(answers) == {200}
    wait_for(lambda: old.old_rows() == 0, "the deletion of sealed rows")
    assert [line["message"] for line in running.lines()].count("the ledger is sealed") == 1
    (told,) = old.sealed()
    (segment,) = old.out.iterdir()
    assert (told["segment"], told["by"][:4]) == (segment.name, "uid:")
    old.check()
    again = old.seal()
    assert again.returncode != 0
    assert "no checkpoint lies before" in again.stderr


def test_the_gateway_names_the_segment_that_has_what_was_sealed(old: OldState) -> None:
    ran = old.seal()
    assert ran.returncode == 0, ran.stderr
    (segment,) = old.out.iterdir()
    with gateway(old.folder, CONFIG) as running:
        names_it(old, running, segment.name)


def names_it(old: OldState, running: Gateway, segment: str) -> None:
    agent, operator = running.agent(), running.operator()
    event_id, intent_id = old.first["event_id"], old.first["intent_id"]
    erased = {"event_id": event_id, "reason": "asked for"}
    answers = [
        agent.get(f"/v1/receipts/{old.receipt_id}"), operator.get(f"/v1/receipts/{old.receipt_id}"),
        operator.get(f"/v1/audit/proof?event_id={event_id}"), operator.get(f"/v1/audit/proof?intent_id={intent_id}"),
        operator.get(f"/v1/audit/proof?receipt_id={old.receipt_id}"), operator.get(f"/v1/admin/intents/{intent_id}"),
        operator.get(f"/v1/audit/events?before={iso(old.before - AGE)}"),
        operator.post("/v1/admin/evidence/erase", erased),
    ]  # fmt: skip
    for answer in answers:
        told = answer.json()
        assert (answer.status_code, told["error"], told.get("segment")) == (404, "sealed", segment), answer.url
        assert segment in told["message"]
    later = operator.get("/v1/audit/proof?event_id=evt_ffffffff-ffff-7fff-bfff-ffffffffffff")
    assert (later.status_code, later.json()) == (404, {"error": "evidence_not_found"})
    of_principal = {"principal": old.first["principal"], "reason": "asked for"}
    assert operator.post("/v1/admin/evidence/erase", of_principal).json()["sealed"] == [segment]
    of_principal["before"] = iso(old.before)
    assert operator.post("/v1/admin/evidence/erase", of_principal).json()["sealed"] == [segment]


def test_a_command_that_is_killed_before_the_cut_is_repeated(old: OldState, running: Gateway) -> None:
    running.agent()
    command = subprocess.Popen(old.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: old.out.exists() and any(old.out.iterdir()), "the file of a segment")
    command.send_signal(signal.SIGKILL)
    command.wait()
    wait_for(lambda: not_written_to(old), "the end of the program that writes it, too")
    ran = old.seal()
    assert ran.returncode == 0 or old.sealed(), ran.stderr
    wait_for(lambda: old.old_rows() == 0, "the deletion of sealed rows")
    assert len(list(old.out.iterdir())) == 1
    old.check()


def not_written_to(old: OldState) -> bool:
    """No program works on a segment any more."""
    command = " ".join([*INTERPRETER, "notary.programs.seal"])
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = one.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if command in text and str(old.out) in text:
            return False
    return True
