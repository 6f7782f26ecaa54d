"""Kept values and stored requests that are erased with the store in Redis: nothing is left there, and a failure or a
kill between store and ledger loses no value without its event."""

import json
from contextlib import AbstractContextManager
from typing import Any

import pytest

from ipc.evidence.records import EventQuery
from ipc.operations.erasing import ErasedKept, EraseKept
from ipc.operations.evidence import QueryEvents
from ipc.settings import EvidenceSettings, StoreSettings
from notary.state import NotaryLimits
from tests.notary.backends import order
from tests.notary.backends.conftest import frozen
from tests.notary.backends.order import GONE, ended
from tests.notary.conftest import StartNotary
from tests.notary.operations.test_erase_kept import OF_PERSON, SECRET, with_request
from tests.notary.running import Running, walk_of
from tests.notary.samples import (
    ERASED,
    changed,
    make_approval,
    make_claim,
    make_denial,
    make_hold,
    make_note,
    make_open,
)
from tests.support.asking import Told
from tests.support.gateway import wait_for
from tests.support.redis_server import RedisServer

pytestmark = [pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")]
Patch = pytest.MonkeyPatch
WANTED = EraseKept(ERASED, principal="uid:1000")
READERS = {"string": ("GET",), "hash": ("HGETALL",), "zset": ("ZRANGE", "0", "-1"), "set": ("SMEMBERS",),
           "list": ("LRANGE", "0", "-1")}  # fmt: skip


def denied_call(notary: Running) -> None:
    """A call that was held with its request, and denied."""
    approval = with_request(make_approval())
    notary.front.ask(make_hold(approval, kept=OF_PERSON))
    notary.front.ask(make_claim(approval))
    notary.front.ask(changed(make_denial(approval), kept=OF_PERSON))


def states(notary: Running) -> list[str]:
    """The states of kept values, the newest call first."""
    answer = notary.front.ask(QueryEvents(EventQuery(), with_kept=True)).events
    return [event["kept_state"] for event in map(json.loads, answer) if "kept" in event]


def erasures(notary: Running) -> int:
    return len(notary.front.ask(QueryEvents(EventQuery(event_type="EvidenceErased"))).events)


def keys_with_it(server: RedisServer, store: StoreSettings) -> list[str]:
    """The keys in Redis that hold the value."""
    found = []
    for name in server.names(store.redis_prefix):
        kind = server.ask("TYPE", name)
        if kind == "none":  # it has expired since it was listed
            continue
        command, *rest = READERS[kind]
        if SECRET in str(server.ask(command, name, *rest)):
            found.append(name)
    return found


@pytest.mark.usefixtures("patient_backends")
def test_nothing_is_left_in_the_store(notary: Running, redis_server: RedisServer, store: StoreSettings) -> None:
    denied_call(notary)
    assert states(notary) == ["whole", "whole"]
    assert keys_with_it(redis_server, store)
    assert notary.front.ask(WANTED) == ErasedKept(4, 0, None)
    notary.front.ask(make_note())
    assert states(notary) == ["erased", "erased"]
    wait_for(lambda: not keys_with_it(redis_server, store), "the last undo to be forgotten")
    assert walk_of(notary).intact


@pytest.mark.usefixtures("patient_backends")
def test_values_age_there_too(start: StartNotary, redis_server: RedisServer, store: StoreSettings) -> None:
    limits = NotaryLimits(round_seconds=0.001)
    notary = start(limits=limits, evidence=EvidenceSettings(keep_days=1))
    denied_call(notary)
    notary.clock.time += 24 * 3600 + 1
    notary.front.ask(make_open(kept=OF_PERSON))
    wait_for(lambda: states(notary) == ["whole", "erased", "erased"], "the values to be erased")
    wait_for(lambda: not keys_with_it(redis_server, store), "the last undo to be forgotten")
    assert erasures(notary) == 1
    assert walk_of(notary).intact


@pytest.mark.usefixtures("patient_backends")
@pytest.mark.parametrize("step", [*order.NOT_DONE, *order.DONE], ids=lambda step: step.__name__)
def test_a_notary_that_ends_here_has_erased_all_with_its_event_or_nothing(
    notary: Running, step: Any, monkeypatch: Patch
) -> None:
    denied_call(notary)
    with monkeypatch.context() as patch:
        step(notary, patch)
        (number,) = notary.front.send(WANTED)
        with pytest.raises(GONE):
            notary.front.heard(number)
            notary.front.heard(0)  # it was answered, and ends all the same
    ended(notary)
    is_done = step in order.DONE
    assert (states(notary), erasures(notary)) == (["erased" if is_done else "whole"] * 2, int(is_done))
    assert notary.front.ask(WANTED) == ErasedKept(0 if is_done else 4, 0, None)
    assert (states(notary), erasures(notary)) == (["erased"] * 2, 1)
    assert walk_of(notary).intact


def test_an_erasure_without_its_store_is_refused_by_name_and_can_be_asked_again(
    notary: Running, redis_server: RedisServer
) -> None:
    denied_call(notary)
    refused_and_asked_again(notary, frozen(redis_server), "approvals")


def refused_and_asked_again(notary: Running, fault: AbstractContextManager[None], part: str) -> None:
    """Refused during the fault, by the part that is not available; done after it."""
    with fault, pytest.raises(Told) as told:
        notary.front.ask(WANTED)
    assert (told.value.problem, told.value.part) == ("unavailable", part)
    wait_for(lambda: answer_of(notary) is not None, "the backend")
    assert (states(notary), erasures(notary)) == (["erased", "erased"], 1)
    assert walk_of(notary).intact


def answer_of(notary: Running) -> ErasedKept | None:
    try:
        answer: ErasedKept | None = notary.front.ask(WANTED)
    except Told:
        return None
    return answer
