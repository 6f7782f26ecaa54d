"""An array of tables in the configuration whose rows are checked against each other."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

Found = Callable[[tuple[str | int, ...], str, str], None]
"""Called with the rest of the setting's path, a sentence, and the mend."""
Row = Mapping[str, Any]


class ArraySection(msgspec.Struct, frozen=True):
    """The three steps from the rows of such an array to settings."""

    required: Callable[[Row], Iterable[tuple[tuple[str, ...], str]]]
    """Settings that a row must have, each with what to do where it is missing."""
    check: Callable[[Mapping[int, Row], Found], None]
    """Find what no row by itself shows."""
    settings_of: Callable[[Row], Any]
    """One checked row -> its settings; for an invalid row, the readable part."""
