"""The rules that refuse a start outside dev mode, one test each, and the warnings about weak settings."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.configuration.networks import NetworkSettings
from ipc.configuration.telemetry import OtlpSettings, TelemetrySettings
from ipc.settings import (
    EgressSettings,
    EvidenceSettings,
    IdentitySettings,
    LedgerSettings,
    LimitSettings,
    OperatorSettings,
    Settings,
    WebhookSettings,
    WitnessSettings,
)
from supervisor.settings.checks.production import RULES, broken_rules, weakened

ADA = OperatorSettings(name="ada", dpop_jkt="x" * 42 + "w", api_key_sha256="0" * 64)
HOOK = WebhookSettings(name="chat", url="https://hooks.example/", secret="s" * 16)
WITNESS = WitnessSettings(name="city", url="https://witness.example", key="k")
SAFE = Settings(
    state_dir="/var/lib/gateway",
    public_base_url="https://gate.example",
    receipt_signing_key_path="/k/receipt.pem",
    grant_signing_key_path="/k/grant.pem",
    receipt_keys_jwks_path="/k/jwks.json",
    operators=(ADA,),
    webhooks=(HOOK,),
    evidence=EvidenceSettings((WITNESS,)),
)

BROKEN: list[tuple[dict[str, Any], tuple[str | int, ...], str]] = [
    ({"identity": IdentitySettings(provider="none")}, ("identity", "provider"), 'Use "peercred".'),
    (
        {"identity": IdentitySettings(allow_unmapped=True)},
        ("identity", "peercred", "allow_unmapped"),
        "Map each user id",
    ),
    ({"operators": ()}, ("operators",), "Name at least one"),
    (
        {"operators": (ADA, OperatorSettings(name="bob", api_key_sha256="1" * 64))},
        ("operators", 1, "dpop_jkt"),
        'operators[1].dpop_jkt of "bob": is missing',
    ),
    ({"listen_http_addr": "127.0.0.1:3000"}, ("listen_http_addr",), "Use the Unix sockets."),
    (
        {"listen_http_addr": "0.0.0.0:3000", "unsafe_expose_http": True},
        ("listen_http_addr",),
        'listen_http_addr = "0.0.0.0:3000": plain text beyond loopback is not allowed in production.',
    ),
    ({"egress": EgressSettings(unsafe_resolve={"a.test": "127.0.0.1:1"})}, ("egress", "unsafe_resolve"), "Remove it."),
    ({"receipt_signing_key_path": None}, ("receipt_signing_key_path",), "is missing"),
    ({"grant_signing_key_path": None}, ("grant_signing_key_path",), "is missing"),
    ({"receipt_keys_jwks_path": None}, ("receipt_keys_jwks_path",), "is missing"),
    ({"response_schema_enforcement": "warn"}, ("response_schema_enforcement",), 'Use "deny".'),
    (
        {"webhooks": (HOOK, msgspec.structs.replace(HOOK, name="plain", url="http://hooks.example/"))},
        ("webhooks", 1, "url"),
        'webhooks[1].url of "plain": http is not allowed in production. ',
    ),
    ({"limits": LimitSettings(drain_seconds=29.9)}, ("limits", "drain_seconds"), "under 30 is not allowed"),
    (
        {"evidence": EvidenceSettings((msgspec.structs.replace(WITNESS, url="http://witness.example"),))},
        ("evidence", "witnesses", 0, "url"),
        'evidence.witnesses[0].url of "city": http is not allowed in production. ',
    ),
    (
        {"egress_proxy_url": "http://10.0.0.1:3128", "egress": EgressSettings(proxy_secret="way")},
        ("egress", "proxy_secret"),
        "egress.proxy_secret: shown to a proxy at http beyond this host is not allowed in production. An eavesdropper",
    ),
    (
        {"telemetry": TelemetrySettings(OtlpSettings("http://otlp.example:4318"))},
        ("telemetry", "otlp", "endpoint"),
        "telemetry.otlp.endpoint: http beyond loopback is not allowed in production. Callers, calls and the collector",
    ),
    (
        {"opa_url": "http://opa.example:8181"},
        ("opa_url",),
        "opa_url: http beyond loopback is not allowed in production. A host that answers in its place decides",
    ),
    (
        {"ledger": LedgerSettings(url="postgresql://db.example/ledger")},
        ("ledger", "url"),
        "ledger.url: a PostgreSQL on another host without TLS is not allowed in production. Evidence could be read",
    ),
]


def test_a_safe_configuration_breaks_no_rule() -> None:
    assert broken_rules(SAFE) == []
    assert weakened(SAFE) == ()


def test_the_page_on_production_has_every_rule_with_its_reason_in_order() -> None:
    page = (Path(__file__).resolve().parents[4] / "docs" / "production.md").read_text()
    table = page.partition("## What a start refuses")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("| `")]
    (of_manifests,) = [row for row in rows if row[0] == "`egress.profile` of a manifest"]
    rows.remove(of_manifests)
    assert [(row[0].strip("`"), row[2]) for row in rows] == [(rule.setting, rule.reason) for rule in RULES]
    assert all(refused and instead for _, refused, _, instead in rows)


def test_every_rule_has_a_row_here() -> None:
    assert len(BROKEN) == len(RULES)


@pytest.mark.parametrize(("changes", "path", "said"), BROKEN)
def test_each_rule_refuses_what_breaks_it_and_says_where_and_what_to_do(
    changes: dict[str, Any], path: tuple[str | int, ...], said: str
) -> None:
    (finding,) = broken_rules(msgspec.structs.replace(SAFE, **changes))
    assert finding.path == path
    assert said in f"{finding.text} {finding.mend}"


@pytest.mark.parametrize(("changes", "weakness"), [
    ({"listen_http_addr": "127.0.0.1:3000", "unsafe_expose_http": True}, "unsafe_expose_http"),
    ({"opa_url": "http://10.0.0.1:8181", "unsafe_opa_http": True}, "opa_url without TLS"),
])  # fmt: skip
def test_an_address_that_is_named_unsafe_is_served_and_shown_as_weakened(
    changes: dict[str, Any], weakness: str
) -> None:
    settings = msgspec.structs.replace(SAFE, **changes)
    assert broken_rules(settings) == []
    assert weakened(settings) == (weakness,)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"dev_mode": True}, "dev_mode"),
        ({"identity": IdentitySettings(provider="none")}, "identity.provider=none"),
        ({"identity": IdentitySettings(allow_unmapped=True)}, "identity.peercred.allow_unmapped"),
        ({"operators": (OperatorSettings(name="bob", api_key_sha256="1" * 64),)}, "operators without dpop_jkt"),
        (
            {"egress": EgressSettings(networks=(NetworkSettings("n", unsafe_plain_secrets=True),))},
            "egress.networks.unsafe_plain_secrets",
        ),
        ({"egress": EgressSettings(unsafe_resolve={"a.test": "127.0.0.1:1"})}, "egress.unsafe_resolve"),
        ({"response_schema_enforcement": "warn"}, "response_schema_enforcement=warn"),
    ],
)
def test_each_weakness_has_a_name(changes: dict[str, Any], name: str) -> None:
    assert weakened(msgspec.structs.replace(SAFE, **changes)) == (name,)


@pytest.mark.parametrize(
    "url", ["https://opa.example", "unix:///run/opa.sock", "http://127.0.0.1:8181", "http://[::1]"]
)
def test_an_authenticated_opa_is_accepted(url: str) -> None:
    settings = msgspec.structs.replace(SAFE, opa_url=url)
    assert broken_rules(settings) == []
    assert weakened(settings) == ()


@pytest.mark.parametrize("address", ["0.0.0.0:1", "[::]:1", "10.0.0.1:1"])
def test_a_listener_that_the_network_reaches_is_refused_and_in_dev_mode_named(address: str) -> None:
    settings = msgspec.structs.replace(SAFE, listen_http_addr=address, unsafe_expose_http=True)
    assert [finding.path for finding in broken_rules(settings)] == [("listen_http_addr",)]
    assert weakened(settings) == ("unsafe_expose_http", "listen_http_addr beyond loopback")
