"""Spare workers compared with the host's limits: a configuration beyond them is refused at once."""

import os
import re
import resource
import subprocess
from pathlib import Path
from typing import Literal

import pytest

from ipc.limits import HTTP_WORKER_THREADS
from ipc.process.exits import Exit
from ipc.settings import PoolSettings, Settings, WorkerSettings
from supervisor.settings.checks.ceilings import Ceiling, ceiling_problems, ceilings_here, sized
from supervisor.settings.config import check, open_document
from supervisor.settings.pool_shares import divided
from tests.support.checked import whole_configuration
from tests.support.processes import GATEWAY

NEEDED = 'state_dir = "state"\npublic_base_url = "https://gate.example"\n'


def problems(folder: Path, more: str, *ceilings: Ceiling) -> list[str]:
    file = folder / "gateway.toml"
    file.write_text(NEEDED + more)
    return [str(one).replace(f"{folder}/", "") for one in ceiling_problems(check(*open_document(file, {})), ceilings)]


def tasks(most: int, of_http: int = 0) -> Ceiling:
    return Ceiling("processes and threads", most, 2, "pids.max of its control group", "TasksMax=", 8, of_http)


def test_the_spare_workers_of_all_pools_and_fronts_count(tmp_path: Path) -> None:
    more = "front_processes = 2\n[workers.http]\nmin_spare = 7\nmax = 20\n[workers.fs]\nmin_spare = 0\n"
    # 4 of http in each of 2 fronts, 1 of compute in each, none of fs.
    assert problems(tmp_path, more, tasks(20)) == []
    assert problems(tmp_path, more, tasks(19), tasks(1000), tasks(2)) == [
        f"gateway.toml:5  workers.http.min_spare = 7: the 10 spare workers of all pools need 20 processes and threads, "
        f"and {most} are allowed here (pids.max of its control group). Lower min_spare, or raise the limit (TasksMax=)."
        for most in (19, 2)
    ]


@pytest.mark.parametrize(
    ("memory_mib", "ceilings", "calls", "in_flight"),
    [
        (4096, (), 341, 682),
        (64, (), 12, 256),
        (1 << 20, (), 1024, 2048),
        (1 << 20, (Ceiling("open files", 1024, 2, "ulimit -n", "", 4), tasks(5000)), 256, 512),
        (1 << 20, (tasks(512, HTTP_WORKER_THREADS),), 64, 256),
        (4096, (Ceiling("MiB of memory", 2400, 2, "memory.max", "", 12),), 200, 400),
    ],
)
def test_auto_is_as_many_calls_as_the_tightest_limit_of_the_host_has_room_for(
    memory_mib: int, ceilings: tuple[Ceiling, ...], calls: int, in_flight: int
) -> None:
    settings = sized(Settings("/s", "http://h"), ceilings, memory_mib)
    assert (settings.workers.http.max, settings.limits.max_in_flight) == (calls, in_flight)
    assert settings.workers.compute.max == 12


