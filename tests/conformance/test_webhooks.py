"""Events, rule 3: notifications, and the families of metrics that count them."""

import hashlib
import hmac
import time
from base64 import b64decode
from collections.abc import Iterator
from itertools import pairwise

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from tests.conformance.hooked import RETRIES, SECRET, Hooked, hooked
from tests.conformance.marks import ONLY_DEV, row
from tests.conformance.test_metrics import family_of, total
from tests.support.gateway import wait_for


@pytest.fixture(scope="module")
def hooks(mode: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hooked]:
    """A gateway with endpoints of its own, and one call that they are notified of."""
    with hooked(mode, tmp_path_factory.mktemp(f"hooked-{mode}")) as gateway:
        yield gateway


@ONLY_DEV
@row("events/3-delivered")
def test_a_call_and_a_hold_are_told_to_an_endpoint(hooks: Hooked) -> None:
    (told,) = hooks.attempts("kept")
    assert told.line == "POST /hook?from=gateway HTTP/1.1"
    assert (told.kind, told.headers["content-type"]) == ("action.executed", "application/json")
    (event,) = [one for one in hooks.gate.events() if one["event_id"] == hooks.event_id]
    assert told.json["data"].items() >= {name: event[name] for name in ("trace_id", "receipt_id", "principal")}.items()
    approval_id = hooks.gate.held(hooks.gate.agent())
    (held,) = wait_for(lambda: hooks.receivers["kept"].of("approval.pending"), "the hold's notification")
    assert held.json["data"]["approval_id"] == approval_id
    assert hooks.gate.status()["webhooks"]["active"] is True


@ONLY_DEV
@row("events/3-signed")
def test_a_delivery_is_signed_with_the_endpoints_secret_over_the_raw_body(hooks: Hooked) -> None:
    (told,) = hooks.attempts("kept")
    Webhook(SECRET).verify(told.body, told.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook("whsec_" + "A" * 32).verify(told.body, told.headers)
    key = b64decode(SECRET.removeprefix("whsec_"))
    assert told.headers["x-gateway-signature"] == "sha256=" + hmac.digest(key, told.body, hashlib.sha256).hex()


@ONLY_DEV
@row("events/3-skew")
def test_the_time_of_every_attempt_is_signed_and_within_300_seconds_of_the_receivers(hooks: Hooked) -> None:
    for told in hooks.attempts("broken", 1 + RETRIES):
        assert abs(time.time() - int(told.headers["webhook-timestamp"])) < 300
        Webhook(SECRET).verify(told.body, told.headers)
        later = told.headers | {"webhook-timestamp": str(int(told.headers["webhook-timestamp"]) + 1)}
        with pytest.raises(WebhookVerificationError):
            Webhook(SECRET).verify(told.body, later)


@ONLY_DEV
@row("events/3-4xx")
def test_an_endpoint_that_answers_410_is_asked_once(hooks: Hooked) -> None:
    assert hooks.given_up("gone") == (1, "the receiver answered 410")
    assert len(hooks.attempts("gone")) == 1


@ONLY_DEV
@row("events/3-dead-letter")
def test_after_the_last_retry_it_is_set_aside_and_the_log_says_what_and_why(hooks: Hooked) -> None:
    assert hooks.given_up("broken") == (1 + RETRIES, "the receiver answered 503")
    assert len(hooks.attempts("broken")) == 1 + RETRIES

    def said() -> list[dict[str, object]]:
        wanted = ("broken", hooks.event_id)
        return [one for one in hooks.gate.gateway.lines() if (one.get("endpoint"), one.get("event_id")) == wanted]

    (line,) = wait_for(said, "the warning")
    assert line["level"] == "warning"
    assert (line["event_type"], line["status"]) == ("action.executed", 503)
    assert line["error"] == "the receiver answered 503"


@row("events/3-private-addresses")
def test_a_name_that_leads_to_a_private_address_is_never_reached(hooks: Hooked) -> None:
    attempts, error = hooks.given_up("private")
    assert (attempts, "private" in error) == (1, True)
    assert hooks.receivers["private"].connections == 0


@row("events/3-dns-failure")
def test_a_name_that_does_not_resolve_is_undeliverable(hooks: Hooked) -> None:
    attempts, error = hooks.given_up("unknown")
    assert (attempts, "resolve" in error) == (1 + RETRIES, True)


@row("metrics/webhook-outbox", "metrics/webhook-drops", "metrics/webhook-counts")
def test_the_families_move_when_something_is_given_up_and_when_it_waits(hooks: Hooked) -> None:
    hooks.given_up("private")

    def dropped() -> bool:
        kind, samples = family_of(hooks.gate, "gate_webhook_drops")
        return kind == "counter" and total([one for one in samples if one.labels["endpoint"] == "private"], kind) > 0

    def one_waits() -> bool:
        hooks.gate.agent().execute("text_digest", {"text": "x"})
        kind, samples = family_of(hooks.gate, "gate_webhook_outbox_pending")
        return kind == "gauge" and total(samples, kind) > 0

    wait_for(dropped, "a drop that is counted")
    wait_for(one_waits, "a delivery that waits")


@ONLY_DEV
@row("events/3-5xx")
def test_a_5xx_is_retried_after_1_and_5_and_30_seconds(hooks: Hooked) -> None:
    patient = hooks.receivers["patient"]
    wait_for(lambda: len(hooks.arrivals) >= 3, "three attempts")
    gaps = [later - earlier for earlier, later in pairwise(hooks.arrivals[:3])]
    assert len(set(patient.ids)) == 1
    assert gaps[0] >= 1
    assert gaps[1] >= 5

    def next_pause() -> float | None:
        """Once the third attempt is settled; its claim ends later than that. Afterwards, as it was."""
        waiting = hooks.waiting("patient")
        if len(hooks.arrivals) > 3:
            return hooks.arrivals[3] - hooks.arrivals[2]
        pauses = [float(due / 1000 - hooks.arrivals[2]) for _, due in waiting]
        return pauses[0] if pauses and pauses[0] < 60 else None

    assert wait_for(next_pause, "the pause before the last attempt") >= 29.9
