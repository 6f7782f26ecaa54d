"""The public package `latchgate-langchain`, unchanged: discovery, tools, and what a model and its orchestrator hear."""

import asyncio
import gc
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from gateway_client import Address, AgentClient, Denied, Executed, Held, Invalid, NotFound
from gateway_client.langchain import tools as our_tools
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, ToolException
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from latchgate import LatchGateClient
from latchgate_common import AuditRecord
from latchgate_langchain import ActionDescriptor, LatchGateTool, LatchGateToolset, discover_actions

from tests.support.gateway import Gateway
from tests.support.manifests import PATIENT, example
from tests.support.own_gateway import own_gateway

PUBLIC = "http://gateway.test:3000"
EXAMPLES = {
    "file_write", "forbidden_export", "http_fetch", "http_post", "payment_transfer", "spin", "talkative", "text_digest",
}  # fmt: skip

SCHEMALESS = example("text_digest", action_id="schemaless", **PATIENT)
SCHEMALESS["io"].pop("request_schema")
TALKATIVE = example("http_fetch", action_id="talkative", expose_provider_error=True, **PATIENT)
gate = own_gateway(f'public_base_url = "{PUBLIC}"\n', SCHEMALESS, TALKATIVE, flags=["--compat-envelope"])
"""A gateway that lists its actions as this package expects it."""


def client_of(gate: Gateway, **options: Any) -> LatchGateClient:
    where = options or {"base_url": gate.ready["base_url"]}
    return LatchGateClient(agent_id="langchain", public_base_url=PUBLIC, **where)


def with_tools(gate: Gateway, story: Callable[[LatchGateToolset], Awaitable[None]], **options: Any) -> None:
    """Tell a story to a toolset that has discovered the gateway's actions."""

    async def run() -> None:
        url = gate.ready["base_url"]
        async with await LatchGateToolset.create(gate_url=url, client=client_of(gate), **options) as tools:
            await story(tools)

    asyncio.run(run())


def tool_of(tools: LatchGateToolset, name: str) -> LatchGateTool:
    (tool,) = [one for one in tools.get_tools() if one.name == name]
    assert isinstance(tool, LatchGateTool)
    return tool


# ------------------------------------------------------------------------------------------------ discovery


def test_it_discovers_every_action_that_has_a_schema(gate: Gateway) -> None:
    async def story(tools: LatchGateToolset) -> None:
        assert set(tools.action_ids) == EXAMPLES
        assert {one.name for one in tools.get_tools()} == EXAMPLES
        tool = tool_of(tools, "http_post")
        assert (tool.action_version, tool.action_risk_level) == ("1.0.0", "medium")
        assert "Side effects: http_write." in tool.description
        assert "upstream.gateway.test" not in tool.description
        assert set(tool.args) == {"path", "message"}

    with_tools(gate, story)


def test_it_takes_and_leaves_actions_by_name(gate: Gateway) -> None:
    async def story(tools: LatchGateToolset) -> None:
        assert tools.action_ids == ["text_digest"]

    with_tools(gate, story, include={"text_digest", "spin"}, exclude={"spin"})


def test_it_describes_what_it_discovers(gate: Gateway) -> None:
    url = gate.ready["base_url"]
    descriptors = asyncio.run(discover_actions(url, allow_schemaless=True, expose_security_details="debug"))
    by_id = {one.action_id: one for one in descriptors}
    assert set(by_id) == EXAMPLES | {"schemaless"}
    assert all(isinstance(one, ActionDescriptor) for one in descriptors)
    assert by_id["text_digest"].request_schema["required"] == ["text"]
    assert by_id["http_post"].declared_side_effects == ["http_write"]
    assert "Egress profile: direct_allowlist." in by_id["http_post"].description
    assert "Allowed domains: upstream.gateway.test." in by_id["http_post"].description


def test_it_discovers_over_the_unix_socket_of_its_client(gate: Gateway) -> None:
    async def run() -> None:
        client = client_of(gate, socket=gate.ready["client_socket"])
        async with await LatchGateToolset.create(client=client) as tools:
            assert set(tools.action_ids) == EXAMPLES
            assert tools.client is client
            assert json.loads(await tool_of(tools, "text_digest").ainvoke({"text": "hello"}))["bytes"] == 5

    asyncio.run(run())


def test_tools_can_be_made_from_descriptors_without_asking(gate: Gateway) -> None:
    async def run() -> None:
        descriptors = await discover_actions(gate.ready["base_url"], include={"text_digest"})
        async with client_of(gate) as client:
            tools = LatchGateToolset.from_descriptors(descriptors, client=client)
            assert json.loads(await tool_of(tools, "text_digest").ainvoke({"text": "hello"}))["bytes"] == 5

    asyncio.run(run())


