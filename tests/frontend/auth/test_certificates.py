"""Leases by client certificates: one table of good and hostile ones, each shown to a whole front with its notary."""

import base64
import ipaddress
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from frontend.auth.certificates import CertificateJudge
from frontend.clock import FrontClock
from frontend.errors import GateError
from ipc.configuration.certificates import CertificateSettings
from ipc.configuration.issuers import IssuerSettings, SubjectMapping
from ipc.process.clock import parse_iso
from ipc.settings import IdentitySettings, PrincipalMapping
from tests.support.client_certificates import byte_sequence, client_certificate, dns, email, uri
from tests.support.coded import Coded
from tests.support.front_core import Core, front_core
from tests.support.proofs import Key

EDGE, LOCAL = 991, 1004
AGENT = Key()
ROWS = (
    CertificateSettings("spiffe://corp/agent/*", "agent:{*}", ("tools:call", "a:b"), "team"),
    CertificateSettings("spiffe://corp/agent/root", "the-root-agent"),
    CertificateSettings("*.agents.example", "host:{san}"),
    CertificateSettings("bob@corp.example", "bob"),
    CertificateSettings("spiffe://corp/ns/*/sa/*", "host:{san}"),
    CertificateSettings("spiffe://corp/ns/*", "host:{san}"),
    CertificateSettings("uid://corp/*", "{san}"),
    CertificateSettings("dev://corp", "{san}"),
)
A = uri("spiffe://corp/agent/a")
Make = Callable[[float], str]


def shown(*names: x509.GeneralName, begins: int = -50, ends: int = 1000, padding: int = 0) -> Make:
    return lambda now: byte_sequence(client_certificate(names, now + begins, now + ends, padding))


def spelt(change: Callable[[str], str]) -> Make:
    return lambda now: change(shown(A)(now))


def with_negative_serial(certificate: bytes) -> bytes:
    """RFC 5280 does not allow it."""
    first = certificate.index(b"\xa0\x03\x02\x01\x02\x02") + 7
    return certificate[:first] + bytes([certificate[first] | 0x80]) + certificate[first + 1 :]


