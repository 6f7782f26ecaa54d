"""Changes of thresholds and caps: each has one place, and the rest of the data stays."""

import json

import pytest

from frontend.policy.acl import PolicyFiles
from frontend.policy.data import PolicyData, parse_data
from frontend.policy.edit import NothingThere, PolicyTooLarge, rewritten
from frontend.policy.engine import PolicySources
from frontend.policy.value_edits import clear_caps, clear_thresholds, set_cap, set_threshold
from frontend.policy.value_rules import MAX_RULES, Cap, Threshold

TEXT = json.dumps({"policy_version": "1", "mine": [1e2], "caps": {}})


def test_a_threshold_takes_the_place_of_one_with_the_same_pointer_and_rule() -> None:
    data = PolicyData("1")
    for threshold in (Threshold("/v", hold_above=1), Threshold("/v", deny_above=9), Threshold("/v", hold_above=2)):
        data = set_threshold(data, "pay", threshold)
    assert data.thresholds == {"pay": (Threshold("/v", deny_above=9), Threshold("/v", hold_above=2))}
    assert clear_thresholds(data, "pay", "/v").thresholds == clear_thresholds(data, "pay", None).thresholds == {}
    for action_id, pointer in (("pay", "/w"), ("other", None)):
        with pytest.raises(NothingThere):
            clear_thresholds(data, action_id, pointer)


def test_a_cap_takes_the_place_of_one_with_the_same_pointer_subject_and_window() -> None:
    data = PolicyData("1")
    first, other, last = (Cap("/v", "all", seconds, deny_above=most) for seconds, most in ((60, 1), (9, 1), (60, 2)))
    for cap in (first, other, last):
        data = set_cap(data, "pay", cap)
    assert data.caps == {"pay": (other, last)}
    assert clear_caps(data, "pay", "/v").caps == {}
    with pytest.raises(NothingThere):
        clear_caps(data, "pay", "/w")


def test_an_action_has_a_bounded_number_of_thresholds() -> None:
    data = PolicyData("1")
    for index in range(MAX_RULES):
        data = set_threshold(data, "pay", Threshold(f"/{index}", hold_above=1))
    with pytest.raises(PolicyTooLarge):
        set_threshold(data, "pay", Threshold("/more", hold_above=1))


def test_a_change_is_written_into_the_data_with_another_version() -> None:
    before = parse_data(TEXT)
    assert isinstance(before, PolicyData)
    files = PolicyFiles(PolicySources({}, TEXT, "1"), before)
    changed = set_threshold(
        set_cap(before, "pay", Cap("/v", "all", 60, deny_above=0.25)), "pay", Threshold("/v", hold_above=1)
    )
    after = rewritten(files, changed)
    assert json.loads(after.sources.data)["caps"] == {
        "pay": [{"pointer": "/v", "per": "all", "window_seconds": 60, "deny_above": 0.25}]
    }
    assert after.data.thresholds == changed.thresholds
    assert after.sources.policy_version.startswith("1+")
    again = rewritten(after, clear_thresholds(after.data, "pay", None))
    assert again.sources.policy_version != after.sources.policy_version
