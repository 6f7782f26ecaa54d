"""The embedded database: store and ledger in one file."""

from tests.faults.table.rows import START, Refused, Row, Table

_PROOF = "503 replay_cache_unavailable"
_READS = {"approve": _PROOF, "poll": _PROOF, "receipt": _PROOF, "audit": _PROOF, "readiness": "503 not_ready",
          "status": "200 degraded"}  # fmt: skip
GONE = _READS | {
    "lease": "503 evidence_store_unavailable", "lease with a budget": "503 evidence_store_unavailable",
    "execute": _PROOF, "execute with a budget": _PROOF,
}  # fmt: skip
_METRICS = (
    'gate_dependency_up{dependency="store"} 0', 'gate_dependency_up{dependency="ledger"} 0',
    'gate_readiness_degraded_total{reason="ledger"} rises',
)  # fmt: skip
_FULL = "503 ledger_full"

SQLITE = Table(
    "embedded database",
    "Store and ledger are one file: without evidence neither an action nor a lease happens.",
    {
        START: Refused(
            "The file at `ledger.path` is no database.",
            'put the file back: `docs/operations.md`, "Backup and restore"',
            69,
            "its database is not available",
        ),
        "refuses": "a file can't refuse: it is gone, locked, or on a disk that takes nothing, as below",
        "hangs": Row(
            "Its lock is held by another process. The first unit waits two seconds for it, later ones not at all.",
            "end what holds it (`fuser -v ledger.sqlite3`): a shell, a tool for backups that takes no turns",
            GONE,
            _METRICS,
            "the ledger is down",
            first="lease",
        ),
        "resets in the middle": "there is no connection; a notary that is killed within a unit leaves none of it",
        "garbage": Row(
            "Its tables are not those that the gateway made: the one of proofs is gone.",
            "put the file back, or the table; `gateway ledger verify` says whether the evidence is whole",
            _READS | {"execute": _PROOF, "execute with a budget": _PROOF},
            ('gate_dependency_up{dependency="store"} 0',),
            "the key-value store is down",
        ),
        "slow": Row(
            "Its lock is held by another process for a third of a second.",
            "look at `gate_ledger_write_duration_seconds`, then at who else opens the file",
            metrics=("gate_ledger_write_duration_seconds_sum rises",),
        ),
        "read-only": Refused(
            "Its disk is mounted read-only; one that becomes so under way is as one that another process has locked.",
            "mount it writable",
            69,
            "its database is not available",
        ),
        "full": Row(
            "Its volume has less room than `ledger.min_free_bytes`: nothing begins that would need evidence.",
            "make room: `docs/runbooks/full-disk.md`",
            {
                "lease": _FULL,
                "lease with a budget": _FULL,
                "execute": _FULL,
                "execute with a budget": _FULL,
                "approve": _FULL,
                "readiness": "503 not_ready",
                "status": "200 degraded",
            },
            ('gate_calls_refused_total{reason="ledger_full"} rises',),
            "the ledger's volume is full: no call begins",
            first="readiness",
        ),
        "loses its data": Row(
            "The file was moved away under way. It is not made anew. An older copy that is put back while nothing runs "
            "is refused at the next start (`docs/evidence.md`).",
            "put the file back",
            GONE,
            _METRICS,
            "the ledger is down",
        ),
        "clock differs": "it has no clock; a clock of the host behind the newest evidence is 503 `clock_error` for "
        "everything but health, until it is set",
    },
)
