"""On what a gateway can lie instead of its embedded defaults, by name: `redis`, `redis+postgresql+opa` and the like.

Knows settings and columns; the servers are those of bench/servers.py, each on a Unix socket of this machine.
"""

import tempfile
from argparse import ArgumentTypeError
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.servers import opa_running, postgres_running, redis_running

REDIS, POSTGRESQL, OPA = "redis", "postgresql", "opa"
COLUMNS = {REDIS: "Redis", POSTGRESQL: "PostgreSQL", OPA: "OPA"}
DEFAULT = "redis,redis+postgresql,redis+postgresql+opa"
Chosen = tuple[str, ...]
"""The backends of one gateway, in the order of COLUMNS."""


@dataclass(frozen=True)
class Backends:
    """Servers that run, as the configuration of a gateway has them."""

    top: str = ""
    """Lines before the first table."""
    tables: str = ""
    pids: tuple[int, ...] = ()


def chosen(text: str) -> tuple[Chosen, ...]:
    """Parse `redis,redis+postgresql+opa`; empty for `none`. Raises ArgumentTypeError."""
    columns = []
    for name in text.split(",") if text != "none" else ():
        parts = set(name.split("+"))
        if not parts <= set(COLUMNS) or not parts:
            raise ArgumentTypeError(f"{name!r} is none of {', '.join(COLUMNS)}, or several of them joined by +")
        if POSTGRESQL in parts and REDIS not in parts:
            raise ArgumentTypeError(f"{name!r}: a gateway whose ledger is shared has its store in a Redis")
        columns.append(tuple(one for one in COLUMNS if one in parts))
    return tuple(dict.fromkeys(columns))


def column(names: Chosen) -> str:
    """As people say it: Redis + SQLite."""
    said = [COLUMNS[one] for one in names]
    if POSTGRESQL not in names:
        said.insert(names.index(REDIS) + 1 if REDIS in names else 0, "SQLite")
    return " + ".join(said)


@contextmanager
def running(names: Chosen) -> Iterator[Backends]:
    """Start these servers, until the block ends. Raises NoServerError."""
    top, tables, pids = "", "", list[int]()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gateway-bench-")))
        if REDIS in names:
            url, pid = stack.enter_context(redis_running(folder))
            tables += f'[store]\nredis_url = "{url}"\n'
            pids.append(pid)
        if POSTGRESQL in names:
            url, pid = stack.enter_context(postgres_running())
            tables += f'[ledger]\nurl = "{url}"\n'
            pids.append(pid)
        if OPA in names:
            url, pid = stack.enter_context(opa_running(folder))
            top += f'opa_url = "{url}"\n'
            pids.append(pid)
        yield Backends(top, tables, tuple(pids))
