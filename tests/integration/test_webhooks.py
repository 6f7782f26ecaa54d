"""Webhooks of real gateways: what arrives, what never leaves, and what of it survives the death of processes."""

import json
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from ipc.process.exits import Exit
from tests.support.gateway import STOP_SECONDS, Gateway, gateway, wait_for
from tests.support.manifests import patient
from tests.support.processes import GATEWAY
from tests.support.supervised import told
from tests.support.upstream import Upstream
from tests.support.webhook_receiver import Receiver, holds, webhook_receiver

SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
AT_ONCE = 4
"""Requests to one receiver that are under way together."""


HOST = "hooks.gateway.test"


def config(folder: Path, receiver: Receiver, up: Upstream, *tables: str) -> str:
    """Everything patient; names of the upstream and the receiver lead here."""
    return configured(folder, up, {HOST: receiver.address}, *tables)


def configured(folder: Path, up: Upstream, hosts: dict[str, str], *tables: str) -> str:
    """The same with these names of receivers."""
    lines = "".join(f"[[webhooks]]\n{table}\n" for table in tables)
    names = ", ".join(f'"{name}" = "{at}"' for name, at in ({"upstream.gateway.test": up.address} | hosts).items())
    return f"{patient(folder / 'actions')}\n{lines}\n[egress]\nunsafe_resolve = {{{names}}}\n"


def table(name: str, secret: str = SECRET, **more: str) -> str:
    """One endpoint at the receiver; `more` are lines."""
    fields = {"url": f'"http://{HOST}/in"', "secret": f'"{secret}"', "timeout_seconds": "60"} | more
    return "\n".join([f'name = "{name}"', *(f"{key} = {value}" for key, value in fields.items() if value)])


@dataclass
class Hooked:
    """A gateway that starts without endpoints and gets them by a reload. Each test takes receivers of its own."""

    gate: Gateway
    up: Upstream
    hosts: dict[str, str]
    free: list[tuple[str, Receiver]]

    def take(self) -> tuple[str, Receiver]:
        """A receiver that no test has had, after its address."""
        return self.free.pop()

    def follow(self, *tables: str) -> list[str]:
        """Have these endpoints followed, and no others; what came into force."""
        folder = self.gate.state.parent
        (folder / "gateway.toml").write_text(configured(folder, self.up, self.hosts, *tables))
        answer = self.gate.operator().post("/v1/admin/reload")
        assert answer.status_code == 200, answer.text
        return list(answer.json()["changed"])


@contextmanager
def hooked_gateway(folder: Path, up: Upstream, receivers: int) -> Iterator[Hooked]:
    """It ends well whatever its receivers do."""
    with ExitStack() as stack:
        places = {f"{n}.{HOST}": stack.enter_context(webhook_receiver()) for n in range(receivers)}
        hosts = {host: one.address for host, one in places.items()} | {f"dead.{HOST}": "127.0.0.1:1"}
        with gateway(folder, configured(folder, up, hosts)) as gate:
            yield Hooked(gate, up, hosts, [(f'"http://{host}/in"', one) for host, one in places.items()])
            assert gate.stop() == 0


@pytest.fixture(scope="module")
def all_hooked(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hooked]:
    with hooked_gateway(tmp_path_factory.mktemp("hooked"), up, 4) as one:
        yield one


@pytest.fixture
def hooked(all_hooked: Hooked) -> Iterator[Hooked]:
    yield all_hooked
    all_hooked.follow()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with webhook_receiver() as one:
        yield one


def rows(gate: Gateway, which: str, *endpoints: str) -> list[dict[str, Any]]:
    """Rows of `outbox` or `given_up`, those of these endpoints or all."""
    with closing(sqlite3.connect(gate.state / "ledger.sqlite3", timeout=60)) as ledger:
        ledger.row_factory = sqlite3.Row
        found = [dict(row) for row in ledger.execute(f"SELECT * FROM {which} ORDER BY seq")]
    return [row for row in found if not endpoints or row["endpoint"] in endpoints]


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


