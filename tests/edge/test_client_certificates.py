"""Agents on other hosts with client certificates: an authority, a real edge that asks for them, and a real gateway."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from tests.support.authority import Authority
from tests.support.certificates import made_certificate
from tests.support.client_certificates import byte_sequence, dns, uri
from tests.support.edge_process import PUBLIC, Edge, edge, edge_config
from tests.support.gateway import Bearer, Gateway, Prover, gateway
from tests.support.issued_tokens import behind_an_edge, token
from tests.support.upstream import Upstream

ROWS = """
[[identity.certificates]]
san = "spiffe://corp/agent/*"
principal = "agent:{*}"
[[identity.certificates]]
san = "spiffe://corp/agent/anonymous"
principal = "dev:anonymous"
"""
KNOWN, OTHER = "spiffe://corp/agent/anonymous", "spiffe://corp/agent/billing"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("certificates")
    return made


@pytest.fixture(scope="module")
def authority(folder: Path) -> Authority:
    return Authority(folder, "clients")


@pytest.fixture(scope="module")
def gate(up: Upstream, folder: Path) -> Iterator[Gateway]:
    with gateway(folder, behind_an_edge(folder, up) + ROWS) as running:
        yield running


@pytest.fixture(scope="module")
def before(gate: Gateway, authority: Authority, folder: Path) -> Iterator[Edge]:
    roots = made_certificate(folder, "127.0.0.1")
    tls = f'[tls]\ncertificate_file = "certificate.pem"\nkey_file = "key.pem"\nclient_ca_file = "{authority.file}"\n'
    with edge(edge_config(folder, gate.ready["client_socket"], tls), roots) as running:
        yield running


def holder(authority: Authority, *names: x509.GeneralName) -> Path:
    """A file with a certificate of these names and its key."""
    issued = authority.issue("agent", *names)
    issued.certificate.write_bytes(issued.certificate.read_bytes() + issued.key.read_bytes())
    return issued.certificate


def asked(client: httpx.Client, prover: Prover, **headers: str) -> httpx.Response:
    return client.post("/v1/leases", json={"scopes": ["tools:call"], "dpop_jwk": prover.jwk}, headers=headers)


@pytest.mark.parametrize("http2", [False, True], ids=["HTTP/1.1", "HTTP/2"])
def test_a_certificate_gives_a_lease_and_its_calls_name_the_holder(
    before: Edge, gate: Gateway, authority: Authority, http2: bool
) -> None:
    client, prover = before.client(holder(authority, uri(KNOWN)), http2=http2), Prover()
    given = asked(client, prover)
    assert given.status_code == 200, given.text
    called = Bearer(client, PUBLIC, given.json()["lease_jwt"], prover).execute("text_digest", {"text": "a"})
    assert called.status_code == 200, called.text
    for kind in ("LeaseIssued", "ActionCall"):
        event = gate.events(event_type=kind)[0]
        assert event["lease_jti"] == given.json()["lease_jti"]
        told = [event.get(name) for name in ("principal", "identity_method", "identity_issuer", "identity_subject")]
        assert told == ["dev:anonymous", "x509", None, KNOWN]


def test_the_form_of_a_row_names_each_holder(before: Edge, gate: Gateway, authority: Authority) -> None:
    given = asked(before.client(holder(authority, uri(OTHER), dns("pod.example"))), Prover())
    assert given.status_code == 200, given.text
    event = gate.events(event_type="LeaseIssued")[0]
    assert (event["principal"], event["identity_subject"]) == ("agent:billing", OTHER)


@pytest.mark.parametrize("name", [uri("spiffe://evil/agent/a"), dns("agent.example")], ids=["URI", "DNS"])
def test_a_certificate_with_another_name_gives_no_lease(
    before: Edge, authority: Authority, name: x509.GeneralName
) -> None:
    answer = asked(before.client(holder(authority, name)), Prover())
    assert (answer.status_code, answer.json()["error"]) == (403, "identity_forbidden")


def test_a_certificate_that_is_only_shown_in_a_header_gives_no_lease(before: Edge, authority: Authority) -> None:
    shown = x509.load_pem_x509_certificate(holder(authority, uri(KNOWN)).read_bytes())
    text = byte_sequence(shown.public_bytes(serialization.Encoding.DER))
    assert asked(before.client(), Prover(), **{"Client-Cert": text}).status_code == 403
    # Nor does it take the place of the one that was proven.
    mine = before.client(holder(authority, uri("spiffe://evil/agent/a")))
    assert asked(mine, Prover(), **{"Client-Cert": text}).status_code == 403


def test_a_certificate_of_another_authority_gives_no_connection(before: Edge, tmp_path: Path) -> None:
    with pytest.raises(httpx.TransportError):
        asked(before.client(holder(Authority(tmp_path, "clients"), uri(KNOWN))), Prover())


def test_a_token_beside_a_certificate_gives_no_lease(before: Edge, authority: Authority) -> None:
    bearer = {"Authorization": f"Bearer {token()}"}
    assert asked(before.client(), Prover(), **bearer).status_code == 200
    assert asked(before.client(holder(authority, uri(KNOWN))), Prover(), **bearer).status_code == 403


def test_no_log_has_a_word_of_a_certificate(before: Edge, gate: Gateway, authority: Authority) -> None:
    asked(before.client(holder(authority, uri("spiffe://evil/agent/unheard-of"))), Prover())
    assert "unheard-of" not in json.dumps(gate.lines()) + before.log.read_text()
