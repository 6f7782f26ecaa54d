"""A gateway as the rows see it: the merged dev address, or a production configuration behind its two Unix sockets."""

import base64
import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.conformance import scene
from tests.support.gateway import WAIT_SECONDS, Bearer, Gateway, Prover, gateway, wait_for
from tests.support.ledger_file import wait_settled
from tests.support.production import PRINCIPAL, mapping, production

MODES = ("dev", "run")
CLOSED = "127.0.0.1:1"
"""An address where nothing listens."""
PARTS = {
    "store": ("proofs", "budgets", "approvals", "epochs"), "ledger": ("events", "receipts", "intents", "unresolved"),
    "journal": ("journal",),
}  # fmt: skip
"""Parts of the database, and their tables. Without the journal nothing can be written down at all."""


class Caller(Bearer):
    """A bearer that keeps within the rates of operators, and whose every try has a proof of its own."""

    def call(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """One request; a rate that is used up by another test is waited for."""
        extra = {} if body is None else {"json": body}
        return answered(lambda: self.http.request(method, path, headers=self.headers(method, path), **extra))

    @property
    def claims(self) -> dict[str, Any]:
        """The claims of the token, when it is a lease."""
        claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(self.token.split(".")[1] + "=="))
        return claims

    @property
    def epoch(self) -> int:
        return int(self.claims["epoch"])

    def get(self, path: str) -> httpx.Response:
        return self.call("GET", path)

    def post(self, path: str, body: Any = None) -> httpx.Response:
        return self.call("POST", path, body)

    def delete(self, path: str, body: Any = None) -> httpx.Response:
        return self.call("DELETE", path, body)


def answered(ask: Callable[[], httpx.Response]) -> httpx.Response:
    """The first answer that says something else than that a rate is used up."""

    def within_the_rate() -> httpx.Response | None:
        answer = ask()
        return None if answer.status_code == 429 and answer.json()["error"] == "rate_limit_exceeded" else answer

    answer: httpx.Response = wait_for(within_the_rate, "an answer within the rate")
    return answer


