"""The caps of a policy's data, page by page: whole actions by their ids, so that each page costs a bounded reading."""

from typing import Final, NamedTuple

from frontend.policy.value_rules import MAX_RULES, Cap

PAGE: Final = MAX_RULES
"""Caps of one page at most: those of one action always fit."""


class CapsPage(NamedTuple):
    """Some caps with their actions. `next`: the action that the next page begins behind; None at the end."""

    caps: tuple[tuple[str, Cap], ...]
    next: str | None


def page_of(caps: dict[str, tuple[Cap, ...]], action_id: str | None, after: str | None) -> CapsPage:
    """The caps of one action, or of those behind `after`."""
    page: list[tuple[str, Cap]] = []
    last: str | None = None
    for name in sorted(caps) if action_id is None else [action_id]:
        if after is not None and name <= after:
            continue
        of_action = [(name, cap) for cap in caps.get(name, ())]
        if last is not None and len(page) + len(of_action) > PAGE:
            return CapsPage(tuple(page), last)
        page += of_action
        last = name
    return CapsPage(tuple(page), None)
