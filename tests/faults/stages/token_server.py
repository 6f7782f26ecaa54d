"""A gateway with actions that need a token, and the server that gives it, which is down when the gateway starts."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from tests.faults.between import REFUSES, Between
from tests.faults.stages.edges import visits, written
from tests.faults.table.rows import START
from tests.faults.table.token_server import TOKEN_SERVER
from tests.faults.walk import Stage
from tests.support.gateway import gateway
from tests.support.manifests import PATIENT, example, open_policy, patient, write_manifests
from tests.support.proxied import HOST
from tests.support.upstream import upstream as counting_upstream
from tests.support.worker_upstream import upstream

ANSWERS: dict[str, tuple[str, dict[str, Any]]] = {
    "": ("200 OK", {"access_token": "token-of-a-client", "token_type": "Bearer", "expires_in": 3600}),
    "full": ("507 Full", {}),
    "loses its data": ("401 No", {"error": "invalid_client"}),
    "clock differs": ("200 OK", {"access_token": "token-of-a-client", "token_type": "Bearer", "expires_in": 0}),
}
"""By fault."""


class _Tokens:
    """Answers as its fault says."""

    fault = ""

    def __call__(self, connection: socket.socket) -> None:
        status, fields = ANSWERS[self.fault]
        body = json.dumps(fields).encode()
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        connection.sendall(head.encode() + b"Connection: close\r\n\r\n" + body)


def _action(action_id: str, **changes: Any) -> dict[str, Any]:
    way = {"token_url": "http://login.gateway.test/token", "client_id": "c", "scopes": []}
    secrets = [{"name": "client", "inject": {"oauth2_client_credentials": way}}]
    return example("http_post", action_id=action_id, secrets=secrets, **PATIENT, **changes)


@contextmanager
def token_server_stage(folder: Path) -> Iterator[list[Stage]]:
    """Each fault begins with a client secret of its own: no earlier token serves."""
    with ExitStack() as stack:
        up, tokens = stack.enter_context(counting_upstream()), _Tokens()
        server = stack.enter_context(upstream(tokens))
        host, _, port = server.address.rpartition(":")
        between = Between((host, int(port)))
        stack.callback(between.close)
        start = ExitStack()
        start.enter_context(between.failing(REFUSES))
        actions, secrets, numbers = folder / "actions", folder / "secrets" / "secrets.json", count(1)
        secrets.parent.mkdir()
        top = patient(actions)
        write_manifests(actions, _action("with_token"), _action("held_token", risk_level="critical"))
        top += f'policy_dir = "{open_policy(folder / "policy", "with_token", "held_token")}"\n'
        names = f'"{HOST}" = "{up.address}", "login.gateway.test" = "127.0.0.1:{between.port}"'
        tables = f'[egress]\nunsafe_resolve = {{{names}}}\n[secrets]\nfile = "{secrets}"\n'

        def renew_secret() -> None:
            written(secrets, json.dumps({"client": f"client-secret-{next(numbers)}", "bank_token": "t" * 20}).encode())

        renew_secret()
        gate = stack.enter_context(gateway(folder, top + tables))

        @contextmanager
        def failing(fault: str) -> Iterator[None]:
            renew_secret()
            with ExitStack() as failing:
                if fault == START:
                    failing.enter_context(start.pop_all())
                elif fault in ANSWERS:
                    tokens.fault = fault
                else:
                    failing.enter_context(between.failing(fault))
                yield
            tokens.fault = ""

        yield [
            Stage(
                TOKEN_SERVER, gate, failing,
                lambda agent: agent.execute("with_token", {"path": "x", "message": "m"}),
                lambda agent, mark: agent.execute("held_token", {"path": mark, "message": "m"}),
                lambda mark: visits(up, mark),
            )
        ]  # fmt: skip
