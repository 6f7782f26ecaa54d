"""Dead letters of a real gateway, by gatectl: listed, sent again, and an endpoint that is tried."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.test_webhooks import config, digest, rows, table
from tests.support.gatectl import Gatectl
from tests.support.gateway import Gateway, gateway, wait_for
from tests.support.upstream import Upstream
from tests.support.webhook_receiver import Receiver, says, webhook_receiver


@dataclass
class Stage:
    """A gateway with three endpoints, their receiver, and an operator at it."""

    gate: Gateway
    receiver: Receiver
    gatectl: Gatectl


@pytest.fixture(scope="module")
def stage(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder: Path = tmp_path_factory.mktemp("letters")
    with webhook_receiver() as receiver:
        executed = {"events": '["action.executed"]'}
        tables = (
            table("chat", **executed), table("idle", disable="true", **executed),
            table("gone", url='"http://nowhere.invalid/in"', events='["revocation"]'),
        )  # fmt: skip
        with gateway(folder, config(folder, receiver, up, *tables)) as gate:
            gatectl, ready = Gatectl(folder), folder / "ready.json"
            ready.touch(mode=0o600)
            ready.write_text(json.dumps(gate.ready))
            gatectl.done("context", "from-ready", str(ready))
            yield Stage(gate, receiver, gatectl)


@pytest.fixture
def at(stage: Stage) -> Stage:
    """The stage, with nothing that waits or was given up: what a test before left is sent."""
    stage.receiver.answer = says(200)
    if rows(stage.gate, "given_up"):
        stage.gatectl.done("webhooks", "redeliver", "chat")
    wait_for(lambda: not rows(stage.gate, "outbox"), "every delivery's end")
    return stage


def reasons(at: Stage, event_type: str) -> list[str]:
    """The reasons of the events of this type, newest first."""
    return [event["reason"] for event in at.gate.events(event_type=event_type)]


def given_up(at: Stage, count: int, status: int = 404) -> list[str]:
    """Ids of so many deliveries that the receiver refused for good, the oldest first."""
    at.receiver.answer = says(status)
    ids = [digest(at.gate, str(number)) for number in range(count)]
    wait_for(lambda: {row["event_id"] for row in rows(at.gate, "given_up")} >= set(ids), "deliveries that are given up")
    at.receiver.answer = says(200)
    return ids


def test_dead_letters_are_listed_by_endpoint_and_sent_again_once(at: Stage) -> None:
    ids, earlier = given_up(at, 3), reasons(at, "WebhooksRedelivered")
    listed = at.gatectl.done("webhooks", "list", "--json").json
    assert listed["endpoints"] == [
        {"name": "chat", "state": "active", "waiting": 0, "given_up": 3},
        {"name": "gone", "state": "active", "waiting": 0, "given_up": 0},
        {"name": "idle", "state": "disabled", "waiting": 0, "given_up": 0},
    ]
    letters = listed["dead_letters"]
    assert {one["event_id"] for one in letters} == set(ids)
    assert {(one["endpoint"], one["type"], one["attempts"], one["error"]) for one in letters} == {
        ("chat", "action.executed", 1, "the receiver answered 404")
    }
    assert "nowhere.invalid" not in json.dumps(listed)
    assert at.gatectl.done("webhooks", "list", "--endpoint", "gone", "--json").json["dead_letters"] == []

    before = len(at.receiver.received)
    one = at.gatectl.done("webhooks", "redeliver", "chat", "--event", ids[1], "--json").json
    assert one == {"name": "chat", "redelivered": 1, "left": 2}
    wait_for(lambda: len(at.receiver.received) == before + 1, "one delivery")
    assert "chat: 2 wait again, 0 stay given up" in at.gatectl.done("webhooks", "redeliver", "chat").out
    wait_for(lambda: not rows(at.gate, "outbox"), "every delivery's end")
    assert sorted(at.receiver.ids[before:]) == sorted(ids)
    assert rows(at.gate, "given_up") == []
    told = ["2 deliveries of chat wait again", f"1 deliveries of chat wait again: {ids[1]}", *earlier]
    assert reasons(at, "WebhooksRedelivered") == told
    assert at.gatectl.done("webhooks", "redeliver", "chat", "--json").json["redelivered"] == 0
    assert reasons(at, "WebhooksRedelivered") == told, "nothing was done, so nothing is said"


def test_an_endpoint_is_tried_with_one_signed_message_and_says_what_came_of_it(at: Stage) -> None:
    before = len(at.receiver.received)
    tried = at.gatectl.done("webhooks", "test", "chat", "--json").json
    assert (tried["name"], tried["outcome"], tried["status"], tried["error"]) == ("chat", "delivered", 200, None)
    (sent,) = at.receiver.received[before:]
    assert (sent.kind, sent.json["data"], sent.headers["webhook-id"]) == ("webhook.test", {}, tried["event_id"])
    assert sent.headers["webhook-signature"].startswith("v1,")
    at.receiver.answers.append(says(503))
    failed = at.gatectl.here("webhooks", "test", "chat")
    assert failed.code == 1
    assert "the receiver answered 503" in failed.err
    assert at.gatectl.here("webhooks", "test", "gone").code == 1
    assert rows(at.gate, "outbox") == rows(at.gate, "given_up") == []
    assert reasons(at, "WebhookTested") == ["endpoint gone", "endpoint chat", "endpoint chat"]


@pytest.mark.parametrize("name", ["idle", "nobody"])
@pytest.mark.parametrize("verb", ["test", "redeliver"])
def test_an_endpoint_to_which_nothing_is_sent_is_404(at: Stage, verb: str, name: str) -> None:
    ran = at.gatectl.here("webhooks", verb, name, "--json")
    assert ran.code == 4
    assert ran.error["error"] == "webhook_not_found"


def test_what_was_refused_for_the_moment_is_sent_again_by_its_status(at: Stage) -> None:
    final, later = given_up(at, 1), given_up(at, 2, status=429)
    letters = at.gatectl.done("webhooks", "list", "--json").json["dead_letters"]
    assert {one["event_id"]: one["status"] for one in letters} == dict.fromkeys(later, 429) | dict.fromkeys(final, 404)
    for wrong in ("soon", "", ","):
        assert at.gatectl.here("webhooks", "redeliver", "chat", "--status", wrong).code == 2, wrong
    sent = at.gatectl.done("webhooks", "redeliver", "chat", "--status", "408,429", "--json").json
    assert sent == {"name": "chat", "redelivered": 2, "left": 1}
    wait_for(lambda: not rows(at.gate, "outbox"), "every delivery's end")
    assert [row["event_id"] for row in rows(at.gate, "given_up")] == final


def test_an_endpoint_that_answers_410_is_shown_as_gone_until_a_reload(at: Stage) -> None:
    given_up(at, 1, status=410)

    def state() -> str:
        endpoints = at.gatectl.done("webhooks", "list", "--json").json["endpoints"]
        return str(next(one["state"] for one in endpoints if one["name"] == "chat"))

    wait_for(lambda: state() == "gone", "an endpoint that is gone")
    assert "disabled, as they answered 410: chat" in at.gatectl.done("status").out
    event_id = digest(at.gate, "waits")
    assert event_id not in at.receiver.ids
    at.gatectl.done("reload")
    wait_for(lambda: event_id in at.receiver.ids, "what waited")
    assert state() == "active"
