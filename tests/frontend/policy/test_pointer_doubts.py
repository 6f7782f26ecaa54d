"""Values of requests that a policy names and no action offers."""

import json
from pathlib import Path
from typing import Any

import pytest

from frontend.policy.acl import read_policy
from frontend.policy.pointer_doubts import pointer_doubts

OFFERED = {"pay": ("/amount_cents", "/to/iban"), "read": ()}
HEADER = "package gateway\n\nimport rego.v1\n\n"


def doubts(folder: Path, rego: str = "decision := {}\n", **data: Any) -> list[str]:
    (folder / "gateway.rego").write_text(HEADER + rego)
    (folder / "data.json").write_text(json.dumps({"policy_version": "1"} | data))
    return pointer_doubts(read_policy(str(folder)), OFFERED)


NONE = "is in the policy_input of no action"


@pytest.mark.parametrize(
    ("rego", "said"),
    [
        ('a if input.request["/amount"] > 1', f"/amount {NONE}; did you mean /amount_cents?"),
        ("a if input.request[`/amount`] > 1", f"/amount {NONE}; did you mean /amount_cents?"),
        ('a := object.get(input.request, "/x", 0)', f"/x {NONE}"),
        ('a if "/y" == input.request [ "/\\u007a" ]', f"/z {NONE}"),
        ("a if input.request.x > 1", "input.request.x: the members of input.request are JSON pointers"),
    ],
)
def test_a_rule_that_reads_a_value_which_no_action_offers_is_doubted_at_its_line(
    tmp_path: Path, rego: str, said: str
) -> None:
    assert doubts(tmp_path, rego + "\n") == [f"gateway.rego:5: {said}"]


@pytest.mark.parametrize(
    "rego",
    [
        'a if input.request["/amount_cents"] > 1', 'a := object.get(input.request, "/to/iban", "")',
        '# input.request["/x"]', 'a := "input.request.x"', "a if input.request_hash",
        "a := input.request[data.pointer]", 'a := concat(input.request, "x")',
    ],
)  # fmt: skip
def test_values_that_are_offered_and_other_text_are_not_doubted(tmp_path: Path, rego: str) -> None:
    assert doubts(tmp_path, rego + "\n") == []


def test_a_denied_action_that_no_manifest_has_is_doubted(tmp_path: Path) -> None:
    assert doubts(tmp_path, denied_actions={"pay": "no", "reed": "no", "export": "no"}) == [
        "data.json: denied_actions.reed: no manifest has this action; did you mean read?",
        "data.json: denied_actions.export: no manifest has this action",
    ]


def test_thresholds_and_caps_of_values_that_their_action_does_not_offer_are_doubted(tmp_path: Path) -> None:
    def cap(pointer: str) -> dict[str, Any]:
        return {"pointer": pointer, "per": "all", "window_seconds": 60, "deny_above": 1}

    thresholds = {
        "pay": [{"pointer": "/amount_cents", "hold_above": 1}, {"pointer": "/amount", "hold_above": 1},
                {"pointer": "/amount", "deny_above": 9}],
        "reed": [{"pointer": "/a", "hold_above": 1}],
    }  # fmt: skip
    not_there = "is not in the policy_input of the action's manifest"
    assert doubts(tmp_path, thresholds=thresholds, caps={"read": [cap("/amount_cents")], "pay": [cap("/to/iban")]}) == [
        f"data.json: thresholds.pay: /amount {not_there}; did you mean /amount_cents?",
        "data.json: thresholds.reed: no manifest has this action; did you mean read?",
        f"data.json: caps.read: /amount_cents {not_there}",
    ]
