"""Changes of the thresholds and caps in a policy's data. Pure: data in, data out."""

from typing import TypeVar

import msgspec

from frontend.policy.data import PolicyData
from frontend.policy.edit import NothingThere, PolicyTooLarge
from frontend.policy.value_rules import MAX_RULES, Cap, Threshold

_Rule = TypeVar("_Rule", Threshold, Cap)


def set_threshold(data: PolicyData, action_id: str, threshold: Threshold) -> PolicyData:
    """Give the action this threshold, in the place of one for the same pointer with the same rule. Raises
    PolicyTooLarge."""
    others = [one for one in data.thresholds.get(action_id, ()) if one.place != threshold.place]
    changed = _with(data.thresholds, action_id, (*others, threshold))
    return msgspec.structs.replace(data, thresholds=changed)


def clear_thresholds(data: PolicyData, action_id: str, pointer: str | None) -> PolicyData:
    """Take the thresholds of the action away: those of this pointer, or all. Raises NothingThere."""
    return msgspec.structs.replace(data, thresholds=_cleared(data.thresholds, action_id, pointer))


def set_cap(data: PolicyData, action_id: str, cap: Cap) -> PolicyData:
    """Give the action this cap, in the place of one for the same pointer, subject and window. Raises PolicyTooLarge."""
    others = [one for one in data.caps.get(action_id, ()) if one.place != cap.place]
    return msgspec.structs.replace(data, caps=_with(data.caps, action_id, (*others, cap)))


def clear_caps(data: PolicyData, action_id: str, pointer: str | None) -> PolicyData:
    """Take the caps of the action away: those of this pointer, or all. Raises NothingThere."""
    return msgspec.structs.replace(data, caps=_cleared(data.caps, action_id, pointer))


def _with(
    whole: dict[str, tuple[_Rule, ...]], action_id: str, rules: tuple[_Rule, ...]
) -> dict[str, tuple[_Rule, ...]]:
    if len(rules) > MAX_RULES:
        raise PolicyTooLarge(f"an action may have {MAX_RULES} of these")
    return {**whole, action_id: rules}


def _cleared(whole: dict[str, tuple[_Rule, ...]], action_id: str, pointer: str | None) -> dict[str, tuple[_Rule, ...]]:
    before = whole.get(action_id, ())
    left = tuple(one for one in before if pointer is not None and one.pointer != pointer)
    if left == before:
        raise NothingThere(action_id if pointer is None else f"{action_id}, {pointer}")
    others = {name: rules for name, rules in whole.items() if name != action_id}
    return {**others, action_id: left} if left else others
