"""ListOwnCalls: calls without an end, and those whose outcome an operator found out."""

from ipc.events import AuditEvent
from ipc.operations.intents import ResolveIntent
from ipc.operations.own_calls import ListOwnCalls
from tests.notary.lost import OVER, lost_call
from tests.notary.running import Running

KEY = "k" * 43


def states(notary: Running, key: str = KEY) -> list[str]:
    return [call.state for call in notary.front.ask(ListOwnCalls("uid:1000", key, 10)).calls]


def test_a_call_without_an_end_is_listed_until_an_operator_has_found_out_and_afterwards(notary: Running) -> None:
    intent_id = lost_call(notary, event={"key_thumbprint": KEY})
    lost_call(notary, event={"key_thumbprint": "x" * 43})
    assert states(notary) == ["running"]
    notary.clock.time += OVER
    assert states(notary) == ["unknown"]
    event = AuditEvent(event_type="IntentResolved", decision="allow", principal="operator:ops", trace_id="trc_op")
    notary.front.ask(ResolveIntent(intent_id=intent_id, outcome="did_not_happen", event=event))
    assert states(notary) == ["failed"]
    assert states(notary, "y" * 43) == []
