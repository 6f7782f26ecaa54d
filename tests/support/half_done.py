"""Providers that have their effect once and fail afterwards, or fail before it: made of the hostile modules' texts."""

from typing import Any

from wasmtime import wat2wasm

from tests.support.hostile_modules import source

BURN = "(loop $burn (br $burn))"
GROW = "(loop $more (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))"
_URL = "http://upstream.gateway.test/a"
_SEND_FOR_EVER = "(loop $again (call $ask (i32.const 0) (i32.const 0)) (br $again)) unreachable"
_SEND = "(call $ask (i32.const 0) (i32.const 0))"
_STAT_FOR_EVER = "(loop $again (call $stat (i32.const 4096) (i32.const 1) (i32.const 64)) (br $again)) unreachable"
_WRITE = """
  (call $write (i32.const 4096) (i32.const 1) (i32.const 4096) (i32.const 1) (i32.const 0) (i32.const 64))"""


def sending(*, before: str = "", after: str = "", url: str = _URL) -> bytes:
    """A module that sends one request, and traps at the end. `url` has 30 characters, as the one that it replaces."""
    assert len(url) == len(_URL)
    return _made("http_storm", _SEND_FOR_EVER, f"{before} {_SEND} {after} unreachable", _URL, url)


def writing(*, before: str = "", after: str = "") -> bytes:
    """A module that writes the file `a`, and traps at the end."""
    return _made("fs_storm", _STAT_FOR_EVER, f"{before} {_WRITE} {after} unreachable")


def _made(name: str, *changes: str) -> bytes:
    text = source(name)
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text
        text = text.replace(old, new)
    return bytes(wat2wasm(text))


LITTLE: dict[str, Any] = {"resource_limits": {"fuel": 1_000_000}}
SHORT: dict[str, Any] = {"resource_limits": {"timeout_seconds": 2}}
FEW: dict[str, Any] = {"resource_limits": {"max_io_calls": 2}}
MODULES: dict[str, tuple[bytes, tuple[str, ...], dict[str, Any]]] = {
    # action: module, imports, limits
    "traps_before": (sending(before="unreachable"), ("http",), {}),
    "traps_after": (sending(), ("http",), {}),
    "burns_before": (sending(before=BURN), ("http",), LITTLE),
    "burns_after": (sending(after=BURN), ("http",), LITTLE),
    "grows_before": (sending(before=f"{GROW} unreachable"), ("http",), {}),
    "grows_after": (sending(after=GROW), ("http",), {}),
    "lasts_before": (sending(before=BURN), ("http",), SHORT),
    "lasts_after": (sending(after=BURN), ("http",), SHORT),
    "sends_often": (sending(after="(loop $again (call $ask (i32.const 0) (i32.const 0)) (br $again))"), ("http",), FEW),
    "elsewhere": (sending(url="http://elsewhere.gateway.tes/a"), ("http",), {}),
    "writes_and_traps": (writing(), ("fs",), {}),
    "traps_unwritten": (writing(before="unreachable"), ("fs",), {}),
    "writes_elsewhere": (writing(), ("fs",), {"fs": {
        "root": "files", "operation": "write", "allowed_operations": ["write"], "allowed_paths": ["b"]}}),
    "writes_and_burns": (writing(after=BURN), ("fs",), LITTLE),
    "writes_for_ever": (writing(after=BURN), ("fs",), {}),
    "writes_often": (writing(after="(loop $again (call $write (i32.const 4096) (i32.const 1) (i32.const 4096) "
                                   "(i32.const 1) (i32.const 0) (i32.const 64)) (br $again))"), ("fs",), FEW),
}  # fmt: skip
