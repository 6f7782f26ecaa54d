"""GET /v1/approvals over the interface: filters, pages and the total."""

from pathlib import Path
from typing import Any

from ipc.process.clock import iso, parse_iso
from tests.support.coded import Coded
from tests.support.front_core import Core, action, front_core
from tests.support.held_calls import held


async def listed(core: Core, query: str = "") -> dict[str, Any]:
    status, body = await core.operate("GET", f"/v1/approvals{query}")
    assert status == 200, body
    return dict(body)


async def test_an_operator_filters_by_principal_and_action_and_pages_by_time(tmp_path: Path) -> None:
    async with front_core(tmp_path, action("mail"), action("echo")) as core:
        mails = []
        for number in range(3):
            core.clock.ahead = number
            mails.append((await held(core, action_id="mail"))[1])
            await held(core)
        page = await listed(core, "?action_id=mail&limit=2")
        assert [item["approval_id"] for item in page["approvals"]] == [mails[2], mails[1]]
        assert (page["count"], page["total"]) == (2, 3)
        rest = await listed(core, f"?action_id=mail&before={page['approvals'][-1]['created_at']}")
        assert [item["approval_id"] for item in rest["approvals"]] == [mails[0]]
        principal = page["approvals"][0]["principal"]
        assert (await listed(core, f"?principal={principal}&status=pending"))["total"] == 6
        assert await listed(core, "?principal=nobody") == {"approvals": [], "count": 0, "total": 0}
        assert (await listed(core, "?group=principal&limit=1"))["approvals"][0]["principal"] == principal
        assert (await core.operate("GET", "/v1/approvals?group=action"))[0] == 400
        assert await core.operate("GET", "/v1/approvals?before=yesterday") == (400, Coded("invalid_request"))


async def test_a_page_that_begins_a_millisecond_after_the_last_approval_misses_none_of_its_millisecond(
    tmp_path: Path,
) -> None:
    async with front_core(tmp_path, action("mail"), action("echo")) as core:
        core.clock.stop()
        both = {(await held(core, action_id="mail"))[1], (await held(core))[1]}
        (newest,) = (await listed(core, "?limit=1"))["approvals"]
        behind = iso(parse_iso(newest["created_at"]) + 0.001)
        assert {item["approval_id"] for item in (await listed(core, f"?before={behind}"))["approvals"]} == both


async def test_an_approval_that_was_denied_is_shown_with_its_plan_and_request_as_it_was_held(core: Core) -> None:
    _, approval_id = await held(core, secret="swordfish")
    path = f"/v1/approvals/{approval_id}"
    held_as = (await core.operate("GET", path))[1]
    assert (held_as["request"]["secret"], held_as["state"]) == ("swordfish", "pending")
    assert (await core.operate("POST", f"{path}/deny", {"reason": "no"}))[0] == 200
    status, detail = await core.operate("GET", path)
    assert (status, detail["state"], detail["deny_reason"]) == (200, "denied", "no")
    grown = ("state", "status", "claimed_by", "claimed_at", "completed_at", "deny_reason")
    assert {name: value for name, value in detail.items() if name not in grown} == {
        name: value for name, value in held_as.items() if name not in grown
    }
    assert "swordfish" not in str(await listed(core)), "the list shows no request"
    assert (await core.operate("POST", f"{path}/approve"))[0] == 404
