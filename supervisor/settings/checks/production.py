"""The rules that refuse a start outside dev mode, and the settings that weaken a gateway: two tables, a rule a row.

Source: docs/contract.md, "Rules that hold for the whole service". A rule looks at settings alone, does no I/O
and says which setting to point at, what is wrong, why, and how to mend it. docs/production.md has a row for each. The
rule for egress profiles is not here: it looks at manifests (frontend/manifests/coherence.py).
"""

import ipaddress
from collections.abc import Callable, Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from ipc.backends.postgres_address import parse_postgres_url
from ipc.settings import Settings
from supervisor.settings.sections.addresses import is_plain_beyond_loopback, split_address
from supervisor.settings.toml_lines import Path

IN_PRODUCTION = "not allowed in production"
DRAIN_SECONDS = 30.0
"""The least time that orchestrators give a service to stop (docs/contract.md, "Limits")."""


class Finding(msgspec.Struct, frozen=True):
    """A broken rule. `path` is the setting as the configuration file names it."""

    path: Path
    text: str
    mend: str


class ProductionRule(msgspec.Struct, frozen=True):
    """One refusal. `setting` is what docs/production.md calls it, `reason` a sentence."""

    setting: str
    reason: str
    judge: Callable[[Settings], Iterable[Finding]]


def _identity_none(settings: Settings) -> Iterable[Finding]:
    if settings.identity.provider == "none":
        yield Finding(("identity", "provider"), f'identity.provider = "none": {IN_PRODUCTION}.', 'Use "peercred".')


def _allow_unmapped(settings: Settings) -> Iterable[Finding]:
    if settings.identity.allow_unmapped:
        name = "identity.peercred.allow_unmapped"
        mend = "Map each user id in [identity.peercred.principals]."
        yield Finding(("identity", "peercred", "allow_unmapped"), f"{name} = true: {IN_PRODUCTION}.", mend)


def _no_operators(settings: Settings) -> Iterable[Finding]:
    if not settings.operators:
        mend = "Name at least one in [[operators]], with api_key_sha256 and dpop_jkt."
        yield Finding(("operators",), "operators: is missing.", mend)


def _operator_without_key_binding(settings: Settings) -> Iterable[Finding]:
    for index, operator in enumerate(settings.operators):
        if operator.dpop_jkt is None:
            text = f'operators[{index}].dpop_jkt of "{operator.name}": is missing, a key alone is {IN_PRODUCTION}.'
            mend = "Add the thumbprint that `gateway keys make` prints."
            yield Finding(("operators", index, "dpop_jkt"), text, mend)


def _tcp_listener(settings: Settings) -> Iterable[Finding]:
    if settings.listen_http_addr is not None and not settings.unsafe_expose_http:
        text = f'listen_http_addr = "{settings.listen_http_addr}": {IN_PRODUCTION}.'
        yield Finding(("listen_http_addr",), text, "Use the Unix sockets.")


def _is_open_to_the_network(settings: Settings) -> bool:
    if settings.listen_http_addr is None:
        return False
    return not ipaddress.ip_address(split_address(settings.listen_http_addr)[0]).is_loopback


def _plain_text_beyond_loopback(settings: Settings) -> Iterable[Finding]:
    """Refuse TCP beyond loopback, even with unsafe_expose_http: leases, proofs and operators' keys would be sent in
    clear."""
    if _is_open_to_the_network(settings):
        text = f'listen_http_addr = "{settings.listen_http_addr}": plain text beyond loopback is {IN_PRODUCTION}.'
        yield Finding(("listen_http_addr",), text, "Use the Unix sockets, or 127.0.0.1 behind a proxy with TLS.")


def _unsafe_resolve(settings: Settings) -> Iterable[Finding]:
    if settings.egress.unsafe_resolve:
        yield Finding(("egress", "unsafe_resolve"), f"egress.unsafe_resolve: {IN_PRODUCTION}.", "Remove it.")


def _ephemeral(name: str) -> Callable[[Settings], Iterable[Finding]]:
    def rule(settings: Settings) -> Iterable[Finding]:
        if getattr(settings, name) is None:
            yield Finding((name,), f"{name}: is missing.", "Name a file; `gateway keys make` writes it.")

    return rule


