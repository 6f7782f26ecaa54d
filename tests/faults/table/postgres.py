"""The ledger in a PostgreSQL (`ledger.url`)."""

from typing import Any

from tests.faults.table.rows import START, Refused, Row, Table
from tests.faults.table.sqlite import GONE

_DO = "bring it back: the notary looks for it four times a second, nothing is to be restarted"
_METRICS = (
    'gate_dependency_up{dependency="ledger"} 0', 'gate_readiness_degraded_total{reason="ledger"} rises',
)  # fmt: skip
_UNWRITTEN = "503 evidence_store_unavailable"
_FULL = {
    "lease": _UNWRITTEN, "lease with a budget": _UNWRITTEN, "execute": "503 replay_cache_unavailable",
    "execute with a budget": "503 replay_cache_unavailable", "approve": "503 approval_store_unavailable",
    "readiness": "503 not_ready", "status": "200 degraded",
}  # fmt: skip


def _down(seen: str, **more: Any) -> Row:
    what = {"do": _DO, "answers": GONE, "metrics": _METRICS, "log": "the PostgreSQL of the ledger is gone"}
    return Row(seen, **(what | more))


POSTGRES = Table(
    "PostgreSQL",
    "The ledger lies there, and the store in a Redis. What can't be in evidence does not happen, a lease neither; what "
    "the Redis did for it is undone.",
    {
        START: Refused(
            "Nothing listens at its address.",
            "start PostgreSQL first; a service manager tries again",
            69,
            "its database is not available",
        ),
        "refuses": _down("Nothing listens there any more."),
        "hangs": _down(
            "It takes connections and says nothing. The first unit waits four seconds for it, those after it not at "
            "all.",
            do="look at its log and its disk: a stopped process, a lock (`pg_stat_activity`), a disk that hangs",
        ),
        "resets in the middle": _down(
            "Connections break while it answers. Of a COMMIT whose answer is lost the server itself is asked whether "
            "it was done.",
            do="look at what is between: a balancer, a firewall, `max_connections`",
        ),
        "garbage": _down("Something else listens there, and is no PostgreSQL.", do="correct `ledger.url`"),
        "slow": Row(
            "Each of its answers comes late, and within its time.",
            "look at `gate_ledger_write_duration_seconds`, then at its log (`log_min_duration_statement`)",
            metrics=("gate_ledger_write_duration_seconds_sum rises",),
        ),
        "read-only": _down(
            "It takes no writes any more: it has become a standby, or `default_transaction_read_only` is on.",
            do="name the primary, or a name that leads to it, in `ledger.url`; after a failover nothing",
            first="lease",
        ),
        "full": _down(
            "The disk of its tables has no room. What only reads goes on.",
            answers=_FULL,
            log="could not extend file",
            do="make room: the notary tries each second whether there is some",
        ),
        "loses its data": _down(
            "An older copy stands in its place: it was put back, or is one that lags behind. Nothing is written there.",
            log="it lacks units that were committed",
            do='put the right one back; where it is lost: `docs/operations.md`, "Backing it up"',
        ),
        "clock differs": "nothing depends on its clock: moments are the notary's",
    },
)
