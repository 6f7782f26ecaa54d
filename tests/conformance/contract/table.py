"""What one table of the contract is made of."""

from dataclasses import dataclass, field
from typing import NamedTuple


class NotYet(NamedTuple):
    """A row that this version can't be held to, and why."""

    statement: str
    reason: str


PROXY = "the egress proxy is a later backend: `egress_proxy_url` is refused with a sentence"
WEBHOOKS = "webhooks come later: `[[webhooks]]` is refused with a sentence, and nothing is ever sent"


@dataclass(frozen=True)
class Table:
    """One table: `name` begins the ids of its rows; a row says in our words what must hold."""

    name: str
    title: str
    rows: dict[str, str]
    not_yet: dict[str, NotYet] = field(default_factory=dict)
