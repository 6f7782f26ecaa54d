"""Calls that go on while a test does something else."""

import threading
from collections.abc import Callable

import httpx

from tests.support.gateway import Gateway


class Background:
    """One call in a thread. `answer` waits for it; None when the connection was lost."""

    def __init__(self, call: Callable[[], httpx.Response]) -> None:
        self._call = call
        self._answer: httpx.Response | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._answer = self._call()
        except httpx.TransportError:
            return
        except BaseException as error:
            self._error = error

    def answer(self, seconds: float = 30.0) -> httpx.Response | None:
        """The answer, once it is there."""
        self._thread.join(seconds)
        assert not self._thread.is_alive(), f"no answer within {seconds:g} s"
        if self._error is not None:
            raise self._error
        return self._answer

    def status(self) -> int:
        """The answer's status; 0 when the connection was lost."""
        answer = self.answer()
        return 0 if answer is None else answer.status_code


def in_flight(gate: Gateway) -> int:
    """Calls between admission and answer."""
    return int(gate.operator().get("/v1/admin/status").json()["in_flight_executions"])
