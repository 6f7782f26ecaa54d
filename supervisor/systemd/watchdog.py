"""The watchdog of the service manager, fed while the processes that every call needs answer.

Source: sd_watchdog_enabled(3). Fronts say how they are once a second; notary and template are asked. A process that is
being started is its keeper's business, which gives it a time of its own; one that was up and says nothing for half the
watchdog's time is silent. While one is silent nothing is fed, so that the manager ends and starts the whole gateway:
what hangs in the kernel or was stopped can't be mended from here.
"""

import os
from collections.abc import Callable, Mapping

import trio

from supervisor.logs import log
from supervisor.systemd.notify import Notifier

LOOKS = 8
"""The least number of checks within the time of the watchdog."""
MAX_PAUSE_SECONDS = 1.0


def watchdog_seconds(environ: Mapping[str, str]) -> float | None:
    """The time after which the manager gives this process up; None where it never does."""
    if environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    given = environ.get("WATCHDOG_USEC", "")
    return int(given) / 1_000_000 if given.isascii() and given.isdecimal() and int(given) > 0 else None


class SignOfLife:
    """Since when a process owes a message. Before `expect` it owes none."""

    def __init__(self) -> None:
        self._since: float | None = None

    @property
    def is_owed(self) -> bool:
        """A word is expected, and has not come."""
        return self._since is not None

    def expect(self) -> None:
        """Expect a message from now on; earlier messages do not count."""
        self._since = trio.current_time()

    def settle(self) -> None:
        """It came, or nothing can be expected any more."""
        self._since = None

    def silent_seconds(self) -> float:
        """How long the word has been owed."""
        return 0.0 if self._since is None else trio.current_time() - self._since


class Watchdog:
    """Feeds the manager. `ask()` asks those that say nothing by themselves; `pulses()` are of those that are up."""

    def __init__(
        self, notifier: Notifier, seconds: float, ask: Callable[[], None], pulses: Callable[[], dict[str, SignOfLife]]
    ) -> None:  # fmt: skip
        self._notifier = notifier
        self._patience = seconds / 2
        self._pause = min(MAX_PAUSE_SECONDS, seconds / LOOKS)
        self._ask = ask
        self._pulses = pulses
        self._silent: set[str] = set()
        self._fed_at = float("-inf")

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._ask()
            await trio.sleep(self._pause)
            self.look()

    def look(self) -> None:
        """Feed, if it is time to and all answer."""
        silent = {name for name, pulse in self._pulses().items() if pulse.silent_seconds() > self._patience}
        for name in sorted(silent - self._silent):
            log.error(f"{name} does not answer: the watchdog is not fed", patience=self._patience)
        for name in sorted(self._silent - silent):
            log.warning(f"{name} answers again")
        self._silent = silent
        now = trio.current_time()
        if not silent and now - self._fed_at >= self._patience - self._pause:
            self._fed_at = now
            self._notifier.beat()
