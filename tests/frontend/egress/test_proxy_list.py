"""The egress proxy's allow-list: what is written into it, when, and over what it never is."""

import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from frontend.actions.registry import Registry
from frontend.actions.targets import Learned
from frontend.deadlines import EgressDeadlines, FileDeadlines
from frontend.egress import proxy_list as module
from frontend.egress.proxy_list import HEAD, LOCK_NAME, ListNotWritten, ProxyAllowList, list_file, squid_list
from frontend.telemetry.present import Presence
from ipc.network.domains import matches
from tests.support.front_core import action, registry_of
from tests.support.held_calls import reaching
from tests.support.logs import capture_logs
from tests.support.patience import PATIENT
from tests.support.shared import views
from tests.support.worker_desk import until

OFTEN = EgressDeadlines(look_seconds=0.005)
LABELS = ("a", "b", "c-d", "xn--e1a")
names = st.lists(st.sampled_from(LABELS), min_size=2, max_size=4).map(".".join)
rules = st.one_of(names, names.map(lambda name: f"*.{name}"))


def entries(content: bytes) -> list[str]:
    head, *lines = content.decode("ascii").splitlines()
    assert head == HEAD
    return lines


def lets_through(listed: Iterable[str], host: str) -> bool:
    """Match a name as squid's `dstdomain` does: an entry with a leading dot is the name itself and all names below
    it."""
    return any(host == one.removeprefix(".") or (one.startswith(".") and host.endswith(one)) for one in listed)


@given(st.frozensets(rules, max_size=12), st.lists(names, max_size=20))
def test_the_proxy_lets_through_what_rules_match_and_beyond_it_a_wildcards_own_name_alone(
    some: frozenset[str], hosts: list[str]
) -> None:
    listed = entries(squid_list(some))
    apexes = {rule[2:] for rule in some if rule.startswith("*.")}
    for host in (*hosts, *(rule.replace("*", "z") for rule in some), *apexes):
        assert lets_through(listed, host) == (matches(host, some) or host in apexes), host


@given(st.frozensets(rules, max_size=12))
def test_no_entry_covers_another_and_they_are_sorted(some: frozenset[str]) -> None:
    listed = entries(squid_list(some))
    assert listed == sorted(set(listed))
    for one in listed:
        others = [other for other in listed if other != one]
        assert not lets_through(others, one.removeprefix(".")), (one, others)


def test_the_file_in_the_form_that_people_and_squid_read() -> None:
    some = {"example.com", "*.example.com", "a.example.com", "*.b.example.com", "z.example.org", "badexample.com"}
    assert squid_list(frozenset(some)) == (
        b"# written by the gateway; changes are overwritten\n.example.com\nbadexample.com\nz.example.org\n"
    )
    assert entries(squid_list(frozenset())) == []


# ------------------------------------------------------------------ whose domains


def test_domains_are_those_of_registered_actions_with_egress_their_own_and_learned_ones(tmp_path: Path) -> None:
    learned = {
        "reaching": Learned(("learned.example",)), "plain": Learned(("plain.example",)),
        "gone": Learned(("gone.example",)),
    }  # fmt: skip
    both = registry_of(tmp_path / "a", reaching("reaching")), registry_of(tmp_path / "b", action("plain"))
    registry = Registry(one for each in both for one in each.actions)
    listed = ProxyAllowList(None, Registry, lambda: learned)
    assert listed.reach_of(registry) == {"known.example", "learned.example"}
    assert listed.reach_of(Registry()) == frozenset()


# ------------------------------------------------------------------ the file


class Scene:
    """A list in a folder of its own, for an action that has learned what a test says."""

    def __init__(self, folder: Path) -> None:
        self.state = folder
        self.path = folder / "squid" / "domains"
        self.path.parent.mkdir(mode=0o755)
        self.domains: tuple[str, ...] = ("known.example",)
        (reaches,) = registry_of(folder / "actions", reaching()).actions
        self.registry = Registry([replace(reaches, allowed_domains=())])
        self.listed = self.make()

    def make(self, files: FileDeadlines = PATIENT.files, deadlines: EgressDeadlines = PATIENT.egress) -> ProxyAllowList:
        file = list_file(str(self.path), self.state, files)
        return ProxyAllowList(file, lambda: self.registry, lambda: {"echo": Learned(self.domains)}, deadlines=deadlines)

    def found(self) -> list[str]:
        return entries(self.path.read_bytes())


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


async def test_the_file_is_ours_and_everybody_may_read_it_and_nothing_else_is_left(scene: Scene) -> None:
    before = os.umask(0o077)
    try:
        await scene.listed.sync()
    finally:
        os.umask(before)
    status = scene.path.stat()
    assert (status.st_mode & 0o777, status.st_uid) == (0o644, os.geteuid())
    assert os.listdir(scene.path.parent) == ["domains"]
    assert (scene.state / LOCK_NAME).exists()