@dataclass
class Deployment:
    """One running gateway and how to reach it."""

    mode: str
    gateway: Gateway
    folder: Path

    @property
    def is_dev(self) -> bool:
        return self.mode == "dev"

    @property
    def principal(self) -> str:
        """The principal of this process at the gateway."""
        return "dev:anonymous" if self.is_dev else PRINCIPAL

    @property
    def base(self) -> str:
        return self.gateway.base

    @property
    def state(self) -> Path:
        return self.gateway.state

    @property
    def manifests(self) -> Path:
        return self.folder / "actions"

    @property
    def policy(self) -> Path:
        return self.folder / "policy"

    @property
    def secrets(self) -> Path:
        return self.folder / "secrets.json"

    @property
    def lease_key(self) -> Path:
        """Where the key lies that leases are signed with."""
        return (self.state if self.is_dev else self.folder / "keys") / "keys" / "lease.pem"

    @property
    def client(self) -> httpx.Client:
        """Where agents connect."""
        return self.gateway.http

    def over(self, name: str) -> httpx.Client:
        """A client on one of the Unix sockets: client_socket or admin_socket."""
        return self.gateway.over(name)

    @property
    def admin(self) -> httpx.Client:
        """Where operators connect."""
        return self.gateway.operators

    def agent(self, max_calls: int | None = None, **more: Any) -> Caller:
        """A fresh lease on a fresh key; `more` goes into the request."""
        prover = Prover()
        body: dict[str, Any] = {"scopes": ["tools:call"], "dpop_jwk": prover.jwk} | more
        if max_calls is not None:
            body["budgets"] = {"max_calls": max_calls}
        lease = self.lease(body)
        assert lease.status_code == 200, lease.text
        fields = lease.json()
        return Caller(self.client, self.base, fields["lease_jwt"], prover, fields["session_id"])

    def lease(self, body: Any) -> httpx.Response:
        """Ask for a lease, once the rate of others allows it."""
        return answered(lambda: self.client.post("/v1/leases", json=body))

    def operator(self) -> Caller:
        """The operator of this gateway."""
        one = self.gateway.operator()
        return Caller(one.http, one.base, one.token, one.prover)

    @property
    def operator_name(self) -> str:
        return str(self.gateway.ready["operator"]["name"])

    def ready(self) -> httpx.Response:
        """The answer of a gateway that is ready: at once, or when it has come back to itself."""
        answer: httpx.Response = wait_for(
            lambda: answer if (answer := self.client.get("/readyz")).status_code == 200 else None, "readiness"
        )
        return answer

    def status(self) -> dict[str, Any]:
        """The admin status."""
        answer = self.operator().get("/v1/admin/status")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def events(self, **filters: Any) -> list[dict[str, Any]]:
        """Audit events, newest first."""
        query = str(httpx.QueryParams(filters))
        answer = self.operator().get(f"/v1/audit/events?{query}" if query else "/v1/audit/events")
        assert answer.status_code == 200, answer.text
        return list(answer.json()["events"])

    def receipt(self, receipt_id: str) -> dict[str, Any]:
        """A receipt, as operators read it."""
        answer = self.operator().get(f"/v1/receipts/{receipt_id}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def receipt_of(self, agent: Bearer) -> dict[str, Any]:
        """The receipt of the newest call of this agent."""
        return self.receipt(self.events(session_id=agent.session_id, event_type="ActionCall")[0]["receipt_id"])

    def held(self, agent: Bearer, action: str = "held_digest", body: Any = None) -> str:
        """Hold a call; its approval's id."""
        answer = agent.execute(action, {"text": "held"} if body is None else body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["approval_id"])

    def _database(self) -> sqlite3.Connection:
        return sqlite3.connect(self.state / "ledger.sqlite3", timeout=WAIT_SECONDS, isolation_level=None)

    def change(self, statement: str, *values: Any) -> int:
        """One statement on the database, as a stranger would; how many rows it changed."""
        with contextlib.closing(self._database()) as connection:
            return connection.execute(statement, values).rowcount

    def select(self, statement: str, *values: Any) -> list[Any]:
        """Rows of the database."""
        wait_settled(self.state / "ledger.sqlite3")
        with contextlib.closing(self._database()) as connection:
            return connection.execute(statement, values).fetchall()

    def expire(self, approval_id: str) -> None:
        """Let five minutes pass for one hold."""
        past = time.time() - 1
        assert self.change("update approvals set expires_at = ? where approval_id = ?", past, approval_id) == 1

    @contextmanager
    def without(self, name: str) -> Iterator[None]:
        """Store or ledger, each a part of the database, is gone, as in a damaged file; afterwards all is well again."""
        wait_settled(self.state / "ledger.sqlite3")
        with ExitStack() as gone:
            for table in PARTS[name]:
                gone.enter_context(self._away(table))
            yield
        self.ready()

    @contextmanager
    def without_table(self, table: str) -> Iterator[None]:
        """Remove a table, as in a damaged file, and put it back afterwards. No operation is under way to it."""
        wait_settled(self.state / "ledger.sqlite3")
        with self._away(table):
            yield

    @contextmanager
    def _away(self, table: str) -> Iterator[None]:
        self.change(f"alter table {table} rename to {table}_away")
        try:
            yield
        finally:
            self.change(f"alter table {table}_away rename to {table}")

    def reload(self) -> httpx.Response:
        """Read manifests and policy again."""
        return self.operator().post("/v1/admin/reload")

    @contextmanager
    def changed_policy(self, **members: Any) -> Iterator[None]:
        """The policy's data with other members, in force until the block ends."""
        path = self.policy / "data.json"
        before = path.read_text()
        try:
            path.write_text(json.dumps(json.loads(before) | members))
            answer = self.reload()
            assert answer.status_code == 200, answer.text
            yield
        finally:
            path.write_text(before)
            self.reload()


def config_of(folder: Path, mode: str, upstream: str | None, top: str, identity: str) -> tuple[str, str]:
    """Settings and tables of a gateway whose manifests, policy and secrets lie in `folder`."""
    settings = f'manifests_dir = "{folder / "actions"}"\npolicy_dir = "{folder / "policy"}"\n{top}\n'
    tables = f'[secrets]\nfile = "{folder / "secrets.json"}"\n'
    if mode == "dev" and upstream is not None:
        hosts = {"upstream.gateway.test": upstream, "learned.gateway.test": upstream, "closed.gateway.test": CLOSED}
        tables += "[egress.unsafe_resolve]\n" + "".join(f'"{host}" = "{at}"\n' for host, at in hosts.items())
    if mode == "run" and not identity:
        identity = mapping(os.geteuid(), scopes=("tools:call", "tools:other"))
    return settings, f"{tables}{identity}"


def prepare(folder: Path, mode: str) -> None:
    """Manifests, policy and secrets, unless they are there."""
    if (folder / "actions").exists():
        return
    scene.write_manifests(folder / "actions")
    scene.write_policy(folder / "policy", "dev:anonymous" if mode == "dev" else PRINCIPAL)
    secrets = folder / "secrets.json"
    secrets.touch(mode=0o600)
    secrets.write_text(json.dumps({"upstream_token": "token-5f2c", "bank_token": "bank-91aa"}))


@contextmanager
def deployment(
    mode: str, folder: Path, *, upstream: str | None = None, top: str = "", tables: str = "", identity: str = ""
) -> Iterator[Deployment]:
    """Run one until the block ends. The same folder again is the same gateway after a restart.

    `top`, `tables` and `identity` are TOML: further settings, further tables, and who is known in place of this user.
    """
    folder.mkdir(parents=True, exist_ok=True)
    prepare(folder, mode)
    settings, more = config_of(folder, mode, upstream, top, identity)
    with ExitStack() as stack:
        running: Gateway
        if mode == "dev":
            running = stack.enter_context(gateway(folder, f"{settings}{more}{tables}"))
        else:
            running = stack.enter_context(production(folder, settings, f"{more}{tables}"))
        yield Deployment(mode, running, folder)