def _warn_only(settings: Settings) -> Iterable[Finding]:
    if settings.response_schema_enforcement == "warn":
        name = "response_schema_enforcement"
        yield Finding((name,), f'{name} = "warn": {IN_PRODUCTION}.', 'Use "deny".')


def _webhooks_without_tls(settings: Settings) -> Iterable[Finding]:
    for index, one in enumerate(settings.webhooks):
        if not one.url.startswith("https://"):
            text = f'webhooks[{index}].url of "{one.name}": http is {IN_PRODUCTION}.'
            yield Finding(("webhooks", index, "url"), text, "Use https.")


def _short_drain(settings: Settings) -> Iterable[Finding]:
    if settings.limits.drain_seconds < DRAIN_SECONDS:
        yield Finding(
            ("limits", "drain_seconds"), f"limits.drain_seconds: under {DRAIN_SECONDS:g} is {IN_PRODUCTION}.",
            f"Use {DRAIN_SECONDS:g} or more.",
        )  # fmt: skip


def _witnesses_without_tls(settings: Settings) -> Iterable[Finding]:
    for index, one in enumerate(settings.evidence.witnesses):
        if not one.url.startswith("https://"):
            text = f'evidence.witnesses[{index}].url of "{one.name}": http is {IN_PRODUCTION}.'
            yield Finding(("evidence", "witnesses", index, "url"), text, "Use https.")


def _sends_policy_in_clear(settings: Settings) -> bool:
    return settings.opa_url is not None and is_plain_beyond_loopback(settings.opa_url)


def _opa_without_tls(settings: Settings) -> Iterable[Finding]:
    """A server that can answer in OPA's place decides what is allowed."""
    if _sends_policy_in_clear(settings) and not settings.unsafe_opa_http:
        text = f"opa_url: http beyond loopback is {IN_PRODUCTION}."
        yield Finding(("opa_url",), text, "Use https or a Unix socket; unsafe_opa_http = true accepts it.")


def _sends_ledger_in_clear(settings: Settings) -> bool:
    ledger = settings.ledger
    return ledger.url is not None and ledger.ca_file is None and parse_postgres_url(ledger.url).is_elsewhere


def _ledger_without_tls(settings: Settings) -> Iterable[Finding]:
    if _sends_ledger_in_clear(settings):
        text = f"ledger.url: a PostgreSQL on another host without TLS is {IN_PRODUCTION}."
        yield Finding(("ledger", "url"), text, "Name the certificates that it is verified with in ledger.ca_file.")


_NO_NAME = "Only the user id identifies the caller."
_KEPT_KEY = "Signatures of a lost key could not be verified after a restart."
_CLEAR_TEXT = "Leases, proofs and operators' keys would cross it in the clear."


def _is_proxy_secret_in_clear(settings: Settings) -> bool:
    url = settings.egress_proxy_url
    return settings.egress.proxy_secret is not None and url is not None and is_plain_beyond_loopback(url)


def _shows_proxy_secret_in_clear(settings: Settings) -> Iterable[Finding]:
    if _is_proxy_secret_in_clear(settings):
        text = f"egress.proxy_secret: shown to a proxy at http beyond this host is {IN_PRODUCTION}."
        yield Finding(("egress", "proxy_secret"), text, "Use https in egress_proxy_url.")


def _sends_spans_in_clear(settings: Settings) -> bool:
    url = settings.telemetry.otlp.endpoint
    return url is not None and is_plain_beyond_loopback(url)


def _collector_without_tls(settings: Settings) -> Iterable[Finding]:
    if _sends_spans_in_clear(settings):
        text = f"telemetry.otlp.endpoint: http beyond loopback is {IN_PRODUCTION}."
        yield Finding(("telemetry", "otlp", "endpoint"), text, "Use https, or a collector on this host.")