async def test_a_file_that_is_right_is_not_written_again_and_the_log_says_what_was(scene: Scene) -> None:
    with capture_logs() as logs:
        await scene.listed.sync()
        inode = scene.path.stat().st_ino
        await scene.listed.sync()
        assert scene.path.stat().st_ino == inode
        scene.domains = ("known.example", "secret-partner.example")
        await scene.listed.sync()
        assert scene.path.stat().st_ino != inode
    assert [line["entries"] for line in logs] == [1, 2]
    assert "secret-partner" not in str(logs)


SPOILT: dict[str, Callable[[Path], object]] = {
    "more": lambda path: path.write_text(path.read_text() + "evil.example\n"),
    "less": lambda path: path.write_text(""),
    "other": lambda path: path.write_text(path.read_text().replace("known", "kn0wn")),
    "gone": lambda path: path.unlink(),
    "closed": lambda path: path.chmod(0o600),
    "open": lambda path: path.chmod(0o666),
    "hidden": lambda path: path.chmod(0),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
async def test_every_foreign_change_of_the_file_is_repaired(scene: Scene, spoil: Callable[[Path], object]) -> None:
    listed = scene.make(deadlines=OFTEN)
    await listed.sync()
    whole = scene.path.read_bytes()
    spoil(scene.path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listed.watch)
        await until(lambda: scene.path.exists() and scene.path.stat().st_mode & 0o777 == 0o644)
        await until(lambda: scene.path.read_bytes() == whole)
        nursery.cancel_scope.cancel()


def _link(path: Path) -> None:
    (path.parent / "elsewhere").write_text("untouched\n")
    path.symlink_to(path.parent / "elsewhere")


def _file(path: Path) -> None:
    path.parent.rmdir()
    path.parent.write_text("untouched\n")


NOT_OURS: list[tuple[Callable[[Path], object], str]] = [
    (_link, "/domains: is a link. Name the file itself."),
    (lambda path: path.symlink_to("nowhere"), "/domains: is a link. Name the file itself."),
    (lambda path: path.mkdir(), "/domains: is not a regular file. Move it away, or name another."),
    (os.mkfifo, "/domains: is not a regular file. Move it away, or name another."),
    (lambda path: path.parent.chmod(0o777), "/squid: mode 0777 lets others in. Use chmod go-w."),
    (lambda path: path.parent.chmod(0o775), "/squid: mode 0775 lets others in. Use chmod go-w."),
    (lambda path: path.parent.rmdir(), "/squid: cannot look at it: No such file or directory."),
    (_file, "/squid: is not a folder."),
]  # fmt: skip


@pytest.mark.parametrize(("spoil", "problem"), NOT_OURS)
async def test_a_foreign_file_is_neither_followed_nor_overwritten(
    scene: Scene, spoil: Callable[[Path], object], problem: str
) -> None:
    spoil(scene.path)
    before = tree(scene.state)
    with pytest.raises(ListNotWritten) as refused:
        await scene.listed.sync()
    assert str(refused.value).startswith("egress.proxy_allowlist_file: /")
    assert str(refused.value).endswith(problem)
    assert tree(scene.state) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
async def test_a_file_or_a_folder_of_another_user_is_left_alone(scene: Scene) -> None:
    scene.path.write_text("untouched\n")
    os.chown(scene.path, 12345, -1)
    with pytest.raises(ListNotWritten, match=r"/domains: belongs to user id 12345, not to 0 who runs this\. Use chown"):
        await scene.listed.sync()
    assert scene.path.read_text() == "untouched\n"
    scene.path.unlink()
    os.chown(scene.path.parent, 12345, -1)
    with pytest.raises(ListNotWritten, match=r"/squid: belongs to user id 12345, not to 0 who runs this\. Use chown"):
        await scene.listed.sync()
    assert os.listdir(scene.path.parent) == []


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in folder.rglob("*")
        if path.name != LOCK_NAME
    }


async def test_a_disk_that_is_full_leaves_the_old_file_whole_and_nothing_beside_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.listed.sync()
    scene.domains = ("other.example",)

    def full(_descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ListNotWritten, match="cannot write it: No space left on device"):
        await scene.listed.sync()
    monkeypatch.undo()
    assert scene.found() == ["known.example"]
    assert os.listdir(scene.path.parent) == ["domains"]
    await scene.listed.sync()
    assert scene.found() == ["other.example"]


async def test_leftovers_of_a_killed_writer_are_removed(scene: Scene) -> None:
    left = scene.path.with_name(f".domains.{'0' * 16}")
    left.write_text("half")
    kept = scene.path.with_name(".domains.swp")
    kept.write_text("an editor's")
    await scene.listed.sync()
    assert sorted(os.listdir(scene.path.parent)) == [".domains.swp", "domains"]


