"""The wiring: which message of which child goes where, and the life of the gateway from first start to last exit.

Everything is decided in one step per event by the parts (`fronts`, `templates`, `worker_supply`, `reloads`, `stop`);
this module only connects them.
"""

import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from typing import TypeVar, cast

import msgspec
import trio

from ipc.messages.brokering import NeedBroker, ReplaceBroker
from ipc.messages.control import (
    CrashLoops,
    Draining,
    FrontReady,
    FrontStatus,
    KillWorker,
    NeedReader,
    NeedWorker,
    PolicyEdited,
    ReloadDone,
    ReloadPrepared,
    ReplacePolicy,
    RequestDrain,
    RequestReload,
    SettingsFollowed,
    TryWebhook,
    WorkerServes,
)
from ipc.messages.exporting import ReplaceExporter
from ipc.messages.manifests import ActionRollback, ManifestsLoaded
from ipc.messages.message import Message
from ipc.messages.modules import LoadModules
from ipc.process.exits import Exit
from supervisor.children.children import Child
from supervisor.children.signals import answer_signals
from supervisor.keepers.beside import keep_beside
from supervisor.keepers.brokers import BrokerKeeper
from supervisor.keepers.deliverers import DelivererKeeper
from supervisor.keepers.exporters import ExporterKeeper
from supervisor.keepers.front_memory import FrontMemory
from supervisor.keepers.fronts import Answers, FrontKeeper, FrontLife
from supervisor.keepers.notaries import NotaryKeeper
from supervisor.keepers.templates import TemplateKeeper
from supervisor.life import census
from supervisor.life.command_socket import Answer, Question, answer_commands
from supervisor.life.following import Followers
from supervisor.life.manifest_history import HistoryRecorder
from supervisor.life.reloads import Reloads
from supervisor.life.service_status import Telling
from supervisor.life.stop import begin_drain, stop_fronts
from supervisor.lifecycle import SERVING
from supervisor.logs import log
from supervisor.refusal import Refused
from supervisor.sockets import Listener
from supervisor.state import SupervisorState
from supervisor.systemd.watchdog import SignOfLife, Watchdog

M = TypeVar("M", bound=Message)

HISTORY_SECONDS = 5.0
"""How long the answer to a reload waits for the copies of manifests."""
_ASKED_BY = {"hangup": "signal", "command": "command"}
"""Origin of a reload -> its name in evidence."""


async def supervise(
    state: SupervisorState,
    listeners: tuple[Listener, ...],
    received: AsyncIterator[int],
    announce: Callable[[], None],
    commands: socket.socket | None = None,
) -> Exit:
    """Run the gateway until it is asked to stop or can't go on; return why. `announce` is called once, when it serves.

    `commands` is where `gateway status` and its like ask. `received` are signals as `trio.open_signal_receiver` gives
    them, opened with `signals.RECEIVED`.
    """
    async with trio.open_nursery() as nursery:
        gateway = _Gateway(state, listeners, nursery)
        nursery.start_soon(answer_signals, received, gateway.signal_answers())
        gateway.start(nursery)
        if commands is not None:
            nursery.start_soon(answer_commands, commands, gateway.command_answers())
        nursery.start_soon(gateway.announce_when_ready, announce)
        await state.condition.until(lambda: state.is_leaving)
        code = await stop_fronts(state, gateway.fronts)
        await gateway.template.stop()
        await gateway.deliverer.stop()
        await gateway.broker.stop()
        await gateway.exporter.stop()
        await gateway.notary.stop()
        state.lifecycle.move("ended")
        nursery.cancel_scope.cancel()
        return code
    raise AssertionError("the nursery was cancelled from outside")


