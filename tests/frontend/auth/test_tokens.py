"""Leases by tokens of issuers: one table of good and hostile tokens, each shown to a whole front with its notary."""

import base64
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import jwt
import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from ipc.configuration.issuers import IssuerSettings, SubjectMapping
from ipc.process.clock import parse_iso
from ipc.settings import IdentitySettings, PrincipalMapping
from tests.support.front_core import Core, front_core
from tests.support.proofs import Key

EDGE, LOCAL = 991, 1004
ISSUER, OTHER, AUDIENCE = "https://login.example", "https://other.example", "https://gate.example"
EC_KEY, OTHER_KEY = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
RSA_KEY, WEAK = rsa.generate_private_key(65537, 2048), rsa.generate_private_key(65537, 1024)
AGENT = Key()
Make = Callable[[float], str]


def public(key: Any, kid: str, **more: Any) -> dict[str, Any]:
    kind = jwt.algorithms.ECAlgorithm if isinstance(key, ec.EllipticCurvePrivateKey) else jwt.algorithms.RSAAlgorithm
    return {**kind.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig"} | more


def pem(key: rsa.RSAPrivateKey) -> bytes:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form)


def row(folder: Path, **changes: Any) -> IssuerSettings:
    given: dict[str, Any] = {
        "name": "corp", "issuer": ISSUER, "audience": (AUDIENCE,), "jwks_file": str(folder / "corp.jwks"),
        "algorithms": ("ES256", "RS256"), "principal": "corp:{sub}", "owner": "team", "scopes": ("tools:call", "a:b"),
    }  # fmt: skip
    return IssuerSettings(**given | changes)


def other_row(folder: Path) -> IssuerSettings:
    return row(folder, name="other", issuer=OTHER, jwks_file=str(folder / "other.jwks"), principal="other:{sub}")


def write_keys(folder: Path) -> None:
    keys = [public(EC_KEY, "e"), public(RSA_KEY, "r"), public(WEAK, "weak"), public(EC_KEY, "enc", use="enc")]
    keys += [public(EC_KEY, "spiffe", use="jwt-svid"), public(EC_KEY, "ca", use="x509-svid")]
    keys += [public(EC_KEY, "twice"), public(OTHER_KEY, "twice")]
    (folder / "corp.jwks").write_text(json.dumps({"keys": keys}))
    (folder / "other.jwks").write_text(json.dumps({"keys": [public(OTHER_KEY, "e")]}))


def token(
    key: Any = EC_KEY, alg: str = "ES256", kid: Any = "e", head: dict[str, Any] | None = None, **more: Any
) -> Make:
    """A token that is made when it is shown: times among `more` count from then; None leaves a claim out."""

    def make(now: float) -> str:
        claims: dict[str, Any] = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "iat": 0, "exp": 100} | more
        for name in ("iat", "nbf", "exp"):
            if type(claims.get(name)) is int:
                claims[name] += int(now)
        kept = {name: value for name, value in claims.items() if value is not None}
        header = {name: value for name, value in {"kid": kid, **(head or {})}.items() if value is not None}
        return jwt.api_jws.encode(json.dumps(kept).encode(), key, alg, headers=header)

    return make


def forged(alg: str, kid: str = "e") -> Make:
    def make(now: float) -> str:
        header, rest = {"alg": alg, "typ": "JWT", "kid": kid}, token()(now).split(".")[1]
        return f"{base64.urlsafe_b64encode(json.dumps(header).encode()).decode().rstrip('=')}.{rest}.AAAA"

    return make


def hmac_with(secret: bytes) -> Make:
    """Signed with the public key as if it were a secret: PyJWT refuses to make it, so it is made by hand."""
    import hashlib
    import hmac

    def make(now: float) -> str:
        head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT","kid":"r"}').decode().rstrip("=")
        signed = f"{head}.{token()(now).split('.')[1]}"
        mac = hmac.new(secret, signed.encode(), hashlib.sha256).digest()
        return f"{signed}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"

    return make


