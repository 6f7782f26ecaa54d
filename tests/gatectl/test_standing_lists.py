"""`approvals standing list`: for which ledger each standing approval is."""

from typing import Any

import pytest

from tests.support.gatectl import Gatectl, pointed_at
from tests.support.scripted_gateway import scripted_gateway


def standing(standing_id: str, origin: str) -> dict[str, Any]:
    return {
        "standing_id": standing_id, "action_id": "pay", "principal": "billing", "operator": "ann", "origin": origin,
        "created_at": "2026-11-01T00:00:00Z", "until": "2099-11-01T00:00:00Z", "calls": 1, "signature": "a.b.c",
    }  # fmt: skip


@pytest.mark.parametrize(("other", "ends"), [("gate/2", ["gate", "gate/2"]), ("gate", ["ann", "ann"])])
def test_a_list_names_ledgers_where_one_of_them_is_not_that_of_this_gateway(
    gatectl: Gatectl, other: str, ends: list[str]
) -> None:
    listed = {"standing": [standing("sta_1", "gate"), standing("sta_2", other)], "origin": "gate"}
    with scripted_gateway({"GET /v1/admin/standing": (200, listed)}) as server:
        ran = pointed_at(gatectl, server.url).done("approvals", "standing", "list")
    title, *rows = [line.split() for line in ran.out.splitlines()]
    assert (title[-1] == "LEDGER") == (other != "gate")
    assert [row[-1] for row in rows] == ends
