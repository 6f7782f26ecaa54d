"""An answer as tests read it from a connection."""

import json
from typing import Any, NamedTuple


class Reply(NamedTuple):
    """One answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)
