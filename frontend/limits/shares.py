"""How much of a bounded thing one of many may hold: dynamic thresholds, as switches share their buffers. Pure.

One alone has most of it, many come to have equal parts, and what is free is never so little that somebody new finds
nothing: the last part is for those who hold nothing.
"""

RESERVE = 8
"""One of so many is for those who hold none."""


def may_have_another(held: int, share: int, free: int, ceiling: int) -> bool:
    """Whether whoever holds `held` of `ceiling` may take one of the `free`: up to `share` for each that is free."""
    return held < share * free and (held == 0 or not is_among_the_last(free, ceiling))


def is_among_the_last(count: int, ceiling: int) -> bool:
    """Whether so many of `ceiling` are little."""
    return count <= ceiling // RESERVE
