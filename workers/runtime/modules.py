"""The engine, and modules that are compiled and mapped.

Owns the one configuration that compiled code depends on, and its hash: code compiled under another one is never
mapped. Guarantees that a Module keeps to the provider interface. Never compiles (workers/compile.py does, elsewhere).
"""

import hashlib
import json
import platform
from pathlib import Path

import msgspec
import wasmtime
from wasmtime import Config, Engine, WasmtimeError
from wasmtime import _ffi as ffi
from wasmtime.component import Component, ExportIndex

from workers.interfaces import ENTRY
from workers.runtime.contract import ContractBroken, check_contract

SETTINGS: dict[str, bool | int] = {
    # One thread, before and after the fork; fuel and epochs are how a call is ended.
    "parallel_compilation": False,
    "consume_fuel": True,
    "epoch_interruption": True,
    # Without copy-on-write images no page of a module is mapped executable or private after the filter closes.
    "memory_init_cow": False,
    "max_wasm_stack": 1024 * 1024,
    # Features that no provider needs are off: each one is code that a stranger's bytes could reach.
    "wasm_threads": False,
    "shared_memory": False,
    "wasm_memory64": False,
    "wasm_multi_memory": False,
    "wasm_gc": False,
    "gc_support": False,
    "wasm_function_references": False,
    "wasm_exceptions": False,
    "wasm_stack_switching": False,
    "wasm_custom_page_sizes": False,
    "wasm_wide_arithmetic": False,
    "wasm_relaxed_simd": False,
    "concurrency_support": False,
    "wasm_component_model_async": False,
    "wasm_component_model_async_stackful": False,
    "wasm_component_model_more_async_builtins": False,
    "wasm_component_model_map": False,
    "wasm_component_model_implements": False,
}

CONFIG_HASH = hashlib.sha256(json.dumps([SETTINGS, platform.machine()], sort_keys=True).encode()).hexdigest()[:16]


def runtime_version() -> str:
    """Version of the installed wasmtime, from the name of its metadata: `importlib.metadata` costs a megabyte."""
    site = Path(wasmtime.__file__).parent.parent
    versions = sorted(entry.name for entry in site.glob("wasmtime-*.dist-info"))
    return versions[0].removeprefix("wasmtime-").removesuffix(".dist-info") if versions else "unknown"


class NotMapped(Exception):
    """Compiled code can't be mapped: damaged, or of another version or configuration."""


class Module(msgspec.Struct, frozen=True):
    """A mapped component. `digest` is `sha256:<hex>` of the wasm bytes, `interfaces` what it imports (short names)."""

    digest: str
    component: Component
    entry: ExportIndex
    interfaces: frozenset[str]


def make_engine() -> Engine:
    """A new engine. One a process: its epoch is that of every call in it."""
    config = Config()
    for name, value in SETTINGS.items():
        # The Python class does not have them all.
        getattr(ffi, f"wasmtime_config_{name}_set")(config.ptr(), value)
    return Engine(config)


def map_module(engine: Engine, digest: str, code: bytes) -> Module:
    """Map code that our own compiler wrote. Raises NotMapped, ContractBroken.

    SECURITY: mapping code executes it as far as trust goes. The caller has held these very bytes against what was
    compiled here (workers/cache.py): no file is opened again, and none that is written to later changes what is mapped.
    """
    try:
        component = Component.deserialize(engine, code)
    except WasmtimeError as error:
        raise NotMapped(str(error)) from None
    return as_module(engine, digest, component)


def as_module(engine: Engine, digest: str, component: Component) -> Module:
    """A component that keeps to the provider interface. Raises ContractBroken."""
    interfaces = check_contract(engine, component)
    entry = component.get_export_index(ENTRY)
    if entry is None:
        raise ContractBroken(f"exports no function {ENTRY!r}")
    return Module(digest, component, entry, interfaces)
