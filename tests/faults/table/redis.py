"""The store in a Redis (`store.redis_url`)."""

from typing import Any

from tests.faults.table.rows import START, Refused, Row, Table

_DO = "bring it back; calls are let through within a second of its first answer, no restart is needed"
_LOG = "the key-value store is down"
_METRICS = (
    'gate_dependency_up{dependency="store"} 0', 'gate_readiness_degraded_total{reason="store"} rises',
    "gate_store_request_errors_total rises",
)  # fmt: skip
_PROOF = "503 replay_cache_unavailable"
_BUDGET_OR_PROOF = f"503 budget_store_unavailable or {_PROOF}"
"""The first call names the request that failed, which may be the one for the budget; later calls fail at the proof."""
_DOWN = {
    "lease with a budget": "503 budget_store_unavailable", "execute": _PROOF,
    "execute with a budget": _BUDGET_OR_PROOF, "approve": _PROOF, "poll": _PROOF, "receipt": _PROOF,
    "audit": _PROOF, "readiness": "503 not_ready", "status": "200 degraded",
}  # fmt: skip


def _down(seen: str, **more: Any) -> Row:
    return Row(seen, **({"do": _DO, "answers": _DOWN, "metrics": _METRICS, "log": _LOG} | more))


REDIS = Table(
    "Redis",
    "Proofs, budgets, approvals and the epoch lie there: without it nothing is executed, decided or read. A lease "
    "without a budget is still issued, and the status still answered.",
    {
        START: Refused(
            "No process listens at its address.",
            "start Redis first; a service manager tries again",
            69,
            "its store is not available",
        ),
        "refuses": _down("It no longer listens."),
        "hangs": _down(
            "It takes connections and says nothing.",
            do="look at its log and its disk: a fork that copies much memory, a script that loops, a stopped process",
        ),
        "resets in the middle": _down(
            "Connections break while it answers. Changes that the ledger does not have are undone first.",
            do="look at what is between: a balancer, a firewall, `maxclients`",
        ),
        "garbage": _down("Something else listens there, and is no Redis.", do="correct `store.redis_url`"),
        "slow": Row(
            "Each of its answers comes late, and within a second.",
            "look at `gate_store_request_duration_seconds`, then at its log (`SLOWLOG GET`)",
            metrics=("gate_store_request_duration_seconds_sum rises",),
        ),
        "read-only": _down(
            "It has become a replica; a budget is not spent.",
            do="name the master, or a name that leads to it, in `store.redis_url`; after a failover nothing",
        ),
        "full": _down(
            "`maxmemory` is reached under `noeviction`; a budget is not spent.",
            do="give it more memory; evicting would forget used proofs",
        ),
        "loses its data": Row(
            "It was emptied, or came back without its file. The epoch is raised above all earlier ones: every "
            "earlier lease and held call ends, because the used proofs are unknown.",
            "look for the `AdminRevokeAll` event of `gateway`; agents get new leases by themselves",
            {
                "execute": "401 invalid_lease",
                "execute with a budget": "401 invalid_lease",
                "poll": "401 invalid_lease",
                "receipt": "401 invalid_lease",
                "approve": "404 approval_not_found",
            },
            log="every lease of before has ended",
            first="execute",
            ends_leases=True,
        ),
        "clock differs": "its clock is not used for times: the notary supplies them, Redis only counts durations",
    },
)
