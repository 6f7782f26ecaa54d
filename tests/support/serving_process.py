"""A command of `gateway` that serves beside a gateway until the test ends it, and its log."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.gateway import START_SECONDS, STOP_SECONDS, wait_for
from tests.support.processes import GATEWAY


@dataclass
class ServingProcess:
    """A process that serves."""

    process: subprocess.Popen[bytes]
    address: str
    """From the line of its log that says so."""
    log: Path

    def lines(self) -> list[dict[str, Any]]:
        """The lines of its log, without an unfinished last line."""
        return [json.loads(line) for line in self.log.read_text().split("\n")[:-1]]

    def stop(self) -> int:
        """End it as a service manager does; its exit code."""
        self.process.terminate()
        return self.process.wait(STOP_SECONDS)


@contextmanager
def serving_process(
    log: Path, arguments: Sequence[str], member: str, within: Sequence[str] = ()
) -> Iterator[ServingProcess]:
    """Run `gateway` with these arguments until the block ends; `member` of its line `serving` is the address, and
    `within` the start of a command (hosts.py)."""
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [*within, GATEWAY, *arguments], stdin=subprocess.DEVNULL, stdout=errors, stderr=errors
        )  # fmt: skip

    def serving() -> str | None:
        assert process.poll() is None, log.read_text()
        whole = [line for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return next((json.loads(line)[member] for line in whole if '"serving"' in line), None)

    try:
        yield ServingProcess(process, wait_for(serving, f"gateway {arguments[0]}", START_SECONDS), log)
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        finally:
            process.kill()