GOOD: dict[str, tuple[Make, str, str]] = {
    "a URI": (shown(A), "agent:a", "spiffe://corp/agent/a"),
    "a URI of a more special row": (shown(uri("spiffe://corp/agent/root")), "the-root-agent", "spiffe://corp/agent/root"),
    "a DNS name": (shown(dns("a1.agents.example")), "host:a1.agents.example", "a1.agents.example"),
    "an address": (shown(email("bob@corp.example")), "bob", "bob@corp.example"),
    "a name beside names that no row has": (
        shown(dns("pod.cluster.local"), uri("spiffe://corp/agent/b"), email("x@y.example")), "agent:b", "spiffe://corp/agent/b",
    ),
    "a SPIFFE ID whole": (
        shown(uri("spiffe://corp/ns/a-b/sa/bot_1")), "host:spiffe:corp:ns:a-b:sa:bot_1", "spiffe://corp/ns/a-b/sa/bot_1",
    ),
    "a SPIFFE ID that is the beginning of others": (
        shown(uri("spiffe://corp/ns/a-b")), "host:spiffe:corp:ns:a-b", "spiffe://corp/ns/a-b",
    ),
    "a time that begins now": (shown(A, begins=0), "agent:a", "spiffe://corp/agent/a"),
    "spaces around": (spelt(lambda text: f" {text}\t"), "agent:a", "spiffe://corp/agent/a"),
}  # fmt: skip
HOSTILE: dict[str, Make] = {
    "no names": shown(), "no name that a row has": shown(uri("spiffe://evil/agent/a")),
    "a name of another kind": shown(dns("bob@corp.example")), "a URI that stands as a DNS name": shown(dns("spiffe://corp/agent/a")),
    "two URIs": shown(A, uri("spiffe://evil/x")),
    **{f"spelled as another URI is: {one}": shown(uri(one)) for one in (
        "spiffe://corp/ns/a:sa:b", "spiffe://corp/ns:a/sa/b", "spiffe://corp:ns/a/sa/b", "spiffe://corp:ns:a:sa:b",
        "spiffe:corp:ns:a:sa:b", "spiffe:corp/ns/a/sa/b", "spiffe:/corp/ns/a", "spiffe:///corp/ns/a", "spiffe://corp//ns/a",
        "spiffe://corp/ns/a/sa/", "spiffe://corp/ns/a/sa", "spiffe://corp/./ns/a", "spiffe://corp/ns/a%3Asa%3Ab",
    )},
    "spelled as a URI is, as a DNS name": shown(dns("spiffe:corp:ns:a")),
    "spelled as a DNS name is": shown(uri("a://agents.example")),
    "a whole URI that makes a user of this host": shown(uri("uid://corp/1004")),
    "a whole URI that makes a principal of dev mode": shown(uri("dev://corp")),
    "a whole URI that makes no principal": shown(uri("spiffe://corp/ns/~")),
    "a whole URI that is too long for a principal": shown(uri("spiffe://corp/ns/" + "a" * 260)),
    "two names of rows": shown(A, dns("a.agents.example")),
    "two names of one row": shown(dns("b.agents.example"), dns("a.agents.example")),
    "one name twice": shown(dns("a.agents.example"), dns("a.agents.example")),
    "many names": shown(*(dns(f"a{number}.example") for number in range(40)), dns("a.agents.example")),
    "a wildcard for a segment": shown(uri("spiffe://corp/agent/*")),
    "a wildcard for a label": shown(dns("*.agents.example")),
    "two segments": shown(uri("spiffe://corp/agent/a/b")), "no segment": shown(uri("spiffe://corp/agent/")),
    "an escaped slash": shown(uri("spiffe://corp/agent/a%2Fb")), "dots": shown(uri("spiffe://corp/agent/..")),
    "a segment that makes no principal": shown(uri("spiffe://corp/agent/~")),
    "a host of another case": shown(uri("spiffe://CORP/agent/a")),
    "a label of another case": shown(dns("A.agents.example")),
    "an address of another case": shown(email("Bob@corp.example")), "two labels": shown(dns("a.b.agents.example")),
    "a dot at the end": shown(dns("a.agents.example.")), "a NUL": shown(dns("a.agents.example\0.evil.example")),
    "a NUL at the end": shown(uri("spiffe://corp/agent/a\0")), "a new line": shown(uri("spiffe://corp/agent/a\n")),
    "an IDN that looks alike": shown(dns("a.xn--agents-6of.example")),
    "bytes beyond ASCII": lambda now: byte_sequence(
        client_certificate([dns("a.agents.example")], now - 9, now + 900).replace(b"a.agents", b"\xc3\xa9agents")
    ),
    "an address of IP": shown(x509.IPAddress(ipaddress.ip_address("10.0.0.1"))),
    "a long name": shown(uri("spiffe://corp/agent/" + "a" * 600)),
    "ended": shown(A, ends=-1), "ended this second": shown(A, ends=0),
    "not valid yet": shown(A, begins=5), "a huge certificate": shown(A, padding=13_000),
    "no byte sequence": spelt(lambda text: text.strip(":")), "no end": spelt(lambda text: text[:-1]),
    "a string": spelt(lambda text: f'"{text[1:-1]}"'), "a list": spelt(lambda text: f"{text}, {text}"),
    "a parameter": spelt(lambda text: text + ";a=1"), "base64url": spelt(lambda _: ":--__:"), "nothing": lambda _: "",
    "an empty sequence": lambda _: "::", "a wrong length": spelt(lambda text: f":A{text[1:]}"),
    "a NUL in it": spelt(lambda text: text + "\0"),
    "bytes behind": spelt(lambda text: byte_sequence(base64.b64decode(text[1:-1]) + b"\0")),
    "a serial number below zero": spelt(lambda text: byte_sequence(with_negative_serial(base64.b64decode(text[1:-1])))),
    "a part of one": spelt(lambda text: byte_sequence(base64.b64decode(text[1:-1])[:-9])),
    "PEM": lambda _: byte_sequence(b"-----BEGIN CERTIFICATE-----"), "zeros": lambda _: byte_sequence(bytes(500)),
}  # fmt: skip


def settings(*rows: CertificateSettings, **more: Any) -> IdentitySettings:
    users = {str(LOCAL): PrincipalMapping("billing")}
    return IdentitySettings(principals=users, edge_uids=(EDGE,), certificates=rows, **more)


pytestmark = pytest.mark.front(workers=0, identity=settings(*ROWS))


async def ask(core: Core, *headers: tuple[str, str], uid: int = EDGE) -> tuple[int, Any]:
    body = {"scopes": ["tools:call"], "dpop_jwk": AGENT.jwk}
    answer = await core.ask("POST", "/v1/leases", body, headers, uid=uid)
    return answer.status, msgspec.json.decode(answer.body)


