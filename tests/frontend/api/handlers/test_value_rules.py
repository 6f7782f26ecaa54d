"""Thresholds and caps as operators see and change them, over the admin socket's routes."""

import json
from typing import Any

import pytest

from tests.support.coded import Coded
from tests.support.front_core import Core, action

THRESHOLDS, CAPS = "/v1/admin/policy/thresholds", "/v1/admin/policy/caps"
OPEN = {"max_request_bytes": 8192, "request_schema": {"type": "object"}}
BOUND = {"action_id": "pay", "pointer": "/amount", "hold_above": 100}
CAP = {"action_id": "pay", "pointer": "/amount", "per": "all", "window_seconds": 60, "deny_above": 0.5}

pytestmark = pytest.mark.policed(action("pay", policy_input=["/amount"], io=OPEN), is_real=True, data={"allowlist": {}})


async def paid(core: Core, amount: object = 1) -> int:
    status, _ = await (await core.agent()).call("pay", {"amount": amount})
    return status


async def test_a_threshold_is_in_force_for_the_next_call_and_in_evidence(core: Core) -> None:
    assert await paid(core, 101) == 200
    status, changed = await core.operate("POST", THRESHOLDS, BOUND)
    assert (status, changed["pointer"]) == (200, "/amount")
    assert await paid(core, 101) == 202
    _, shown = await core.operate("GET", THRESHOLDS)
    assert shown == {"thresholds": [BOUND], "policy_version": changed["policy_version"]}
    assert (await core.operate("DELETE", THRESHOLDS, {"action_id": "pay", "pointer": "/amount"}))[0] == 200
    assert await paid(core, 102) == 200
    (cleared,) = await core.events(event_type="PolicyThresholdCleared")
    (added,) = await core.events(event_type="PolicyThresholdSet")
    assert (added["action_id"], added["change"]) == ("pay", {"pointer": "/amount", "hold_above": 100})
    assert cleared["change"] == {"pointer": "/amount"}


async def test_a_cap_is_shown_set_and_cleared(core: Core) -> None:
    assert (await core.operate("POST", CAPS, CAP))[0] == 200
    assert (await core.operate("GET", CAPS))[1]["caps"] == [CAP | {"used": []}]
    assert (await core.operate("DELETE", CAPS, {"action_id": "pay"}))[0] == 200
    assert (await core.operate("GET", CAPS))[1]["caps"] == []
    assert (
        len(await core.events(event_type="PolicyCapSet")) == len(await core.events(event_type="PolicyCapCleared")) == 1
    )


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"action_id": "none"}, 404, "action_not_found"), ({"pointer": "/other"}, 400, "invalid_input"),
        ({"deny_above": 5}, 400, "invalid_input"), ({"hold_above": "5"}, 400, "invalid_input"),
        ({"hold_above": None}, 400, "invalid_input"), ({"action_id": "a b"}, 400, "invalid_input"),
        ({"more": 1}, 400, "invalid_input"), ({"hold_above": 2**53}, 400, "invalid_input"),
    ],
)  # fmt: skip
async def test_a_threshold_that_no_call_could_keep_is_refused(
    core: Core, changes: dict[str, Any], status: int, code: str
) -> None:
    assert await core.operate("POST", THRESHOLDS, BOUND | changes) == (status, Coded(code))
    assert (await core.operate("GET", THRESHOLDS))[1]["thresholds"] == []


async def test_a_pointer_that_is_none_is_told_in_plain_words(core: Core) -> None:
    for path, rule in ((THRESHOLDS, BOUND), (CAPS, CAP)):
        status, refused = await core.operate("POST", path, rule | {"pointer": "amount"})
        assert (status, refused["error"]) == (400, "invalid_input")
        assert refused["message"] == "must be a pointer such as /amount - at `$.pointer`"


@pytest.mark.parametrize("number", ["0.10000000000000000001", "99.99999999999999999", "1e-99999999999999999999"])
async def test_a_bound_with_more_digits_than_can_be_compared_is_refused(core: Core, number: str) -> None:
    for path, rule, name in ((THRESHOLDS, BOUND, "hold_above"), (CAPS, CAP, "deny_above")):
        body = json.dumps({**rule, name: None}).replace("null", number)
        status, refused = await core.operate("POST", path, body.encode())
        assert (status, refused["error"]) == (400, "invalid_input")
        assert refused["message"] == "a number has more digits than can be compared"
    listed = json.dumps({"action_id": "pay", "pointer": "/amount", "deny_unless_in": [1.5, None]})
    assert (await core.operate("POST", THRESHOLDS, listed.replace("null", number).encode()))[0] == 400
    assert (await core.operate("POST", THRESHOLDS, listed.replace("null", "1e2, 0.10").encode()))[0] == 200


async def test_a_rule_that_is_not_there_is_404(core: Core) -> None:
    for path, code in ((THRESHOLDS, "threshold_not_found"), (CAPS, "cap_not_found")):
        assert await core.operate("DELETE", path, {"action_id": "pay"}) == (404, {"error": code})


async def test_caps_are_listed_with_what_has_been_used_of_them(core: Core) -> None:
    for per in ("all", "principal", "owner"):
        assert (await core.operate("POST", CAPS, CAP | {"per": per, "deny_above": 100}))[0] == 200
    assert [await paid(core, one) for one in (40, 0.25)] == [200, 200]
    status, shown = await core.operate("GET", f"{CAPS}?action_id=pay")
    used = {one["per"]: one["used"] for one in shown["caps"]}
    assert (status, shown["next"]) == (200, None)
    amount: dict[str, Any] = {"total": "40.25", "unknown": "0"}
    assert used["principal"] == [{"subject": "dev:anonymous"} | amount]
    assert used["all"] == used["owner"] == [{"subject": None} | amount]
    behind = (await core.operate("GET", f"{CAPS}?action_id=pay&used_after=dev:anonymous"))[1]["caps"]
    assert [one["used"] for one in behind] == [[], [], []]
    assert (await core.operate("GET", f"{CAPS}?action_id=other"))[1]["caps"] == []
