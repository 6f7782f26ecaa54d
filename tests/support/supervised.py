"""A supervisor in a process of its own over fake children (tests/supervisor/programs), and how to drive it."""

import json
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ipc.settings import Settings
from tests.support.processes import titles_below


def wait_until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Poll a condition in another process until it holds; the deadline fails the test."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.01)
    return answer


def told(log: str, message: str) -> list[dict[str, Any]]:
    """The whole lines of a log of JSON that hold this message."""
    entries = []
    for line in log.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and entry.get("message") == message:
            entries.append(entry)
    return entries


@dataclass
class Running:
    """One supervisor with its fake children."""

    process: subprocess.Popen[str]
    settings: Settings
    log_file: Path
    known: set[int] = field(default_factory=set)

    def wait_ready(self) -> None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line == "ready\n", self.log()

    def ask(self, **command: Any) -> Any:
        """One command to the front that listens now; None when it went away without an answer."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(60)
            try:
                sock.connect(self.settings.listen_uds_path)
                sock.sendall(json.dumps(command).encode() + b"\n")
                answer = sock.makefile("rb").readline()
            except (ConnectionError, FileNotFoundError):
                return None
        return json.loads(answer) if answer else None

    def send(self, **message: Any) -> None:
        """Make the front send a message to the supervisor."""
        self.ask(do="send", message=message)

    def state(self) -> dict[str, Any]:
        """The front's records; asks until a front answers."""
        state: dict[str, Any] = wait_until(lambda: self.ask(do="state"))
        return state

    def states(self) -> dict[str, dict[str, Any]]:
        """The records of each of two fronts, by the front's name."""
        seen: dict[str, dict[str, Any]] = {}

        def both() -> bool:
            state = self.state()
            seen[" ".join(state["front_id"].split("-")[:2])] = state
            return len(seen) == 2

        wait_until(both)
        return seen

    def eventually(self, condition: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """Wait until the front's state meets the condition."""
        latest: dict[str, Any] = {}

        def look() -> bool:
            latest.update(self.state())
            return bool(condition(latest))

        wait_until(look)
        return latest

    def family(self) -> dict[str, int]:
        """Title without `gateway: ` -> pid of every process below the supervisor."""
        below = titles_below(self.process.pid)
        pids = {title.removeprefix("gateway: "): pid for pid, title in below.items()}
        self.known.update(pids.values())
        return pids

    def whole_family(self, size: int = 7) -> dict[str, int]:
        """The family once every process has its title; by default front, notary, policy, template and three workers.

        Those that are ready before they are needed do not count. While a process is replaced, two of its kind may make
        up for a notary that is not there yet: that is no whole family.
        """

        def look() -> dict[str, int] | None:
            titles = self.family().items()
            pids = {title: pid for title, pid in titles if "python" not in title and not title.startswith("spare ")}
            return pids if len(pids) == size and "notary" in pids else None

        family: dict[str, int] = wait_until(look)
        return family

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, seconds: float = 120) -> int:
        return self.process.wait(seconds)

    def log(self) -> str:
        return self.log_file.read_text()

    def told(self, message: str) -> list[dict[str, Any]]:
        """The log's lines with this message."""
        return told(self.log(), message)


Start = Callable[..., Running]


def one_each(state: dict[str, object]) -> bool:
    """Whether a front has seen one worker of each profile."""
    return all(len(workers(state, profile)) == 1 for profile in ("compute", "http", "fs"))


def workers(state: dict[str, object], profile: str) -> list[str]:
    """The ids of the workers of this profile, as a front has seen them."""
    by_id = state["workers"]
    assert isinstance(by_id, dict)
    return [worker_id for worker_id, (kind, _, _) in by_id.items() if kind == profile]
