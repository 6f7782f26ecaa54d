"""Messages to the service manager: each is a datagram to $NOTIFY_SOCKET, in the form of sd_notify(3).

Without that variable, or if a datagram can't be sent, nothing happens: a gateway never ends or waits because of its
service manager. This module keeps no state of the gateway; supervisor/life/service_status.py chooses the messages.
"""

import array
import os
import socket
import time
from collections.abc import Mapping

WAIT_SECONDS = 0.5
"""For a manager that is behind, where the message must arrive. States and beats follow each other: they never wait."""


class Notifier:
    """Speaks to one service manager; without an address it sends nothing."""

    def __init__(self, address: str | None) -> None:
        """`address`: a path, or `@name` in the abstract namespace; with anything else nothing is sent."""
        self._address = _socket_address(address or "")

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "Notifier":
        """The manager that started this process."""
        return cls(environ.get("NOTIFY_SOCKET"))

    @property
    def is_heard(self) -> bool:
        """True where there is a service manager to tell."""
        return self._address is not None

    def ready(self) -> None:
        """The gateway serves, for the first time or after a reload."""
        self._send("READY=1", must_arrive=True)

    def reloading(self) -> None:
        """A reload begins; `ready` says that it is over."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}", must_arrive=True)

    def stopping(self) -> None:
        """The gateway leaves."""
        self._send("STOPPING=1", must_arrive=True)

    def status(self, text: str) -> None:
        """One line for people."""
        self._send("STATUS=" + " ".join(text.split()))

    def beat(self) -> None:
        """Everything answers: the watchdog begins to count anew."""
        self._send("WATCHDOG=1")

    def extend(self, seconds: float) -> None:
        """Give the present start or stop this long from now."""
        self._send(f"EXTEND_TIMEOUT_USEC={int(seconds * 1_000_000)}")

    def keep(self, name: str, descriptor: int) -> None:
        """Have the manager keep a descriptor, and hand it to the next start under this name."""
        # FDPOLL=0: a listening socket is kept in any state.
        self._send("FDSTORE=1", f"FDNAME={name}", "FDPOLL=0", descriptor=descriptor, must_arrive=True)

    def _send(self, *lines: str, descriptor: int | None = None, must_arrive: bool = False) -> None:
        if self._address is None:
            return
        carried = [] if descriptor is None else [descriptor]
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", carried))] if carried else []
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
                sock.settimeout(WAIT_SECONDS if must_arrive else 0)
                sock.connect(self._address)
                sock.sendmsg(["\n".join(lines).encode(errors="replace")], ancillary)
        except OSError:
            return


def _socket_address(given: str) -> bytes | None:
    """The address for connect(2); None for a text that is neither a path nor `@name`."""
    if given.startswith("@"):
        return b"\0" + os.fsencode(given[1:])
    return os.fsencode(given) if given.startswith("/") else None
