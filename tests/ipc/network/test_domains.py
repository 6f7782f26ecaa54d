"""Domain rules: which names they match, and which of them have a name in common."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.network.domains import matches, overlap

LABELS = st.sampled_from(["a", "b", "corp"])
NAMES = st.lists(LABELS, min_size=2, max_size=4).map(".".join)
RULES = st.builds(lambda name, is_wide: f"*.{name}" if is_wide else name, NAMES, st.booleans())


@pytest.mark.parametrize(
    ("one", "other", "is_common"),
    [
        ("a.corp", "a.corp", True), ("a.corp", "b.corp", False), ("a.b.corp", "*.b.corp", True),
        ("b.corp", "*.b.corp", False), ("*.b.corp", "*.a.b.corp", True), ("*.b.corp", "*.a.corp", False),
        ("xb.corp", "*.b.corp", False),
    ],
)  # fmt: skip
def test_two_rules_overlap_if_a_name_matches_both(one: str, other: str, is_common: bool) -> None:
    assert overlap(one, other) is overlap(other, one) is is_common


@given(RULES, RULES, NAMES)
def test_rules_that_match_one_name_overlap(one: str, other: str, name: str) -> None:
    if matches(name, (one,)) and matches(name, (other,)):
        assert overlap(one, other)
