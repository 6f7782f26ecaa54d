"""The public package `latchgate-langchain`, unchanged: discovery, tools, and what a model and its orchestrator hear."""

import asyncio
import gc
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import ToolException
from latchgate import LatchGateClient
from latchgate_common import AuditRecord
from latchgate_langchain import ActionDescriptor, LatchGateTool, LatchGateToolset, discover_actions

from tests.support.gateway import Gateway, config_for, gateway
from tests.support.manifests import PATIENT, example, open_policy, patient, write_manifests
from tests.support.upstream import Upstream

PUBLIC = "http://gateway.test:3000"
EXAMPLES = {
    "file_write", "forbidden_export", "http_fetch", "http_post", "payment_transfer", "spin", "text_digest",
}  # fmt: skip


@pytest.fixture(scope="module")
def gate(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that lists its actions as this package expects it (`compat.actions_envelope`)."""
    folder: Path = tmp_path_factory.mktemp("gate")
    schemaless = example("text_digest", action_id="schemaless", **PATIENT)
    schemaless["io"].pop("request_schema")
    top = patient(folder / "actions")
    write_manifests(folder / "actions", schemaless)
    top += f'policy_dir = "{open_policy(folder / "policy", "schemaless")}"\n'
    config = f'{top}public_base_url = "{PUBLIC}"\n[compat]\nactions_envelope = true\n'
    with gateway(folder, config_for(up.address, config)) as running:
        yield running


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
    (found,) = [one for one in tools.get_tools() if one.name == name]
    assert isinstance(found, LatchGateTool)
    return found


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
    found = asyncio.run(discover_actions(url, allow_schemaless=True, expose_security_details="debug"))
    by_id = {one.action_id: one for one in found}
    assert set(by_id) == EXAMPLES | {"schemaless"}
    assert all(isinstance(one, ActionDescriptor) for one in found)
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
        found = await discover_actions(gate.ready["base_url"], include={"text_digest"})
        async with client_of(gate) as client:
            tools = LatchGateToolset.from_descriptors(found, client=client)
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
    """Such a call has an event loop of its own, in which the package leaves its connection behind."""
    found = asyncio.run(discover_actions(gate.ready["base_url"], include={"text_digest"}))
    tool = LatchGateTool.from_descriptor(found[0], client_of(gate))
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
    """What an orchestrator hears beside the model."""

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
