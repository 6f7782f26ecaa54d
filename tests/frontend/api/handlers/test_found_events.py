"""GET /v1/audit/events: one list, however many bounded reads of the notary it takes."""

from pathlib import Path

import pytest

from frontend.api.handlers import audit
from notary.reading import queries
from tests.support.front_core import ALLOW, DENY, action, front_core

ASKED = "/v1/audit/events?action_id=echo&decision=allow&limit={}"


async def test_a_list_is_whole_behind_many_events_that_a_filter_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "LOOKED_AT", 2)
    async with front_core(tmp_path, action()) as core:
        agent = await core.agent()
        for number in range(12):
            core.policy.answer = ALLOW if number in (0, 1, 8) else DENY
            await agent.call()
        allowed = [one["event_id"] for one in await core.events(action_id="echo") if one["decision"] == "allow"]
        assert len(allowed) == 3
        for limit in (9, 3, 2):
            status, body = await core.operate("GET", ASKED.format(limit))
            assert (status, [one["event_id"] for one in body["events"]]) == (200, allowed[:limit])
        monkeypatch.setattr(audit, "MAX_SHOWN_BYTES", 1)
        _, body = await core.operate("GET", ASKED.format(9))
        assert [one["event_id"] for one in body["events"]] == allowed[:1], "a longer list ends early"
