"""The real template process: loading modules, forking workers, noticing their ends."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ipc.channel.framing import encode_frame
from ipc.configuration.networks import NetworkTls
from ipc.limits import MAX_CONTROL_FRAME
from ipc.messages.calling import Retire
from ipc.messages.forking import KillForked, SpawnWorker, StartTemplate, UseNetworks, WorkerExited
from ipc.messages.modules import LoadModules, ModuleFile, ModulesLoaded
from ipc.process.exits import Exit
from supervisor.programs import INTERPRETER
from tests.support import worker_wat as wat
from tests.support.worker_plans import BUILTINS, builtin, digest_of, make_plan, text
from tests.support.worker_template import Template, has_ended, kill, template
from workers.cache import Cache

ANEW = "a compiled module that was kept is not mapped; the module is compiled anew"


def stored(folder: Path, data: bytes, name: str | None = None, imports: tuple[str, ...] = ()) -> ModuleFile:
    """A module of a manifest: its bytes in a file."""
    digest = digest_of(data)
    path = folder / (name or f"{digest[7:]}.wasm")
    path.write_bytes(data)
    return ModuleFile(digest, str(path), imports)


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Template]:
    with template(tmp_path) as running:
        yield running


def test_every_built_in_provider_loads_with_the_digest_that_is_committed(running: Template) -> None:
    lines = [line.split() for line in (BUILTINS / "SHA256SUMS").read_text().splitlines()]
    sums = {name: digest for digest, name in lines}
    files = [ModuleFile(f"builtin:{name.removesuffix('.wasm')}", None, ("http", "fs", "clock", "log")) for name in sums]
    loaded = running.load(*files)
    assert [(verdict.verdict, verdict.digest) for verdict in loaded.verdicts] == [
        ("ok", f"sha256:{digest}") for digest in sums.values()
    ]


def test_a_module_that_is_not_what_it_should_be_gets_its_verdict(fresh: Template, tmp_path: Path) -> None:
    echo = builtin("echo")
    good = stored(tmp_path, echo)
    changed = ModuleFile(digest_of(b"other"), good.path, ())
    imports_more = stored(tmp_path, builtin("http"))
    not_wasm = stored(tmp_path, b"\0asm\x01\0\0\0 core module")
    broken = stored(tmp_path, echo[:-4])
    lying = stored(tmp_path, wat.provider(wat.SUCCEED, result="string"))
    os.mkfifo(tmp_path / "fifo")
    files = (
        good, changed, imports_more, not_wasm, broken, lying,
        ModuleFile(digest_of(b"x"), str(tmp_path / "nowhere"), ()),
        ModuleFile(digest_of(b"x"), str(tmp_path / "fifo"), ()),
        ModuleFile("builtin:no_such", None, ()),
        ModuleFile("builtin:../../etc/passwd", None, ()),
        ModuleFile("sha256:abc", good.path, ()),
        ModuleFile(good.reference, None, ()),
        ModuleFile(good.reference, good.path, ("http", "smtp")),
        good,
    )  # fmt: skip
    loaded = fresh.load(*files, request_id="many")
    assert loaded.request_id == "many"
    assert [verdict.reference for verdict in loaded.verdicts] == [file.reference for file in files]
    assert [verdict.verdict for verdict in loaded.verdicts] == [
        "ok", "mismatch", "refused", "refused", "refused", "refused", "missing", "missing", "missing", "refused",
        "refused", "refused", "refused", "ok",
    ]  # fmt: skip
    assert "imports gateway:provider/http@1.0.0" in loaded.verdicts[2].detail
    assert "run" in loaded.verdicts[5].detail
    assert "smtp" in loaded.verdicts[12].detail
    assert loaded.verdicts[1].digest == digest_of(echo)
    assert all(verdict.detail for verdict in loaded.verdicts if verdict.verdict != "ok")


def test_the_generation_rises_only_when_a_module_was_added(fresh: Template) -> None:
    echo, spin = (ModuleFile(f"builtin:{name}", None, ("clock",)) for name in ("echo", "spin"))
    assert fresh.load(echo).generation == 1
    assert fresh.load(echo).generation == 1
    assert fresh.load(ModuleFile("builtin:none", None, ())).generation == 1
    assert fresh.load(echo, spin).generation == 2
    assert fresh.load().generation == 2


def test_requests_are_answered_in_order_while_workers_are_forked(fresh: Template) -> None:
    for number in range(4):
        names = ("echo", "spin", "http", "file_write")[number : number + 1]
        files = tuple(ModuleFile(f"builtin:{name}", None, ("clock", "http", "fs")) for name in names)
        fresh.channel.send(LoadModules(f"r{number}", files))
    fresh.born()
    answers = [fresh.receive(ModulesLoaded) for _ in range(4)]
    assert [answer.request_id for answer in answers] == ["r0", "r1", "r2", "r3"]
    assert [answer.generation for answer in answers] == [1, 2, 3, 4]


def test_a_compiled_module_is_used_again_and_one_that_is_damaged_is_compiled_again(tmp_path: Path) -> None:
    with template(tmp_path) as first:
        first.load(ModuleFile("builtin:text_digest", None, ()))
    cache = tmp_path / "modules-cache"
    (file,) = cache.iterdir()
    written = file.stat().st_mtime_ns
    with template(tmp_path) as second:
        assert second.load(ModuleFile("builtin:text_digest", None, ())).verdicts[0].verdict == "ok"
    assert file.stat().st_mtime_ns == written
    assert ANEW not in (tmp_path / "template.log").read_text()
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with template(tmp_path) as third:
        assert third.load(ModuleFile("builtin:text_digest", None, ())).verdicts[0].verdict == "ok"
        assert serves(third, "text_digest", {"text": ""})
    assert file.read_bytes() == whole
    assert ANEW in (tmp_path / "template.log").read_text()


def test_code_of_another_module_in_the_place_of_a_compiled_one_never_runs(tmp_path: Path) -> None:
    with template(tmp_path) as first:
        first.load(ModuleFile("builtin:text_digest", None, ()), ModuleFile("builtin:spin", None, ("clock",)))
    cache = Cache(str(tmp_path / "modules-cache"))
    place = Path(cache.path(digest_of(builtin("text_digest"))))
    mine, others = place.read_bytes(), Path(cache.path(digest_of(builtin("spin")))).read_bytes()
    place.write_bytes(others)
    with template(tmp_path) as second:
        assert second.load(ModuleFile("builtin:text_digest", None, ())).verdicts[0].verdict == "ok"
        assert serves(second, "text_digest", {"text": ""})
    assert place.read_bytes() == mine
    assert "it is not what was compiled here" in (tmp_path / "template.log").read_text()


def serves(running: Template, name: str, request: object) -> bool:
    worker = running.born()
    plan = make_plan(provider_module_digest=digest_of(builtin(name)), request=text(request))
    return worker.call(plan).outcome == "success"


def test_a_worker_forked_before_a_module_was_loaded_does_not_have_it(fresh: Template) -> None:
    early = fresh.born()
    fresh.load(ModuleFile("builtin:echo", None, ()))
    plan = make_plan()
    assert early.call(plan).outcome == "module_missing"
    assert serves(fresh, "echo", {})


def test_files_of_private_networks_begin_a_generation_of_workers_though_they_can_not_be_read(
    fresh: Template, tmp_path: Path
) -> None:
    before = fresh.load(ModuleFile("builtin:echo", None, ())).generation
    fresh.channel.send(UseNetworks((NetworkTls(str(tmp_path / "none.pem")),)))
    assert fresh.load().generation == before + 1
    assert "ca_file of a private network can't be used" in (tmp_path / "template.log").read_text()
    assert fresh.born("http").pid


def test_a_folder_for_compiled_modules_that_is_not_ours_alone_stops_the_template(tmp_path: Path) -> None:
    (tmp_path / "modules-cache").mkdir()
    (tmp_path / "modules-cache").chmod(0o777)
    with template(tmp_path, start=False) as running:
        running.channel.send(StartTemplate(str(tmp_path / "modules-cache"), str(tmp_path / "files"), 10))
        assert running.exit_code() == Exit.NO_PERMISSION
    assert "Make it mode 0700" in (tmp_path / "template.log").read_text()


def test_a_worker_that_dies_is_reported(running: Template) -> None:
    worker = running.born()
    kill(worker.pid)
    exited = running.receive(WorkerExited)
    assert (exited.worker_id, exited.pid, exited.status) == (worker.worker_id, worker.pid, -signal.SIGKILL)


def test_the_template_kills_a_worker_by_name(running: Template) -> None:
    worker = running.spawn(worker_id="victim")
    worker.meet()
    running.channel.send(KillForked("no such worker"))
    running.channel.send(KillForked("victim"))
    exited = running.receive(WorkerExited)
    assert (exited.worker_id, exited.status) == ("victim", -signal.SIGKILL)


def test_many_workers_live_and_die_beside_each_other(running: Template) -> None:
    workers = [running.spawn("compute") for _ in range(8)]
    for worker in workers:
        worker.meet()
    for worker in workers[::2]:
        kill(worker.pid)
    for worker in workers[1::2]:
        worker.channel.send(Retire())
        worker.hang_up()
    ends = {running.receive(WorkerExited).worker_id for _ in workers}
    assert ends == {worker.worker_id for worker in workers}


def test_the_template_stays_single_threaded_and_shows_its_name(running: Template) -> None:
    process = psutil.Process(running.process.pid)
    assert process.num_threads() == 1
    assert "".join(process.cmdline()) == "gateway: template"


def test_the_template_keeps_no_descriptor_of_a_worker_that_is_gone(running: Template) -> None:
    process = psutil.Process(running.process.pid)
    before = process.num_fds()
    for _ in range(5):
        worker = running.born()
        kill(worker.pid)
        running.receive(WorkerExited)
        worker.close()
    assert process.num_fds() == before


def test_workers_die_with_their_template(tmp_path: Path) -> None:
    with template(tmp_path) as running:
        worker = running.born()
        kill(running.process.pid)
        running.process.wait(60)
        assert has_ended(worker.pid)


def test_the_template_leaves_when_its_supervisor_hangs_up(tmp_path: Path) -> None:
    with template(tmp_path) as running:
        worker = running.born()
        running.channel.close()
        assert running.exit_code() == Exit.ORPHANED
        assert has_ended(worker.pid)


@pytest.mark.parametrize(
    "data",
    [b"\xff\xff\xff\xff", b"\0\0\0\x03abc", b"\0\0\0\x01\xc0", b"\0\0\0\x0e\x81\xa4type\xa7Unknown"],
    ids=["endless", "garbage", "nil", "unknown"],
)
def test_bytes_that_are_no_message_end_the_template(tmp_path: Path, data: bytes) -> None:
    with template(tmp_path) as running:
        running.sock.sendall(data)
        assert running.exit_code() == Exit.PROTOCOL


def test_a_message_out_of_order_ends_the_template(tmp_path: Path) -> None:
    with template(tmp_path, start=False) as running:
        running.sock.sendall(encode_frame(LoadModules("r", ()), MAX_CONTROL_FRAME))
        assert running.exit_code() == Exit.PROTOCOL


def test_a_spawn_without_a_descriptor_ends_the_template(tmp_path: Path) -> None:
    with template(tmp_path) as running:
        running.channel.send(SpawnWorker("w", "compute", "t"))
        assert running.exit_code() == Exit.PROTOCOL


def test_a_worker_of_an_unknown_profile_leaves_with_the_code_for_walls(running: Template) -> None:
    running.spawn("no_such_profile")
    assert running.receive(WorkerExited).status == Exit.SANDBOX


def started_with(*arguments: str) -> "subprocess.CompletedProcess[bytes]":
    """The template with a command line of one's own, until it ends."""
    command = [*INTERPRETER, "workers.template", *arguments]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, cwd="/", timeout=300, check=False)


def test_a_template_whose_parent_is_another_leaves() -> None:
    assert started_with("--control-fd", "0", "--parent", "1").returncode == Exit.ORPHANED


@pytest.mark.parametrize("arguments", [[], ["--control-fd"], ["--control-fd", "x", "--parent", "1"], ["--a", "b"]])
def test_a_command_line_that_makes_no_sense_is_refused(arguments: list[str]) -> None:
    done = started_with(*arguments)
    assert (done.returncode, done.stderr.startswith(b"usage:")) == (Exit.USAGE, True)


def test_loading_again_after_a_restart_gives_the_same_digests(tmp_path: Path) -> None:
    """Forking a worker again, as a supervisor does when a template dies: the same request gets the same answer."""
    file = ModuleFile("builtin:echo", None, ())
    with template(tmp_path) as first:
        before = first.load(file)
    with template(tmp_path) as second:
        assert second.load(file) == before


def test_a_removed_module_folder_is_not_made_again(fresh: Template, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "modules-cache")
    loaded = fresh.load(ModuleFile("builtin:echo", None, ()))
    assert loaded.verdicts[0].verdict == "refused"
