"""The host's functions as a component sees them: guarded, typed as the WIT types them, bound to the call that runs.

Guarantees that no exception leaves a host function (a BaseException there would end the process), that an exhausted
I/O budget ends the call, and that a component gets no function that its plan does not grant.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from wasmtime import Engine, WasmtimeError
from wasmtime.component import Linker

from ipc.messages.calling import FailureName, ProviderFailure
from workers.host.encoding import BASE64, UTF8, to_text
from workers.host.fs import FileHost
from workers.host.functions import define
from workers.host.guest_log import GuestLog
from workers.host.http import GuestRequest, HttpHost
from workers.host.meter import HostError, IoBudgetExceeded, Meter
from workers.host.wire import Headers, Response
from workers.interfaces import INTERFACES
from workers.log import write_failure

_NO_ACCESS = ProviderFailure("denied", "the plan grants no access of this kind")
_BROKEN = ProviderFailure("internal", "the host call failed")


class HttpAnswer(NamedTuple):
    """`response` of the WIT."""

    status: int
    headers: Headers
    body: str
    body_encoding: str


class HostCalls(msgspec.Struct, frozen=True):
    """The resources of one call. None: the plan does not describe it, and every such call is denied."""

    meter: Meter
    notes: GuestLog
    http: HttpHost | None = None
    files: FileHost | None = None


class HostFunctions:
    """Linkers for a worker. `current` is set for the length of one call."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._linkers: dict[frozenset[str], Linker] = {}
        self.current: HostCalls | None = None

    def linker(self, interfaces: frozenset[str]) -> Linker:
        """A linker that defines these interfaces (short names) and nothing else; made once for each set."""
        linker = self._linkers.get(interfaces)
        if linker is None:
            linker = self._linkers[interfaces] = Linker(self._engine)
            table = self._table()
            with linker.root() as root:
                for name in sorted(interfaces):
                    with root.add_instance(INTERFACES[name]) as instance:
                        for function, act in table[name].items():
                            define(instance, name, function, act)
        return linker

    def _table(self) -> dict[str, dict[str, Callable[..., Any]]]:
        return {
            "http": {"send": self._guarded(self._http_send)},
            "fs": {
                "read": self._guarded(lambda path, encoding: self._files().read(path, encoding)),
                "write": self._guarded(lambda path, data, encoding: self._files().write(path, data, encoding)),
                "append": self._guarded(lambda path, data, encoding: self._files().append(path, data, encoding)),
                "list": self._guarded(lambda path: self._files().list_folder(path)),
                "stat": self._guarded(lambda path: self._files().stat(path)),
                "delete": self._guarded(lambda path: self._files().delete(path)),
            },
            "log": {"message": self._guarded(self._log_message)},
            "clock": {"now": self._guarded(time.monotonic_ns, lambda _: 0)},
        }

    def _guarded(
        self, act: Callable[..., Any], answer_failure: "Callable[[ProviderFailure], Any]" = lambda failure: failure
    ) -> Callable[..., Any]:
        """`act` as a host function; `answer_failure` makes of a failure a value of the function's result."""

        def call(*arguments: Any) -> Any:
            name: FailureName
            try:
                return act(*arguments)
            except IoBudgetExceeded:
                raise WasmtimeError("the call's I/O budget is used up") from None
            except HostError as error:
                failure, name = error.failure, error.name
            except BaseException as error:  # SECURITY: whatever left this function would end the process.
                write_failure("host call failed", error)
                failure, name = _BROKEN, "provider_failed"
            if self.current is not None:
                self.current.meter.note_failure(failure, name)
            return answer_failure(failure)

        return call

    def _files(self) -> FileHost:
        if self.current is None or self.current.files is None:
            raise HostError(_NO_ACCESS.kind, _NO_ACCESS.message)
        return self.current.files

    def _http_send(self, request: dict[str, Any]) -> HttpAnswer:
        if self.current is None or self.current.http is None:
            raise HostError(_NO_ACCESS.kind, _NO_ACCESS.message)
        return _answer(self.current.http.send(GuestRequest(**request)))

    def _log_message(self, level: str, text: str) -> None:
        if self.current is not None:
            self.current.notes.message(level, text)


def _answer(response: Response) -> HttpAnswer:
    """The body as text where it is UTF-8, as base64 otherwise (WIT, `response`)."""
    try:
        body, encoding = to_text(response.body, UTF8), UTF8
    except HostError:
        body, encoding = to_text(response.body, BASE64), BASE64
    return HttpAnswer(response.status, response.headers, body, encoding)
