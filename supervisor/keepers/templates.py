"""The template process: held alive, told which modules to load, and told all of them again after a restart.

Relays LoadModules and ModulesLoaded between fronts and template, and counts generations over all templates, so that
what a front once required holds for the workers of a later template too. A template is believed neither a count that
no front could be told, nor that another process of the gateway is its worker.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import trio
from msgspec.structs import replace

from ipc.channel.protocol_states import ProtocolError
from ipc.configuration.networks import NetworkSettings
from ipc.messages.forking import (
    StartTemplate,
    TemplateReady,
    TemplateToSupervisor,
    UseNetworks,
    WorkerExited,
    WorkerStarted,
)
from ipc.messages.message import Message
from ipc.messages.modules import LoadModules, ModuleFile, ModulesLoaded, ModuleVerdict
from ipc.messages.pinging import Ping, Pong
from ipc.network.own_servers import own_servers
from ipc.protocols.template import TEMPLATE_TO_SUPERVISOR
from supervisor.children.backoff import Backoff
from supervisor.children.children import Child
from supervisor.children.control import Control
from supervisor.keepers.fronts import FrontLife
from supervisor.keepers.network_files import NetworkFiles
from supervisor.keepers.worker_supply import Tell, WorkerSupply
from supervisor.logs import log
from supervisor.state import SupervisorState
from supervisor.systemd.watchdog import SignOfLife

MAX_REMEMBERED = 10_000
MAX_LOADS = 64
MAX_LOAD_ATTEMPTS = 3
"""A load that a template did not survive this often is answered as refused."""
READY_SECONDS = 60.0
"""From start to TemplateReady: the runtime is imported, nothing is compiled yet."""

MAX_GENERATION = 2**32
"""More loads than a template lives to see. The sum over all templates stays far below 64 bits."""

_REPLAY = "replay"


@dataclass
class _Load:
    """A LoadModules of a front that is not answered yet."""

    front: FrontLife
    message: LoadModules
    attempts: int = 0


class TemplateKeeper:
    """Holds one template alive."""

    def __init__(self, state: SupervisorState, nursery: trio.Nursery, tell: Tell) -> None:
        """`tell` posts to the notary."""
        self.supply = WorkerSupply(state, nursery, self._send, self._kill_stuck, tell)
        self.pulse = SignOfLife()
        self._state = state
        self._control: Control[Message] | None = None
        self._child: Child | None = None
        self._is_ready = False
        self._loads: dict[str, _Load] = {}
        self._loads_begun = 0
        self._remembered: dict[ModuleFile, None] = {}
        self._network_files = NetworkFiles(state.settings.egress.networks)
        self._earlier_generations = 0
        self._generation = 0
        self._answers: dict[type[Message], Callable[[Message], None]] = {
            TemplateReady: self._answer_ready,
            ModulesLoaded: self._answer_loaded,
            WorkerStarted: self._answer_started,
            WorkerExited: self._answer_exited,
            Pong: lambda _: self.pulse.settle(),
        }

    async def run(self) -> None:
        """Life after life, until the gateway stops."""
        backoff = Backoff()
        while self._state.lifecycle.may_replace:
            child = await self._live()
            had_served = self._is_ready
            self._forget_life()
            if not await self._state.after_end("template", child, backoff, had_served=had_served):
                return

    def load(self, front: FrontLife, message: LoadModules) -> None:
        """A front wants modules. Answered by ModulesLoaded with the front's own request id."""
        if len(self._loads) >= MAX_LOADS:
            self._refuse(front, message, "too many loads are waiting")
            return
        self._loads_begun += 1
        load_id = f"load-{self._loads_begun}"
        self._loads[load_id] = _Load(front, message)
        if self._is_ready:
            self._post_load(load_id)

    def use_networks(self, networks: Iterable[NetworkSettings]) -> None:
        """Have workers that are forked from now on use the files of TLS of these networks."""
        if self._network_files.update(networks):
            self._send(UseNetworks(self._network_files.current), ())

    def remove_front(self, front: FrontLife) -> None:
        """A front ended: drop its pending loads and end its workers."""
        self._loads = {key: load for key, load in self._loads.items() if load.front is not front}
        self.supply.remove_front(front)

    def ping(self) -> None:
        """Ask whether it is alive, unless an answer is owed or none can come."""
        if self._is_ready and not self.pulse.is_owed:
            self.pulse.expect()
            self._send(Ping(), ())

    async def stop(self) -> None:
        """End the template, and with it every worker. It holds nothing that an end at once could harm."""
        if self._child is not None:
            self._child.kill()
            await self._child.wait()

    # ----------------------------------------------------------------- one life

    async def _live(self) -> Child:
        state = self._state
        child, pair = state.children.start("template", state.programs.template)
        state.standings.started(child.name, child.pid)
        if pair is None:
            return child
        control: Control[Message] = Control(TemplateToSupervisor, TEMPLATE_TO_SUPERVISOR, pair)
        self._control, self._child = control, child
        settings = state.settings
        cache_dir = str(Path(settings.state_dir) / "modules-cache")
        control.post(
            StartTemplate(
                cache_dir,
                settings.files_folder,
                settings.workers.recycle_after_calls,
                settings.walls,
                settings.egress.proxy_ca_file,
                None if settings.ledger.url is not None else str(Path(settings.ledger_file).parent),
                settings.ledger.min_free_bytes,
                self._network_files.current,
                own_servers(settings),
            )
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(state.expect_up, child, lambda: self._is_ready, READY_SECONDS)
            await control.serve_until_end(child, lambda message: self._answers[type(message)](message))
            nursery.cancel_scope.cancel()
        return child

    def _forget_life(self) -> None:
        self._control = self._child = None
        self._is_ready = False
        self.pulse.settle()
        self._earlier_generations = self._generation
        self.supply.close()
        for load_id, load in list(self._loads.items()):
            if load.attempts >= MAX_LOAD_ATTEMPTS:
                del self._loads[load_id]
                self._refuse(load.front, load.message, "the template process ended while it loaded this module")

    def _refuse(self, front: FrontLife, message: LoadModules, detail: str) -> None:
        verdicts = tuple(ModuleVerdict(one.reference, "refused", None, detail) for one in message.modules)
        front.post(ModulesLoaded(message.request_id, self._generation, verdicts))

    def _send(self, message: Message, fds: tuple[int, ...]) -> None:
        if self._control is not None:
            self._control.post(message, fds)

    def _kill_stuck(self) -> None:
        if self._child is not None:
            log.error("template is killed: it did not fork in time", pid=self._child.pid)
            self._child.kill()

    # ----------------------------------------------------------------- what the template says

    def _answer_ready(self, _: Message) -> None:
        self._is_ready = True
        self._state.condition.notify_all()
        if self._remembered:
            self._send(LoadModules(_REPLAY, tuple(replace(one, is_held=True) for one in self._remembered)), ())
        else:
            self.supply.open()
        for load_id in self._loads:
            self._post_load(load_id)

    def _answer_loaded(self, message: Message) -> None:
        assert isinstance(message, ModulesLoaded)
        self._generation = max(self._generation, self._over_all(message.generation))
        if message.request_id == _REPLAY:
            self.supply.open()
            return
        load = self._loads.pop(message.request_id, None)
        if load is None:
            return  # Its front is gone.
        for module, verdict in zip(load.message.modules, message.verdicts, strict=False):
            if verdict.verdict == "ok" and len(self._remembered) < MAX_REMEMBERED:
                self._remembered[module] = None
        load.front.post(ModulesLoaded(load.message.request_id, self._generation, message.verdicts))
        self.supply.add_front(load.front)

    def _answer_started(self, message: Message) -> None:
        assert isinstance(message, WorkerStarted)
        # SECURITY: the process is put behind a worker's limits.
        if message.pid <= 0 or self._state.children.is_of_gateway(message.pid):
            raise ProtocolError(f"pid {message.pid} is no worker")
        self.supply.answer_started(message, self._over_all(message.generation))

    def _answer_exited(self, message: Message) -> None:
        assert isinstance(message, WorkerExited)
        self.supply.answer_exited(message)

    def _over_all(self, generation: int) -> int:
        """A generation of the present template, counted over all of them. Raises ProtocolError."""
        if not 0 <= generation <= MAX_GENERATION:
            raise ProtocolError(f"generation {generation}")
        return self._earlier_generations + generation

    def _post_load(self, load_id: str) -> None:
        load = self._loads[load_id]
        load.attempts += 1
        self._send(LoadModules(load_id, load.message.modules), ())
