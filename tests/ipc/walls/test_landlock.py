"""Landlock as the kernel enforces it, in processes of their own: folders, TCP calls, signals, and older kernels."""

import errno
import multiprocessing
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ipc.walls.landlock import ABI_NET, ABI_SCOPE, CHANGE, READ, PathRule, Scope, abi, prepare, restrict
from ipc.walls.privileges import refuse_new_privileges


@pytest.fixture(autouse=True)
def landlock() -> None:
    if abi() < ABI_SCOPE and os.environ.get("CI") != "true":
        pytest.skip(f"this kernel has Landlock ABI {abi()}")
    assert abi() >= ABI_SCOPE


def refused(act: Callable[[], object]) -> int:
    """The error number with which this is refused; 0 if it is not."""
    try:
        act()
    except OSError as error:
        return error.errno or -1
    return 0


def behind(places: tuple[PathRule, ...], scope: Scope, version: int | None = None) -> None:
    ruleset = prepare(places, scope, version)
    refuse_new_privileges()
    restrict(ruleset)


def ends_well(act: Callable[..., None], *arguments: object) -> None:
    """Run in a fresh interpreter: what was restricted stays so."""
    process = multiprocessing.get_context("spawn").Process(target=act, args=arguments)
    process.start()
    process.join(120)
    exitcode = process.exitcode
    process.close()
    assert exitcode == 0


@contextmanager
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def in_places(folder: str) -> None:
    root = Path(folder)
    behind(
        (PathRule(f"{folder}/read", READ), PathRule(f"{folder}/change", CHANGE), PathRule(f"{folder}/none", CHANGE)),
        Scope(),
    )
    assert (root / "read" / "a").read_text() == "a"
    assert refused(lambda: (root / "read" / "a").write_text("b")) == errno.EACCES
    assert refused(lambda: (root / "read" / "b").touch()) == errno.EACCES
    (root / "change" / "b").write_text("b")
    (root / "change" / "b").rename(root / "change" / "c")
    assert refused(lambda: os.mkfifo(root / "change" / "fifo")) == errno.EACCES
    assert refused(lambda: (root / "beside").read_text()) == errno.EACCES
    assert refused(lambda: os.listdir("/etc")) == errno.EACCES
    os._exit(0)


def test_only_the_places_are_reached_and_only_as_they_may_be(tmp_path: Path) -> None:
    for name in ("read", "change"):
        (tmp_path / name).mkdir()
    (tmp_path / "read" / "a").write_text("a")
    (tmp_path / "beside").write_text("x")
    ends_well(in_places, str(tmp_path))


def connects(port: int) -> int:
    with socket.socket() as client:
        return refused(lambda: client.connect(("127.0.0.1", port)))


def binds() -> int:
    with socket.socket() as server:
        return refused(lambda: server.bind(("127.0.0.1", 0)))


def without_network(port: int, may_connect: bool) -> None:
    behind((), Scope(may_connect=may_connect))
    assert connects(port) == (0 if may_connect else errno.EACCES)
    assert binds() == errno.EACCES
    os._exit(0)


def to_one_port(port: int, other: int) -> None:
    behind((), Scope(ports=(port,)))
    assert (connects(port), connects(other)) == (0, errno.EACCES)


def test_only_one_port_may_be_connected_to() -> None:
    with listening() as port, listening() as other:
        ends_well(to_one_port, port, other)


@pytest.mark.parametrize("may_connect", [False, True])
def test_tcp_is_as_the_scope_says(may_connect: bool) -> None:
    with listening() as port:
        ends_well(without_network, port, may_connect)


def alone(parent: int) -> None:
    behind((), Scope())
    assert refused(lambda: os.kill(parent, 0)) == errno.EPERM
    os._exit(0)


def test_no_process_outside_is_signalled() -> None:
    ends_well(alone, os.getpid())


def as_on_an_older_kernel(version: int, port: int) -> None:
    behind((), Scope(), version)
    assert refused(lambda: os.listdir("/etc")) == errno.EACCES
    assert connects(port) == (errno.EACCES if version >= ABI_NET else 0)
    assert refused(lambda: os.kill(os.getppid(), 0)) == (errno.EPERM if version >= ABI_SCOPE else 0)
    os._exit(0)


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6])
def test_an_older_kernel_is_asked_for_what_it_has(version: int) -> None:
    with listening() as port:
        ends_well(as_on_an_older_kernel, version, port)


def test_a_place_that_must_be_there_is_missed(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        prepare((PathRule(str(tmp_path / "gone"), READ, is_required=True),), Scope())