# ------------------------------------------------------------------ when


async def test_what_is_about_to_count_is_listed_first_and_goes_again_unless_it_counts(scene: Scene) -> None:
    async with scene.listed.wider(["coming.example", "*.staying.example"]):
        assert scene.found() == [".staying.example", "coming.example", "known.example"]
        async with scene.listed.wider(["coming.example"]):  # two that want the same
            pass
        assert "coming.example" in scene.found()
        scene.domains = ("*.staying.example",)
    assert scene.found() == [".staying.example"]


async def test_a_list_that_can_not_be_widened_lets_nothing_begin(scene: Scene) -> None:
    scene.path.mkdir()
    with pytest.raises(ListNotWritten):
        async with scene.listed.wider(["coming.example"]):
            raise AssertionError("nothing may come to count now")
    scene.path.rmdir()
    await scene.listed.sync()
    assert scene.found() == ["known.example"]


async def test_a_cancelled_change_leaves_no_wider_list(scene: Scene) -> None:
    with trio.CancelScope() as scope:
        async with scene.listed.wider(["coming.example"]):
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert scene.found() == ["known.example"]


async def test_fronts_that_write_at_once_end_at_what_is_in_force(scene: Scene) -> None:
    fronts = [scene.make(), scene.make()]

    async def change(number: int) -> None:
        scene.domains = (*scene.domains, f"n{number}.example")
        await fronts[number % 2].sync()
        assert f"n{number}.example" in scene.found(), "it is there when that is answered"

    async with trio.open_nursery() as nursery:
        for number in range(30):
            nursery.start_soon(change, number)
    assert len(scene.found()) == 31
    assert os.listdir(scene.path.parent) == ["domains"]


async def test_what_is_wrong_is_said_once_and_what_is_right_again_is_written(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = scene.make(deadlines=OFTEN)
    scene.path.mkdir()
    rounds = 0
    sync = listed.sync

    async def counted() -> None:
        nonlocal rounds
        rounds += 1
        await sync()

    monkeypatch.setattr(listed, "sync", counted)
    with capture_logs() as logs:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(listed.watch)
            await until(lambda: rounds >= 5)
            scene.path.rmdir()
            await until(lambda: scene.path.exists() and rounds >= 10)
            nursery.cancel_scope.cancel()
    assert scene.found() == ["known.example"]
    assert [line.get("entries", "problem" in line) for line in logs] == [True, 1]


async def test_a_write_that_takes_too_long_is_no_success_and_never_comes_on_top_of_a_later_one(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = scene.make(replace(PATIENT.files, write_seconds=0.05))
    disk, put = threading.Event(), module._put

    def slow(path: Path, content: bytes) -> int | None:
        disk.wait(120)
        return put(path, content)

    monkeypatch.setattr(module, "_put", slow)
    with pytest.raises(ListNotWritten, match=r"was not written within 0\.05 s"):
        await listed.sync()
    monkeypatch.undo()
    scene.domains = ("later.example",)
    disk.set()
    await scene.listed.sync()
    assert scene.found() == ["later.example"]


async def test_without_a_file_nothing_is_written_and_nothing_fails(tmp_path: Path) -> None:
    listed = ProxyAllowList(list_file(None, tmp_path / "not there"), Registry, dict)
    await listed.sync()
    await listed.watch()
    async with listed.wider(["coming.example"]):
        pass
    assert os.listdir(tmp_path) == []


async def test_whoever_has_no_time_for_a_disk_that_hangs_leaves_the_list_wider_and_to_the_watch(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, put = threading.Event(), module._put

    def slow(path: Path, content: bytes) -> int | None:
        disk.wait(120)
        return put(path, content)

    async with scene.listed.wider(["coming.example"], settle_seconds=0.05):
        monkeypatch.setattr(module, "_put", slow)
    assert scene.found() == ["coming.example", "known.example"]
    disk.set()
    await scene.listed.sync()
    assert scene.found() == ["known.example"]


# ------------------------------------------------------------------ several fronts


async def test_what_is_coming_in_one_front_stays_listed_whatever_another_does(tmp_path: Path) -> None:
    path, learned = tmp_path / "list", {"reaching": Learned(("learned.example",))}
    memories = views()
    for memory in memories:
        memory.begin_serving()
    first, second = (
        ProxyAllowList(list_file(str(path), tmp_path, PATIENT.files), Registry, lambda: learned, Presence(memory))
        for memory in memories
    )
    async with first.wider(("coming.example",)):
        await second.sync()
        assert "coming.example" in entries(path.read_bytes())
    await second.sync()
    assert "coming.example" not in entries(path.read_bytes())