def test_what_is_told_is_signed_and_nothing_secret_leaves_or_shows(hooked: Hooked, tmp_path: Path) -> None:
    file = tmp_path / "hook"
    file.write_text(CANARIES["secret"])
    file.chmod(0o600)
    headers = f'{{authorization = "Bearer {CANARIES["header"]}"}}'
    gone = {"url": f'"http://nowhere.invalid/{CANARIES["address"]}"', "timeout_seconds": "5", "max_retries": "1"}
    gate, (url, receiver) = hooked.gate, hooked.take()
    hooked.follow(
        table("told", secret="", url=url, headers=headers).replace('secret = ""', f'secret_file = "{file}"'),
        table("gone", retry_backoff_seconds="[0.01]", headers=headers, **gone),
    )
    before = gate.events(event_type="ActionCall")
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
    events = [event for event in gate.events(event_type="ActionCall") if event not in before]
    assert len(events) >= 6
    wait_for(lambda: not rows(gate, "outbox", "told", "gone"), "every delivery's end")
    assert {event["event_id"] for event in events} <= set(receiver.ids)
    assert len(receiver.ids) == len(set(receiver.ids))
    given_up = rows(gate, "given_up", "told", "gone")
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
    hooked: Hooked, killed: str
) -> None:
    """Some were on their way, some had not been tried: all arrive, and those that were on their way twice at most."""
    gate, name, (url, receiver) = hooked.gate, f"{killed}-killed", hooked.take()
    receiver.answers += [holds() for _ in range(AT_ONCE)]
    hooked.follow(table(name, url=url))
    ids = [digest(gate, str(number)) for number in range(AT_ONCE + 3)]
    wait_for(lambda: len(receiver.received) == AT_ONCE, "as many requests as may be")
    held = list(receiver.ids)
    before = gate.child(killed)
    before.kill()
    wait_for(lambda: {*gate.children(killed)} - {before} and gate.is_ready(), "a successor")
    if killed == "notary":  # the deliverer lived on: what it had is settled at the next notary
        receiver.let_go.set()
        wait_for(lambda: not rows(gate, "outbox", name), "every delivery's end")
        assert sorted(receiver.ids) == sorted(ids)
        return
    wait_for(lambda: set(ids) == set(receiver.ids), "those that were not sent yet")
    wait_for(lambda: {row["event_id"] for row in rows(gate, "outbox", name)} == set(held), "their end")
    claims_end(gate, *held)
    wait_for(lambda: not rows(gate, "outbox", name), "those that had been on their way")
    assert sorted(receiver.ids) == sorted([*ids, *held])
    bodies = {(one.headers["webhook-id"], one.body) for one in receiver.received}
    assert len(bodies) == len(ids), "the same message each time"
    for one in receiver.received:
        Webhook(SECRET).verify(one.body, one.headers)
    assert gate.operator().get("/v1/audit/verify").json()["intact"] is True


@dataclass
class NextLife:
    """A gateway whose first life was ended while a receiver hung; in the second one there is an auditor, too."""

    gate: Gateway
    hung: Receiver
    auditor: Receiver
    ids: list[str]
    """Messages of the first life."""
    status: dict[str, Any]
    code: int
    left: list[dict[str, Any]]
    given_up: list[dict[str, Any]]
    """Status, exit code and the rows that the first life left."""
    held: set[str]


@pytest.fixture(scope="module")
def next_life(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NextLife]:
    folder: Path = tmp_path_factory.mktemp("lives")
    with webhook_receiver() as hung, webhook_receiver() as auditor:
        hung.answer = holds()
        hosts = {HOST: hung.address, f"auditor.{HOST}": auditor.address}
        chat = table("chat", max_retries="0")
        with gateway(folder, configured(folder, up, hosts, chat)) as gate:
            ids = [digest(gate, str(number)) for number in range(20)]
            wait_for(lambda: len(hung.received) == AT_ONCE, "as many requests as may be")
            status = gate.operator().get("/v1/admin/status").json()["webhooks"]
            code = gate.stop()
            held = set(hung.ids)
            left, given_up = rows(gate, "outbox"), rows(gate, "given_up")
            claims_end(gate, *held)
        hung.let_go.set()
        more = {"url": f'"http://auditor.{HOST}/in"', "events": '["audit.checkpoint", "gateway.draining"]'}
        with gateway(folder, configured(folder, up, hosts, chat, table("auditor", **more))) as gate:
            yield NextLife(gate, hung, auditor, ids, status, code, left, given_up, held)