# ------------------------------------------------------------------------------------------------ calls


def test_a_tool_answers_the_output_and_tells_the_orchestrator_the_rest(gate: Gateway) -> None:
    records: list[AuditRecord] = []

    async def story(tools: LatchGateToolset) -> None:
        text = await tool_of(tools, "text_digest").ainvoke({"text": "hello"})
        assert json.loads(text)["bytes"] == 5
        (record,) = records
        assert record.action_id == "text_digest"
        assert record.verification["is_fully_successful"] is True
        assert record.receipt_id not in text
        receipt = await tools.client.get_receipt(str(record.receipt_id))
        assert receipt.provider_receipt == json.loads(text)
        events = await asyncio.to_thread(gate.events, trace_id=record.trace_id)
        assert [event["receipt_id"] for event in events] == [record.receipt_id]

    with_tools(gate, story, on_audit=records.append)


def test_what_a_model_leaves_out_is_sent_as_null_and_taken_as_absent(gate: Gateway) -> None:
    async def story(tools: LatchGateToolset) -> None:
        text = await tool_of(tools, "spin").ainvoke({"fuel": 10})
        assert json.loads(text) == {"fuel": 10, "memory_mb": 0, "seconds": 0}

    with_tools(gate, story)


@pytest.mark.filterwarnings("ignore:unclosed transport", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_tool_works_without_an_event_loop(gate: Gateway) -> None:
    """The call has an event loop of its own, in which the package leaves its connection behind."""
    descriptors = asyncio.run(discover_actions(gate.ready["base_url"], include={"text_digest"}))
    tool = LatchGateTool.from_descriptor(descriptors[0], client_of(gate))
    assert json.loads(tool.invoke({"text": "hello"}))["bytes"] == 5
    del tool
    gc.collect()


REFUSALS = [
    ("forbidden_export", {"table": "customers"}, "denied: policy_denied: exports of tables"),
    ("payment_transfer", {"to": "acct-1", "amount_cents": 1, "currency": "EUR"}, "requires human approval"),
    ("payment_transfer", {"to": "acct-1", "amount_cents": 0, "currency": "EUR"}, "denied: schema_violation: /amount"),
    ("http_fetch", {"path": "/status/503"}, "action_execution_failed"),
]


@pytest.mark.parametrize(("name", "request_", "words"), REFUSALS, ids=[row[2] for row in REFUSALS])
def test_a_model_hears_what_went_wrong_in_words(gate: Gateway, name: str, request_: dict[str, Any], words: str) -> None:
    async def story(tools: LatchGateToolset) -> None:
        tool = tool_of(tools, name)
        assert words in await tool.ainvoke(request_)
        tool.handle_tool_error = False
        with pytest.raises(ToolException, match=words):
            await tool.ainvoke(request_)

    with_tools(gate, story)


def test_a_model_hears_that_its_budget_is_gone(gate: Gateway) -> None:
    async def story(tools: LatchGateToolset) -> None:
        await tools.client.connect(max_calls=1)
        tool = tool_of(tools, "text_digest")
        assert json.loads(await tool.ainvoke({"text": "1"}))["bytes"] == 1
        assert "Budget exhausted" in await tool.ainvoke({"text": "2"})

    with_tools(gate, story)


class Watcher(AsyncCallbackHandler):
    """The callbacks of an orchestrator beside the model."""

    def __init__(self) -> None:
        self.texts: dict[str, Any] = {}

    async def on_text(self, text: str, **kwargs: Any) -> None:
        self.texts[kwargs["name"]] = json.loads(text)


def test_an_orchestrator_gets_the_approval_and_can_see_it_through(gate: Gateway) -> None:
    async def story(tools: LatchGateToolset) -> None:
        watcher = Watcher()
        config = RunnableConfig(callbacks=[watcher])
        request = {"to": "acct-2", "amount_cents": 7, "currency": "EUR"}
        assert "requires human approval" in await tool_of(tools, "payment_transfer").ainvoke(request, config=config)
        approval_id = watcher.texts["latchgate_approval"]["approval_id"]
        assert (await tools.client.get_approval_status(approval_id)).is_pending
        operator = gate.operator()
        answer = await asyncio.to_thread(operator.post, f"/v1/approvals/{approval_id}/approve")
        assert answer.status_code == 200, answer.text
        status = await tools.client.get_approval_status(approval_id)
        assert status.receipt_id is not None
        assert (await tools.client.get_receipt(status.receipt_id)).is_fully_successful
        await tool_of(tools, "text_digest").ainvoke({"text": "x"}, config=config)
        assert set(watcher.texts["latchgate_audit"]) == {"receipt_id", "trace_id", "verification"}

    with_tools(gate, story)


# ------------------------------------------------------------------------------------------------ LangGraph


def scripted(tools: Sequence[BaseTool], *turns: AIMessage) -> Any:
    """An agent of LangGraph whose model says what is written down: calls of tools, then its last word."""
    model = GenericFakeChatModel(messages=iter(turns))

    async def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", think)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile()


def wish(name: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[ToolCall(name=name, args=arguments, id=f"call-{name}")])


def heard(state: dict[str, Any]) -> list[ToolMessage]:
    return [one for one in state["messages"] if isinstance(one, ToolMessage)]


PAYMENT = {"to": "acct-3", "amount_cents": 9, "currency": "EUR"}


def test_an_agent_of_langgraph_calls_mends_its_call_and_hears_of_a_hold(gate: Gateway) -> None:
    async def story(tools: LatchGateToolset) -> None:
        agent = scripted(
            tools.get_tools(), wish("text_digest", text="x" * 2_000_000), wish("text_digest", text="hello"),
            wish("forbidden_export", table="customers"), wish("payment_transfer", **PAYMENT), AIMessage("It waits."),
        )  # fmt: skip
        state = await agent.ainvoke({"messages": [HumanMessage("Pay.")]})
        refused, done, denied, held = heard(state)
        assert "body_too_large" in refused.text
        assert json.loads(done.text)["bytes"] == 5
        assert "policy_denied" in denied.text
        assert "requires human approval" in held.text
        assert state["messages"][-1].text == "It waits."

    with_tools(gate, story)


def test_our_own_tools_say_what_to_do_next_and_keep_the_outcome_for_the_orchestrator(gate: Gateway) -> None:
    address = Address.parse(gate.ready["base_url"], PUBLIC)
    with AgentClient(address) as client:
        tools = our_tools(client)
        assert {one.name for one in tools} == {*EXAMPLES, "schemaless"}
        agent = scripted(
            tools, wish("text_digest", txt=5), wish("text_digest", text="hello"), wish("talkative", path="/status/503"),
            wish("http_fetch", path="/status/503"), wish("payment_transfer", **PAYMENT | {"amount_cents": 11}),
            AIMessage("Done."),
        )  # fmt: skip
        state = asyncio.run(agent.ainvoke({"messages": [HumanMessage("Go.")]}))
    refused, done, told, silent, held = heard(state)
    assert sorted(json.loads(refused.text)["violations"]) == ["/text: is missing", "/txt: unknown property"]
    assert isinstance(refused.artifact, Invalid)
    assert json.loads(done.text)["bytes"] == 5
    assert isinstance(done.artifact, Executed)
    assert "503" in json.loads(told.text)["reason"]
    assert "reason" not in json.loads(silent.text)
    for one in (told, silent):
        assert gate.events(trace_id=one.artifact.trace_id)[0]["receipt_id"] == one.artifact.receipt_id
    assert isinstance(held.artifact, Held)
    assert json.loads(held.text)["pending_approval"] == held.artifact.approval_id


def test_our_own_tools_wait_for_an_operator_as_long_as_they_are_told(gate: Gateway) -> None:
    address = Address.parse(gate.ready["base_url"], PUBLIC)
    with AgentClient(address) as client:
        (quick,) = our_tools(client, only={"payment_transfer"}, wait_seconds=0.01)
        request = PAYMENT | {"amount_cents": 12}
        held = quick.invoke(ToolCall(name=quick.name, args=request, id="1", type="tool_call")).artifact
        assert isinstance(held, Held)
        assert gate.operator().post(f"/v1/approvals/{held.approval_id}/approve").status_code == 200
        assert isinstance(client.outcome(held, "payment_transfer"), Executed)
        with pytest.raises(ValueError, match="no such action: nothing"):
            our_tools(client, only={"nothing"})


def test_a_misspelt_action_is_answered_with_the_name_that_was_meant(gate: Gateway) -> None:
    with AgentClient(Address.parse(gate.ready["base_url"], PUBLIC)) as client:
        with pytest.raises(NotFound) as raised:
            client.execute("text_digets", {"text": "x"})
        assert raised.value.suggestions == ("text_digest",)
        with pytest.raises(Denied) as denied:
            client.execute("forbidden_export", {"table": "x"})
        assert denied.value.rule == "denied_action"
