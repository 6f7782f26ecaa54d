"""System calls of a process that runs, as strace tells them. For root, since ours are not dumpable."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.gateway import STOP_SECONDS, wait_for
from tests.support.manifests import REPOSITORY

FETCHED = REPOSITORY / ".venv" / "servers" / "bin" / "strace"


def program() -> str:
    """The strace of this machine, or the one that scripts/servers.sh fetched."""
    installed = shutil.which("strace")
    if installed is not None and subprocess.run([installed, "-V"], capture_output=True, check=False).returncode == 0:
        return installed
    assert FETCHED.is_file(), "no strace to test with: run `make test`, which fetches one (scripts/servers.sh)"
    return str(FETCHED)


class Trace:
    """Calls of one process, in order. A call is reported before its process continues, so its effects come later."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._read = 0

    def news(self) -> list[str]:
        """Calls that have ended since the last look, with the paths of their descriptors."""
        text = self._file.read_text()
        news, self._read = text[self._read :], len(text)
        return [line for line in news.splitlines() if line]


@contextmanager
def traced(pid: int, calls: str, folder: Path) -> Iterator[Trace]:
    """Trace these calls (comma between names) of a process and of all its threads until the block ends."""
    file, told = folder / f"trace-{pid}", folder / f"trace-{pid}.log"
    command = [program(), "-f", "-y", "-e", f"trace={calls}", "-e", "signal=none", "-o", str(file), "-p", str(pid)]
    with told.open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        wait_for(lambda: told.read_text().count("attached") > 0 and _is_traced(pid, process.pid), "strace")
        yield Trace(file)
    finally:
        process.send_signal(signal.SIGINT)  # which lets go of what it traces
        process.wait(STOP_SECONDS)


def _is_traced(pid: int, tracer: int) -> bool:
    """Whether this one traces every thread that a process has."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended meanwhile
            if f"TracerPid:\t{tracer}\n" not in Path(f"/proc/{pid}/task/{thread}/status").read_text():
                return False
    return True


@contextmanager
def injected(pid: int, calls: str, fault: str, folder: Path, paths: Iterable[Path]) -> Iterator[None]:
    """Within the block these calls of a process that reach one of these files meet a fault (strace's words for one:
    `signal=KILL:when=3`, `error=ENOSPC`). The process may end meanwhile."""
    told = folder.with_name(f"{folder.name}-{pid}.log")
    command = [
        program(),
        "-f",
        "-e",
        f"trace={calls}",
        "-e",
        f"inject={calls}:{fault}",
        "-o",
        os.devnull,
        "-p",
        str(pid),
    ]
    command += [part for path in paths for part in ("-P", str(path))]
    with told.open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        wait_for(lambda: told.read_text().count("attached") > 0, "strace")
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(STOP_SECONDS)
