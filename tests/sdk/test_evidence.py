"""Evidence of a running gateway, verified by the library: checkpoints, consistency proofs, bundles of real calls."""

import asyncio

import pytest
import trio
from gateway_client import (
    AgentClient,
    AsyncOperatorClient,
    Checkpoint,
    Executed,
    NotFound,
    OperatorClient,
    OperatorCredential,
    VerifierKey,
    check_consistency,
    open_checkpoint,
    verify_bundle,
)
from gateway_client.evidence.notes import unbase64

from tests.support.gateway import Gateway


def call(agent: AgentClient, text: str = "x") -> Executed:
    done = agent.execute("text_digest", {"text": text})
    assert isinstance(done, Executed)
    return done


def keys_of(operator: OperatorClient) -> list[VerifierKey]:
    return [VerifierKey.parse(one) for one in operator.checkpoint().keys]


def test_a_checkpoint_says_what_its_note_says(operator: OperatorClient, agent: AgentClient, gate: Gateway) -> None:
    call(agent)
    shown = operator.checkpoint()
    opened = open_checkpoint(shown.checkpoint, [VerifierKey.parse(one) for one in shown.keys])
    assert opened == Checkpoint(shown.origin, shown.size, unbase64(shown.root), shown.time, shown.unresolved_intents)
    assert f"http://{shown.origin}" == gate.base
    verified = operator.verify_audit()
    assert (verified.intact, verified.root is None, verified.checkpoint is None) == (True, False, False)
    assert verified.head is not None
    assert verified.size is not None
    assert verified.size >= shown.size


def test_the_log_continues_every_earlier_checkpoint(operator: OperatorClient, agent: AgentClient) -> None:
    keys = keys_of(operator)
    olds = []
    for number in range(3):
        call(agent, str(number))
        olds.append(open_checkpoint(operator.checkpoint().checkpoint, keys))
    for old in olds:
        answer = operator.consistency(old.size)
        new = open_checkpoint(answer.checkpoint, keys)
        assert answer.old_size == old.size <= new.size
        check_consistency(old.size, old.root, new.size, new.root, [unbase64(one) for one in answer.proof])
    with pytest.raises(NotFound, match="evidence_not_found"):
        operator.consistency(2**40)


def test_a_call_is_proven_by_each_of_its_ids(operator: OperatorClient, agent: AgentClient) -> None:
    done = call(agent)
    keys, origin_keys = operator.receipt_keys(), operator.checkpoint().keys
    first = verify_bundle(operator.proof(receipt_id=done.receipt_id), origin_keys=origin_keys, receipt_keys=keys).call
    assert first is not None
    assert (first.action_id, first.trace_id, first.result) == ("text_digest", done.trace_id, "success")
    assert (first.principal, first.decision, first.approved_by) == ("dev:anonymous", "allow", None)
    assert first.receipt_key is not None
    for bundle in (operator.proof(event_id=first.event_id), operator.proof(intent_id=first.intent_id)):
        verdict = verify_bundle(bundle, origin_keys=origin_keys)
        assert verdict.call is not None, verdict.sentence
        assert verdict.call.receipt_id == done.receipt_id


def test_an_event_that_is_no_call_has_a_bundle_that_proves_no_call(operator: OperatorClient) -> None:
    started = next(one for one in operator.iter_events() if one.event_type == "GatewayStarted")
    bundle = operator.proof(event_id=started.event_id)
    assert bundle.receipt is None
    verdict = verify_bundle(bundle, origin_keys=operator.checkpoint().keys)
    assert verdict.sentence == "The bundle has no receipt: it is not about a call that ended."


def test_exactly_one_thing_is_proven_at_a_time(operator: OperatorClient) -> None:
    for named in ({}, {"event_id": "a", "intent_id": "b"}):
        with pytest.raises(ValueError, match="name one of"):
            operator.proof(**named)
    with pytest.raises(NotFound):
        operator.proof(receipt_id="rcpt_none")


async def async_story(gate: Gateway, credential: OperatorCredential, receipt_id: str) -> None:
    async with AsyncOperatorClient(gate.base, credential) as operator:
        shown = await operator.checkpoint()
        assert (await operator.consistency(shown.size)).old_size == shown.size
        assert verify_bundle(await operator.proof(receipt_id=receipt_id), origin_keys=shown.keys).is_proven


@pytest.mark.parametrize("run", ["asyncio", "trio"])
def test_the_asynchronous_operator_does_the_same_under(
    run: str, gate: Gateway, credential: OperatorCredential, agent: AgentClient
) -> None:
    receipt_id = call(agent).receipt_id
    if run == "trio":
        trio.run(async_story, gate, credential, receipt_id)
    else:
        asyncio.run(async_story(gate, credential, receipt_id))
