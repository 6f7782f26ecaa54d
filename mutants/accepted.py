"""The list of changes that no test has to notice, each with a sentence why: `mutants/accepted.txt`.

A name stands on a line of its own, its sentence below, indented. What comes after a # at the start of a line is a
comment.
"""

from pathlib import Path

LIST = Path(__file__).with_name("accepted.txt")


class ListRefused(Exception):
    """A line that can't be read, with its number."""


def read(text: str) -> dict[str, str]:
    """Name of a change -> why it may survive. Raises ListRefused."""
    accepted: dict[str, str] = {}
    name = ""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith(" "):
            if not name:
                raise ListRefused(f"line {number}: a sentence without a change above it")
            accepted[name] = f"{accepted[name]} {line.strip()}".strip()
            continue
        if name and not accepted[name]:
            raise ListRefused(f"line {number}: the change above has no sentence below it that says why")
        if line in accepted:
            raise ListRefused(f"line {number}: stands there twice")
        name = line.rstrip()
        accepted[name] = ""
    if name and not accepted[name]:
        raise ListRefused("the last change has no sentence below it that says why")
    return accepted
