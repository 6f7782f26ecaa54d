"""Modules that mean harm: what each does when it is called, or why none of it ever runs.

Their texts lie in tests/providers/hostile, a file a module. `(;@name;)` there, a comment to other tools, stands for
PARTS["name"]: what many have in common. A few are too long for a file and made here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from wasmtime import wat2wasm

from tests.support.hostile_parts import FOLDER, PARTS, with_run
from tests.support.worker_plans import builtin
from workers.runtime.binary import PREAMBLE

LITTLE_FUEL: Mapping[str, Any] = {"fuel": 10_000}
SHORT: Mapping[str, Any] = {"timeout_seconds": 0.3}
FEW_CALLS: Mapping[str, Any] = {"max_io_calls": 5}


def _instances(count: int) -> str:
    return with_run("(core module $t)\n" + "(core instance (instantiate $t))\n" * count)


def _doubled_instances(depth: int) -> str:
    nested = "(component $c (core module $t) (core instance (instantiate $t)))"
    for _ in range(depth):
        nested = f"(component $c {nested} (instance (instantiate $c)) (instance (instantiate $c)))"
    return with_run(f"{nested} (instance (instantiate $c))")


def _handed_over(depth: int) -> str:
    """Each instance holds a component that makes two of the one that it was given."""
    doubles = """(component $double (import "in" (component $c))
      (component $made (alias outer 1 $c (component $c)) (instance (instantiate $c)) (instance (instantiate $c)))
      (export "out" (component $made)))
    (component $c0)"""
    steps = [
        f"""(instance $i{at} (instantiate $double (with "in" (component $c{at}))))
        (alias export $i{at} "out" (component $c{at + 1}))"""
        for at in range(depth)
    ]
    return with_run(f"{doubles} {' '.join(steps)} (instance (instantiate $c{depth}))")


def _doubled_types(depth: int) -> str:
    """Each type holds the one before it twice: 2^depth texts in `depth` lines."""
    types = ["(type $t0 (tuple string string))"]
    types += [f"(type $t{at} (tuple $t{at - 1} $t{at - 1}))" for at in range(1, depth)]
    return with_run("\n".join(types), result=f"$t{depth - 1}")


def _nested_types(depth: int) -> str:
    types = ["(type $t0 string)"] + [f"(type $t{at} (list $t{at - 1}))" for at in range(1, depth)]
    return with_run("\n".join(types), result=f"$t{depth - 1}")


MADE: dict[str, Callable[[], str]] = {
    "many_instances": lambda: _instances(900),
    "too_many_instances": lambda: _instances(5000),
    "doubled_instances": lambda: _doubled_instances(10),
    "doubled_instances_without_end": lambda: _doubled_instances(25),
    "doubled_instances_handed_over": lambda: _handed_over(25),
    "many_tables": lambda: with_run(
        f"(core module $t {'(table 90000 funcref) ' * 70}) (core instance (instantiate $t))"
    ),
    "doubled_types": lambda: _doubled_types(17),
    "doubled_types_without_end": lambda: _doubled_types(40),
    "nested_types": lambda: _nested_types(90),
    "nested_types_without_end": lambda: _nested_types(5000),
    "too_many_locals": lambda: with_run(f"(core module (func (local {'i64 ' * 51_000})))"),
}


def source(name: str) -> str:
    """The whole text of a module."""
    if name in MADE:
        return MADE[name]()
    text = (FOLDER / f"{name}.wat").read_text()
    for part, meant in PARTS.items():
        text = text.replace(f"(;@{part};)", meant)
    return text


def wasm(name: str) -> bytes:
    """The bytes of a module."""
    return BROKEN[name] if name in BROKEN else bytes(wat2wasm(source(name)))


@dataclass(frozen=True)
class Answered:
    """A module that loads. `outcome` is what the worker finds, `said` stands in the reason that the receipt gives."""

    name: str
    outcome: str
    said: str = ""
    imports: tuple[str, ...] = ()
    limits: Mapping[str, Any] = field(default_factory=dict)
    response: Mapping[str, Any] | None = None
    max_bytes: int = 65_536
    """The largest answer that its action allows."""

    @property
    def action_id(self) -> str:
        """One module may be called within different limits."""
        return f"hostile_{self.name}_{self.outcome}"


ANSWERED = (
    # time and fuel
    Answered("loop_in_run", "fuel", limits=LITTLE_FUEL),
    Answered("loop_in_run", "timeout", limits=SHORT),
    Answered("loop_in_start", "fuel", limits=LITTLE_FUEL),
    Answered("loop_in_start", "timeout", limits=SHORT),
    Answered("loop_in_realloc", "timeout", limits=SHORT),
    Answered("loop_in_post_return", "timeout", limits=SHORT),
    Answered("fill_in_a_row", "timeout", limits=SHORT),
    Answered("trap_in_start", "trap", "unreachable"),
    Answered("trap_in_realloc", "trap", "unreachable"),
    Answered("trap_in_post_return", "trap", "unreachable"),
    # memory, tables, stack, instances
    Answered("memory_bomb", "memory"),
    Answered("realloc_grows", "memory"),
    Answered("memory_beyond_limit", "memory", "more than its limits"),
    Answered("data_beyond_memory", "memory"),
    Answered("table_bomb", "trap", "unreachable"),
    Answered("table_beyond_limit", "memory", "more than its limits"),
    Answered("many_tables", "memory", "more than its limits"),
    Answered("many_instances", "memory", "more than its limits"),
    Answered("doubled_instances", "memory", "more than its limits"),
    Answered("recursion", "trap", "call stack exhausted"),
    Answered("recursion_through_table", "trap", "call stack exhausted"),
    # answers
    Answered("giant_output", "bad_output", "more than 65536 bytes"),
    Answered("answers_nested", "bad_output"),
    Answered("answers_many", "bad_output", "more than 100000 values", max_bytes=1_048_576),
    Answered("answers_list", "bad_output", "not a JSON object"),
    Answered("answers_prose", "bad_output", "not JSON"),
    Answered("answers_key_twice", "bad_output", "twice"),
    Answered("answers_other_type", "response_schema", "/n: type", response={"properties": {"n": {"type": "integer"}}}),
    Answered("not_utf8", "trap", "invalid utf-8"),
    Answered("surrogate", "trap", "invalid utf-8"),
    Answered("surrogate_escaped", "bad_output", "not JSON"),
    Answered("length_beyond_memory", "trap", "out of bounds"),
    Answered("length_wraps", "trap", "out of bounds"),
    Answered("result_out_of_range", "trap", "out of bounds"),
    Answered("result_misaligned", "trap", "not aligned"),
    Answered("result_of_no_case", "trap", "out of range"),
    Answered("realloc_out_of_range", "trap", "beyond end of memory"),
    Answered("realloc_at_the_end", "trap", "beyond end of memory"),
    # errors
    Answered("giant_error", "provider_error", "AAAA"),
    Answered("forged_error", "provider_error"),
    Answered("error_of_no_kind", "trap", "out of range"),
    Answered("option_of_no_case", "trap", "out of range"),
    Answered("error_beyond_memory", "trap", "out of bounds"),
    # host calls
    Answered("clock_storm", "timeout", imports=("clock",), limits=SHORT),
    Answered("clock_storm", "fuel", imports=("clock",), limits=LITTLE_FUEL),
    Answered("clock_storm_in_start", "timeout", imports=("clock",), limits=SHORT),
    Answered("calls_host_from_realloc", "trap", "cannot leave", imports=("clock",)),
    Answered("calls_host_in_post_return", "trap", "cannot leave", imports=("clock",)),
    Answered("enters_itself", "trap", "cannot enter"),
    Answered("log_storm", "timeout", imports=("log",), limits=SHORT),
    Answered("log_giant_lines", "timeout", imports=("log",), limits=SHORT),
    Answered("log_forged", "trap", "unreachable", imports=("log",)),
    Answered("log_not_utf8", "trap", "invalid utf-8", imports=("log",)),
    Answered("log_of_no_level", "trap", "out of range", imports=("log",)),
    Answered("log_beyond_memory", "trap", "out of bounds", imports=("log",)),
    Answered("fs_storm", "io_calls", imports=("fs",), limits=FEW_CALLS),
    Answered("fs_giant_write", "host_io", "more than 1048576 bytes", imports=("fs",), limits=FEW_CALLS),
    Answered("fs_giant_path", "host_io", "too long", imports=("fs",)),
    Answered("fs_result_out_of_range", "host_io", imports=("fs",)),
    Answered("http_storm", "io_calls", imports=("http",), limits=FEW_CALLS),
    Answered("http_many_headers", "trap", "more than 1000 items", imports=("http",)),
    Answered("http_one_text_many_times", "trap", "too much data", imports=("http",), limits={"memory_mb": 256}),
    Answered("http_headers_beyond_memory", "trap", "out of bounds", imports=("http",)),
)  # fmt: skip


@dataclass(frozen=True)
class Refused:
    """A module of which nothing ever runs: `said` stands in the reason."""

    name: str
    said: str
    imports: tuple[str, ...] = ()

    @property
    def action_id(self) -> str:
        """The name of its action."""
        return f"refused_{self.name}"


BROKEN: dict[str, bytes] = {
    "nothing": b"",
    "words": b"#!/bin/sh\nexit 0\n",
    "core_module": b"\0asm\x01\0\0\0",
    "garbage": PREAMBLE + bytes(range(256)) * 8,
    "section_without_end": PREAMBLE + b"\x0a\xff\xff\xff\xff\x0f",
    "cut_at_the_end": builtin("echo")[:-1],
    "cut_in_the_middle": builtin("echo")[: len(builtin("echo")) // 2],
    "code_overwritten": builtin("echo").replace(b"\x0b", b"\xfb"),
}
"""Bytes that no text could stand for."""

REFUSED = (
    *(Refused(name, "") for name in BROKEN),
    Refused("memory64", "memory64"),
    Refused("shared_memory", "threads"),
    Refused("atomics", "threads"),
    Refused("thread_builtin", "threads"),
    Refused("async_run", "async"),
    Refused("two_memories", "multiple memories"),
    Refused("gc_types", "gc"),
    Refused("exceptions", "exceptions"),
    Refused("stack_switching", "stack switching"),
    Refused("small_pages", "page size"),
    Refused("wasi", "imports wasi:cli/environment@0.2.0"),
    Refused("http_storm", "imports gateway:provider/http@1.0.0", ("log", "clock")),
    Refused("http_of_other_type", "'send' of another type", ("http",)),
    Refused("log_more_functions", "'read-back', which it does not have", ("log",)),
    Refused("no_run", "exports no function 'run'"),
    Refused("run_of_other_type", "exports 'run' with another type"),
    Refused("resource", "exports 'run' with another type"),
    Refused("too_many_instances", "exceeds limit"),
    Refused("doubled_instances_without_end", "makes more than 10000 instances"),
    Refused("doubled_instances_handed_over", "imports a component"),
    Refused("too_many_locals", "too many locals"),
    Refused("doubled_types", "too large"),
    Refused("doubled_types_without_end", "type size"),
    Refused("nested_types", "exports 'run' with another type"),
    Refused("nested_types_without_end", "nesting"),
)
