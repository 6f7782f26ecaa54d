"""`python -m notary.try_backends`, settings as JSON on standard input: can the backends of the notary be used?

Behind `gateway check --connect`. Prints one JSON array of what is wrong, by setting. A process of its own, because the
supervisor, which asks for it, speaks to no backend. Changes nothing in them but a key that says it is a try, which ends
by itself.
"""

import sys

import msgspec

from ipc.key_reports import BackendProblem
from ipc.parent import refuse_core_dumps
from ipc.settings import Settings


def problems(settings: Settings) -> list[BackendProblem]:
    """Of those that are configured."""
    told: list[tuple[str, str | None]] = []
    if settings.store.redis_url is not None:
        from notary.backends.redis.fitness import problem_of_redis

        told.append(("store.redis_url", problem_of_redis(settings)))
    if settings.ledger.url is not None:
        from notary.backends.postgres.fitness import problem_of_postgres

        told.append(("ledger.url", problem_of_postgres(settings)))
    return [BackendProblem(name, sentence) for name, sentence in told if sentence is not None]


def main() -> int:
    """Entry point. Returns an exit code of ipc/exits.py."""
    refuse_core_dumps()
    settings = msgspec.json.decode(sys.stdin.buffer.read(), type=Settings)
    sys.stdout.buffer.write(msgspec.json.encode(problems(settings)) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
