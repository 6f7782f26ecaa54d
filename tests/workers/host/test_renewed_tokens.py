"""The host after an upstream has refused a token: when it asks for another one, and when it must not."""

import pytest

from ipc.configuration.secret_ways import AnySecretWay, AsHeader, AsToken
from ipc.plan import SecretUse
from tests.support.http_host import Client, request
from tests.support.worker_plans import http_plan
from tests.support.worker_upstream import Answer, ok, upstream
from workers.host.meter import HostError

FIRST, SECOND = "first-token-1", "second-token-2"
TOKEN = AsToken("https://login.test/token", "client")
REFUSED = ok(b"{}", "401 Unauthorized")


class Scene:
    """A host and what was asked of its front."""

    def __init__(self, address: str, way: AnySecretWay = TOKEN, *, domain: str = "upstream.test", budget: int = 10):
        self.asked: list[str] = []
        use = SecretUse("token", way=way, domains=(domain,))
        plan = http_plan(address=address, secrets=(use,))
        self.client = Client(plan, secrets={"token": FIRST}, budget=budget, renew=self.renew)

    def renew(self, name: str, seconds: float) -> str:
        assert 0 < seconds <= 10
        self.asked.append(name)
        return SECOND


def test_a_call_asks_once_and_its_later_requests_have_the_other_token() -> None:
    with upstream(REFUSED) as up:
        scene = Scene(up.address)
        assert [scene.client.send(request()).status for _ in range(2)] == [401, 401]
        assert scene.asked == ["token"]
        assert [FIRST.encode() in one for one in up.requests] == [True, False, False]
    assert [seen.resent for seen in scene.client.meter.observations] == [True, False, False]
    assert scene.client.meter.io_calls == 3


@pytest.mark.parametrize(
    ("answer", "changes"),
    [
        (ok(), {}),
        (ok(b"{}", "403 Forbidden"), {}),
        (REFUSED, {"way": AsHeader("Authorization")}),
        (REFUSED, {"domain": "other.test"}),
        (REFUSED, {"budget": 1}),
    ],
    ids=["accepted", "forbidden", "no token", "another host", "no I/O call left"],
)
def test_no_other_answer_and_no_other_request_asks_for_a_token(answer: Answer, changes: dict[str, object]) -> None:
    with upstream(answer) as up:
        scene = Scene(up.address, **changes)  # type: ignore[arg-type]
        scene.client.send(request())
        assert (scene.asked, len(up.requests)) == ([], 1)


def test_a_refusal_that_repeats_the_token_is_no_answer_and_asks_nothing() -> None:
    with upstream(ok(FIRST.encode(), "401 Unauthorized")) as up:
        scene = Scene(up.address)
        with pytest.raises(HostError, match="repeats the secret token"):
            scene.client.send(request())
        assert (scene.asked, len(up.requests)) == ([], 1)


@pytest.mark.parametrize("value", [FIRST, SECOND])
def test_the_second_answer_may_repeat_neither_token(value: str) -> None:
    answers = iter((REFUSED, ok(value.encode())))
    with upstream(lambda connection: next(answers)(connection)) as up:
        scene = Scene(up.address)
        with pytest.raises(HostError, match="repeats the secret token"):
            scene.client.send(request())
    assert [(seen.ok, seen.resent) for seen in scene.client.meter.observations] == [(True, True), (False, False)]
