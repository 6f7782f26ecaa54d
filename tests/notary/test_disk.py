"""A disk without room: everything that writes fails and leaves nothing, and works again once there is room."""

import resource
from pathlib import Path
from typing import Any

import pytest

from ipc.messages import Enter, ListUnresolved, Proof, ReadBudget, ReadLedger, Withdraw
from tests.notary.running import NotaryProcess, settings_in, walk
from tests.notary.samples import call_event, make_hold, make_issue, make_note, make_open, make_result
from tests.support.asking import Told


def test_a_disk_without_room_fails_every_write_whole_and_is_used_again_when_it_has_room(tmp_path: Path) -> None:
    process = NotaryProcess(settings_in(tmp_path / "state"))
    try:
        process.ready()
        front = process.attach("front-1")
        session_id = front.ask(make_issue(max_calls=5)).session_id
        opened, ended = (make_open(event=call_event(session_id=session_id), has_budget=True) for _ in range(2))
        front.begin(opened)
        number = front.begin(ended)
        pid = process.process.pid
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, before[1]))
        writes: list[Any] = [
            Enter(Proof("p")), make_open(event=call_event(session_id=session_id), has_budget=True), make_hold(),
            make_note(), make_issue(max_calls=1), Withdraw(opened.intent_id, "error", "overloaded"),
        ]  # fmt: skip
        assert {front.heard(number).problem for number in front.send(*writes)} == {"unavailable"}
        process.workers.of(ended.intent_id).tell(make_result(call_id=ended.intent_id))
        answered = front.heard(number)
        assert (answered.problem, answered.is_begun) == ("unavailable", True)
        with pytest.raises(Told) as told:
            front.ask(ReadLedger())
        assert told.value.problem == "unavailable"
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
        assert front.ask(ReadLedger()).unresolved == 2
        assert front.ask(Enter(Proof("p"))).is_fresh
        assert front.ask(ReadBudget(session_id)).remaining == 3
        front.ask(Withdraw(opened.intent_id, "error", "overloaded"))
        assert [view.intent_id for view in front.ask(ListUnresolved(5))] == [ended.intent_id]
        report = walk(front)
        assert (report.intact, report.total_events) == (True, 2)
        front.close()
        assert process.stop() == 0
    finally:
        if process.process.poll() is None:
            process.kill()
