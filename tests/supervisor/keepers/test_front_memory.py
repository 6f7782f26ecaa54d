"""The shared memory of a front that ended: the parts that the supervisor clears and keeps, and the division of settings
among fronts."""

import os

import pytest

from frontend.limits.admission import Admission
from frontend.shared.memory import SharedMemory
from frontend.telemetry.metrics import Metrics
from ipc.channel.front_memory import Layout
from ipc.settings import PoolSettings, Settings, WorkerSettings
from supervisor.keepers.front_memory import FrontMemory
from supervisor.settings.kind import PathContext
from supervisor.settings.pool_shares import divided
from supervisor.settings.schema import MAX_FRONTS, SCHEMA, Leaf

SETTINGS = Settings(state_dir="/s", public_base_url="http://h", front_processes=2)


def seen_by(memory: FrontMemory, number: int) -> SharedMemory:
    return SharedMemory(os.dup(memory.descriptor), Layout.of(SETTINGS), number)


def test_the_state_of_an_ended_front_is_cleared_and_its_counters_stay() -> None:
    memory = FrontMemory(SETTINGS)
    first, second = seen_by(memory, 1), seen_by(memory, 2)
    here, there = Admission(8, memory=first), Admission(8, memory=second)
    metrics = Metrics(dict, second)
    metrics.leases_issued.add()
    second.begin_serving()
    assert second.claims_start() is True
    for _ in range(3):
        there.enter().belongs_to("ann", "ses")
    assert here.in_flight_everywhere == 3
    memory.clear(2)
    assert (here.in_flight_everywhere, first.is_serving(2), first.claims_start()) == (0, False, True)
    assert here._peers.held_elsewhere("session ses") == 0
    assert Metrics(dict, seen_by(memory, 2)).leases_issued.value() == 1
    memory.close()


def test_the_other_front_s_part_is_left_alone() -> None:
    memory = FrontMemory(SETTINGS)
    first = seen_by(memory, 1)
    here = Admission(8, memory=first)
    first.begin_serving()
    here.enter().belongs_to("ann", "ses")
    memory.clear(2)
    there = Admission(8, memory=seen_by(memory, 2))
    assert (there.in_flight_everywhere, there._peers.held_elsewhere("session ses"), first.is_serving(1)) == (1, 1, True)
    memory.close()


@pytest.mark.parametrize(
    ("fronts", "pool", "part"),
    [(1, (1, 12), (1, 12)), (2, (1, 12), (1, 6)), (5, (7, 12), (2, 2)), (3, (0, 2), (0, 1)), (4, (12, 12), (3, 3))],
)
def test_pools_are_divided_so_that_all_fronts_stay_within_them(
    fronts: int, pool: tuple[int, int], part: tuple[int, int]
) -> None:
    workers = WorkerSettings(compute=PoolSettings(*pool), idle_seconds=7)
    settings = Settings(state_dir="/s", public_base_url="http://h", front_processes=fronts, workers=workers)
    share = divided(settings).workers
    assert (share.compute, share.idle_seconds) == (PoolSettings(*part), 7)


@pytest.mark.parametrize(("cores", "fronts"), [(1, 1), (2, 1), (3, 2), (8, 7), (500, MAX_FRONTS)])
def test_auto_is_one_front_less_than_there_are_cores_and_one_at_least(
    monkeypatch: pytest.MonkeyPatch, cores: int, fronts: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    leaf = SCHEMA.fields["front_processes"]
    assert isinstance(leaf, Leaf)
    assert leaf.kind("auto", PathContext(folder=None, environ={})) == fronts  # type: ignore[arg-type]
