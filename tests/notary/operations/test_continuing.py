"""A lease for the same key, principal and user continues the session of the last one."""

from typing import Any

import msgspec
import pytest

from ipc.operations.leases import SignedLease, TooManySessions
from notary.store.continued import CONTINUES_SECONDS
from tests.notary.operations.test_sessions import ids, paged_ids
from tests.notary.running import Running
from tests.notary.samples import NOW, call_event, make_issue, make_open, make_revocation, make_revoke
from tests.support.asking import Asker
from tests.support.gateway import wait_for

TTL = 300


def session(front: Asker, **given: Any) -> str:
    """That of a new lease of one agent, or of another where a test says so."""
    issued = front.ask(make_issue(**{"jkt": "key", "uid": 1000} | given))
    assert isinstance(issued, SignedLease)
    return issued.session_id


@pytest.mark.parametrize("after", [0, TTL - 1, TTL + CONTINUES_SECONDS - 1])
def test_a_lease_asked_for_while_the_last_one_lives_or_within_a_minute_continues_its_session(
    notary: Running, after: float
) -> None:
    first = session(notary.front)
    notary.clock.time = NOW + after
    assert session(notary.front) == first
    notary.clock.time += after
    assert session(notary.front) == first


def test_a_session_that_ended_a_minute_ago_is_not_continued(notary: Running) -> None:
    first = session(notary.front)
    notary.clock.time = NOW + TTL + CONTINUES_SECONDS
    assert session(notary.front) != first


@pytest.mark.parametrize("other", [{"jkt": "another"}, {"uid": 1001}, {"uid": None}, {"max_calls": 3}])
def test_another_key_or_user_or_a_budget_is_another_session(notary: Running, other: dict[str, Any]) -> None:
    first, second = session(notary.front), session(notary.front, **other)
    assert first != second
    assert session(notary.front) == first


def test_another_principal_is_another_session(notary: Running) -> None:
    event = make_issue(principal="p").event
    assert session(notary.front) != session(
        notary.front, principal="p", event=call_event(event_type=event.event_type, principal="p", decision="allow")
    )


def _as_subject(issuer: str | None, subject: str | None) -> dict[str, Any]:
    event = msgspec.structs.replace(make_issue().event, identity_issuer=issuer, identity_subject=subject)
    return {"event": event}


@pytest.mark.parametrize(
    "other", [("https://corp", "bob"), ("https://other", "ann"), (None, "ann"), (None, None)]
)  # fmt: skip
def test_another_subject_of_the_principal_is_another_session_though_it_names_the_same_key(
    notary: Running, other: tuple[str | None, str | None]
) -> None:
    ann = _as_subject("https://corp", "ann")
    first, second = session(notary.front, **ann), session(notary.front, **_as_subject(*other))
    assert first != second
    assert session(notary.front, **ann) == first


def test_two_leases_with_budgets_are_two_sessions(notary: Running) -> None:
    assert session(notary.front, max_calls=3) != session(notary.front, max_calls=3)


def test_a_session_goes_on_at_another_front_and_after_a_start_of_the_notary(notary: Running) -> None:
    first = session(notary.front)
    assert session(notary.attach("another")) == first
    assert session(notary.restart()) == first


@pytest.mark.parametrize("after", [0, TTL - 1, TTL + CONTINUES_SECONDS - 1])
def test_a_session_that_was_revoked_is_never_continued(notary: Running, after: float) -> None:
    first = session(notary.front)
    assert notary.front.ask(make_revocation(first)) is not None
    front = notary.restart() if after else notary.front
    notary.clock.time = NOW + after
    assert session(front) != first


def test_a_session_can_be_revoked_as_long_as_it_can_be_continued(notary: Running) -> None:
    first = session(notary.front)
    notary.clock.time = NOW + TTL + 1
    assert ids(notary.front) == []
    assert notary.front.ask(make_revocation(first)) is not None
    assert session(notary.front) != first


def test_a_revocation_of_a_renewed_session_ends_its_newest_lease(notary: Running) -> None:
    first = session(notary.front)
    notary.clock.time = NOW + 200
    assert session(notary.front) == first
    asked = make_revocation(first)
    notary.front.ask(asked)
    notary.clock.time = NOW + 200 + TTL - 1
    assert notary.front.ask(make_open(event=call_event(session_id=first))).code == "invalid_lease"
    assert session(notary.front) != first


def test_a_session_of_an_older_epoch_is_not_continued(notary: Running) -> None:
    first = session(notary.front)
    notary.front.ask(make_revoke())
    assert session(notary.front) != first


def test_a_shorter_lease_is_a_session_of_its_own_so_that_none_ends_before_an_earlier_one(notary: Running) -> None:
    notary.clock.time = NOW + 10
    first = session(notary.front)
    assert session(notary.front, ends_at=int(NOW) + 300) != first
    first = session(notary.front)
    notary.clock.time = NOW
    assert session(notary.front) != first


@pytest.fixture
def renewed(notary: Running) -> list[str]:
    """Three sessions, the oldest first, each with three leases in turn."""
    made = [session(notary.front, jkt=key) for key in ("a", "b", "c") * 3]
    return made[:3]


def test_a_session_is_listed_once_by_its_newest_lease_on_whatever_page(notary: Running, renewed: list[str]) -> None:
    assert ids(notary.front) == renewed[::-1]
    assert paged_ids(notary.front, 1) == renewed[::-1]


def test_a_renewed_session_counts_once_for_its_principal(notary: Running) -> None:
    first = session(notary.front, max_sessions=1)
    assert session(notary.front, max_sessions=1) == first
    assert isinstance(notary.front.ask(make_issue(max_sessions=1)), TooManySessions)
    notary.clock.time = NOW + TTL + 1
    assert isinstance(notary.front.ask(make_issue(max_sessions=1)), SignedLease)
    refused = notary.front.ask(make_issue(jkt="key", uid=1000, max_sessions=1))
    assert isinstance(refused, TooManySessions), "its lease has ended, and another one has its place"


def test_sessions_that_can_not_be_continued_are_forgotten(notary: Running) -> None:
    for number in range(5):
        session(notary.front, jkt=str(number))
    assert notary.stored("SELECT count(*) FROM last_sessions") == [5]
    notary.clock.time = NOW + TTL + CONTINUES_SECONDS
    session(notary.front, jkt="late")
    wait_for(lambda: notary.stored("SELECT count(*) FROM last_sessions") == [1], "a sweep")
