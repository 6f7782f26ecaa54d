"""A worker that was taken over: it can tell how its own call ended, once, and is given up for anything else."""

from collections.abc import Callable

import msgspec
import pytest

from ipc.channel.packets import PACKET_BYTES
from ipc.limits import MAX_AHEAD, MAX_RESULT_FRAME
from ipc.messages.attesting import Seen, Tied
from ipc.messages.notarising import NotaryReady, WorkerBroke
from ipc.operations.calls import NoSuchWorker
from ipc.operations.intents import ListUnresolved
from tests.notary.running import Running, walk
from tests.notary.samples import DIGEST, make_open, make_result, record_call
from tests.support.logs import capture_logs
from tests.support.played_workers import PlayedWorker

encode = msgspec.msgpack.encode
Breaks = Callable[[PlayedWorker, str], None]


def parts(body: bytes) -> list[bytes]:
    """A message that never ends, in packets."""
    first, *rest = (body[start : start + PACKET_BYTES] for start in range(0, len(body), PACKET_BYTES))
    return [b"\x01" + first, *(b"\x00" + part for part in rest)]


def look_twice(worker: PlayedWorker) -> None:
    """The notary before may have asked for one of them."""
    for number in (7, 8):
        worker.tell(Seen(number, "matches", DIGEST))


BREAKS: dict[str, Breaks] = {
    "a result of a call that nobody has": lambda worker, _: worker.tell(make_result(call_id="intent_unknown")),
    "a result of another worker's call": lambda worker, others: worker.tell(make_result(call_id=others)),
    "looks that nobody asked for": lambda worker, _: look_twice(worker),
    "a message of another direction": lambda worker, _: worker.tell_raw(b"\x03" + encode(Tied())),
    "no message": lambda worker, _: worker.tell_raw(b"\x03\xc1\xc1\xc1"),
    "a message that is too large": lambda worker, _: worker.tell_raw(*parts(b"x" * (MAX_RESULT_FRAME + 1))),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_worker_that_breaks_its_word_is_given_up_and_nothing_is_written_of_what_it_says(
    notary: Running, name: str
) -> None:
    assert notary.thread.hears() == NotaryReady()
    front, worker, sound = notary.front, notary.workers.start("front-1"), notary.workers.start("front-1")
    asked, others = make_open(), make_open()
    number, other_number = front.begin(asked, worker), front.begin(others, sound)
    assert worker.word().call_id == asked.intent_id
    with capture_logs() as lines:
        BREAKS[name](worker, others.intent_id)
        broke = notary.thread.hears()
    assert isinstance(broke, WorkerBroke)
    assert broke.worker_id == worker.worker_id
    (line,) = [line for line in lines if line["event"] == "a worker is given up"]
    assert (line["worker_id"], line["reason"], line["log_level"]) == (worker.worker_id, broke.reason, "error")
    worker.tell(make_result(call_id=asked.intent_id))  # too late
    assert front.ask(make_open(worker_id=worker.worker_id)) == NoSuchWorker()
    assert notary.events() == notary.stored("SELECT 1 FROM receipts") == []
    assert len(front.ask(ListUnresolved(9))) == 2
    assert front.finish(others, other_number, make_result()).kind == "success"
    notary.workers.end(worker)
    assert front.answer(number).outcome == "worker_lost"
    assert walk(front).intact


def test_a_worker_that_tells_of_calls_before_it_had_any_word_is_not_believed(notary: Running) -> None:
    assert notary.thread.hears() == NotaryReady()
    worker = notary.workers.start("front-1")
    for number in range(MAX_AHEAD + 1):  # as many could be left of a notary before
        worker.tell(make_result(call_id=f"intent_{number}"))
    broke = notary.thread.hears()
    assert isinstance(broke, WorkerBroke)
    assert broke.worker_id == worker.worker_id
    record_call(notary.front)
    assert len(notary.stored("SELECT 1 FROM receipts")) == 1


def test_a_worker_that_takes_nothing_is_given_up_before_it_holds_up_anybody(notary: Running) -> None:
    assert notary.thread.hears() == NotaryReady()
    front, worker = notary.front, notary.workers.start("front-1")
    unfit = make_open(worker_id=worker.worker_id, intent_id="no id")  # refused, and the worker told so
    for _ in range(40):
        for number in front.send(*[unfit] * 50):
            assert front.heard(number).problem == "refused"
    broke = notary.thread.hears()
    assert broke == WorkerBroke(worker.worker_id, "does not take what it is told")
    record_call(front)