GOOD: dict[str, Make] = {
    "ES256": token(), "RS256": token(RSA_KEY, "RS256", "r"), "an array of audiences": token(aud=["x", AUDIENCE]),
    "nbf within the leeway": token(nbf=25), "iat within the leeway": token(iat=25), "no iat": token(iat=None),
    "a key of a SPIFFE bundle": token(kid="spiffe"),
    "an id of a key that only its algorithm tells": token(RSA_KEY, "RS256", "r", typ="at+jwt"),
}  # fmt: skip
HOSTILE: dict[str, Make] = {
    "alg none": forged("none"), "alg None": forged("None"), "alg of another case": forged("es256"),
    "an algorithm of no row": token(RSA_KEY, "RS512", "r"), "HS256 with the public key": hmac_with(pem(RSA_KEY)),
    "RS256 over an EC key": forged("RS256"), "ES256 over an RSA key": forged("ES256", "r"),
    "another audience": token(aud="https://else.example"), "no audience": token(aud=None),
    "an audience that only begins so": token(aud=AUDIENCE + "/"), "an audience of another type": token(aud=7),
    "an unknown issuer": token(iss="https://evil.example"), "no issuer": token(iss=None),
    "an issuer with a slash more": token(iss=ISSUER + "/"), "an issuer of another case": token(iss=ISSUER.upper()),
    "issuers in an array": token(iss=[ISSUER]), "the key of another issuer": token(OTHER_KEY),
    "another issuer's token with our issuer's name": token(OTHER_KEY, iss=ISSUER),
    "our key under the other issuer's name": token(iss=OTHER),
    "an unknown kid": token(kid="z"), "no kid where several keys fit": token(kid=None),
    "a kid of two keys": token(kid="twice"), "a kid that is a path": token(kid="../../../dev/null"),
    "a key for encryption": token(kid="enc"), "a key of authorities of certificates": token(kid="ca"),
    "a weak RSA key": token(WEAK, "RS256", "weak"),
    "a key in the header": token(OTHER_KEY, kid=None, head={"jwk": public(OTHER_KEY, "e")}),
    "an address of keys in the header": token(OTHER_KEY, head={"jku": "https://evil.example/keys", "kid": "n"}),
    "an extension": token(head={"crit": ["x"], "x": 1}),
    "a nested token": lambda now: jwt.encode({"iss": ISSUER, "p": token()(now)}, EC_KEY, "ES256", {"cty": "JWT"}),
    "an encrypted token": lambda _: "e30.e30.e30.e30.e30", "no token": lambda _: "", "a word": lambda _: "word",
    "a huge token": token(x="a" * 20_000), "a huge header": token(head={"x": "a" * 5000}),
    "deep claims": lambda _: f"{'e30'}.{base64.urlsafe_b64encode(b'[' * 9000).decode().rstrip('=')}.AAAA",
    "ended this second": token(exp=0), "ended": token(exp=-1), "no end": token(exp=None),
    "an end that is a text": token(exp="2999999999"), "an end beyond numbers": token(exp=2.0**60),
    "nbf beyond the leeway": token(nbf=40), "iat beyond the leeway": token(iat=40), "nbf of true": token(nbf=True),
    "no subject": token(sub=None), "an empty subject": token(sub=""), "a subject with a line": token(sub="a\nb"),
    "a long subject": token(sub="a" * 600), "a subject that makes no principal": token(sub="a/b"),
    **{f"no SPIFFE ID: {one}": token(sub=one) for one in (
        "spiffe:corp:agent:a", "spiffe://corp/a:b", "spiffe://corp/", "spiffe://corp//a", "spiffe://corp/../a",
        "spiffe://corp/./a", "spiffe://Corp/a", "spiffe:///a", "spiffe://corp/a?b", "spiffe://u@corp/a", "SPIFFE://c/a",
    )},
}  # fmt: skip


async def ask(core: Core, shown: str | None, uid: int = EDGE, *more: tuple[str, str]) -> tuple[int, Any]:
    headers = [*([] if shown is None else [("authorization", f"Bearer {shown}")]), *more]
    body = {"scopes": ["tools:call"], "dpop_jwk": AGENT.jwk}
    answer = await core.ask("POST", "/v1/leases", body, headers, uid=uid)
    return answer.status, msgspec.json.decode(answer.body)


