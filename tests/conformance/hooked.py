"""A gateway whose webhooks lead to receivers on this machine, and to where none may or can be reached."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from typing import Any

from tests.conformance.deployment import Deployment, deployment
from tests.support.gateway import wait_for
from tests.support.webhook_receiver import Answer, Received, Receiver, says, webhook_receiver

SECRET = "whsec_Y29uZm9ybWFuY2UgaXMgYSB0YWJsZSBvZiByb3dz"
RETRIES = 2
"""The delays of every endpoint except the patient one, which has the defaults."""
ANSWERS = {"kept": 200, "gone": 410, "broken": 503, "patient": 503}
"""Endpoints that a dev gateway reaches, and the status that each answers."""


@dataclass
class Hooked:
    """One gateway and its receivers by endpoint. The name of `private` leads to this machine itself."""

    gate: Deployment
    receivers: Mapping[str, Receiver]
    arrivals: list[float]
    """When each attempt reached the patient endpoint, in Unix seconds: it gets one kind of event only."""
    event_id: str = ""
    """The receipt of the call that all others were notified of."""

    def waiting(self, endpoint: str) -> list[Any]:
        """(attempts, due in ms) of what an endpoint has in the outbox."""
        return self.gate.select("select attempts, due from outbox where endpoint = ?", endpoint)

    def given_up(self, endpoint: str) -> tuple[int, str]:
        """(attempts, error) of the call's delivery, once it has been given up."""
        asked = "select attempts, error from given_up where endpoint = ? and event_id = ?"
        rows = wait_for(lambda: self.gate.select(asked, endpoint, self.event_id), f"the end of {endpoint}'s")
        (row,) = rows
        return row[0], row[1]

    def attempts(self, endpoint: str, least: int = 1) -> list[Received]:
        """Wait for so many messages of the call at an endpoint and return them."""

        def arrived() -> list[Received]:
            return [one for one in self.receivers[endpoint].received if one.json["id"] == self.event_id]

        return list(wait_for(lambda: arrived() if len(arrived()) >= least else [], f"{least} attempts at {endpoint}"))


@contextmanager
def hooked(mode: str, folder: Path) -> Iterator[Hooked]:
    """Run one until the block ends; one call has been executed, and its notifications are under way."""
    with ExitStack() as stack:
        receivers = {name: stack.enter_context(webhook_receiver()) for name in (*ANSWERS, "private")}
        arrivals: list[float] = []
        for name, status in ANSWERS.items():
            receivers[name].answer = says(status)
        receivers["patient"].answer = _noted(arrivals, says(ANSWERS["patient"]))
        hooks = Hooked(
            stack.enter_context(deployment(mode, folder, tables=_tables(mode, receivers))), receivers, arrivals
        )
        agent = hooks.gate.agent()
        assert agent.execute("text_digest", {"text": "everybody hears of it"}).status_code == 200
        (event,) = hooks.gate.events(session_id=agent.session_id, event_type="ActionCall")
        hooks.event_id = event["event_id"]
        limited = hooks.gate.agent(max_calls=1)
        assert [limited.execute("text_digest", {"text": "x"}).status_code for _ in range(2)] == [200, 403]
        yield hooks


def _noted(arrivals: list[float], answer: Answer) -> Answer:
    def noted(sock: socket, receiver: Receiver) -> None:
        arrivals.append(time.time())
        answer(sock, receiver)

    return noted


def _tables(mode: str, receivers: Mapping[str, Receiver]) -> str:
    tables, port = "", receivers["private"].address.partition(":")[2]
    places = {"private": f"https://localhost:{port}/", "unknown": "https://nothing.invalid/"}
    if mode == "dev":  # production never reaches this machine, by whatever name
        hosts = {f"{name}.hooks.test": receivers[name].address for name in ANSWERS}
        tables = "[egress.unsafe_resolve]\n" + "".join(f'"{host}" = "{at}"\n' for host, at in hosts.items())
        places |= {name: f"http://{name}.hooks.test/hook?from=gateway" for name in ANSWERS}
    for name, url in places.items():
        tables += f'[[webhooks]]\nname = "{name}"\nurl = "{url}"\nsecret = "{SECRET}"\ntimeout_seconds = 60\n'
        if name == "patient":
            tables += 'events = ["budget.exhausted"]\n'
        else:
            tables += f"max_retries = {RETRIES}\nretry_backoff_seconds = [0.05]\n"
    return tables
