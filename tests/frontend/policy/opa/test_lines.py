"""Connections to an OPA whose name can't be looked up."""

from typing import Any

import pytest
import trio

from frontend.policy.opa.lines import OpaConnections, OpaUnreached


async def test_an_opa_whose_name_no_thread_can_look_up_is_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_thread(*_: Any, **__: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(trio.to_thread, "run_sync", no_thread)
    with pytest.raises(OpaUnreached):
        await OpaConnections("http://opa.gateway.test:8181", None).ask("GET", "/v1/data")
