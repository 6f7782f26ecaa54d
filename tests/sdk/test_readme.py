"""The examples of the library's README, run as they stand against a real gateway."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gateway_client
import pytest
from gateway_client import OperatorClient
from gateway_client.calling.core import DEFAULT_LIMITS

from tests.support.gateway import Gateway, wait_for

README = (Path(__file__).resolve().parents[2] / "sdk" / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_every_example_runs(
    gate: Gateway, operator: OperatorClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("operator.key", "operator.pem"):
        (tmp_path / name).symlink_to(gate.state / name)
    names = {
        "http://127.0.0.1:3000": gate.base,
        "/run/gateway/gate.sock": gate.ready["client_socket"],
        "/run/gateway/gate-admin.sock": gate.ready["admin_socket"],
    }
    for left in operator.approvals(status="pending").approvals:
        operator.deny(left.approval_id)
    seen: dict[str, Any] = {}
    assert len(EXAMPLES) == 12

    def pending() -> set[str]:
        return {item.approval_id for item in operator.approvals(status="pending").approvals}

    def approve(before: set[str]) -> None:
        (approval_id,) = wait_for(lambda: pending() - before, "the example's hold")
        operator.approve(approval_id)

    with ThreadPoolExecutor(1) as pool:
        for example in EXAMPLES:
            for name, real in names.items():
                example = example.replace(name, real)
            approving = pool.submit(approve, pending()) if "wait_for_approval" in example else None
            exec(compile(example, "sdk/README.md", "exec"), seen)
            if approving is not None:
                approving.result(120)
    assert seen["result"].is_fully_successful
    assert seen["report"].intact
    assert seen["verdict"].is_proven


@pytest.mark.parametrize("name", [name for name in dir(gateway_client.errors) if name[0].isupper()])
def test_every_exception_is_explained(name: str) -> None:
    member = getattr(gateway_client.errors, name)
    if isinstance(member, type) and issubclass(member, gateway_client.GatewayError):
        assert f"`{name}`" in README or member is gateway_client.GatewayError


def test_every_call_of_an_operator_is_listed() -> None:
    listed = set(
        re.findall(r"\w+", README.split("Every endpoint has its method:")[1].split("`AsyncOperatorClient`")[0])
    )
    for noun in ("add_path", "remove_path", "clear_paths"):
        listed.add(noun)
    calls = {name for name in vars(OperatorClient) if not name.startswith("_") and name != "close"}
    assert not calls - listed


def test_the_bounds_are_those_that_the_document_says() -> None:
    limits = DEFAULT_LIMITS
    assert (limits.timeout, limits.execute_timeout, limits.connect_timeout, limits.repeats) == (15, 60, 5, 2)
    assert limits.max_answer_bytes == 16 * 2**20
