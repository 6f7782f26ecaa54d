"""A host for one provider component, with nothing behind its host calls but memory.

Runs a component with wasmtime directly, as the workers do (a store and an instance for each call, fuel, a memory
limit), so that a test of a provider needs no process. The provider's host calls are recorded.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wasmtime import Config, Engine, Store
from wasmtime.component import Component, Linker, Record, Variant

PACKAGE = "gateway:provider"
TYPES = f"{PACKAGE}/types@1.0.0"
EPOCHS = 1_000_000


@dataclass(frozen=True)
class Failure:
    """The provider-error that a call ended with."""

    kind: str
    message: str
    details: Any
    retryable: bool


@dataclass(frozen=True)
class Outcome:
    """The result of a call: `output` (its text) or `failure`, and the fuel that it used."""

    text: str | None
    failure: Failure | None
    fuel: int

    @property
    def output(self) -> Any:
        """The JSON value of an output; only for a call that succeeded."""
        assert self.failure is None, self.failure
        assert self.text is not None
        return json.loads(self.text)


@dataclass
class Sent:
    """One request as the host got it."""

    method: str
    url: str
    headers: list[tuple[str, str]]
    body: str
    encoding: str
    timeout_ms: int | None


@dataclass
class Host:
    """The other side of the imports: a dictionary of files, a fixed answer to every request, a clock that is read."""

    files: dict[str, str] = field(default_factory=dict)
    sent: list[Sent] = field(default_factory=list)
    logged: list[tuple[str, str]] = field(default_factory=list)
    status: int = 200
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: str = ""
    encoding: str = "utf8"
    refusal: Record | None = None
    """When set, every host call that can fail answers with it."""
    nanoseconds: int = 1_000
    step: int = 1_000_000
    """The seconds that the clock advances with each reading."""
    looks: int = 0

    def refuse(self, kind: str, message: str, details: str | None = None, retryable: bool = False) -> None:
        """Let every host call fail from now on."""
        self.refusal = record(kind=kind, message=message, details=details, retryable=retryable)

    def functions(self) -> dict[str, dict[str, Callable[..., Any]]]:
        """Host functions by interface and name."""
        return {
            "http": {"send": self._send},
            "fs": {
                "read": self._plain(lambda path, _encoding: self.files[path]),
                "write": self._plain(self._write),
                "append": self._plain(lambda path, data, e: self._write(path, self.files.get(path, "") + data, e)),
                "list": self._plain(lambda _path: [self._entry(name) for name in sorted(self.files)]),
                "stat": self._tagged(self._entry),
                "delete": self._plain(self._delete),
            },
            "log": {"message": lambda _store, level, text: self.logged.append((level, text))},
            "clock": {"now": self._now},
        }

    def _plain(self, act: Callable[..., Any]) -> Callable[..., Any]:
        """A host function whose result and error are of different Python types: wasmtime takes them as they are."""

        def call(_store: object, *arguments: str) -> object:
            if self.refusal is not None:
                return self.refusal
            try:
                return act(*arguments)
            except KeyError:
                return record(kind="not-found", message="no such file", details=None, retryable=False)

        return call

    def _tagged(self, act: Callable[..., Any]) -> Callable[..., Any]:
        """A host function whose result and error are both records: wasmtime wants to be told which it is."""
        plain = self._plain(act)

        def call(store: object, *arguments: str) -> Variant:
            answer = plain(store, *arguments)
            return Variant("err" if "retryable" in vars(answer) else "ok", answer)

        return call

    def _send(self, _store: object, request: Any) -> Variant:
        values = vars(request)
        self.sent.append(
            Sent(
                values["method"], values["url"], list(values["headers"]), values["body"], values["body-encoding"],
                values["timeout-ms"],
            )
        )  # fmt: skip
        if self.refusal is not None:
            return Variant("err", self.refusal)
        answer = {"status": self.status, "headers": self.headers, "body": self.body, "body-encoding": self.encoding}
        return Variant("ok", record(**answer))

    def _write(self, path: str, data: str, _encoding: str) -> int:
        self.files[path] = data
        return len(data.encode())

    def _delete(self, path: str) -> None:
        del self.files[path]

    def _entry(self, path: str) -> Record:
        return record(name=path, kind="file", size=len(self.files[path].encode()))

    def _now(self, _store: object) -> int:
        self.looks += 1
        self.nanoseconds += self.step
        return self.nanoseconds


def record(**values: object) -> Record:
    """A component record; names may hold dashes."""
    made = Record()
    vars(made).update(values)
    return made


class Providers:
    """Compiles components once and calls them as often as one likes."""

    def __init__(self) -> None:
        config = Config()
        config.parallel_compilation = False
        config.consume_fuel = True
        config.epoch_interruption = True
        self.engine = Engine(config)
        self._compiled: dict[Path, Component] = {}

    def component(self, path: Path) -> Component:
        """The compiled component of a file."""
        if path not in self._compiled:
            self._compiled[path] = Component(self.engine, path.read_bytes())
        return self._compiled[path]

    def imports(self, path: Path) -> set[str]:
        """Short names of the imported interfaces that hold functions, and full names of foreign ones."""
        names = set(self.component(path).type.imports(self.engine)) - {TYPES}
        return {name.removeprefix(f"{PACKAGE}/").removesuffix("@1.0.0") for name in names}

    def call(
        self, path: Path, request: object, host: Host | None = None, *, fuel: int = 10**10, memory_mb: int = 64
    ) -> Outcome:
        """One call. `request` is JSON text or a JSON value. Raises wasmtime's error when the provider traps."""
        component = self.component(path)
        linker = Linker(self.engine)
        functions = (host or Host()).functions()
        with linker.root() as root:
            for name in self.imports(path):
                with root.add_instance(f"{PACKAGE}/{name}@1.0.0") as instance:
                    for function, act in functions[name].items():
                        instance.add_func(function, act)
        text = request if isinstance(request, str) else json.dumps(request, ensure_ascii=False)
        with Store(self.engine) as store:
            store.set_fuel(fuel)
            store.set_epoch_deadline(EPOCHS)
            store.set_limits(memory_size=memory_mb * 1024 * 1024)
            run = linker.instantiate(store, component).get_func(store, "run")
            assert run is not None
            result = run(store, text)
            return _outcome(result, fuel - store.get_fuel())


def _outcome(result: object, fuel: int) -> Outcome:
    if isinstance(result, str):
        return Outcome(result, None, fuel)
    values = vars(result)
    details = None if values["details"] is None else json.loads(values["details"])
    return Outcome(None, Failure(values["kind"], values["message"], details, values["retryable"]), fuel)
