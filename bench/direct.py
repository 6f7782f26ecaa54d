"""Floors without a server: one fdatasync, one direct component call."""

import os
import tempfile
import time
from pathlib import Path

from wasmtime import Config, Engine, Store
from wasmtime.component import Component, Linker

from bench.measures import quantile

ROUNDS = 300
PROVIDER = Path(__file__).parent.parent / "workers" / "providers" / "text_digest.wasm"


def fdatasync_ms() -> float:
    """Median of appending 4 KiB and waiting for the disk."""
    taken = []
    with tempfile.TemporaryFile(dir=".") as file:
        for _ in range(ROUNDS):
            file.write(b"x" * 4096)
            file.flush()
            started = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - started)
    return quantile(sorted(taken), 0.5) * 1000


def component_call_ms() -> float:
    """Median of a call of text_digest with a fresh store and instance."""
    config = Config()
    config.consume_fuel = True
    config.epoch_interruption = True
    config.parallel_compilation = False
    engine = Engine(config)
    component = Component(engine, PROVIDER.read_bytes())
    linker = Linker(engine)
    taken = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        store = Store(engine)
        store.set_fuel(10_000_000)
        store.set_epoch_deadline(1000)
        instance = linker.instantiate(store, component)
        run = instance.get_func(store, "run")
        assert run is not None
        run(store, '{"text":"hello"}')
        taken.append(time.perf_counter() - started)
    return quantile(sorted(taken), 0.5) * 1000
