"""A supervisor that has no descriptor left when a child ends: it lives, says so, and starts a successor once it can."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.support.gateway import Gateway, gateway, wait_for

WEBHOOK = '[[webhooks]]\nname = "nobody"\nurl = "https://hooks.gateway.test/"\nsecret = "a secret of some length"\n'
MOST = 16
"""More than any child takes."""
SAID = ("could not be started", "its descriptors can't be handed over")


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with each kind of child."""
    with gateway(tmp_path_factory.mktemp("descriptors"), WEBHOOK) as running:
        yield running


@contextmanager
def room_for(process: psutil.Process, number: int) -> Iterator[None]:
    """The process can open so many descriptors more."""
    held, before = {int(name) for name in os.listdir(f"/proc/{process.pid}/fd")}, process.rlimit(psutil.RLIMIT_NOFILE)
    limit = [one for one in range(before[0]) if one not in held][number]
    process.rlimit(psutil.RLIMIT_NOFILE, (limit, before[1]))
    try:
        yield
    finally:
        process.rlimit(psutil.RLIMIT_NOFILE, before)


def complaints(log: Path) -> int:
    text = log.read_text()
    return sum(text.count(one) for one in SAID)


@pytest.mark.parametrize("kind", ["deliverer", "front", "notary", "policy", "template"])
def test_a_child_that_ends_while_no_descriptor_is_left_has_a_successor_as_soon_as_there_are_some(
    gate: Gateway, kind: str
) -> None:
    supervisor, agent, was_short = psutil.Process(gate.process.pid), gate.agent(), True
    for room in range(MOST):  # the missing descriptor may be any that a child takes, also one that it had before
        was_short = end_without_descriptors(gate, kind, supervisor, room)
        wait_for(lambda: agent.execute("text_digest", {"text": "x"}).status_code == 200, "a call that succeeds")
        if not was_short:
            assert room > 0
            break
    assert not was_short
    assert supervisor.is_running()
    assert "Traceback" not in gate.log.read_text()


def end_without_descriptors(gate: Gateway, kind: str, supervisor: psutil.Process, room: int) -> bool:
    """Kill a child while its supervisor can open so many descriptors, and wait for its successor. True if they were
    not enough for one."""
    before, said = gate.child(kind).pid, complaints(gate.log)

    def is_replaced() -> bool:
        pids = {one.pid for one in gate.children(kind)}
        return bool(pids) and before not in pids

    with room_for(supervisor, room):
        gate.child(kind).kill()
        wait_for(lambda: complaints(gate.log) > said or is_replaced(), "a word, or a successor")
        was_short = complaints(gate.log) > said
    wait_for(is_replaced, f"another {kind}")
    return was_short
