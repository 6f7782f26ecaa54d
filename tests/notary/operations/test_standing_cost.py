"""The work and the log lines of a notary that looks for a standing approval before each call that is held."""

import msgspec
import pytest

from ipc.keys.signed_approvals import SignedText
from ipc.operations.holds import HoldInForce
from ipc.operations.standing import FindStanding, Lifted
from ipc.settings import OperatorSettings
from notary.signing.operators import check_signature
from tests.notary.conftest import StartNotary
from tests.notary.operations.test_standing import ANN, OPERATORS, add, adding, holding, rewrite
from tests.notary.running import Running
from tests.notary.samples import NOW
from tests.support.logs import capture_logs
from tests.support.signed_approvals import tampered
from tests.support.standing_approvals import signed_standing

FULL = "a standing approval serves no call"
CALLS = 3


@pytest.fixture
def notary(start_notary: StartNotary) -> Running:
    """A notary with operators."""
    return start_notary(operators=OPERATORS)


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys of signatures as they are checked."""
    keys: list[str] = []

    def noted(signed: SignedText) -> None:
        keys.append(signed.jkt)
        check_signature(signed)

    monkeypatch.setattr("notary.signing.standing_texts.check_signature", noted)
    return keys


def test_a_signature_is_checked_once_for_all_calls_that_it_covers(notary: Running, checked: list[str]) -> None:
    standing_id = add(notary)
    for _ in range(CALLS):
        assert notary.front.ask(holding()) == Lifted(standing_id)
    assert checked == [ANN.jkt]


def test_a_text_without_a_good_signature_is_checked_and_told_of_once(notary: Running, checked: list[str]) -> None:
    good = signed_standing(ANN, now=NOW, max_calls=1)
    row = notary.front.ask(adding(good)).row
    rewrite(notary, msgspec.structs.replace(row, signature=tampered(good, max_calls=1000)))
    checked.clear()
    with capture_logs() as logs:
        for _ in range(CALLS):
            assert isinstance(notary.front.ask(holding()), HoldInForce)
    assert checked == [ANN.jkt]
    assert [(one["standing_id"], one["cause"]) for one in logs if one["event"] == FULL] == [
        (row.standing_id, "its key has not signed it")
    ]


def test_a_checked_signature_serves_no_call_once_the_key_is_another(notary: Running) -> None:
    add(notary)
    assert isinstance(notary.front.ask(holding()), Lifted)
    ann = OperatorSettings("ann", dpop_jkt="another key", api_key_sha256="a" * 64)
    notary.settings = msgspec.structs.replace(notary.settings, operators=(ann, *OPERATORS[1:]))
    notary.restart()
    assert notary.front.ask(FindStanding("text_digest", "uid:1000", None, "{}")) is None