def settings(*rows: IssuerSettings) -> IdentitySettings:
    users = {str(LOCAL): PrincipalMapping("billing")}
    return IdentitySettings(principals=users, edge_uids=(EDGE,), issuers=rows)


def issuing(folder: Path, *rows: IssuerSettings, **changes: Any) -> AbstractAsyncContextManager[Core]:
    """A front of these issuers, or of one, whose keys lie in the folder."""
    write_keys(folder)
    return front_core(folder, identity=settings(*(rows or (row(folder),))), **{"workers": 0} | changes)


@pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")  # an issuer may have a weak key
async def test_good_tokens_give_leases_and_hostile_ones_none(tmp_path: Path) -> None:
    async with issuing(tmp_path, row(tmp_path), other_row(tmp_path)) as core:
        core.services.rates.take = lambda *_: None  # type: ignore[method-assign]
        for name, make in GOOD.items():
            status, body = await ask(core, make(core.clock.right))
            assert status == 200, (name, body)
        (event, *_) = await core.events(event_type="LeaseIssued")
        fields = ("principal", "owner", "identity_method", "identity_issuer", "identity_subject")
        assert [event[one] for one in fields] == ["corp:alice", "team", "jwt", ISSUER, "alice"]
        for name, make in HOSTILE.items():
            status, body = await ask(core, make(core.clock.right))
            assert (status, body.get("error")) == (403, "identity_forbidden"), (name, body)
        assert {one["decision"] for one in await core.events(event_type="LeaseIssued")} == {"allow", "deny"}


async def test_a_spiffe_id_makes_a_principal_of_its_own(tmp_path: Path) -> None:
    async with issuing(tmp_path, row(tmp_path, principal="{sub}")) as core:
        for subject in ("spiffe://corp/ns/a-b/sa/bot_1", "spiffe://corp", "corp:ns:a"):
            assert (await ask(core, token(sub=subject)(core.clock.right)))[0] == 200
        events = await core.events(event_type="LeaseIssued")
        assert [(one["principal"], one["identity_subject"]) for one in reversed(events)] == [
            ("spiffe:corp:ns:a-b:sa:bot_1", "spiffe://corp/ns/a-b/sa/bot_1"),
            ("spiffe:corp", "spiffe://corp"),
            ("corp:ns:a", "corp:ns:a"),
        ]


async def test_a_token_of_a_kubernetes_service_account_names_it(tmp_path: Path) -> None:
    """Claims as the API server signs them (Kubernetes, "Managing Service Accounts", bound tokens)."""
    bound = {"namespace": "agents", "node": {"name": "n1", "uid": "u1"}, "pod": {"name": "bot-7d9", "uid": "u2"},
             "serviceaccount": {"name": "bot", "uid": "u3"}, "warnafter": 1_900_000_000}  # fmt: skip
    subject = "system:serviceaccount:agents:bot"
    shown = token(
        RSA_KEY, "RS256", "r", {"typ": ""}, aud=[AUDIENCE], sub=subject, nbf=0, jti="6f1c", **{"kubernetes.io": bound}
    )  # fmt: skip
    async with issuing(tmp_path, row(tmp_path, principal="k8s:{sub}")) as core:
        assert jwt.get_unverified_header(shown(core.clock.right)) == {"alg": "RS256", "kid": "r"}
        assert (await ask(core, shown(core.clock.right)))[0] == 200
        (event,) = await core.events(event_type="LeaseIssued")
        assert (event["principal"], event["identity_subject"]) == (f"k8s:{subject}", subject)


async def test_one_subject_of_two_issuers_is_two_principals(tmp_path: Path) -> None:
    async with issuing(tmp_path, row(tmp_path), other_row(tmp_path)) as core:
        for make in (token(), token(OTHER_KEY, iss=OTHER)):
            assert (await ask(core, make(core.clock.right)))[0] == 200
        told = {one["principal"] for one in await core.events(event_type="LeaseIssued")}
        assert told == {"corp:alice", "other:alice"}


async def test_a_principal_behind_the_edge_takes_no_leases_of_another_one(tmp_path: Path) -> None:
    async with issuing(tmp_path) as core:
        core.services.rates._buckets["lease"]._clock = lambda: 0.0  # stands still
        alice, bob = (token(sub=name)(core.clock.right) for name in ("alice", "bob"))
        answers = [(await ask(core, alice))[0] for _ in range(51)]
        assert answers == [200] * 50 + [429]
        assert (await ask(core, bob))[0] == 200
        assert (await ask(core, None, LOCAL))[0] == 200


