"""Starts that end at once because a dependency is missing."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.faults.stages.core import can_mount, mounted
from tests.faults.table.opa import OPA
from tests.faults.table.postgres import POSTGRES
from tests.faults.table.redis import REDIS
from tests.faults.table.rows import START, Table
from tests.support.gateway import START_SECONDS
from tests.support.ports import closed_port
from tests.support.processes import GATEWAY
from tests.support.redis_server import RedisServer

Process = subprocess.Popen[str]


@contextmanager
def starting(table: Table, fault: str, folder: Path) -> Iterator[Process]:
    """A gateway that starts under this fault of the table."""
    with ExitStack() as stack:
        if table in (REDIS, OPA, POSTGRES):
            config = _closed(table, stack.enter_context(closed_port()), folder, stack)
        elif fault == START:
            ledger = folder / "ledger.sqlite3"
            ledger.write_bytes(b"no database" * 1000)
            ledger.chmod(0o600)
            config = f'[ledger]\npath = "{ledger}"\n'
        else:
            config = f'[ledger]\npath = "{stack.enter_context(read_only(folder / "volume"))}/ledger.sqlite3"\n'
        (folder / "gateway.toml").write_text(config)
        command = [GATEWAY, "dev", "--listen", "127.0.0.1:0", "--state-dir", str(folder / "state"), "--no-upstream"]
        process = stack.enter_context(subprocess.Popen(
            [*command, "--config", str(folder / "gateway.toml")], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True,
        ))  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def _closed(table: Table, port: int, folder: Path, stack: ExitStack) -> str:
    """A configuration by which it is at this port."""
    if table is REDIS:
        return f'[store]\nredis_url = "redis://127.0.0.1:{port}"\n'
    if table is OPA:
        return f'opa_url = "http://127.0.0.1:{port}"\n'
    store = RedisServer(folder / "redis")
    stack.callback(store.close)
    return f'[store]\nredis_url = "{store.url}"\n[ledger]\nurl = "postgresql://gateway@127.0.0.1:{port}/ledger"\n'


def ended(process: Process) -> tuple[int, str]:
    """Its exit code and its log."""
    log = process.communicate(timeout=START_SECONDS)[1]
    return process.returncode, log


@contextmanager
def read_only(folder: Path) -> Iterator[Path]:
    """A folder in which nothing can be written: on a disk of its own where root would not be stopped by a mode."""
    with mounted(folder) as volume:
        if can_mount():
            subprocess.run(["mount", "-o", "remount,ro", str(volume)], check=True, capture_output=True)
        else:
            volume.chmod(0o500)
        yield volume
        if not can_mount():
            volume.chmod(0o700)
