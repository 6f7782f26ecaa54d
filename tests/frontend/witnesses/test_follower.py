"""A front that follows witnesses: a real notary, real HTTP, and a receiver that answers as the test says."""

import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from msgspec.structs import replace

from frontend.deadlines import WitnessDeadlines
from frontend.witnesses.follower import MAX_REQUESTS, Follower, FollowerContext
from ipc.operations.status import ReadLedger
from ipc.operations.witnesses import WitnessStatus
from ipc.settings import EgressSettings
from tests.support.cosigners import CITY, COAST, Cosigner, witnessed_by
from tests.support.front_core import Core, front_core
from tests.support.logs import capture_logs
from tests.support.patience import PATIENCE, PATIENT
from tests.support.webhook_receiver import Answer, Receiver, holds, says, webhook_receiver
from tests.support.worker_desk import until
from witness.submissions import Submission, parse

EAGER = WitnessDeadlines(most_intervals=1.0)
"""A witness that has failed is asked again as soon as any other."""


def asked(receiver: Receiver) -> Submission:
    return parse(receiver.received[-1].body)


def cosigns(one: Cosigner = CITY, of: Callable[[str], str] = str, ahead: float = 0.0) -> Answer:
    """An answer with this one's cosignature of what was sent, or of what `of` makes of it."""

    def answer(sock: socket.socket, receiver: Receiver) -> None:
        lines = one.lines(of(asked(receiver).note), time.time() + ahead)
        says(200, body=lines.encode())(sock, receiver)

    return answer


def knows(size: int) -> Answer:
    return says(409, "Content-Type: text/x.tlog.size", body=f"{size}\n".encode())


@asynccontextmanager
async def witnessed_core(
    folder: Path, places: dict[Cosigner, Receiver], *, deadlines: WitnessDeadlines = EAGER, **changes: Any
) -> AsyncIterator[Core]:
    """A front with these witnesses, that never sleeps for long between two requests."""
    resolve = {f"{one.name}.test": receiver.address for one, receiver in places.items()}
    evidence = witnessed_by(*places, **{"timeout_seconds": PATIENCE, **changes})
    patient = replace(PATIENT, witnesses=deadlines)
    async with front_core(folder, evidence=evidence, egress=EgressSettings(resolve), deadlines=patient) as core:
        await core.agent()  # there is something to commit to
        yield core


async def shown(core: Core) -> list[dict[str, Any]]:
    status, body = await core.operate("GET", "/v1/admin/status")
    assert status == 200
    return list(body["checkpoint"]["witnesses"])


async def until_first(core: Core, condition: Callable[[WitnessStatus], bool]) -> None:
    with trio.fail_after(PATIENCE):
        while True:
            last = (await core.real.ask(ReadLedger())).checkpoint
            if last is not None and condition(last.witnesses[0]):
                return
            await trio.sleep(0.005)


async def until_cosigned(core: Core) -> None:
    """Wait until the first witness has cosigned everything, and nothing is wrong with it."""
    with trio.fail_after(PATIENCE):
        while True:
            last = (await core.real.ask(ReadLedger())).checkpoint
            if last is not None and last.witnesses[0].size == last.size and last.witnesses[0].problem is None:
                return
            await trio.sleep(0.005)


def count(core: Core, outcome: str, name: str = "city") -> float:
    return core.services.metrics.witness_requests.value(name, outcome)


async def test_each_witness_cosigns_what_is_newest_and_nothing_is_asked_again(tmp_path: Path) -> None:
    with webhook_receiver() as first, webhook_receiver() as second:
        first.answer, second.answer = cosigns(CITY), cosigns(COAST)
        async with witnessed_core(tmp_path, {CITY: first, COAST: second}) as core:
            for one in (CITY, COAST):
                await until(lambda one=one: count(core, "cosigned", one.name) >= 1)  # type: ignore[misc]
            status, body = await core.operate("GET", "/v1/audit/checkpoint")
            assert status == 200
            assert body["checkpoint"].count("\N{EM DASH} ") == 3
            assert [one["has_cosigned"] for one in await shown(core)] == [True, True]
            sent = len(first.received)
            agent = await core.agent()
            await agent.call()
            await until(lambda: len(first.received) > sent)
            newer = parse(first.received[sent].body)
            assert newer.head.size > newer.old_size == parse(first.received[sent - 1].body).head.size


LIES: list[tuple[Answer, str, str]] = [
    (cosigns(COAST), "invalid", "no signature by the witness's key"),
    (cosigns(Cosigner("city", 9)), "invalid", "no signature by the witness's key"),
    (cosigns(of=lambda note: note.replace("unresolved=0", "unresolved=1")), "invalid", "does not hold"),
    (cosigns(ahead=-100_000), "invalid", "before the checkpoint was signed"),
    (cosigns(ahead=100_000), "invalid", "in the future"),
    (says(200, body=b"x" * 60_000), "invalid", "no signature lines"),
    (says(200, body=b""), "invalid", "no signature lines"),
    (says(409, body=b"x"), "invalid", "did not say which size"),
    (knows(10**9), "inconsistent", "cosigned 1000000000 entries"),
    (says(422), "inconsistent", "(422)"), (says(403), "refused", "(403)"), (says(404), "refused", "(404)"),
    (says(500), "refused", "500"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "outcome", "why"), LIES)
