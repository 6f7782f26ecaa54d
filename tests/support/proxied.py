"""A gateway of either kind whose actions go out through a real squid, and upstreams behind it.

In production, too, an upstream may be on this machine: where its name leads is squid's to know.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.gateway import Gateway, gateway
from tests.support.manifests import PATIENT, example, open_policy, put_module, trust, write_manifests
from tests.support.ports import closed_port
from tests.support.production import PRINCIPAL, production
from tests.support.squid import Squid, squid
from tests.support.upstream import Upstream, upstream
from tests.support.worker_plans import builtin
from tests.support.worker_upstream import Upstream as SafeUpstream
from tests.support.worker_upstream import certificate, ok
from tests.support.worker_upstream import upstream as safe_upstream

HOST, REFUSED, CLOSED = "upstream.gateway.test", "refused.gateway.test", "closed.gateway.test"
"""A host that squid lets through to, one that only the manifest allows, and one without a listener on its port."""
TOKEN = "token-through-the-tunnel"


def through(action_id: str, host: str, port: int, **changes: Any) -> dict[str, Any]:
    """An http_fetch from a host, through the proxy."""
    return example(
        "http_fetch", action_id=action_id, egress={"profile": "proxy_allowlist", "allowed_domains": [host]},
        template={"url_template": f"http://{host}:{port}/{{+path}}"}, **({**PATIENT, **changes}),
    )  # fmt: skip


def through_tls(action_id: str, host: str, port: int) -> dict[str, Any]:
    """An http_post with a secret to a host, through the proxy."""
    return example(
        "http_post", action_id=action_id, egress={"profile": "proxy_allowlist", "allowed_domains": [host]},
        template={"url_template": f"https://{host}:{port}/{{+path}}"}, **PATIENT,
    )  # fmt: skip


def probe(folder: Path, host: str) -> dict[str, Any]:
    """An action whose module asks for whatever its caller says (`http_probe.zig` of the fixtures), with its module."""
    digest = put_module(folder, builtin("http_probe"))
    trust(folder, digest)
    return {
        "action_id": "probe", "version": "1.0.0", "risk_level": "low", "provider_module_digest": digest,
        "required_imports": ["http"], "declared_side_effects": ["http_read"], "verifier_kind": "unverifiable",
        "egress": {"profile": "proxy_allowlist", "allowed_domains": [host], "allowed_methods": ["GET"]},
        "resource_limits": PATIENT["resource_limits"] | {"fuel": 10**12},
    }  # fmt: skip


def policy_for(folder: Path, mode: str, *actions: str) -> Path:
    """The example policy, with these actions besides, for the principal of this process at a gateway in this mode."""
    open_policy(folder, *actions)
    data = json.loads((folder / "data.json").read_text())
    if mode == "run":
        data["acl"] = {PRINCIPAL: data["acl"]["dev:anonymous"]}
    (folder / "data.json").write_text(json.dumps(data))
    return folder


@dataclass
class Stage:
    """The observed requests."""

    mode: str
    gate: Gateway
    proxy: Squid
    up: Upstream
    safe: SafeUpstream
    """The upstream that speaks TLS."""


@contextmanager
def stage(mode: str, folder: Path) -> Iterator[Stage]:
    """Run all of it until the block ends: a gateway of this kind (dev, run) with the actions `through`,
    `through_tls` and `closed`."""
    with ExitStack() as stack:
        up = stack.enter_context(upstream())
        authority, context = certificate(folder, HOST)
        safe = stack.enter_context(safe_upstream(ok(b'{"ok":true}'), context))
        port, safe_port = (int(one.address.rpartition(":")[2]) for one in (up, safe))
        closed = stack.enter_context(closed_port())
        proxy = stack.enter_context(
            squid((HOST, CLOSED), (port, safe_port, closed), allowed=(HOST, CLOSED))
        )  # fmt: skip
        made = [
            through("through", HOST, port), through("closed", CLOSED, closed),
            through_tls("through_tls", HOST, safe_port),
        ]  # fmt: skip
        write_manifests(folder / "actions", *made)
        policy_for(folder / "policy", mode, *(one["action_id"] for one in made))
        secrets = folder / "secrets.json"
        secrets.touch(mode=0o600)
        secrets.write_text(json.dumps({"upstream_token": TOKEN}))
        top = f'manifests_dir = "{folder / "actions"}"\npolicy_dir = "{folder / "policy"}"\nlease_ttl_seconds = 3600\n'
        top += f'egress_proxy_url = "{proxy.url}"\n'
        tables = f'[secrets]\nfile = "{secrets}"\n'
        start = gateway(folder, top + tables, SSL_CERT_FILE=str(authority)) if mode == "dev" else production(
            folder, top, tables, SSL_CERT_FILE=str(authority)
        )  # fmt: skip
        yield Stage(mode, stack.enter_context(start), proxy, up, safe)
