"""Floors without a server: one flush of the disk, one call of a component. Figures are medians in milliseconds."""

import os
import tempfile
import time
from pathlib import Path

from wasmtime import Config, Engine, Store
from wasmtime.component import Component, Linker

from bench.measures import quantile

TIMES = 100
PROVIDER = Path(__file__).parent.parent / "workers" / "providers" / "text_digest.wasm"


def fdatasync_ms() -> float:
    """Append 4 KiB and wait for the disk, in the folder where the gateways keep their state."""
    taken = []
    with tempfile.TemporaryFile() as file:
        for _ in range(TIMES):
            file.write(b"x" * 4096)
            file.flush()
            started = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - started)
    return quantile(sorted(taken), 0.5) * 1000


class ComponentCall:
    """text_digest, compiled once; every call has a store and an instance of its own."""

    def __init__(self) -> None:
        config = Config()
        config.consume_fuel = True
        config.epoch_interruption = True
        config.parallel_compilation = False
        self._engine = Engine(config)
        self._component = Component(self._engine, PROVIDER.read_bytes())
        self._linker = Linker(self._engine)

    def ms(self) -> float:
        """One call."""
        taken = []
        for _ in range(TIMES):
            started = time.perf_counter()
            store = Store(self._engine)
            store.set_fuel(10_000_000)
            store.set_epoch_deadline(1000)
            run = self._linker.instantiate(store, self._component).get_func(store, "run")
            assert run is not None
            run(store, '{"text":"hello"}')
            taken.append(time.perf_counter() - started)
        return quantile(sorted(taken), 0.5) * 1000
