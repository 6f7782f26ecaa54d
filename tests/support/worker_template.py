"""A real template process and real workers, driven by a test as supervisor, front and notary drive them."""

import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

from ipc.channel.blocking import BlockingChannel
from ipc.channel.packets import packet_pair
from ipc.limits import MAX_CONTROL_FRAME
from ipc.messages.forking import (
    SpawnWorker,
    StartTemplate,
    TemplateReady,
    TemplateToSupervisor,
    WorkerExited,
    WorkerStarted,
)
from ipc.messages.message import Message
from ipc.messages.modules import LoadModules, ModuleFile, ModulesLoaded
from ipc.protocols.template import TEMPLATE_TO_SUPERVISOR
from ipc.walls.given import Given
from supervisor.programs import INTERPRETER
from tests.support.worker_peers import WAIT_SECONDS, Worker
from tests.support.worker_plans import post_plan
from tests.support.worker_upstream import Upstream, holding

M = TypeVar("M", bound=Message)


@dataclass
class Template:
    """The supervisor's end of one template."""

    process: "subprocess.Popen[bytes]"
    sock: socket.socket
    channel: BlockingChannel[Any]
    early: list[Message] = field(default_factory=list)
    workers: list[Worker] = field(default_factory=list)

    def receive(self, kind: type[M], seconds: float = WAIT_SECONDS) -> M:
        """The next message of this kind; others are kept for who asks for them."""
        for message in self.early:
            if isinstance(message, kind):
                self.early.remove(message)
                return message
        deadline = time.monotonic() + seconds
        while True:
            self.sock.settimeout(max(0.01, deadline - time.monotonic()))
            message = self.channel.receive()
            if isinstance(message, kind):
                return message
            self.early.append(message)

    def load(self, *modules: ModuleFile, request_id: str = "r") -> ModulesLoaded:
        """Load modules and wait for their verdicts."""
        self.channel.send(LoadModules(request_id, modules))
        return self.receive(ModulesLoaded)

    def spawn(self, profile: str = "compute", worker_id: str | None = None) -> Worker:
        """Fork a worker and take the ends of its peers."""
        fronts, workers = socket.socketpair()
        attesting, kept = packet_pair()
        worker_id = worker_id or f"w{len(self.workers)}"
        with workers:
            message = SpawnWorker(worker_id, profile, f"gateway: worker {profile} {worker_id}")
            self.channel.send(message, (workers.fileno(), kept.fileno()))
        started = self.receive(WorkerStarted)
        worker = Worker(worker_id, started.pid, fronts, attesting, kept)
        self.workers.append(worker)
        return worker

    def born(self, profile: str = "compute") -> Worker:
        """A worker that is ready."""
        worker = self.spawn(profile)
        worker.meet()
        return worker

    def exit_status(self, worker: Worker) -> int:
        """Wait for a worker to end."""
        while (exited := self.receive(WorkerExited)).worker_id != worker.worker_id:
            pass
        return exited.status

    def exit_code(self, seconds: float = WAIT_SECONDS) -> int:
        """Wait for the template to end."""
        return self.process.wait(seconds)


@contextmanager
def template(
    folder: Path, *, recycle_after_calls: int = 1000, start: bool = True, program: str = "workers.template",
    walls: Given | None = None, files_dir: str | None = None,
) -> Iterator[Template]:  # fmt: skip
    """Run the template, started as the supervisor does, until the block ends. Its log goes to `folder/template.log`;
    files of actions lie in `files_dir`, or in folders beside `folder`."""
    ours, theirs = socket.socketpair()
    with theirs, (folder / "template.log").open("ab") as log:
        process = subprocess.Popen(
            [
                *INTERPRETER, program, "--control-fd", str(theirs.fileno()), "--parent", str(os.getpid()),
            ],
            stdin=subprocess.DEVNULL, stdout=2, stderr=log, pass_fds=(theirs.fileno(),), cwd="/",
            env={name: os.environ[name] for name in ("SSL_CERT_FILE", "LANG") if name in os.environ},
            start_new_session=True,
        )  # fmt: skip
    channel: BlockingChannel[Any] = BlockingChannel(
        ours, TemplateToSupervisor, table=TEMPLATE_TO_SUPERVISOR, cap_in=MAX_CONTROL_FRAME,
        cap_out=MAX_CONTROL_FRAME,
    )  # fmt: skip
    running = Template(process, ours, channel)
    try:
        if start:
            files = files_dir or str(folder.parent)
            given = walls or Given()
            channel.send(StartTemplate(str(folder / "modules-cache"), files, recycle_after_calls, given))
            running.receive(TemplateReady)
        yield running
    finally:
        for worker in running.workers:
            worker.close()
        channel.close()
        try:
            process.wait(WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def busy(running: Template) -> Iterator[tuple[Worker, Upstream, Event]]:
    """A worker in the middle of the call `c1`, a POST to this upstream, which ends after the event is set."""
    worker = running.born("http")
    with holding() as (up, release):
        worker.start(post_plan(up.address), "c1")
        worker.wait_for(lambda: len(up.requests) == 1)
        yield worker, up, release


def has_ended(pid: int, seconds: float = WAIT_SECONDS) -> bool:
    """Whether a process ends in time; it need not be our child."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        waiting = select.poll()
        waiting.register(handle, select.POLLIN)
        return bool(waiting.poll(seconds * 1000))
    finally:
        os.close(handle)


def kill(pid: int) -> None:
    """SIGKILL to a process that this test's template started."""
    os.kill(pid, signal.SIGKILL)
