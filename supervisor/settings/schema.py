"""The configuration file as one table: every setting, its kind and its bounds.

Names are those of docs/contract.md and of `docs/decisions/`. Defaults are those of `ipc.settings`; the
structure test holds both against each other. A setting of a later version is listed too, so that it is refused by
name and never silently ignored.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from ipc.backends.servers import BACKENDS
from ipc.configuration.issuers import ALGORITHMS
from ipc.configuration.quorum import MOST_APPROVALS
from ipc.configuration.quotas import MAX_QUOTA
from ipc.configuration.roles import OPERATOR_ROLES
from ipc.process.log_level import DEBUG, INFO
from ipc.settings import MOST_CALLS, WEBHOOK_KINDS
from supervisor.settings import value_kinds
from supervisor.settings.kind import PathContext, ValueKind, Wrong, kind, place
from supervisor.settings.sections import (
    addresses,
    certificates,
    issuers,
    networks,
    stores,
    telemetry,
    webhooks,
    witnesses,
)


class Leaf(msgspec.Struct, frozen=True):
    """One value."""

    kind: ValueKind[Any]


class SettingsTable(msgspec.Struct, frozen=True):
    """A table of named settings."""

    fields: Mapping[str, "Node"]


class Names(msgspec.Struct, frozen=True):
    """A table whose keys are free, within `key`."""

    key: ValueKind[str]
    value: "Node"


class TableArray(msgspec.Struct, frozen=True):
    """An array of tables."""

    row: SettingsTable


Node: TypeAlias = Leaf | SettingsTable | Names | TableArray

_MIN_SPARE = Leaf(value_kinds.whole(0, 256))
_POOL = SettingsTable({"min_spare": _MIN_SPARE, "max": Leaf(value_kinds.whole(1, 256))})
_HTTP_POOL = SettingsTable({"min_spare": _MIN_SPARE, "max": Leaf(value_kinds.whole_or_auto(1, MOST_CALLS))})

_SUBJECT = {
    "principal": Leaf(value_kinds.principal),
    "scopes": Leaf(value_kinds.list_of(value_kinds.scope)),
    "owner": Leaf(value_kinds.principal),
}
_ISSUER = SettingsTable(
    {
        "name": Leaf(value_kinds.name),
        "issuer": Leaf(issuers.token_text),
        "audience": Leaf(issuers.audience),
        "jwks_file": Leaf(value_kinds.path),
        "jwks_url": Leaf(webhooks.url),
        "algorithms": Leaf(value_kinds.list_of(value_kinds.choice(*ALGORITHMS))),
        **_SUBJECT,
        "principal": Leaf(issuers.principal_form),
        "require": Names(value_kinds.text, Leaf(issuers.claim_value)),
        "principals": Names(issuers.token_text, SettingsTable(_SUBJECT)),
    }
)
_CERTIFICATE = SettingsTable(
    {**_SUBJECT, "san": Leaf(certificates.san), "principal": Leaf(certificates.certificate_principal)}
)

MAX_FRONTS = 64
_HELD_BYTES = 8 * 1024 * 1024
"""At least so much of held calls may be stored for each principal."""


@kind(anyOf=[{"type": "integer", "minimum": 1, "maximum": MAX_FRONTS}, {"const": "auto"}])
def _front_processes(value: object, context: PathContext) -> int:
    """A number, or "auto": one less than the cores of this process, since notary and workers need cores, too."""
    if value == "auto":
        return min(max(len(os.sched_getaffinity(0)) - 1, 1), MAX_FRONTS)
    if isinstance(value, str):
        raise Wrong('must be a whole number or "auto"', f"Use 1 to {MAX_FRONTS}.")
    return value_kinds.whole(1, MAX_FRONTS)(value, context)


@place(**value_kinds.path.form)
def _ledger_path(value: object, context: PathContext) -> object:
    if isinstance(value, str) and "://" in value:
        raise Wrong("names no file", "Set ledger.url to a PostgreSQL.", is_secret=True)
    return value_kinds.path(value, context)


def _servers(part: str) -> dict[str, Leaf]:
    """The settings that choose a server for store or ledger."""
    return {one.setting.rpartition(".")[2]: Leaf(stores.server_url(one)) for one in BACKENDS if one.part == part}


SCHEMA = SettingsTable(
    {
        "state_dir": Leaf(value_kinds.path),
        "public_base_url": Leaf(addresses.base_url),
        "listen_uds_path": Leaf(value_kinds.socket_path),
        "listen_admin_uds_path": Leaf(value_kinds.socket_path),
        "listen_http_addr": Leaf(addresses.listen_address),
        "unsafe_expose_http": Leaf(value_kinds.flag),
        "unsafe_degraded_sandbox": Leaf(value_kinds.flag),
        "sandbox": SettingsTable({"user": Leaf(value_kinds.name)}),
        "front_processes": Leaf(_front_processes),
        "manifests_dir": Leaf(value_kinds.path),
        "policy_dir": Leaf(value_kinds.path),
        "modules_dir": Leaf(value_kinds.path),
        "files_dir": Leaf(value_kinds.path),
        "opa_url": Leaf(addresses.opa_url),
        "opa_token_file": Leaf(value_kinds.path),
        "opa_memo": Leaf(value_kinds.choice("off", "revision")),
        "log_level": Leaf(value_kinds.choice(INFO, DEBUG)),
        "unsafe_opa_http": Leaf(value_kinds.flag),
        "egress_proxy_url": Leaf(addresses.proxy_url),
        "lease_ttl_seconds": Leaf(value_kinds.whole(1, 3600)),
        "lease_signing_key_path": Leaf(value_kinds.path),
        "receipt_signing_key_path": Leaf(value_kinds.path),
        "grant_signing_key_path": Leaf(value_kinds.path),
        "receipt_keys_jwks_path": Leaf(value_kinds.path),
        "response_schema_enforcement": Leaf(value_kinds.choice("deny", "warn")),
        "identity": SettingsTable(
            {
                "provider": Leaf(value_kinds.choice("peercred", "none")),
                "edge_uids": Leaf(value_kinds.list_of(value_kinds.whole(0, 2**32 - 2))),
                "issuers": TableArray(_ISSUER),
                "certificates": TableArray(_CERTIFICATE),
                "peercred": SettingsTable(
                    {
                        "allow_unmapped": Leaf(value_kinds.flag),
                        "principals": Names(
                            value_kinds.user_id,
                            SettingsTable(
                                {
                                    **_SUBJECT,
                                    "max_calls_per_hour": Leaf(value_kinds.whole(0, MAX_QUOTA)),
                                    "max_sessions": Leaf(value_kinds.whole(0, MAX_QUOTA)),
                                    "max_calls_per_session": Leaf(value_kinds.whole(0, MAX_QUOTA)),
                                }
                            ),
                        ),
                    }
                ),
            }
        ),
        "operators": TableArray(
            SettingsTable(
                {
                    "name": Leaf(value_kinds.name),
                    "dpop_jkt": Leaf(value_kinds.thumbprint),
                    "api_key": Leaf(value_kinds.secret_text),
                    "api_key_file": Leaf(value_kinds.path),
                    "api_key_sha256": Leaf(value_kinds.sha256),
                    "groups": Leaf(value_kinds.list_of(value_kinds.name)),
                    "roles": Leaf(value_kinds.list_of(value_kinds.choice(*OPERATOR_ROLES))),
                    "owner": Leaf(value_kinds.principal),
                }
            )
        ),
        "store": SettingsTable(
            {
                **_servers("store"),
                "redis_prefix": Leaf(stores.prefix),
                "redis_password_file": Leaf(value_kinds.path),
                "redis_ca_file": Leaf(value_kinds.path),
            }
        ),
        "ledger": SettingsTable(
            {
                "path": Leaf(_ledger_path),
                "min_free_bytes": Leaf(value_kinds.whole(0, 1 << 39)),
                **_servers("ledger"),
                "password_file": Leaf(value_kinds.path),
                "ca_file": Leaf(value_kinds.path),
            }
        ),
        "evidence": SettingsTable(
            {
                "origin": Leaf(value_kinds.log_name),
                "keep_days": Leaf(value_kinds.whole(0, 3650)),
                "witnesses": TableArray(
                    SettingsTable(
                        {
                            "name": Leaf(value_kinds.name),
                            "url": Leaf(witnesses.url),
                            "key": Leaf(witnesses.key),
                            "timeout_seconds": Leaf(value_kinds.seconds(0.1, 60)),
                            "private_network": Leaf(value_kinds.flag),
                        }
                    )
                ),
                "witness_interval_seconds": Leaf(value_kinds.seconds(0.1, 3600)),
            }
        ),
        "egress": SettingsTable(
            {
                "unsafe_resolve": Names(value_kinds.host_name, Leaf(addresses.peer_address)),
                "proxy_ca_file": Leaf(value_kinds.path),
                "proxy_secret": Leaf(value_kinds.name),
                "proxy_allowlist_file": Leaf(value_kinds.path),
                "networks": TableArray(
                    SettingsTable(
                        {
                            "name": Leaf(value_kinds.name),
                            "domains": Leaf(value_kinds.list_of(networks.domain)),
                            "ranges": Leaf(value_kinds.list_of(networks.address_range)),
                            "ports": Leaf(value_kinds.list_of(value_kinds.whole(1, 65535))),
                            "ca_file": Leaf(value_kinds.path),
                            "client_certificate": SettingsTable(
                                {"certificate_file": Leaf(value_kinds.path), "key_file": Leaf(value_kinds.path)}
                            ),
                            "unsafe_plain_secrets": Leaf(value_kinds.flag),
                        }
                    )
                ),
            }
        ),
        "limits": SettingsTable(
            {
                "max_in_flight": Leaf(value_kinds.whole_or_auto(1, 100_000)),
                "max_connections": Leaf(value_kinds.whole(1, 100_000)),
                "session_requests_per_second": Leaf(value_kinds.whole(1, 100_000)),
                "header_timeout_seconds": Leaf(value_kinds.seconds(0.1, 600)),
                "body_timeout_seconds": Leaf(value_kinds.seconds(0.1, 600)),
                "idle_timeout_seconds": Leaf(value_kinds.seconds(0.1, 3600)),
                "send_timeout_seconds": Leaf(value_kinds.seconds(0.1, 600)),
                "max_unsent_bytes": Leaf(value_kinds.whole(16 * 1024 * 1024, 16 * 1024 * 1024 * 1024)),
                "worker_wait_seconds": Leaf(value_kinds.seconds(0.01, 600)),
                "drain_seconds": Leaf(value_kinds.seconds(0.1, 3600)),
                "idempotency_seconds": Leaf(value_kinds.whole(60, 86_400)),
            }
        ),
        "workers": SettingsTable(
            {
                "compute": _POOL,
                "http": _HTTP_POOL,
                "fs": _POOL,
                "recycle_after_calls": Leaf(value_kinds.whole(1, 10_000_000)),
                "idle_seconds": Leaf(value_kinds.seconds(0.1, 86_400)),
            }
        ),
        "secrets": SettingsTable({"file": Leaf(value_kinds.path), "age_identity_file": Leaf(value_kinds.path)}),
        "metrics": SettingsTable(
            {"listen_uds_path": Leaf(value_kinds.socket_path), "listen": Leaf(addresses.loopback_address)}
        ),
        "telemetry": SettingsTable(
            {
                "otlp": SettingsTable(
                    {
                        "endpoint": Leaf(addresses.collector_url),
                        "headers_file": Leaf(value_kinds.path),
                        "ca_file": Leaf(value_kinds.path),
                        "sample": Leaf(telemetry.share),
                    }
                )
            }
        ),
        "compat": SettingsTable({"actions_envelope": Leaf(value_kinds.flag)}),
        "approvals": SettingsTable(
            {
                "require_signature": Leaf(value_kinds.flag),
                "max_pending": Leaf(value_kinds.whole(2, 10_000)),
                "max_pending_per_principal": Leaf(value_kinds.whole(1, 5_000)),
                "max_pending_bytes": Leaf(value_kinds.whole(2 * _HELD_BYTES, 16 * 1024 * 1024 * 1024)),
                "max_pending_bytes_per_principal": Leaf(value_kinds.whole(_HELD_BYTES, 8 * 1024 * 1024 * 1024)),
                "keep_days": Leaf(value_kinds.whole(1, 3650)),
                "quorum": TableArray(
                    SettingsTable(
                        {
                            "risk_level": Leaf(value_kinds.choice("low", "medium", "high", "critical")),
                            "action_id": Leaf(value_kinds.name),
                            "count": Leaf(value_kinds.whole(1, MOST_APPROVALS)),
                            "groups": Names(value_kinds.name, Leaf(value_kinds.whole(1, MOST_APPROVALS))),
                        }
                    )
                ),
            }
        ),
        "webhooks": TableArray(
            SettingsTable(
                {
                    "name": Leaf(value_kinds.name),
                    "url": Leaf(webhooks.url),
                    "secret": Leaf(webhooks.secret),
                    "secret_file": Leaf(webhooks.secret_file),
                    "events": Leaf(value_kinds.list_of(value_kinds.choice(*WEBHOOK_KINDS))),
                    "headers": Names(webhooks.header_name, Leaf(webhooks.header_value)),
                    "timeout_seconds": Leaf(value_kinds.seconds(0.1, 60)),
                    "max_retries": Leaf(value_kinds.whole(0, 10)),
                    "retry_backoff_seconds": Leaf(value_kinds.list_of(value_kinds.seconds(0.01, 3600))),
                    "disable": Leaf(value_kinds.flag),
                }
            )
        ),
    }
)


def spellings(node: Node = SCHEMA, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Every key with the way it is written in the file: `("max", "max in [workers.http]")`, `("store", "[store]")`."""
    fields: Mapping[str, Node] = {}
    if isinstance(node, SettingsTable):
        fields = node.fields
    elif isinstance(node, TableArray):
        fields = node.row.fields
    for key, child in fields.items():
        dotted = ".".join((*path, key))
        if isinstance(child, TableArray):
            yield key, f"[[{dotted}]]"
        elif isinstance(child, Leaf):
            yield key, f"{key} in [{'.'.join(path)}]" if path else key
        else:
            yield key, f"[{dotted}]"
        yield from spellings(child, (*path, key))


def leaf_paths(node: Node = SCHEMA, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every setting that a name can be given for; free keys and arrays end a path."""
    if isinstance(node, SettingsTable):
        for key, child in node.fields.items():
            yield from leaf_paths(child, (*path, key))
    else:
        yield path


def node_at(path: tuple[str, ...]) -> Node | None:
    """The node of the table at a path; None if there is no such setting."""
    node: Node = SCHEMA
    for key in path:
        if isinstance(node, SettingsTable) and key in node.fields:
            node = node.fields[key]
        elif isinstance(node, Names):
            node = node.value
        else:
            return None
    return node
