"""Several fronts count as one gateway: each reports the sums of all, and no count goes back when one is replaced."""

import struct

from frontend.shared.memory import SharedMemory
from frontend.telemetry import families as f
from frontend.telemetry.cells import Cells
from frontend.telemetry.metrics import Metrics
from frontend.telemetry.present import AnnouncedProcess, Presence, Present
from frontend.telemetry.processes import Processes
from frontend.telemetry.readings import together
from ipc.channel import front_memory as at
from tests.frontend.telemetry.test_metrics import Registry
from tests.support.shared import views


def metrics_of(memory: SharedMemory, *actions: str) -> Metrics:
    registry = Registry(dict.fromkeys(actions, True))
    return Metrics(lambda: registry, memory)


def shown(metrics: Metrics, family: f.Family) -> dict[tuple[str, ...], float]:
    metrics.learn()
    return {
        (*sample.labels.values(), sample.name.removeprefix(family.name)): sample.value
        for sample in metrics.shown(family).samples
    }


def test_counts_and_timings_are_sums_whichever_front_is_asked() -> None:
    fronts = [metrics_of(memory) for memory in views()]
    for metrics, times in zip(fronts, (2, 3), strict=True):
        metrics.leases_issued.add(times=times)
        metrics.leases_refused.add(f"code-{times}")
        for _ in range(times):
            metrics.call_seconds.observe(0.3)
    for metrics in fronts:
        assert list(shown(metrics, f.LEASES_ISSUED).values()) == [5]
        assert shown(metrics, f.LEASES_REFUSED) == {("code-2", ""): 1, ("code-3", ""): 1}
        seconds = shown(metrics, f.CALL_SECONDS)
        assert (seconds["0.25", "_bucket"], seconds["0.5", "_bucket"], seconds["+Inf", "_bucket"]) == (0, 5, 5)
        assert (seconds["_count",], seconds["_sum",]) == (5, 1.5)


def test_a_front_that_follows_another_goes_on_with_its_counts_and_with_nothing_open() -> None:
    first, second = views()
    before, other = metrics_of(first, "act"), metrics_of(second, "act")
    before.called("act", "allow", None, 0.0)
    before.opened("client")
    after = metrics_of(first, "act")
    after.called("act", "allow", None, 0.0)
    for metrics in (after, other):
        assert shown(metrics, f.CALLS) == {("act", "allow", "ok", ""): 2}
    assert shown(after, f.CONNECTIONS) == {("client", ""): 0}
    assert shown(after, f.ACCEPTED) == {("client", ""): 1}


def test_what_is_open_in_a_front_that_does_not_serve_is_not_shown() -> None:
    first, second = views()
    here, there = metrics_of(first), metrics_of(second)
    there.opened("client")
    assert shown(here, f.CONNECTIONS) == {}
    second.begin_serving()
    assert shown(here, f.CONNECTIONS) == {("client", ""): 1}


def test_series_of_actions_that_are_gone_are_not_shown_for_other_fronts_either() -> None:
    first, second = views()
    here, there = metrics_of(first, "stays"), metrics_of(second, "stays", "goes")
    for action_id in ("stays", "goes"):
        there.executed(action_id, "success", 0.1)
    assert shown(here, f.EXECUTIONS) == {("stays", "success", ""): 1}


def test_an_entry_that_is_not_whole_or_makes_no_sense_ends_the_list() -> None:
    (memory,) = views(1)
    cells = Cells.of(memory)
    cells.place("a", ("x",), 1)
    names = memory.part(memory.area().names, at.NAMES_BYTES)
    end = cells._at
    for garbage in (
        b"\xc1" * 8, b"\x94\xa1b\x91\xa1y\x00\x01", b"\x94\xa1b\x91\xa1y\xce\xff\xff\xff\xff\x01",
        b"\x94\xa1b\x91\xa1\xff\x41\x01",
    ):  # fmt: skip
        names[end + 4 : end + 4 + len(garbage)] = garbage
        assert Cells.of(memory).of_family("b") == {}, "its length is not written yet"
        struct.pack_into("<I", names, end, len(garbage))
        reread = Cells.of(memory)
        assert (reread.of_family("a"), reread.of_family("b")) == ({("x",): 64}, {})
        struct.pack_into("<I", names, end, 0)


def test_what_finds_no_room_is_counted_nowhere_and_harms_nothing() -> None:
    cells = Cells(memoryview(bytearray(8 * 80)), memoryview(bytearray(4096)))
    starts = [cells.place("a", (str(number),), 4) for number in range(10)]
    assert starts == [64, 68, 72, 76, 0, 0, 0, 0, 0, 0]
    assert len(cells.of_family("a")) == 4


def test_a_series_that_ends_and_begins_again_takes_no_more_room() -> None:
    cells = Cells.private()
    for _ in range(1000):
        start = cells.place("a", ("x",), 2)
        cells.numbers[start] = 7
        cells.leave("a", ("x",), 2)
    assert (cells.place("a", ("x",), 2), cells.numbers[64], cells.place("a", ("y",), 2)) == (64, 0, 66)


def test_gauges_are_put_together_as_the_table_says() -> None:
    other = Present({f.WAITING.name: [(("fs",), 2.0)], f.DEPENDENCY_UP.name: [(("policy",), 0.0)],
                     f.EPOCH.name: [((), 7.0)]})  # fmt: skip
    readings: dict[f.Family, dict[tuple[str, ...], float]] = {
        f.WAITING: {("fs",): 1, ("http",): 4}, f.DEPENDENCY_UP: {("policy",): 1, ("store",): 1}, f.EPOCH: {(): 3}
    }  # fmt: skip
    assert together(f.WAITING, readings, [other]) == {("fs",): 3, ("http",): 4}
    assert together(f.DEPENDENCY_UP, readings, [other]) == {("policy",): 0, ("store",): 1}
    assert together(f.EPOCH, readings, [other]) == {(): 3}


def test_a_front_reads_how_things_stand_in_others_that_serve() -> None:
    first, second, third = views(3)
    for memory in (second, third):
        Presence(memory).tell(Present(processes=(AnnouncedProcess("front", str(memory.number), 7),)))
    assert Presence(first).others() == {}
    second.begin_serving()
    assert {number: one.processes[0].number for number, one in Presence(first).others().items()} == {2: "2"}
    third.begin_serving()
    start = third.area().now
    third.part(start, 8)[:] = b"\xff" * 8
    assert list(Presence(first).others()) == [2], "what makes no sense is passed over"
    third.part(start, 16)[:] = b"\x0b\x00\x00\x00\x81\xa6coming\x91\xa1\xff\x00"
    assert list(Presence(first).others()) == [2], "so is a text that is none"


def test_workers_of_different_fronts_never_have_one_number() -> None:
    numbers = []
    for front in (1, 2, 3):
        processes = Processes(front, fronts=3)
        for one in range(4):
            processes.worker_attached(f"http-{front}{one}", "http", 1)
        numbers += [one.number for one in processes.announced() if one.kind == "worker http"]
    assert sorted(map(int, numbers)) == list(range(1, 13))