async def test_a_witness_that_lies_or_refuses_is_named_in_log_metric_and_status_and_is_believed_later(
    tmp_path: Path, receiver: Receiver, answer: Answer, outcome: str, why: str
) -> None:
    receiver.answer = answer
    with capture_logs() as logs:
        async with witnessed_core(tmp_path, {CITY: receiver}) as core:
            await until_first(core, lambda one: one.problem is not None)
            (witness,) = await shown(core)
            assert (why in witness["problem"], witness["has_cosigned"], witness["size"]) == (True, False, None)
            await until(lambda: count(core, outcome) >= 2)
            assert count(core, "cosigned") == 0
            said = [one for one in logs if one["event"] == "a witness has not cosigned"]
            assert [(one["witness"], one["outcome"]) for one in said] == [("city", outcome)], "once"
            receiver.answer = cosigns()
            await until_cosigned(core)
            await until(lambda: bool([one for one in logs if one["event"] == "a witness cosigns again"]))
            assert [one["witness"] for one in logs if one["event"] == "a witness cosigns again"] == ["city"]


async def test_a_witness_that_knows_another_size_is_told_the_proof_from_there(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.answer = cosigns()
    async with witnessed_core(tmp_path, {CITY: receiver}) as core:
        await until_cosigned(core)
        for _ in range(4):
            await core.agent()
        await until_cosigned(core)
        sent = len(receiver.received)
        receiver.answers.append(knows(2))
        await core.agent()
        await until(lambda: len(receiver.received) >= sent + 2)
        again = parse(receiver.received[sent + 1].body)
        assert (again.old_size, bool(again.proof)) == (2, True)


async def test_a_witness_that_names_another_size_each_time_is_left_alone_for_a_while(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.answers += [knows(1), knows(0), knows(1)] * 100
    async with witnessed_core(tmp_path, {CITY: receiver}) as core:
        for _ in range(3):
            await core.agent()
        await until(lambda: count(core, "invalid") >= 1)
        assert len(receiver.received) >= MAX_REQUESTS


async def test_a_witness_that_hangs_delays_no_call_no_checkpoint_and_no_other_witness(tmp_path: Path) -> None:
    with webhook_receiver() as stuck, webhook_receiver() as sound:
        stuck.answer, sound.answer = holds(), cosigns(COAST)
        async with witnessed_core(tmp_path, {CITY: stuck, COAST: sound}) as core:
            await until(lambda: stuck.connections == 1)
            agent = await core.agent()
            for number in range(3):
                assert (await agent.call(body={"n": number}))[0] == 200
            await until(lambda: count(core, "cosigned", "coast") >= 1)
            size = (await core.operate("GET", "/v1/audit/checkpoint"))[1]["size"]
            assert size == 2 + 2 * 3
            assert stuck.connections == 1


async def test_a_notary_that_does_not_answer_is_no_fault_of_the_witness(tmp_path: Path, receiver: Receiver) -> None:
    receiver.answer = cosigns()
    async with witnessed_core(tmp_path, {CITY: receiver}) as core:
        await until(lambda: count(core, "cosigned") >= 1)
        core.client.faults["NextCheckpoint"] = _gone()
        await core.agent()
        core.client.faults.clear()
        await until(lambda: count(core, "cosigned") >= 2)
        assert sum(count(core, name) for name in ("unreached", "refused", "invalid", "inconsistent")) == 0


def _gone() -> Any:
    from frontend.notary.errors import NotaryUnavailable
    from tests.support.front_core import refuses

    return refuses(NotaryUnavailable("gone"))


def test_pauses_grow_with_failures_up_to_their_bound() -> None:
    follower = Follower("city", None, FollowerContext(None, None, 10.0, WitnessDeadlines()))  # type: ignore[arg-type]  # unused
    pauses = []
    for failures in (0, 1, 2, 4, 5, 100):
        follower._failures = failures
        pauses.append(follower._pause())
    assert pauses == [10, 20, 40, 160, 300, 300]


async def test_only_the_first_of_several_fronts_follows_witnesses(tmp_path: Path, receiver: Receiver) -> None:
    from frontend.telemetry.metrics import Metrics
    from frontend.witnesses.witnesses import Witnesses
    from tests.support.front_core import settings_of

    settings = settings_of(tmp_path, "x", evidence=witnessed_by(CITY))
    for is_followed in (True, False):
        witnesses = Witnesses(settings, None, Metrics(lambda: None), is_followed=is_followed)  # type: ignore[arg-type,return-value]
        assert len(witnesses._followers) == is_followed