async def test_good_certificates_give_leases_and_hostile_ones_none(core: Core) -> None:
    core.services.rates.take = lambda *_: None  # type: ignore[method-assign]
    core.clock.stop()
    for name, (make, principal, subject) in GOOD.items():
        status, body = await ask(core, ("client-cert", make(core.clock.right)))
        assert status == 200, (name, body)
        (event, *_) = await core.events(event_type="LeaseIssued", principal=principal)
        told = [event.get(one) for one in ("identity_method", "identity_issuer", "identity_subject")]
        assert told == ["x509", None, subject], name
    for name, make in HOSTILE.items():
        status, body = await ask(core, ("client-cert", make(core.clock.right)))
        assert (status, body.get("error")) == (403, "identity_forbidden"), (name, body)


async def test_a_row_says_owner_and_scopes(core: Core) -> None:
    for make, owner, scopes in (
        (shown(A), "team", ("tools:call", "a:b")),
        (shown(email("bob@corp.example")), None, ("tools:call",)),
    ):
        identity = core.services.remote.certificates.judge(make(core.clock.right))
        assert (identity.owner, identity.scopes_allowed) == (owner, scopes)


async def test_certificates_are_looked_at_from_the_edge_alone(core: Core) -> None:
    good = ("client-cert", shown(A)(core.clock.right))
    assert (await ask(core, good, uid=LOCAL))[0] == 200
    assert (await ask(core, ("client-cert", "nonsense"), uid=LOCAL))[0] == 200
    assert (await ask(core, good, uid=7))[0] == 403
    issued = await core.events(event_type="LeaseIssued", decision="allow")
    assert {(one["principal"], one["identity_method"]) for one in issued} == {("billing", "peercred")}


@pytest.mark.parametrize("more", [("client-cert", "again"), ("authorization", "Bearer a.b.c"), ("authorization", "")])
async def test_a_certificate_beside_another_credential_gives_no_lease(core: Core, more: tuple[str, str]) -> None:
    good = ("client-cert", shown(A)(core.clock.right))
    assert await ask(core, good, more) == (403, Coded("identity_forbidden"))


async def test_without_rows_a_certificate_is_not_looked_at(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0, identity=settings()) as core:
        status, _ = await ask(core, ("client-cert", shown(A)(core.clock.right)))
        assert status == 403
        (event,) = await core.events(event_type="LeaseIssued")
        assert "does not show exactly one" in event["reason"]


async def test_a_lease_never_outlives_its_certificate(core: Core) -> None:
    for life, least, most in ((40, 0, 40), (100_000, 290, 310)):
        now = core.clock.right
        _, body = await ask(core, ("client-cert", shown(A, ends=life)(now)))
        assert least <= parse_iso(body["expires_at"]) - int(now) <= most


@pytest.mark.parametrize("principal", ["billing", "corp", "the-root-agent", "gateway"])
async def test_a_form_makes_no_principal_of_another_caller(tmp_path: Path, principal: str) -> None:
    issuer = IssuerSettings(
        "corp", "https://login.example", ("a",), ("RS256",), "/none", principals={"x": SubjectMapping("corp")}
    )
    rows = (
        CertificateSettings("spiffe://corp/agent/*", "{*}"),
        CertificateSettings("bob@corp.example", "the-root-agent"),
    )
    async with front_core(tmp_path, workers=0, identity=settings(*rows, issuers=(issuer,))) as core:
        certificate = shown(uri(f"spiffe://corp/agent/{principal}"))(core.clock.right)
        assert await ask(core, ("client-cert", certificate)) == (403, Coded("identity_forbidden"))


WHOLE = client_certificate([uri("spiffe://corp/agent/a"), dns("pod.example")], 1_000_000_000, 4_000_000_000)


@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=3))
def test_a_certificate_with_other_bytes_is_read_whole_or_refused(changes: list[tuple[int, int]]) -> None:
    changed = bytearray(WHOLE)
    for place, byte in changes:
        changed[place] = byte
    judge = CertificateJudge(FrontClock(0.0), lambda: settings(*ROWS))
    with suppress(GateError):
        told = judge.judge(byte_sequence(bytes(changed)))
        assert told.principal == f"agent:{(told.subject or '').removeprefix('spiffe://corp/agent/')}"
