"""How much of a bounded thing one of many may hold: dynamic thresholds, as switches share their buffers. Pure.

A single holder gets most of it, many holders get equal parts, and the last part is reserved for those who hold
nothing, so that a newcomer always finds some.
"""

RESERVE = 8
"""One place in this many is reserved for callers without calls."""


def may_have_another(held: int, share: int, free: int, ceiling: int) -> bool:
    """True if a holder of `held` may take one more of the `free`: it may hold up to `share` for each that is free."""
    return may_hold(held + 1, held, share, free, ceiling)


def may_hold(wanted: int, held: int, share: int, free: int, ceiling: int) -> bool:
    """True if a holder of `held` may hold `wanted`."""
    return wanted <= share * free and (held == 0 or not is_among_the_last(free, ceiling))


def is_among_the_last(count: int, ceiling: int) -> bool:
    """True if the count is within the reserve of `ceiling`."""
    return count <= ceiling // RESERVE
