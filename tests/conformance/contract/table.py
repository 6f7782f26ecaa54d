"""The parts of one table of the contract."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """One table: `name` begins the ids of its rows; a row says in our words what must hold."""

    name: str
    title: str
    rows: dict[str, str]
