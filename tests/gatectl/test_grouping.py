"""The order in which people read a list of approvals."""

from gateway_client.cli.paging import by_principal
from gateway_client.decoding import decode
from gateway_client.results import Approval


def approval(approval_id: str, principal: str | None) -> Approval:
    told = {"approval_id": approval_id, "action_id": "a", "state": "pending", "principal": principal}
    return decode(Approval, told, "approval")


def test_approvals_of_one_principal_stand_together_newest_first_in_each_group() -> None:
    newest_first = [
        approval("5", "ann"),
        approval("4", "bob"),
        approval("3", None),
        approval("2", "ann"),
        approval("1", "bob"),
    ]
    assert [one.approval_id for one in by_principal(newest_first)] == ["5", "2", "4", "1", "3"]
