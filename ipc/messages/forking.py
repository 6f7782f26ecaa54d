"""Supervisor and template: what is forked, and what became of it."""

from typing import ClassVar

from ipc.configuration.networks import NetworkTls
from ipc.messages.message import Message
from ipc.messages.modules import LoadModules, ModulesLoaded
from ipc.messages.pinging import Ping, Pong
from ipc.walls.given import Given


class StartTemplate(Message, frozen=True):
    """First message to the template. `cache_dir` holds compiled modules; below `files_dir` lie the files of fs actions,
    and no worker opens any other; a worker leaves after so many calls; `walls` is what this kernel gives. An egress
    proxy at https has a certificate by `proxy_ca_file`, or by one of the system's authorities. On the volume of
    `ledger_dir` (None: it is on another host) files of actions leave more free than `min_free_bytes`."""

    cache_dir: str
    files_dir: str
    recycle_after_calls: int
    walls: Given = Given()
    proxy_ca_file: str | None = None
    ledger_dir: str | None = None
    min_free_bytes: int = 0
    networks: tuple[NetworkTls, ...] = ()
    """Files of TLS with private networks."""
    own_servers: frozenset[str] = frozenset()
    """Servers that no private network leads to (ipc/network/own_servers.py)."""


class UseNetworks(Message, frozen=True):
    """From now on workers get these files of TLS, as they are now. A new generation of workers begins."""

    networks: tuple[NetworkTls, ...]


class TemplateReady(Message, frozen=True):
    """The runtime is imported and modules may be loaded."""


class SpawnWorker(Message, frozen=True):
    """Fork a worker that owns the descriptors that come along: its ends of the channels with front and notary.

    `title` is what ps shows.
    """

    FDS: ClassVar[int] = 2
    worker_id: str
    profile: str
    title: str


class WorkerStarted(Message, frozen=True):
    """The fork succeeded."""

    worker_id: str
    pid: int
    generation: int


class WorkerExited(Message, frozen=True):
    """`status` as os.waitstatus_to_exitcode gives it: an exit code, or minus a signal."""

    worker_id: str
    pid: int
    status: int


class KillForked(Message, frozen=True):
    """SIGKILL a worker, by its parent: no other process may reuse its pid in between."""

    worker_id: str


SupervisorToTemplate = StartTemplate | UseNetworks | LoadModules | SpawnWorker | KillForked | Ping
TemplateToSupervisor = TemplateReady | ModulesLoaded | WorkerStarted | WorkerExited | Pong