def test_a_receiver_that_hangs_holds_up_no_call_and_no_stop_and_hears_of_it_after_the_next_start(
    next_life: NextLife,
) -> None:
    assert next_life.status == {"active": True, "pending_deliveries": 20}
    assert next_life.code == 0
    assert [row["event_id"] for row in next_life.left] == next_life.ids
    assert sorted(row["attempts"] for row in next_life.left) == [0] * 16 + [1] * 4
    assert next_life.given_up == [], "nobody waited until its time was over"
    wait_for(lambda: not rows(next_life.gate, "outbox", "chat"), "every delivery's end")
    heard = [one.headers["webhook-id"] for one in next_life.hung.received if one.kind != "gateway.draining"]
    assert set(heard) == set(next_life.ids)
    assert {one for one in next_life.ids if heard.count(one) > 1} == next_life.held


def test_checkpoints_and_a_drain_are_told_when_they_happen_and_a_quiet_gateway_stays_quiet(
    next_life: NextLife,
) -> None:
    gate, receiver = next_life.gate, next_life.auditor
    wait_for(lambda: receiver.received and not rows(gate, "outbox"), "the first checkpoint")
    (first,) = receiver.received
    Webhook(SECRET).verify(first.body, first.headers)
    before = gate.operator().get("/v1/audit/checkpoint").json()
    assert gate.operator().post("/v1/admin/drain").status_code == 200
    wait_for(lambda: len(receiver.received) == 3 and not rows(gate, "outbox"), "the drain and its checkpoint")
    (drained,) = receiver.of("gateway.draining")
    assert drained.json["data"]["principal"] == "operator:dev"
    shown = gate.operator().get("/v1/audit/checkpoint").json()
    (_, noted) = (one.json["data"] for one in receiver.of("audit.checkpoint"))
    assert (noted["size"], noted["root"]) == (shown["size"], shown["root"])
    assert noted["checkpoint"].startswith(f"{shown['origin']}\n{shown['size']}\n{shown['root']}\n")
    assert shown["size"] == before["size"] + 1, "the drain, no more"
    assert gate.stop() == 0
    (last,) = rows(gate, "outbox")  # for the next start, which sends what was left
    assert json.loads(last["payload"])["data"]["size"] == shown["size"] + 1, "the end"


@pytest.mark.parametrize("spoilt", ["missing", "short"])
def test_a_gateway_does_not_start_without_a_secret_that_it_needs(
    tmp_path: Path, receiver: Receiver, up: Upstream, spoilt: str
) -> None:
    file = tmp_path / "hook"
    if spoilt == "short":
        file.write_text("hush")
        file.chmod(0o600)
    endpoint = table("chat", secret="").replace('secret = ""', f'secret_file = "{file}"')
    (tmp_path / "gateway.toml").write_text(config(tmp_path, receiver, up, endpoint))
    options = ["--listen", "127.0.0.1:0", "--state-dir", tmp_path / "state", "--config", tmp_path / "gateway.toml"]
    done = subprocess.run(
        [GATEWAY, "dev", *map(str, options)], capture_output=True, text=True, timeout=STOP_SECONDS,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == (Exit.NO_PERMISSION if spoilt == "missing" else Exit.CONFIG)
    assert str(file) in done.stderr
    assert "hush" not in done.stderr


def test_a_secret_that_is_gone_does_not_end_a_gateway_whose_deliverer_dies(hooked: Hooked, tmp_path: Path) -> None:
    file = tmp_path / "secrets" / "hook"  # not beside the state directory: there it opens what it began with
    file.parent.mkdir()
    file.touch(mode=0o600)
    file.write_text("a secret of some words")
    gate, (url, receiver) = hooked.gate, hooked.take()
    endpoint = table("filed", secret="", url=url).replace('secret = ""', f'secret_file = "{file}"')
    hooked.follow(endpoint + "\nretry_backoff_seconds = [0.1]")
    away = file.rename(tmp_path / "away")
    wait_for(lambda: gate.children("deliverer"), "a deliverer")[0].kill()
    (line,) = wait_for(
        lambda: lines_of(gate, "a webhook's secret can't be used: its deliveries wait"), "a deliverer that says so"
    )  # fmt: skip
    assert (line["endpoint"], str(file) in line["cause"]) == ("filed", True)
    wait_for(gate.is_ready, "a gateway that serves")
    away.rename(file)
    event_id = digest(gate)
    wait_for(lambda: event_id in receiver.ids, "the message")
