"""An update of the files below a gateway that runs: no process of the new version joins those of the old one."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from ipc.process.exits import Exit
from supervisor.children.children import Children
from supervisor.children.installation import Installation
from tests.supervisor.children.test_spares import spares
from tests.support.supervised import Running, Start, wait_until

SAID = (
    "the gateway stops: its files were replaced after its start, and a process of another version must not join it. "
    "Start it again"
)


def updated(start: Start) -> tuple[Running, dict[str, int]]:
    """A gateway that serves and needs no process, its files replaced meanwhile; and its processes by their titles."""
    gateway = start()
    family = gateway.whole_family()
    wait_until(lambda: spares(gateway, "front"))
    (Path(gateway.settings.state_dir) / "installed").write_text("")
    return gateway, family


@pytest.mark.parametrize("title", ["front 1", "notary", "policy 1", "template"])
def test_a_gateway_whose_files_were_replaced_ends_rather_than_start_a_process_of_them(start: Start, title: str) -> None:
    gateway, family = updated(start)
    os.kill(family[title], signal.SIGKILL)
    assert gateway.process.wait(60) == Exit.REPLACED
    (said,) = gateway.told(SAID)
    assert (said["level"], said["exit"]) == ("error", "REPLACED")


def test_calls_in_flight_end_before_a_gateway_gives_way_to_a_new_installation(start: Start) -> None:
    gateway, family = updated(start)
    gateway.ask(do="busy", in_flight=1)
    os.kill(family["notary"], signal.SIGKILL)
    gateway.eventually(lambda state: state["drained"])
    assert gateway.told(SAID)
    assert gateway.process.poll() is None
    gateway.ask(do="busy", in_flight=0)
    assert gateway.process.wait(120) == Exit.REPLACED


def test_a_gateway_whose_files_were_replaced_serves_until_it_needs_another_process(start: Start) -> None:
    gateway, _ = updated(start)
    before = gateway.state()
    gateway.send(type="NeedWorker", profile="compute")
    gateway.eventually(lambda state: len(state["workers"]) > len(before["workers"]))
    assert not gateway.told(SAID), "a worker is made of the template, which has the old version"
    gateway.process.terminate()
    assert gateway.process.wait(60) == Exit.OK


def rewritten(file: Path) -> None:
    other = file.with_name("other")
    other.write_bytes(file.read_bytes())
    os.utime(other, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    other.rename(file)


@pytest.mark.parametrize(
    ("change", "is_replaced"),
    [
        (rewritten, True), (lambda file: file.write_text("longer"), True), (Path.unlink, True),
        (lambda file: os.utime(file, ns=(1, 1)), True),
        (lambda file: file.chmod(0o600), False), (lambda file: file.with_name("link").hardlink_to(file), False),
        (Path.read_text, False),
    ],
    ids=["another file of the same content", "written in place", "removed", "of another time", "mode", "link", "read"],
)  # fmt: skip
def test_files_that_an_installer_writes_anew_are_another_installation(
    tmp_path: Path, change: Callable[[Path], object], is_replaced: bool
) -> None:
    file = tmp_path / "launch.py"
    file.write_text("text")
    installation = Installation(file)
    change(file)
    assert installation.is_replaced == is_replaced


def test_a_program_of_another_installation_is_not_started(tmp_path: Path) -> None:
    children, told = Children(os.environ, tmp_path / "launch.py"), []
    children.on_replaced = lambda: told.append("replaced")
    (tmp_path / "launch.py").write_text("")
    child, pair = children.start("child", ("no.such.module",))
    assert pair is not None
    with pair[0], pair[1]:
        assert (child.status, child.pid, told) == (Exit.REPLACED, 0, ["replaced"])
        assert pair[0].recv(1) == b"", "the other end is closed"