RULES: Final = (
    ProductionRule("identity.provider", _NO_NAME, _identity_none),
    ProductionRule("identity.peercred.allow_unmapped", _NO_NAME, _allow_unmapped),
    ProductionRule("operators", "No operator could decide about a held call, revoke or drain.", _no_operators),
    ProductionRule(
        "operators.dpop_jkt", "A key that is copied would be enough to approve calls.", _operator_without_key_binding
    ),
    ProductionRule(
        "listen_http_addr, unsafe_expose_http", "The kernel does not say who connects by TCP.", _tcp_listener
    ),
    ProductionRule("listen_http_addr", _CLEAR_TEXT, _plain_text_beyond_loopback),
    ProductionRule("egress.unsafe_resolve", "It leads names to private addresses.", _unsafe_resolve),
    ProductionRule("receipt_signing_key_path", _KEPT_KEY, _ephemeral("receipt_signing_key_path")),
    ProductionRule("grant_signing_key_path", _KEPT_KEY, _ephemeral("grant_signing_key_path")),
    ProductionRule("receipt_keys_jwks_path", _KEPT_KEY, _ephemeral("receipt_keys_jwks_path")),
    ProductionRule("response_schema_enforcement", "Answers that no schema allows would reach agents.", _warn_only),
    ProductionRule("webhooks.url", "Notifications could be read and changed on their way.", _webhooks_without_tls),
    ProductionRule("limits.drain_seconds", "Calls are promised that long after the signal to end.", _short_drain),
    ProductionRule("evidence.witnesses.url", "Its answers could be held back or replaced.", _witnesses_without_tls),
    ProductionRule("egress.proxy_secret", "An eavesdropper could use this proxy.", _shows_proxy_secret_in_clear),
    ProductionRule(
        "telemetry.otlp.endpoint", "Callers, calls and the collector's headers could be read.", _collector_without_tls
    ),
    ProductionRule("opa_url", "A host that answers in its place decides what is allowed.", _opa_without_tls),
    ProductionRule("ledger.url", "Evidence could be read, changed and held back on its way.", _ledger_without_tls),
)
"""The lease key is not among them: without a path it is kept in `state_dir/keys`, never in memory alone."""


def broken_rules(settings: Settings) -> list[Finding]:
    """Every rule that these settings break, in the order of the table."""
    return [
        replace(finding, text=f"{finding.text} {rule.reason}") for rule in RULES for finding in rule.judge(settings)
    ]


WEAKNESSES: tuple[tuple[str, Callable[[Settings], bool]], ...] = (
    ("dev_mode", lambda settings: settings.dev_mode),
    ("identity.provider=none", lambda settings: settings.identity.provider == "none"),
    ("identity.peercred.allow_unmapped", lambda settings: settings.identity.allow_unmapped),
    ("operators without dpop_jkt", lambda settings: any(one.dpop_jkt is None for one in settings.operators)),
    ("unsafe_expose_http", lambda settings: settings.listen_http_addr is not None),
    ("listen_http_addr beyond loopback", _is_open_to_the_network),
    ("egress.unsafe_resolve", lambda settings: bool(settings.egress.unsafe_resolve)),
    (
        "egress.networks.unsafe_plain_secrets",
        lambda settings: any(one.unsafe_plain_secrets for one in settings.egress.networks),
    ),
    ("webhooks without TLS", lambda settings: any(not one.url.startswith("https://") for one in settings.webhooks)),
    (
        "witnesses without TLS",
        lambda settings: any(not one.url.startswith("https://") for one in settings.evidence.witnesses),
    ),
    ("egress.proxy_secret without TLS", _is_proxy_secret_in_clear),
    ("telemetry.otlp.endpoint without TLS", _sends_spans_in_clear),
    ("opa_url without TLS", _sends_policy_in_clear),
    ("ledger.url without TLS", _sends_ledger_in_clear),
    ("response_schema_enforcement=warn", lambda settings: settings.response_schema_enforcement == "warn"),
    ("unsafe_degraded_sandbox", lambda settings: settings.unsafe_degraded_sandbox),
)


def weakened(settings: Settings) -> tuple[str, ...]:
    """Names of what these settings weaken, for the log, status and every audit event."""
    named = (name for name, is_weak in WEAKNESSES if is_weak(settings))
    return (*named, *(f"sandbox without {wall}" for wall in settings.walls.missing))
