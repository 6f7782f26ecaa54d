"""GET /v1/approvals over the interface: filters, pages and the total."""

from pathlib import Path
from typing import Any

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
        status, problem = await core.operate("GET", "/v1/approvals?before=yesterday")
        assert (status, problem["error"]) == (400, "invalid_request")


async def test_of_an_approval_that_has_ended_the_request_is_not_shown_any_more(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        _, approval_id = await held(core, secret="swordfish")
        path = f"/v1/approvals/{approval_id}"
        assert (await core.operate("GET", path))[1]["request"]["secret"] == "swordfish"
        assert (await core.operate("POST", f"{path}/deny", {"reason": "no"}))[0] == 200
        status, detail = await core.operate("GET", path)
        assert (status, detail["state"], detail["deny_reason"]) == (200, "denied", "no")
        assert "swordfish" not in str(detail)
        assert [detail[name] for name in ("request", "request_json", "approved_request", "shown_hash")] == [None] * 4
        assert detail["plan_hash"].startswith("sha256:")
        assert detail["request_hash"].startswith("sha256:")
