"""The parser of a component's imports: what it finds, and that no bytes make it do anything else."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wasmtime import wat2wasm

from tests.support.worker_plans import builtin
from workers.runtime.binary import NotAComponent
from workers.runtime.imports import Import, component_imports, refused_import

TYPES = "gateway:provider/types@1.0.0"
PREAMBLE = b"\0asm\x0d\0\x01\0"


def wat(text: str) -> bytes:
    return bytes(wat2wasm(f"(component {text})"))


@pytest.mark.parametrize(
    ("name", "interface"), [("http", "http"), ("file_write", "fs"), ("spin", "clock"), ("log_probe", "log")]
)
def test_the_imports_of_a_real_provider_are_found(name: str, interface: str) -> None:
    imports = component_imports(builtin(name))
    assert Import(TYPES, "instance") in imports
    assert Import(f"gateway:provider/{interface}@1.0.0", "instance") in imports


def test_every_sort_of_import_is_named() -> None:
    imports = component_imports(
        wat(
            """
            (import "a" (func))
            (import "b" (instance))
            (import "c" (component))
            (import "d" (core module))
            (type $t u32)
            (import "e" (type (eq $t)))
            """
        )
    )
    assert imports == (
        Import("a", "func"), Import("b", "instance"), Import("c", "component"), Import("d", "core module"),
        Import("e", "type"),
    )  # fmt: skip


def test_imports_of_a_nested_component_are_not_those_of_the_outer_one() -> None:
    assert component_imports(wat('(component (import "inner" (func)))')) == ()


@pytest.mark.parametrize(
    ("text", "granted", "refused"),
    [
        ('(import "gateway:provider/http@1.0.0" (instance))', ("http",), None),
        ('(import "gateway:provider/http@1.0.0" (instance))', ("fs", "log"), "gateway:provider/http@1.0.0"),
        ('(import "gateway:provider/http@1.0.1" (instance))', ("http",), "gateway:provider/http@1.0.1"),
        ('(import "gateway:provider/types@1.0.0" (instance))', (), None),
        ('(import "gateway:provider/types@1.0.0" (func))', (), "gateway:provider/types@1.0.0"),
        ('(import "wasi:cli/environment@0.2.0" (instance))', ("http",), "wasi:cli/environment@0.2.0"),
        ('(import "evil" (func))', ("http", "fs", "log", "clock"), "evil"),
        ("", (), None),
    ],
)
def test_an_import_beyond_what_is_granted_is_named(text: str, granted: tuple[str, ...], refused: str | None) -> None:
    assert refused_import(component_imports(wat(text)), granted) == refused


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0asm\x01\0\0\0",
        PREAMBLE + b"\x0a",
        PREAMBLE + b"\x0a\xff\xff\xff\xff\x0f",
        PREAMBLE + b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        PREAMBLE + b"\x0a\x02\x01\x00",
        PREAMBLE + b"\x0a\x05\x01\x00\x01\xff\x01",
        PREAMBLE + b"\x0a\x06\x01\x02\x01a\x01\x00",
        PREAMBLE + b"\x0a\x06\x01\x00\x01a\x09\x00",
        PREAMBLE + b"\x0a\x07\x01\x00\x01a\x01\x00\x00",
        PREAMBLE + b"\x0a\x07\x01\x00\x01a\x03\x01\x00",
        PREAMBLE + b"\x0a\x07\x01\x00\x01a\x02\x00\x00",
    ],
    ids=[
        "empty", "core module", "no size", "size beyond the end", "endless number", "cut name", "not utf-8",
        "name form", "sort", "trailing", "resource", "value",
    ],
)  # fmt: skip
def test_unknown_parts_of_a_component_are_refused(data: bytes) -> None:
    with pytest.raises(NotAComponent):
        component_imports(data)


@given(st.binary(max_size=300))
def test_no_bytes_behind_the_preamble_raise_anything_else(tail: bytes) -> None:
    with suppress(NotAComponent):
        component_imports(PREAMBLE + tail)


@given(st.integers(min_value=0), st.integers(0, 255), st.sampled_from(["echo", "http", "fs_probe"]))
def test_a_real_component_with_one_byte_changed_raises_nothing_else(place: int, byte: int, name: str) -> None:
    data = bytearray(builtin(name))
    data[place % len(data)] = byte
    with suppress(NotAComponent):
        component_imports(bytes(data))
