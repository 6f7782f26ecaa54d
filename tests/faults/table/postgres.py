"""The ledger in a PostgreSQL (`ledger.url`)."""

from typing import Any

from tests.faults.table.rows import START, Refused, Row, Table
from tests.faults.table.sqlite import GONE

_DO = "bring it back: the notary looks for it four times a second, no restart is needed"
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
    "It holds the ledger, and a Redis the store. Without evidence neither an action nor a lease happens; its changes "
    "in the Redis are undone.",
    {
        START: Refused(
            "No process listens at its address.",
            "start PostgreSQL first; a service manager tries again",
            69,
            "its database is not available",
        ),
        "refuses": _down("It no longer listens."),
        "hangs": _down(
            "It takes connections and says nothing. The first unit waits four seconds for it, later ones not at all.",
            do="look at its log and its disk: a stopped process, a lock (`pg_stat_activity`), a disk that hangs",
        ),
        "resets in the middle": _down(
            "Connections break while it answers. After a lost answer to a COMMIT the notary asks the server whether it "
            "was done.",
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
            "The disk of its tables has no room. Operations that only read continue.",
            answers=_FULL,
            log="could not extend file",
            do="make room: the notary tries each second whether there is some",
        ),
        "loses its data": _down(
            "An older copy has replaced it: a restored backup, or a replica that lags behind. It is not written to.",
            log="it lacks units that were committed",
            do='put the right one back; where it is lost: `docs/operations.md`, "Backing it up"',
        ),
        "clock differs": "its clock is not used: the notary supplies times",
    },
)
