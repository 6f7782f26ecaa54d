"""State that all parts of the supervisor share: settings, children, lifecycle, and the way to stop.

Owns no process. Any part calls `halt` when the gateway can't go on; the first reason counts.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import trio

from ipc.process.exits import Exit
from ipc.settings import Settings
from supervisor.children.backoff import HEALTHY_SECONDS, Backoff, fatal_exit, reason_of
from supervisor.children.children import Child, Children
from supervisor.children.spares import Spares
from supervisor.children.standings import Standings
from supervisor.condition import Condition
from supervisor.lifecycle import Lifecycle
from supervisor.logs import log
from supervisor.programs import BesideProgram, Programs
from supervisor.settings.rereading import Rereading
from supervisor.systemd.notify import Notifier


@dataclass
class SupervisorState:
    """The shared state. `condition` notifies after each change."""

    settings: Settings
    programs: Programs
    children: Children
    rereading: Rereading | None = None
    """Reads the configuration file again; None without a file."""
    notifier: Notifier = field(default_factory=lambda: Notifier(None))
    """The service manager that started the gateway, where one did."""
    watchdog_seconds: float | None = None
    """After so long without a beat it ends the gateway; None: never."""
    beside: tuple[BesideProgram, ...] = ()
    """Programs beside a dev gateway."""
    lifecycle: Lifecycle = field(default_factory=Lifecycle)
    condition: Condition = field(default_factory=Condition)
    standings: Standings = field(default_factory=Standings)
    spares: Spares = field(init=False)
    """Spare fronts."""
    policy_spares: dict[int, Spares] = field(init=False)
    """By the number of the front; none where OPA decides."""
    is_leaving: bool = False
    """Asked to stop: fronts that end get no successor."""
    halted: Exit | None = None
    is_replaced: bool = False
    """It stops since an update has replaced its files."""
    has_lost_front: bool = False
    """A front ended by itself while it should have drained or stopped."""
    has_cut_calls: bool = False
    """A front left in time, with calls that did not end in time."""
    last_call_at: float | None = None
    """When calls in flight are cut (trio clock), once the gateway leaves."""
    patience: trio.CancelScope = field(default_factory=trio.CancelScope)
    """Cancelled when the rest must end now."""

    def __post_init__(self) -> None:
        self.children.on_replaced = self.give_way
        after_seconds = self.programs.spares_after_seconds
        self.spares = Spares(
            self.children, self.condition, "front", self.programs.front, "control-fd", after_seconds
        )  # fmt: skip
        program = self.programs.spare_policy if self.settings.opa_url is None else ()
        numbers = range(1, self.settings.front_processes + 1 if program else 1)
        self.policy_spares = {
            number: Spares(
                self.children, self.condition, f"policy {number}",
                (*program, "--number", str(number), "--walls", str(self.settings.walls)), "channel-fd",
                after_seconds,
            )
            for number in numbers
        }  # fmt: skip

    def policy_program(self, number: int) -> tuple[str, ...]:
        """The command line of the policy process of a front."""
        return (*self.programs.policy, "--number", str(number), "--walls", str(self.settings.walls))

    def halt(self, code: Exit, sentence: str) -> None:
        """Stop the gateway with `code`, without draining: it can't serve."""
        if self.halted is None and not self.is_leaving:
            self.halted = code
            log.error(sentence, exit=code.name)
            self.leave()

    def give_way(self) -> None:
        """Stop the gateway, its calls first, since its files are not those that it was started from. A service manager
        starts the new ones."""
        if not self.is_leaving:
            self.is_replaced = True
            log.error(
                "the gateway stops: its files were replaced after its start, and a process of another version must not "
                "join it. Start it again",
                exit=Exit.REPLACED.name,
            )
            self.leave()

    def leave(self) -> None:
        """Begin to stop."""
        self.is_leaving = True
        self.condition.notify_all()

    async def after_end(self, kind: str, child: Child, backoff: Backoff, *, had_served: bool) -> bool:
        """Log an end and wait as long as the back-off says. True: start a successor."""
        assert child.status is not None
        if not self.lifecycle.may_replace:
            self.standings.ended(child.name, reason_of(child.status), is_loop=False, is_storm=False)
            return False
        delay = backoff.delay(trio.current_time(), had_served=had_served, lived=child.age)
        reason = reason_of(child.status)
        self.standings.ended(child.name, reason, is_loop=backoff.is_loop, is_storm=backoff.is_storm)
        log.warning(f"{child.name} ended", reason=reason, pid=child.pid, restart_in=delay)
        if self.ends_all(kind, child.name, child.status, backoff):
            return False
        with trio.move_on_after(delay):
            await self.condition.until(lambda: not self.lifecycle.may_replace)
        return self.lifecycle.may_replace

    async def expect_up(self, child: Child, is_up: Callable[[], bool], seconds: float) -> None:
        """Kill a child that is not up in time; its keeper then replaces it. Follows one that is to its healthy minute;
        cancelled when the child ends."""
        with trio.move_on_after(seconds) as deadline:
            await self.condition.until(is_up)
        if deadline.cancelled_caught:
            log.error(f"{child.name} is killed: it was not ready within {seconds:.0f} s", pid=child.pid)
            child.kill()
        else:
            await self.follow_service(child)

    async def follow_service(self, child: Child) -> None:
        """A child serves from now on; cancelled when it ends."""
        self.standings.serves(child.name)
        await trio.sleep(HEALTHY_SECONDS)
        self.standings.healthy(child.name)

    def ends_all(self, kind: str, name: str, status: int, backoff: Backoff) -> bool:
        """True if a restart can't mend the end of this process; the gateway halts then."""
        is_starting = self.lifecycle.is_starting
        code = fatal_exit(kind, status, is_starting=is_starting, failures=backoff.failures)
        if code is None:
            return False
        tries = f" {backoff.failures} times in a row" if code == Exit.FAILED else ""
        self.halt(code, f"{name} ended with {reason_of(status)}{tries}; starting it again would not help")
        return True