@pytest.mark.parametrize("configured", ["auto", 300])
@pytest.mark.parametrize(("threads", "fronts"), [(512, 1), (4096, 1), (4096, 4), (16_384, 1), (1 << 22, 1)])
def test_http_workers_have_half_of_the_threads_at_most_however_many_calls_there_may_be(
    configured: int | Literal["auto"], threads: int, fronts: int
) -> None:
    given = Settings(
        "/s", "http://h", front_processes=fronts, workers=WorkerSettings(http=PoolSettings(max=configured))
    )
    settings = sized(given, (tasks(threads, HTTP_WORKER_THREADS),), 1 << 20)
    part = divided(settings).workers.http
    assert part.most_workers * fronts * HTTP_WORKER_THREADS <= threads // 2
    assert part.most_workers >= min(3, part.most)
    assert settings.workers.http.max == (min(threads // 8, 1024) if configured == "auto" else configured)


def test_each_front_has_http_workers_for_more_than_one_action_and_its_spare_ones() -> None:
    for spare, part in ((1, 3), (8, 8)):
        workers = WorkerSettings(http=PoolSettings(min_spare=2 * spare, max=100))
        given = Settings("/s", "http://h", front_processes=2, workers=workers)
        settings = sized(given, (tasks(100, HTTP_WORKER_THREADS),), 4096)
        assert divided(settings).workers.http.most_workers == part


def test_spare_http_workers_need_all_their_threads(tmp_path: Path) -> None:
    more = "[workers.http]\nmin_spare = 9\n"
    assert problems(tmp_path, more, tasks(319, HTTP_WORKER_THREADS)) == []
    (problem,) = problems(tmp_path, more, tasks(318, HTTP_WORKER_THREADS))
    assert "the 11 spare workers of all pools need 319 processes and threads, and 318 are allowed here" in problem


def test_numbers_of_the_configuration_stay_and_calls_in_flight_follow_them(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    for text, sizes in (
        ("workers.http.max = 300", (1, 300, 600)),
        ("workers.http.max = 7\nlimits.max_in_flight = 5", (1, 7, 5)),
        ('workers.http.max = "auto"\nlimits.max_in_flight = "auto"', (1, 341, 682)),
        ("workers.http.min_spare = 2", (2, 341, 682)),
    ):
        file.write_text(f"{NEEDED}{text}\n")
        loaded = check(*open_document(file, {})).settings
        assert loaded is not None
        settings = sized(loaded, (), 4096)
        assert (settings.workers.http.min_spare, settings.workers.http.max, settings.limits.max_in_flight) == sizes


def test_each_front_has_its_part_of_what_auto_comes_to() -> None:
    settings = divided(sized(Settings("/s", "http://h", front_processes=4), (), 4096))
    assert settings.workers.http.max == 85
    assert settings.limits.max_in_flight == 682, "those are counted in all fronts together"


def test_no_pool_that_was_not_understood_is_judged(tmp_path: Path) -> None:
    assert problems(tmp_path, "[workers.http]\nmin_spare = -1\n", tasks(1)) == []
    assert problems(tmp_path, "front_processes = 0\n", tasks(1)) == []


def test_the_limits_of_this_process_are_found() -> None:
    limits = {one.source: one.most for one in ceilings_here()}
    assert limits.get("ulimit -n", 0) > 0
    assert all(one.of_http == HTTP_WORKER_THREADS for one in ceilings_here() if "threads" in one.what)
    assert all(most > 0 for most in limits.values())


def test_threads_of_workers_count_where_root_starts_them_since_they_get_another_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (700, 900))
    (threads,) = [one for one in ceilings_here() if one.source == "ulimit -u"]
    assert (threads.most, threads.of_http) == (700, HTTP_WORKER_THREADS)


@pytest.mark.parametrize(
    ("groups", "files"),
    [
        ("0::/a/b\n", {"a/pids.max": "700", "a/b/pids.max": "max", "memory.max": str(1 << 30)}),
        (
            "9:name=systemd:/\n8:pids:/docker/7\n4:cpu,memory:/docker/8\n0::/\n",
            {"pids/pids.max": "700", "memory/memory.limit_in_bytes": str(1 << 30), "pids/docker/8/pids.max": "3"},
        ),
    ],
)
def test_the_limits_of_control_groups_of_either_version_count_inside_of_a_container_too(
    tmp_path: Path, groups: str, files: dict[str, str]
) -> None:
    (tmp_path / "own").write_text(groups)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    found = {one.source: one.most for one in ceilings_here(tmp_path / "own", tmp_path)}
    assert found["pids.max of its control group"] == 700
    assert found["memory.max of its control group"] == 1024


@pytest.mark.parametrize("command", ["check", "run"])
def test_check_and_start_refuse_more_spare_workers_than_this_process_may_have(tmp_path: Path, command: str) -> None:
    file = whole_configuration(tmp_path)
    file.write_text(f"{file.read_text()}\n[workers.compute]\nmin_spare = 200\nmax = 200\n")
    done = subprocess.run(
        ["bash", "-c", f"ulimit -n 300; exec {GATEWAY} {command} --config gateway.toml"],
        capture_output=True, text=True, timeout=300, cwd=tmp_path, env={"PATH": os.environ["PATH"]},
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    said = done.stdout or done.stderr
    assert done.returncode == Exit.CONFIG, said
    assert "workers.compute.min_spare = 200: the 202 spare workers of all pools need 404 open files, and 300" in said
    assert "raise the limit (LimitNOFILE=)" in said


def test_connections_are_as_many_as_open_files_allow_and_check_says_so(tmp_path: Path) -> None:
    file = whole_configuration(tmp_path)
    command = f"ulimit -n 600; exec {GATEWAY} check --config gateway.toml"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False,
        env={"PATH": os.environ["PATH"]}, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == Exit.OK, done.stdout + done.stderr
    said = re.search(
        r"limits.max_connections = 1024: the limit of open files allows (\d+) for each listening socket", done.stdout
    )
    assert said is not None, done.stdout
    assert 16 < int(said[1]) * 2 < 600
    file.write_text(f"{file.read_text()}\n[limits]\nmax_connections = {said[1]}\n")
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False,
        env={"PATH": os.environ["PATH"]}, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert "max_connections" not in done.stdout
