"""The host's functions as a component sees them: guarded, typed as the WIT types them, bound to the call that runs.

Guarantees that no exception leaves a host function (a BaseException there would end the process), that an exhausted
I/O budget ends the call, and that a component gets no function that its plan does not grant.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wasmtime import Engine, WasmtimeError
from wasmtime.component import Linker, Record, Variant

from ipc.messages import ProviderFailure
from workers.host.arguments import define
from workers.host.encoding import BASE64, UTF8, to_text
from workers.host.fs import Entry, FileHost
from workers.host.http import HttpHost, Request
from workers.host.meter import HostError, IoBudgetExceeded, Meter
from workers.host.notes import Notes
from workers.host.wire import Response
from workers.interfaces import INTERFACES
from workers.log import write_failure

_NO_ACCESS = ProviderFailure("denied", "the plan grants no access of this kind")
_BROKEN = ProviderFailure("internal", "the host call failed")


@dataclass(frozen=True, slots=True)
class HostCalls:
    """What one call may use. None: the plan does not describe it, and every such call is denied."""

    meter: Meter
    notes: Notes
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
                            define(instance, function, act)
        return linker

    def _table(self) -> dict[str, dict[str, Callable[..., Any]]]:
        return {
            "http": {"send": self._guarded(self._http_send, _tagged_failure)},
            "fs": {
                "read": self._guarded(lambda path, encoding: self._files().read(path, encoding)),
                "write": self._guarded(lambda path, data, encoding: self._files().write(path, data, encoding)),
                "append": self._guarded(lambda path, data, encoding: self._files().append(path, data, encoding)),
                "list": self._guarded(lambda path: [_entry(item) for item in self._files().list_folder(path)]),
                "stat": self._guarded(lambda path: Variant("ok", _entry(self._files().stat(path))), _tagged_failure),
                "delete": self._guarded(lambda path: self._files().delete(path)),
            },
            "log": {"message": self._guarded(self._log_message, lambda _: None)},
            "clock": {"now": self._guarded(time.monotonic_ns, lambda _: 0)},
        }

    def _guarded(
        self, act: Callable[..., Any], failed: "Callable[[ProviderFailure], Any] | None" = None
    ) -> Callable[..., Any]:
        """`act` as a host function; `failed` makes of a failure what the function's type wants.

        wasmtime tells ok from error by the Python type of a result, unless both have the same: then by a Variant.
        """
        answer_failure = failed or _failure

        def call(_store: object, *arguments: Any) -> Any:
            try:
                return act(*arguments)
            except IoBudgetExceeded:
                raise WasmtimeError("the call's I/O budget is used up") from None
            except HostError as error:
                failure = error.failure
            except BaseException as error:  # SECURITY: whatever left this function would end the process.
                write_failure("host call failed", error)
                failure = _BROKEN
            if self.current is not None:
                self.current.meter.note_failure(failure)
            return answer_failure(failure)

        return call

    def _files(self) -> FileHost:
        if self.current is None or self.current.files is None:
            raise HostError(_NO_ACCESS.kind, _NO_ACCESS.message)
        return self.current.files

    def _http_send(self, request: Any) -> Variant:
        if self.current is None or self.current.http is None:
            raise HostError(_NO_ACCESS.kind, _NO_ACCESS.message)
        given = vars(request)
        return Variant(
            "ok",
            _response(
                self.current.http.send(
                    Request(
                        method=given["method"], url=given["url"], headers=tuple(given["headers"]), body=given["body"],
                        body_encoding=given["body-encoding"], timeout_ms=given["timeout-ms"],
                    )
                )
            ),
        )  # fmt: skip

    def _log_message(self, level: str, text: str) -> None:
        if self.current is not None:
            self.current.notes.message(level, text)


def _record(values: dict[str, object]) -> Record:
    """A component record; names may hold dashes."""
    made = Record()
    vars(made).update(values)
    return made


def _failure(failure: ProviderFailure) -> Record:
    return _record({
        "kind": failure.kind, "message": failure.message, "details": failure.details, "retryable": failure.retryable,
    })  # fmt: skip


def _tagged_failure(failure: ProviderFailure) -> Variant:
    return Variant("err", _failure(failure))


def _entry(entry: Entry) -> Record:
    return _record({"name": entry.name, "kind": entry.kind, "size": entry.size})


def _response(response: Response) -> Record:
    """The body as text where it is UTF-8, as base64 otherwise (WIT, `response`)."""
    try:
        body, encoding = to_text(response.body, UTF8), UTF8
    except HostError:
        body, encoding = to_text(response.body, BASE64), BASE64
    return _record({
        "status": response.status, "headers": list(response.headers), "body": body, "body-encoding": encoding,
    })  # fmt: skip