class _Gateway:
    def __init__(self, state: SupervisorState, listeners: tuple[Listener, ...], nursery: trio.Nursery) -> None:
        self.state = state
        self.reloads_asked = 0
        state.standings.on_change = self.tell_crash_loops
        self.notary = NotaryKeeper(state, self.fronts)
        self.deliverer = DelivererKeeper(state, self.notary, self.fronts)
        self.broker = BrokerKeeper(state, self.fronts)
        self.exporter = ExporterKeeper(state, self.notary, self.fronts)
        self.notary.on_tied, self.notary.child_of = self.tie_notary, self.child_of
        self.followers = Followers(state, self.notary, self.deliverer, self.broker, self.fronts)
        self.reloads = Reloads(state, self.followers.follow)
        self.telling = Telling(state, self.answering, self.statuses, lambda: self.reloads.last_error is not None)
        self.reloads.around = self.telling.reload
        self.history = HistoryRecorder(state)
        self.template = TemplateKeeper(state, nursery, self.notary.tell)
        self.reloads.use_networks = self.template.use_networks
        self.notary.on_start = self.template.supply.tie_all
        self.notary.on_broken = self.template.supply.kill_broken
        count = state.settings.front_processes
        memory = FrontMemory(state.settings)
        self.keepers = [FrontKeeper(state, number, listeners, memory) for number in range(1, count + 1)]

    def start(self, nursery: trio.Nursery) -> None:
        nursery.start_soon(self.telling.run)
        if self.state.watchdog_seconds is not None:
            watchdog = Watchdog(self.state.notifier, self.state.watchdog_seconds, self.ping, self.pulses)
            nursery.start_soon(watchdog.run)
        nursery.start_soon(self.reloads.run)
        nursery.start_soon(self.history.run)
        for spares in (self.state.spares, *self.state.policy_spares.values()):
            nursery.start_soon(spares.run, self.is_calm)
        nursery.start_soon(self.notary.run)
        nursery.start_soon(self.template.run)
        nursery.start_soon(self.deliverer.run)
        nursery.start_soon(self.broker.run)
        nursery.start_soon(self.exporter.run)
        for beside in self.state.beside:
            nursery.start_soon(keep_beside, self.state, beside)
        for keeper in self.keepers:
            nursery.start_soon(keeper.run, self.answers(), self.live_ids, self.attach, self.front_ended)

    def fronts(self) -> list[FrontLife]:
        return [keeper.current for keeper in self.keepers if keeper.current is not None]

    def attach(self, front: FrontLife) -> None:
        """A front began to live."""
        self.notary.attach(front)
        self.deliverer.tell(front)
        self.broker.attach(front)
        self.exporter.attach(front)

    def tie_notary(self) -> None:
        """Fronts are tied to a fresh notary. Raises OSError."""
        self.deliverer.attach()
        self.exporter.attach_notary()

    def child_of(self, peer_id: str) -> Child | None:
        """The deliverer or the exporter of this id."""
        return self.deliverer.child_of(peer_id) or self.exporter.child_of(peer_id)

    def live_ids(self) -> tuple[str, ...]:
        return tuple(front.front_id for front in self.fronts() if front.child is not None)

    def is_ready(self) -> bool:
        fronts = self.fronts()
        all_there = len(fronts) == len(self.keepers)
        return all_there and all(front.is_ready and self.template.supply.has_spares(front) for front in fronts)

    def is_calm(self) -> bool:
        """It serves, and nothing is being replaced."""
        return self.state.lifecycle.state == SERVING and not self.state.is_leaving and self.is_ready()

    async def announce_when_ready(self, announce: Callable[[], None]) -> None:
        await self.state.condition.until(lambda: self.is_ready() and self.deliverer.is_settled)
        if self.state.is_leaving:
            return
        self.state.lifecycle.move("ready")
        self.state.condition.notify_all()
        try:
            announce()
        except Refused as refused:
            self.state.halt(refused.code, refused.sentence)
        else:
            self.telling.ready()

    # ----------------------------------------------------------------- the service manager

    def answering(self) -> int:
        return sum(front.answers for front in self.fronts())

    def statuses(self) -> list[FrontStatus]:
        return [front.status for front in self.fronts() if front.answers and front.status is not None]

    def ping(self) -> None:
        self.notary.ping()
        self.template.ping()

    def pulses(self) -> dict[str, SignOfLife]:
        return {front.name: front.pulse for front in self.fronts()} | {
            "notary": self.notary.pulse, "template": self.template.pulse,
        }  # fmt: skip

    # ----------------------------------------------------------------- signals

    def signal_answers(self) -> dict[signal.Signals, Callable[[], None]]:
        return {
            signal.SIGCHLD: self.state.children.reap,
            signal.SIGTERM: self.answer_term,
            signal.SIGINT: self.answer_term,
            signal.SIGHUP: self.answer_hup,
            signal.SIGUSR1: self.answer_usr1,
        }

    def answer_term(self) -> None:
        if self.state.is_leaving:
            log.warning("asked to stop now")
            self.state.patience.cancel()
        else:
            log.info("asked to stop")
            self.state.leave()

    def answer_hup(self) -> None:
        self.reload("hangup", None, None)

    def answer_usr1(self) -> None:
        log.info("the gateway", **self.whole())
        for row in census.rows(self.state, self.fronts(), self.template.supply.all()):
            log.info("child", **row)

    # ----------------------------------------------------------------- commands

    def command_answers(self) -> dict[str, Answer]:
        return {
            "status": self.answer_status, "ps": self.answer_ps, "reload": self.answer_reload,
            "drain": self.answer_drain, "seal": self.answer_seal,
        }  # fmt: skip

    def whole(self) -> census.Whole:
        return census.whole(self.state, self.fronts(), os.getpid())

    async def answer_status(self, _: Question) -> census.Whole:
        return self.whole()

    async def answer_ps(self, _: Question) -> dict[str, object]:
        return {
            "supervisor": os.getpid(),
            "processes": census.rows(self.state, self.fronts(), self.template.supply.all()),
        }

    async def answer_reload(self, question: Question) -> dict[str, object]:
        try:
            rollback = msgspec.convert(question.get("rolled_back"), ActionRollback | None)
        except msgspec.ValidationError:
            return {"error": "no such rollback"}
        told: list[ReloadDone] = []

        def heard(outcome: ReloadDone) -> None:
            told.append(outcome)
            self.state.condition.notify_all()

        self.reload("command", heard, rollback)
        await self.state.condition.until(lambda: bool(told))
        with trio.move_on_after(HISTORY_SECONDS):  # so that `gateway actions history` shows it
            await self.state.condition.until(lambda: self.history.is_idle)
        return {
            "error": told[0].error, "actions": told[0].actions, "policy_version": told[0].policy_version,
            "changed": list(told[0].changed), "needs_restart": list(told[0].needs_restart),
        }  # fmt: skip

    async def answer_drain(self, _: Question) -> census.Whole:
        log.info("asked to drain")
        begin_drain(self.state, self.fronts())
        return self.whole()

    async def answer_seal(self, question: Question) -> dict[str, object]:
        done = await self.notary.cut(str(question.get("sealed")))
        return {"left": done.left, "problem": done.problem, "is_refused": done.is_refused}

    def reload(
        self, way: str, heard: Callable[[ReloadDone], None] | None, rollback: ActionRollback | None
    ) -> None:  # fmt: skip
        self.reloads_asked += 1
        request = RequestReload(f"{way}-{self.reloads_asked}", _ASKED_BY[way], rolled_back=rollback)
        self.reloads.request(request, None, heard)

    def tell_crash_loops(self) -> None:
        for front in self.fronts():
            front.post(CrashLoops(self.state.standings.crash_loops))

    # ----------------------------------------------------------------- fronts

    def answers(self) -> Answers:
        """Type of a front's message -> the function that handles it."""
        supply = self.template.supply
        return {
            FrontReady: self.answer_ready,
            FrontStatus: _typed(FrontStatus, FrontLife.note_status),
            Draining: _typed(Draining, FrontLife.note_draining),
            RequestDrain: lambda _front, _message: begin_drain(self.state, self.fronts()),
            LoadModules: _typed(LoadModules, self.template.load),
            NeedWorker: _typed(NeedWorker, lambda front, need: supply.need(front, need.profile)),
            WorkerServes: _typed(WorkerServes, supply.note_serving),
            KillWorker: _typed(KillWorker, supply.kill),
            ReplacePolicy: _typed(ReplacePolicy, lambda front, message: front.policy.replace(message)),
            NeedReader: _typed(NeedReader, lambda front, message: front.reader.need(message)),
            RequestReload: _typed(RequestReload, lambda front, message: self.reloads.request(message, front)),
            ReloadPrepared: _typed(ReloadPrepared, self.reloads.answer_prepared),
            ReloadDone: _typed(ReloadDone, self.reloads.answer_reloaded),
            SettingsFollowed: _typed(SettingsFollowed, self.followers.answer_followed),
            PolicyEdited: _typed(PolicyEdited, self.answer_policy_edited),
            ManifestsLoaded: _typed(ManifestsLoaded, self.history.note),
            TryWebhook: _typed(TryWebhook, self.deliverer.try_webhook),
            NeedBroker: lambda _front, _message: self.broker.need(),
            ReplaceBroker: _typed(ReplaceBroker, lambda _front, message: self.broker.replace(message)),
            ReplaceExporter: _typed(ReplaceExporter, lambda _front, message: self.exporter.replace(message)),
        }

    def answer_ready(self, front: FrontLife, _: Message) -> None:
        front.is_ready = True
        log.info(f"{front.name} is ready", pid=front.child.pid if front.child else None)
        self.reloads.set_fronts([one for one in self.fronts() if one.is_ready])
        self.state.condition.notify_all()

    def answer_policy_edited(self, front: FrontLife, message: PolicyEdited) -> None:
        # As with Reload: a front that has been told to stop would take it for a broken protocol.
        if self.state.lifecycle.may_replace:
            for other in self.fronts():
                if other is not front:
                    other.post(message)

    def front_ended(self, front: FrontLife) -> None:
        self.template.remove_front(front)
        self.reloads.set_fronts([one for one in self.fronts() if one.is_ready])


def _typed(_: type[M], answer: Callable[[FrontLife, M], None]) -> Callable[[FrontLife, Message], None]:
    """An answer to one type of message as an answer to any: the table's key is what makes it right."""
    return cast(Callable[[FrontLife, Message], None], answer)
