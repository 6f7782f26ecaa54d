"""Webhooks of real gateways: what arrives, what never leaves, and what of it survives the death of processes."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from tests.support.gateway import Gateway, gateway, wait_for
from tests.support.manifests import patient
from tests.support.supervised import told
from tests.support.upstream import Upstream
from tests.support.webhook_receiver import Receiver, holds, webhook_receiver

SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
AT_ONCE = 4
"""Requests to one receiver that are under way together."""


def config(folder: Path, receiver: Receiver, up: Upstream, *tables: str) -> str:
    """Everything patient; names of the upstream and the receiver lead here."""
    lines = "".join(f"[[webhooks]]\n{table}\n" for table in tables)
    names = f'"upstream.gateway.test" = "{up.address}", "hooks.gateway.test" = "{receiver.address}"'
    return f"{patient(folder / 'actions')}\n{lines}\n[egress]\nunsafe_resolve = {{{names}}}\n"


def table(name: str, secret: str = SECRET, **more: str) -> str:
    """One endpoint at the receiver; `more` are lines."""
    fields = {"url": '"http://hooks.gateway.test/in"', "secret": f'"{secret}"', "timeout_seconds": "60"} | more
    return "\n".join([f'name = "{name}"', *(f"{key} = {value}" for key, value in fields.items() if value)])


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with webhook_receiver() as one:
        yield one


def rows(gate: Gateway, which: str) -> list[dict[str, Any]]:
    """Rows of `outbox` or `given_up`."""
    with closing(sqlite3.connect(gate.state / "ledger.sqlite3", timeout=60)) as ledger:
        ledger.row_factory = sqlite3.Row
        return [dict(row) for row in ledger.execute(f"SELECT * FROM {which} ORDER BY seq")]


def claims_end(gate: Gateway, *event_ids: str) -> None:
    """As if their time had passed."""
    with closing(sqlite3.connect(gate.state / "ledger.sqlite3", timeout=60)) as ledger, ledger:
        ledger.executemany("UPDATE outbox SET due = 0 WHERE event_id = ?", [(one,) for one in event_ids])


def digest(gate: Gateway, text: str = "x") -> str:
    """One call; the id of its event."""
    answer = gate.agent().execute("text_digest", {"text": text})
    assert answer.status_code == 200, answer.text
    return str(gate.events(trace_id=answer.json()["trace_id"])[0]["event_id"])


def lines_of(gate: Gateway, message: str) -> list[dict[str, Any]]:
    """Log lines with this message."""
    return told(gate.log.read_text(), message)


CANARIES = {
    "body": "canary-in-a-request", "header": "canary-in-a-header", "address": "canary-in-an-address",
    "secret": "canary-in-a-secret-of-an-endpoint",
}  # fmt: skip


def test_what_is_told_is_signed_and_nothing_secret_leaves_or_shows(
    tmp_path: Path, receiver: Receiver, up: Upstream
) -> None:
    file = tmp_path / "hook"
    file.write_text(CANARIES["secret"])
    file.chmod(0o600)
    headers = f'{{authorization = "Bearer {CANARIES["header"]}"}}'
    gone = {"url": f'"http://nowhere.invalid/{CANARIES["address"]}"', "timeout_seconds": "5", "max_retries": "1"}
    tables = [
        table("chat", secret="", headers=headers).replace('secret = ""', f'secret_file = "{file}"'),
        table("gone", retry_backoff_seconds="[0.01]", headers=headers, **gone),
    ]
    with gateway(tmp_path, config(tmp_path, receiver, up, *tables)) as gate:
        agent, operator = gate.agent(max_calls=9), gate.operator()
        agent.execute("text_digest", {"text": CANARIES["body"]})
        agent.execute("http_post", {"path": "a", "message": CANARIES["body"]})
        agent.execute("text_digest", {"text": 1, CANARIES["body"]: 1})
        agent.execute("forbidden_export", {"table": CANARIES["body"]})
        agent.execute("spin", {"fuel": 1, "memory_mb": 0, "seconds": 0})
        held = agent.execute("payment_transfer", {"to": CANARIES["body"], "amount_cents": 5, "currency": "EUR"})
        assert held.status_code == 202
        operator.post(f"/v1/approvals/{held.json()['approval_id']}/deny", {"reason": "no"})
        operator.post("/v1/admin/revoke-all")
        events = gate.events(event_type="ActionCall")
        wait_for(lambda: not rows(gate, "outbox"), "every delivery's end")
        assert {event["event_id"] for event in events} <= set(receiver.ids)
        assert len(receiver.ids) == len(set(receiver.ids))
        given_up = rows(gate, "given_up")
        assert sorted(row["event_id"] for row in given_up) == sorted(receiver.ids)
        assert {(row["endpoint"], row["attempts"]) for row in given_up} == {("gone", 2)}
        # The deliverer says it once the ledger has it.
        wait_for(lambda: len(lines_of(gate, "a webhook was given up")) >= len(given_up), "a line for each")
        said = lines_of(gate, "a webhook was given up")
        assert len(said) == len(given_up)
        assert {tuple(one[name] for name in ("endpoint", "status", "attempts")) for one in said} == {("gone", None, 2)}
        hidden = [*CANARIES.values(), SECRET, agent.token, operator.token]
        shown = gate.log.read_text() + "".join(one.body.decode() for one in receiver.received)
        shown += "".join(str(row) for row in given_up) + operator.get("/metrics").text
        shown += operator.get("/v1/admin/status").text
        assert [text for text in hidden if text in shown] == []
        for one in receiver.received:
            assert one.headers["authorization"] == f"Bearer {CANARIES['header']}"
            assert Webhook(CANARIES["secret"].encode()).verify(one.body, one.headers) == one.json
            with pytest.raises(WebhookVerificationError):
                Webhook(SECRET).verify(one.body, one.headers)
            sent = json.dumps({name: value for name, value in one.headers.items() if name != "authorization"})
            assert not [text for text in hidden if text in sent]
        assert gate.operator().get("/v1/audit/verify").json()["intact"] is True


@pytest.mark.parametrize("killed", ["deliverer", "notary"])
def test_what_is_killed_in_the_middle_forgets_nothing_and_its_successor_sends_the_same_messages(
    tmp_path: Path, receiver: Receiver, up: Upstream, killed: str
) -> None:
    """Some were on their way, some had not been tried: all arrive, and those that were on their way twice at most."""
    receiver.answers += [holds() for _ in range(AT_ONCE)]
    with gateway(tmp_path, config(tmp_path, receiver, up, table("chat"))) as gate:
        ids = [digest(gate, str(number)) for number in range(AT_ONCE + 3)]
        wait_for(lambda: len(receiver.received) == AT_ONCE, "as many requests as may be")
        held = list(receiver.ids)
        before = gate.child(killed)
        before.kill()
        wait_for(lambda: {*gate.children(killed)} - {before} and gate.is_ready(), "a successor")
        if killed == "notary":  # the deliverer lived on: what it had is settled at the next notary
            receiver.let_go.set()
            wait_for(lambda: not rows(gate, "outbox"), "every delivery's end")
            assert sorted(receiver.ids) == sorted(ids)
            return
        wait_for(lambda: set(ids) == set(receiver.ids), "those that were not sent yet")
        wait_for(lambda: {row["event_id"] for row in rows(gate, "outbox")} == set(held), "their end")
        claims_end(gate, *held)
        wait_for(lambda: not rows(gate, "outbox"), "those that had been on their way")
        assert sorted(receiver.ids) == sorted([*ids, *held])
        bodies = {(one.headers["webhook-id"], one.body) for one in receiver.received}
        assert len(bodies) == len(ids), "the same message each time"
        for one in receiver.received:
            Webhook(SECRET).verify(one.body, one.headers)
        assert gate.operator().get("/v1/audit/verify").json()["intact"] is True
