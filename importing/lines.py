"""Lines that every import tells: lists of names that stay short, and reasons for what was left out."""

from collections.abc import Iterable, Iterator

MAX_NAMES = 5


def names_of(names: Iterable[str]) -> str:
    """The first names, and how many more there are."""
    every = list(names)
    more = len(every) - MAX_NAMES
    return ", ".join(every[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def left_out_lines(left_out: list[tuple[str, str]]) -> Iterator[str]:
    """A line for each reason."""
    reasons: dict[str, list[str]] = {}
    for title, reason in left_out:
        reasons.setdefault(reason, []).append(title)
    for reason, titles in reasons.items():
        yield f"left out: {names_of(titles)} ({reason})"
