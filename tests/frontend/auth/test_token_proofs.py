"""Proofs of clients of the edge's `/mcp`, as an edge that was taken over could hand them on."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from frontend.limits.rates import PER_SECOND
from frontend.notary.errors import NotaryUnavailable
from ipc.settings import LimitSettings
from tests.frontend.auth.test_tokens import EDGE, issuing, token
from tests.support.coded import Coded
from tests.support.front_core import Core, refuses
from tests.support.proofs import Key, proof

HOLDER, OWN = Key(), Key()
"""The client, and the edge."""
LEASES, PROOFS = "/v1/leases", "/v1/proofs"


async def ask(core: Core, path: str, *headers: tuple[str, str], uid: int = EDGE) -> tuple[int, Any]:
    body = {"scopes": ["tools:call"], "dpop_jwk": OWN.jwk} if path == LEASES else b""
    answer = await core.ask("POST", path, body, headers, uid=uid)
    return answer.status, msgspec.json.decode(answer.body)


def dpop(shown: str) -> tuple[str, str]:
    return "authorization", f"DPoP {shown}"


class Client:
    def __init__(self, core: Core, **claims: Any) -> None:
        self._now = core.clock.right
        self._base = core.services.settings.public_base_url
        self.token = token(**({"cnf": {"jkt": HOLDER.jkt}} | claims))(self._now)

    def proof(self, key: Key = HOLDER, path: str = "/mcp") -> tuple[str, str]:
        return "client-dpop", proof(key, "POST", f"{self._base}{path}", self.token, now=self._now)

    @property
    def good(self) -> list[tuple[str, str]]:
        return [dpop(self.token), self.proof()]


async def test_token_and_proof_of_its_holder_give_a_lease_for_the_edge_s_key_and_the_proof_is_used(
    tmp_path: Path,
) -> None:
    async with issuing(tmp_path) as core:
        client = Client(core)
        for first, second in ((LEASES, PROOFS), (PROOFS, LEASES), (LEASES, LEASES), (PROOFS, PROOFS)):
            good = client.good
            assert (await ask(core, first, *good))[0] == 200
            assert await ask(core, second, *good) == (401, Coded("replay_detected"))
        (issued, *_) = await core.events(event_type="LeaseIssued", decision="allow")
    assert (issued["identity_method"], issued["token_binding"]) == ("jwt", "dpop")


async def test_a_bound_token_gives_the_edge_nothing_without_one_good_proof_for_mcp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PER_SECOND, "unidentified", 100)
    async with issuing(tmp_path) as core:
        client, unbound = Client(core), Client(core, cnf=None)
        plain = token()(core.clock.right)
        bearer = ("authorization", f"Bearer {client.token}")
        forbidden, refused = (403, "identity_forbidden"), (401, "invalid_dpop")
        table = {
            "no proof": ([dpop(client.token)], forbidden),
            "two proofs": ([dpop(client.token), client.proof(), client.proof()], forbidden),
            "two tokens": ([dpop(client.token), *client.good], forbidden),
            "as a bearer token": ([bearer], forbidden),
            "as a bearer token with a proof": ([bearer, client.proof()], forbidden),
            "the proof in the place of the edge's own": ([dpop(client.token), ("dpop", client.proof()[1])], forbidden),
            "a token without a binding": ([dpop(plain), client.proof()], forbidden),
            "a binding of null": ([dpop(unbound.token), unbound.proof()], forbidden),
            "the edge's key": ([dpop(client.token), client.proof(OWN)], refused),
            "for the leases": ([dpop(client.token), client.proof(path=LEASES)], refused),
            "of another token": ([dpop(client.token), Client(core, jti="other").proof()], refused),
        }
        for name, (headers, wanted) in table.items():
            for path in (LEASES, PROOFS):
                status, body = await ask(core, path, *headers)
                assert (status, body["error"]) == wanted, (name, path)
        assert await core.events(event_type="LeaseIssued", decision="allow") == []


async def test_a_user_who_is_no_edge_has_no_proof_judged(tmp_path: Path) -> None:
    async with issuing(tmp_path) as core:
        good = Client(core).good
        assert await ask(core, PROOFS, *good, uid=EDGE + 1) == (403, Coded("identity_forbidden"))
        assert (await ask(core, PROOFS, *good))[0] == 200


async def test_a_refused_proof_is_in_evidence_without_a_word_of_token_and_proof(tmp_path: Path) -> None:
    async with issuing(tmp_path) as core:
        client = Client(core)
        assert (await ask(core, PROOFS, dpop(client.token), client.proof(OWN)))[0] == 401
        (event,) = await core.events(event_type="ActionCall")
    assert (event["decision"], event["error_code"], event["attempts"]) == (
        "deny", "invalid_dpop", {"count": 1, "uid": EDGE},
    )  # fmt: skip
    assert event["reason"] == "key is not the one that the token is bound to"
    assert client.token not in str(event)


async def test_proofs_of_one_key_are_bounded_by_second_and_those_of_others_go_on(tmp_path: Path) -> None:
    async with issuing(tmp_path, limits=LimitSettings(session_requests_per_second=2)) as core:
        core.services.authentication.sessions._sessions._clock = lambda: 1000.0  # stands still
        client = Client(core)
        statuses = [(await ask(core, PROOFS, *client.good))[0] for _ in range(3)]
        assert statuses == [200, 200, 429]
        other = Client(core, cnf={"jkt": OWN.jkt})
        assert (await ask(core, PROOFS, dpop(other.token), other.proof(OWN)))[0] == 200


@pytest.mark.parametrize("path", [LEASES, PROOFS])
async def test_while_the_notary_can_t_say_whether_a_proof_is_new_it_is_not_taken(tmp_path: Path, path: str) -> None:
    async with issuing(tmp_path) as core:
        core.client.faults["UseProof"] = refuses(NotaryUnavailable("the database is gone", "store"))
        assert await ask(core, path, *Client(core).good) == (503, Coded("replay_cache_unavailable"))
