"""Gateways with what only some calls need: one with an egress proxy and a private file of secrets, one with an endpoint
of webhooks and a SOPS file."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from tests.faults.between import GARBAGE, HANGS, REFUSES, RESETS, SLOW, Between
from tests.faults.stages.core import digest, payment, transfers
from tests.faults.table.edges import FILE, PROXY, SOPS, WEBHOOKS
from tests.faults.table.rows import START
from tests.faults.walk import Stage
from tests.support.gateway import Bearer, gateway, wait_for
from tests.support.manifests import open_policy, patient, write_manifests
from tests.support.proxied import HOST, through
from tests.support.sops import encrypted_by_sops, new_identity
from tests.support.squid import squid
from tests.support.upstream import Upstream, upstream
from tests.support.webhook_receiver import Receiver, says, webhook_receiver

VALUES = {"upstream_token": "token-of-an-upstream", "bank_token": "token-of-a-bank"}
HOOK_RETRIES = 10
"""They go on for the better part of a minute, longer than any fault lasts on a slow machine: nothing is given up."""


def post(agent: Bearer) -> httpx.Response:
    """A call that needs a secret."""
    return agent.execute("http_post", {"path": "messages", "message": "hi"})


def visits(up: Upstream, mark: str) -> int:
    """How often the upstream was asked for this path."""
    return sum(seen.path == f"/{mark}" for seen in list(up.seen))


@contextmanager
def proxy_stage(folder: Path) -> Iterator[list[Stage]]:
    """Both are down when it starts."""
    with ExitStack() as stack:
        up = stack.enter_context(upstream())
        port = int(up.address.rpartition(":")[2])
        real = stack.enter_context(squid((HOST,), (port,)))
        between = Between(("127.0.0.1", real.port))
        stack.callback(between.close)
        start = ExitStack()
        start.enter_context(between.failing(REFUSES))
        actions, secrets = folder / "actions", folder / "secrets" / "secrets.json"
        secrets.parent.mkdir()
        top = patient(actions) + f'egress_proxy_url = "http://127.0.0.1:{between.port}"\n'
        write_manifests(
            actions, through("through", HOST, port), through("held_through", HOST, port, risk_level="critical")
        )
        top += f'policy_dir = "{open_policy(folder / "policy", "through", "held_through")}"\n'
        tables = f'[egress]\nunsafe_resolve = {{"{HOST}" = "{up.address}"}}\n[secrets]\nfile = "{secrets}"\n'
        gate = stack.enter_context(gateway(folder, top + tables))

        @contextmanager
        def failing(fault: str) -> Iterator[None]:
            if fault == START:
                with start.pop_all():
                    yield
            elif fault == "loses its data":
                real.allow()
                yield
                real.allow(HOST)
            else:
                with between.failing(fault):
                    yield

        yield [
            Stage(
                PROXY, gate, failing, lambda agent: agent.execute("through", {"path": "x"}),
                lambda agent, mark: agent.execute("held_through", {"path": mark}), lambda mark: visits(up, mark),
                asked=lambda: between.count(b"CONNECT "),
            ),
            Stage(
                FILE, gate, lambda fault: broken_file(secrets, fault), post, payment, lambda mark: transfers(up, mark)
            ),
        ]  # fmt: skip


def written(file: Path, data: bytes) -> None:
    """Put whole, and private, in the place of what was there."""
    new = file.with_suffix(".new")
    new.write_bytes(data)
    new.chmod(0o600)
    os.replace(new, file)


@contextmanager
def broken_file(file: Path, fault: str) -> Iterator[None]:
    """A file that fails so; afterwards it is right."""
    right = json.dumps(VALUES).encode()
    match fault:
        case "refuses":
            file.chmod(0o644)
        case "hangs":
            file.unlink()
            os.mkfifo(file, 0o600)
        case "resets in the middle":
            written(file, right[: len(right) // 2])
        case "garbage":
            written(file, os.urandom(200))
        case "loses its data":
            written(file, b"{}")
        case "clock differs":
            written(file, right)
            os.utime(file, (0, 0))
    yield
    if fault == "hangs":
        file.unlink()
    written(file, right)


@contextmanager
def webhook_stage(folder: Path) -> Iterator[list[Stage]]:
    """Both are down when it starts."""
    with ExitStack() as stack:
        up, receiver = stack.enter_context(upstream()), stack.enter_context(webhook_receiver())
        host, _, port = receiver.address.rpartition(":")
        between = Between((host, int(port)))
        stack.callback(between.close)
        start = ExitStack()
        start.enter_context(between.failing(REFUSES))
        vault = folder / "vault"
        vault.mkdir()
        recipient = new_identity(vault / "identity")
        names = f'"{HOST}" = "{up.address}", "hooks.gateway.test" = "127.0.0.1:{between.port}"'
        tables = f"""
[[webhooks]]
name = "hook"
url = "http://hooks.gateway.test/in"
secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
timeout_seconds = 1
max_retries = {HOOK_RETRIES}
retry_backoff_seconds = [0.3, 1, 1, 2, 4, 8]
[egress]
unsafe_resolve = {{{names}}}
[secrets]
file = "{vault / "secrets.json"}"
age_identity_file = "{vault / "identity"}"
"""
        gate = stack.enter_context(gateway(folder, patient(folder / "actions") + tables))

        @contextmanager
        def failing(fault: str) -> Iterator[None]:
            if fault == START:
                with start.pop_all():
                    yield
            elif fault in (REFUSES, HANGS, RESETS, GARBAGE, SLOW):
                with between.failing(fault):
                    yield
            else:
                receiver.answer = says({"read-only": 503, "full": 507, "clock differs": 400}[fault])
                yield
                receiver.answer = says(200)

        def afterwards(fault: str, trace_id: str) -> None:
            if fault != "clock differs":
                wait_for(lambda: delivered(receiver, trace_id), "the delivery of what happened meanwhile")

        yield [  # the secrets first: an approval needs them
            Stage(
                SOPS, gate, lambda fault: broken_sops(vault, recipient, fault), post, payment,
                lambda mark: transfers(up, mark),
            ),
            Stage(
                WEBHOOKS, gate, failing, digest, payment, lambda mark: transfers(up, mark), afterwards=afterwards
            ),
        ]  # fmt: skip


def delivered(receiver: Receiver, trace_id: str) -> bool:
    """Whether what happened under this trace has arrived."""
    return any(one.json["data"].get("trace_id") == trace_id for one in list(receiver.received))


@contextmanager
def broken_sops(vault: Path, recipient: str, fault: str) -> Iterator[None]:
    """A SOPS file that fails so; afterwards it is right."""
    file, identity = vault / "secrets.json", vault / "identity"
    key = identity.read_bytes()
    match fault:
        case "refuses":
            identity.unlink()
            new_identity(identity)
            encrypted_by_sops(file, VALUES, recipient)
        case "resets in the middle":
            whole = file.read_bytes()
            written(file, whole[: len(whole) // 2])
        case "garbage":
            document = json.loads(file.read_text())
            document["bank_token"] = document["upstream_token"]
            written(file, json.dumps(document).encode())
        case "loses its data":
            encrypted_by_sops(file, {"another": "value"}, recipient)
        case "clock differs":
            encrypted_by_sops(file, VALUES, recipient)
            os.utime(file, (0, 0))
    yield
    written(identity, key)
    encrypted_by_sops(file, VALUES, recipient)
