"""Calls that go on while a test does something else."""

import threading
import uuid
from collections.abc import Callable

import httpx

from tests.support.gateway import ANSWER_SECONDS, Bearer, Gateway, wait_for
from tests.support.upstream import Upstream


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

    def answer(self, seconds: float = ANSWER_SECONDS) -> httpx.Response | None:
        """The answer, once it is there."""
        self._thread.join(seconds)
        assert not self._thread.is_alive(), f"no answer within {seconds:g} s"
        if self._error is not None:
            raise self._error
        return self._answer

    def is_under_way(self) -> bool:
        """Whether there is no answer yet."""
        return self._thread.is_alive()

    def status(self) -> int:
        """The answer's status; 0 when the connection was lost."""
        answer = self.answer()
        return 0 if answer is None else answer.status_code


class HeldCall(Background):
    """A call that is at its upstream when this object is made, and stays there until `release`, however long that is.

    The action's own time limit goes on: tests that hold a call give it a generous one (`patient` in manifests.py).
    """

    def __init__(self, up: Upstream, agent: Bearer) -> None:
        name = uuid.uuid4().hex
        self._end = up.held(name)
        super().__init__(lambda: agent.execute("http_fetch", {"path": f"wait/{name}"}))
        wait_for(lambda: any(name in seen.path for seen in up.seen), "a call at the upstream")

    def release(self) -> "HeldCall":
        """Let the upstream answer."""
        self._end.set()
        return self


def in_flight(gate: Gateway) -> int:
    """Calls between admission and answer."""
    return int(gate.operator().get("/v1/admin/status").json()["in_flight_executions"])