async def test_only_the_edge_shows_tokens_and_it_must(tmp_path: Path) -> None:
    async with issuing(tmp_path) as core:
        good = token()(core.clock.right)
        assert (await ask(core, None))[0] == 403
        assert (await ask(core, good, EDGE, ("authorization", f"Bearer {good}")))[0] == 403
        assert (await ask(core, None, EDGE, ("authorization", f"DPoP {good}")))[0] == 403
        assert (await ask(core, good, LOCAL))[0] == 200
        assert (await ask(core, "nonsense", LOCAL))[0] == 200
        assert (await ask(core, good, 7))[0] == 403
        issued = await core.events(event_type="LeaseIssued", decision="allow")
        assert {(one["principal"], one["identity_method"]) for one in issued} == {("billing", "peercred")}


async def test_a_lease_never_outlives_its_token(tmp_path: Path) -> None:
    async with issuing(tmp_path) as core:
        ends = {}
        for life in (40, 100_000):
            now = core.clock.right
            _, body = await ask(core, token(exp=life)(now))
            ends[life] = parse_iso(body["expires_at"]) - int(now)
        assert ends[40] <= 40
        assert 290 <= ends[100_000] <= 310


@pytest.mark.parametrize(
    ("changes", "claims", "principal"),
    [
        ({"require": {"groups": "agents", "ok": True}}, {"groups": ["x", "agents"], "ok": True}, "corp:alice"),
        ({"require": {"groups": "agents"}}, {"groups": "agents2"}, None),
        ({"require": {"ok": True}}, {"ok": 1}, None),
        ({"require": {"ok": True}}, {}, None),
        ({"principals": {"alice": SubjectMapping("billing", ("tools:call",))}}, {}, "billing"),
        ({"principals": {"bob": SubjectMapping("billing")}}, {}, None),
        ({"principal": "{sub}"}, {"sub": "billing"}, None),
        ({"principal": "{sub}"}, {"sub": "operator:root"}, None),
        ({"principal": "{sub}"}, {"sub": "uid:1004"}, None),
        ({"principal": "{sub}"}, {"sub": "gateway"}, None),
        ({"principal": "{azp}"}, {"azp": "client-7"}, "client-7"),
        ({"principal": "{azp}"}, {"azp": 7}, None),
    ],
)
async def test_the_row_says_which_principal_a_subject_is(
    tmp_path: Path, changes: dict[str, Any], claims: dict[str, Any], principal: str | None
) -> None:
    async with issuing(tmp_path, row(tmp_path, **changes)) as core:
        status, _ = await ask(core, token(**claims)(core.clock.right))
        assert status == (403 if principal is None else 200)
        (event,) = await core.events(event_type="LeaseIssued")
        assert event["principal"] == (f"uid:{EDGE}" if principal is None else principal)


async def test_the_file_of_keys_is_followed_and_without_it_tokens_get_503(tmp_path: Path) -> None:
    file = tmp_path / "corp.jwks"
    private = {**public(EC_KEY, "e"), "d": "AA"}
    async with front_core(tmp_path, workers=0, identity=settings(row(tmp_path))) as core:
        core.services.rates.take = lambda *_: None  # type: ignore[method-assign]
        for text, status in (
            (None, 503), ("{", 503), (json.dumps({"keys": [private]}), 503), ('{"keys": []}', 403),
            (json.dumps({"keys": [public(EC_KEY, "e")]}), 200), (json.dumps({"keys": [public(OTHER_KEY, "e")]}), 403),
            (json.dumps({"keys": [{"kty": "oct", "k": "AA", "kid": "e"}]}), 503), ("x" * 300_000, 503),
        ):  # fmt: skip
            if text is not None:
                (tmp_path / "next").write_text(text)
                (tmp_path / "next").rename(file)
            told, body = await ask(core, token()(core.clock.right))
            assert told == status, (text, body)
            if status == 503:
                assert body["error"] == "identity_provider_unavailable"
