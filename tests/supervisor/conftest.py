"""The real supervisor in a process of its own, over fake children that do what a test tells them."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.settings import LimitSettings, PoolSettings, Settings, WorkerSettings
from supervisor.programs import INTERPRETER
from tests.support.processes import is_running
from tests.support.supervised import Running, Start, one_each, wait_until

RUN_GATEWAY = (*INTERPRETER, "tests.supervisor.programs.run_gateway")
ONE_EACH = PoolSettings(min_spare=1, max=2)
NONE = PoolSettings(min_spare=0, max=1)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a supervisor: see `starting`."""
    with starting(tmp_path) as begin:
        yield begin


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The one gateway of a file's tests that leave it serving, whatever else they do to it. A worker that its front has
    asked for is wanted for as long as a test lasts."""
    with starting(tmp_path_factory.mktemp("standing")) as start:
        running = start(limits=LimitSettings(drain_seconds=600.0, worker_wait_seconds=600.0))
        yield running


@pytest.fixture
def gateway(standing: Running) -> Running:
    """A gateway that serves, with one worker of each profile and room for two. Earlier tests have used it, and the
    processes that they ended are replaced."""

    def is_whole() -> bool:
        state = standing.state()
        if not (one_each(state) and state["policies"] and state["notaries"]):
            return False
        workers = {pid for _, pid, _ in state["workers"].values()}
        known = {state["pid"], state["policies"][-1], state["notaries"][-1], *workers}
        return known <= set(standing.whole_family().values())

    wait_until(is_whole)
    return standing


@contextmanager
def starting(folder: Path) -> Iterator[Start]:
    """Start supervisors in a folder. `front`, `notary` and `template` are the scripts of the fakes, the other
    arguments are settings; `environ` is added to the environment. With `is_real` only front and notary are fakes. Each
    is ready, unless the test `waits` itself; all are stopped at the end.
    """
    started: list[Running] = []

    def begin(
        *, front: dict[str, Any] | None = None, notary: dict[str, Any] | None = None,
        template: dict[str, Any] | None = None, is_real: bool = False, environ: dict[str, str] | None = None,
        waits: bool = True, **changes: Any,
    ) -> Running:  # fmt: skip
        state_dir = folder / "state"
        state_dir.mkdir(mode=0o700, exist_ok=True)
        for name, script in (("front", front), ("notary", notary), ("template", template)):
            if script is not None:
                (state_dir / f"fake-{name}.json").write_text(json.dumps(script))
        settings = Settings(
            state_dir=str(state_dir),
            public_base_url="http://gateway.test",
            listen_uds_path=str(folder / "run" / "gate.sock"),
            listen_admin_uds_path=str(folder / "run" / "gate-admin.sock"),
            workers=WorkerSettings(compute=ONE_EACH, http=ONE_EACH, fs=ONE_EACH),
            limits=LimitSettings(drain_seconds=600.0),
        )
        settings = msgspec.structs.replace(settings, **changes)
        log_file = folder / f"log-{len(started)}"
        with log_file.open("w") as log:
            arguments = [msgspec.json.encode(settings).decode(), *(["real"] if is_real else [])]
            process = subprocess.Popen(
                [*RUN_GATEWAY, *arguments],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
                env=os.environ | (environ or {}),
            )  # fmt: skip
        started.append(Running(process, settings, log_file))
        if waits:
            started[-1].wait_ready()
        return started[-1]

    try:
        yield begin
    finally:
        _end(started)


def _end(started: list[Running]) -> None:
    left = []
    for running in started:
        if running.process.poll() is None:
            running.family()
        running.process.kill()
        running.process.wait(60)
        assert running.process.stdout is not None
        running.process.stdout.close()
        left += [pid for pid in running.known if is_running(pid)]
    wait_until(lambda: not any(is_running(pid) for pid in left))
