"""The bound of a policy's memory, on processes: beyond it the process ends, and says so."""

import signal
import subprocess
import sys
from contextlib import suppress

import psutil
import pytest

from ipc.channel.blocking import ChannelClosed
from ipc.messages.deciding import Ask
from ipc.process.exits import Exit
from tests.support.policy import HEADER, REPOSITORY, PolicyPeer, document, question, sources
from workers.rego.memory import MOST_BYTES

GROWING = (
    'decision := {{}} if {{\n\tinput.action_id == "grows"\n\tcount([x | some i in numbers.range(1, {rows}); '
    "x := [i, numbers.range(1, 500)]]) == 0\n}}\n\nelse := {usual}"
)
DOUBLING = "".join(f'\tx{n} := concat("", [x{n - 1}, x{n - 1}])\n' for n in range(1, 31))
DOUBLED = (
    f'decision := {{}} if {{\n\tinput.action_id == "grows"\n\tx0 := input.principal\n{DOUBLING}\tx30 == ""\n}}\n\n'
    f"else := {document()}"
)
"""Ten bytes become ten gigabytes, sooner than its second of the processor ends."""
PROGRAM = f"""
import sys
from workers.rego.evaluator import CompiledPolicy
from workers.rego.memory import MemoryBound
policy = CompiledPolicy({{"gateway.rego": {HEADER!r} + sys.argv[2] + chr(10)}}, "{{}}")
memory = MemoryBound(int(sys.argv[1]) << 20)
memory.start()
with memory:
    policy.evaluate({{"action_id": sys.argv[3]}})
"""
"""Without a deadline: on a slow machine the bound must be what ends it."""


def evaluated(mebibytes: int, action_id: str) -> "subprocess.CompletedProcess[str]":
    body = GROWING.format(rows=20_000, usual=document())
    command = [sys.executable, "-c", PROGRAM, str(mebibytes), body, action_id]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=False)


def test_an_evaluation_that_takes_too_much_ends_the_process_with_a_sentence() -> None:
    done = evaluated(32, "grows")
    assert done.returncode == Exit.MEMORY, done.stderr
    assert done.stderr == "policy: it took more than 32 MiB of memory, and is ended\n"


def test_an_ordinary_evaluation_is_left_alone() -> None:
    done = evaluated(32, "stays")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.large
def test_no_question_takes_a_policy_process_far_beyond_its_bound() -> None:
    peer = PolicyPeer()
    try:
        assert peer.load(sources(DOUBLED)) is None
        watched, most = psutil.Process(peer.process.pid), 0
        peer.channel.send(Ask(1, question(action_id="grows").as_input()))
        with suppress(psutil.NoSuchProcess):
            while peer.process.poll() is None:
                most = max(most, watched.memory_info().rss)
        with pytest.raises((ChannelClosed, ConnectionError)):
            peer.verdict()
        assert peer.process.wait(60) in (Exit.MEMORY, -signal.SIGPROF)
        assert most < 3 * MOST_BYTES  # the last doubling may be under way when the bound is seen
    finally:
        peer.close()
