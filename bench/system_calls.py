"""System calls a call of every process of a gateway, counted by strace, which is attached from outside."""

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.generator import Generator
from bench.measures import family, kind_of, wait_until
from bench.subjects import Gate

GROUPS: Mapping[str, tuple[str, ...]] = {
    "flush": ("fsync", "fdatasync", "sync_file_range"),
    "futex": ("futex",),
    "epoll_wait": ("epoll_wait", "epoll_pwait", "epoll_pwait2"),
    "poll": ("poll", "ppoll", "select", "pselect6"),
}
STOP_SECONDS = 20.0
NOISE = 0.05
"""A kind of process that makes fewer system calls a call than this has no part in it."""


def unavailable() -> str | None:
    """Why nothing can be counted here, or None."""
    return None if shutil.which("strace") else "strace is not installed"


def counted(gate: Gate, generator: Generator, calls: int) -> dict[str, Any]:
    """System calls a durable execute at one connection, by kind of process and by name.

    Processes that are there at the start are counted, all their threads included; a warm-up has been played before.
    """
    generator.calls(gate, 1, 0.2)
    with tempfile.TemporaryDirectory(prefix="gateway-bench-") as folder, ExitStack() as attached:
        outputs: dict[str, list[Path]] = {}
        for pid in family(gate.pid):
            output = Path(folder) / str(pid)
            outputs.setdefault(kind_of(pid), []).append(output)
            attached.callback(_detach, _attach(pid, output))
        done = generator.calls(gate, 1, 20.0, calls=calls, warmup=0)["calls"]
        attached.close()
        by_kind = {kind: _summed(parse(file.read_text()) for file in files) for kind, files in outputs.items()}
    per_call = {
        kind: {name: count / done for name, count in counts.items()}
        for kind, counts in by_kind.items()
        if sum(counts.values()) >= NOISE * done
    }
    return {"calls": done, "processes": per_call}


def parse(table: str) -> dict[str, int]:
    """Calls by name in what `strace -c` writes."""
    counts: dict[str, int] = {}
    for line in table.splitlines():
        words = line.split()
        # share, seconds, microseconds a call, calls, errors if there were some, name
        if len(words) in (5, 6) and words[3].isdigit() and words[-1] != "total":
            counts[words[-1]] = int(words[3])
    return counts


def grouped(processes: Mapping[str, Mapping[str, float]], kinds: Iterable[str], group: str) -> float:
    """The calls of one of GROUPS in these kinds of process together."""
    return sum(processes.get(kind, {}).get(name, 0.0) for kind in kinds for name in GROUPS[group])


def _summed(tables: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for table in tables:
        for name, count in table.items():
            total[name] = total.get(name, 0) + count
    return total


def _attach(pid: int, output: Path) -> "subprocess.Popen[bytes]":
    command = ["strace", "-f", "-c", "-o", str(output), "-p", str(pid)]
    tracer = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    wait_until(lambda: tracer.poll() is not None or _is_traced(pid), "strace to be attached")
    if tracer.returncode is not None:
        raise RuntimeError(f"strace could not be attached to {kind_of(pid)}")
    return tracer


def _is_traced(pid: int) -> bool:
    statuses = [task.read_text() for task in Path(f"/proc/{pid}/task").glob("*/status")]
    return all("TracerPid:\t0\n" not in status for status in statuses)


def _detach(tracer: "subprocess.Popen[bytes]") -> None:
    tracer.send_signal(signal.SIGINT)
    try:
        tracer.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        tracer.kill()
        tracer.wait(STOP_SECONDS)
