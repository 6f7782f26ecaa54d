"""Which files are changed, and which tests are to notice it.

Tests of a room lie in the folder of its name; none of them runs a whole gateway. A file whose tests are known has an
entry of its own: what survives is tried on all of them. The test of the file's own name comes first, because it finds
most.
"""

from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

CALLS = (
    *(
        f"tests/notary/test_{name}.py"
        for name in (
            "answers_again", "executions", "remembering", "service", "signed_in_time", "under_way", "worker_faults",
        )
    ),
    "tests/notary/operations/test_verify_intent.py", "tests/notary/operations/test_withdraw.py",
)  # fmt: skip
"""Of calls on their way between fronts, notary and workers."""
REDIS = tuple(
    f"tests/notary/backends/redis/test_{name}.py"
    for name in (
        "accept_rollback", "changes", "client", "cluster", "faults", "fitness", "kills", "lost_answers", "order",
        "refused_starts", "remote_units", "shared",
    )
)  # fmt: skip
"""Of a store in Redis, but for failovers, which take a while."""
FOLDERS = {
    "frontend/auth": (
        "tests/frontend/auth", "tests/frontend/api/handlers/test_leases.py", "tests/frontend/test_pace.py",
        "tests/frontend/calls/test_pipeline.py", "tests/frontend/calls/test_refused_operators.py",
        "tests/frontend/calls/approvals/test_signatures.py",
    ),
    "frontend/limits": ("tests/frontend/limits", "tests/frontend/test_pace.py"),
    "frontend/policy/question.py": ("tests/frontend/policy/test_question.py",),
    "frontend/calls/approvals": (
        "tests/frontend/calls/approvals", "tests/frontend/calls/test_pipeline.py",
        "tests/frontend/calls/test_record.py", "tests/frontend/test_interruptions.py",
        "tests/frontend/api/handlers/test_live_sync.py",
    ),
    "frontend/calls": ("tests/frontend/calls", "tests/frontend/test_pace.py", "tests/frontend/test_interruptions.py"),
    "notary/operations": (
        "tests/notary/operations", "tests/notary/signing/test_rotation.py", "tests/notary/test_unit.py",
        "tests/notary/test_checkpoints.py", "tests/notary/test_announcing.py", "tests/notary/test_answers_again.py",
        "tests/notary/test_under_way.py", "tests/notary/ledger/test_outbox.py", "tests/notary/reading/test_queries.py",
        "tests/notary/test_orphans.py", "tests/notary/test_executions.py",
        "tests/notary/backends/redis/test_shared.py",
    ),
    "notary/operations/reconciling.py": (
        "tests/notary/backends/redis/test_shared.py", "tests/notary/backends/postgres/test_lost_redis.py",
    ),
    "notary/store": (
        "tests/notary/store", "tests/notary/operations", "tests/notary/ledger/test_schema.py",
        "tests/notary/test_upkeep.py",
    ),
    "notary/signing": ("tests/notary/signing", "tests/notary/operations/test_open.py"),
    "notary/signing/operators.py": ("tests/notary/operations/test_signed.py",),
    "notary/ledger": ("tests/notary/ledger", "tests/notary/operations", "tests/notary/test_announcing.py"),
    "notary/ledger/gateways.py": ("tests/notary/backends/postgres", "tests/notary/ledger/test_contract.py"),
    "notary/ledger/postgres.py": ("tests/notary/backends/postgres", "tests/notary/ledger/test_contract.py"),
    "notary/tree": ("tests/notary/tree", "tests/notary/test_checkpoints.py"),
    "notary/reading": (
        "tests/notary/reading", "tests/notary/operations/test_close.py",
        "tests/notary/operations/test_verify_intent.py", "tests/notary/operations/test_witnessing.py",
        "tests/notary/test_checkpoints.py",
        "tests/notary/test_announcing.py",
    ),
    "notary/reading/source.py": (
        "tests/notary/reading/test_source.py", "tests/notary/reading/test_offline.py",
        "tests/notary/backends/postgres/test_source.py",
    ),
    "notary/backends/postgres": tuple(
        f"tests/notary/backends/postgres/test_{name}.py" for name in ("faults", "shared", "source")
    ),
    "notary/backends/postgres/fitness.py": ("tests/notary/backends/postgres/test_fitness.py",),
    "notary/backends/postgres/place.py": tuple(
        f"tests/notary/backends/postgres/test_{name}.py" for name in ("place", "fitness", "source")
    ),
    "notary/backends/postgres/statements.py": (
        "tests/notary/ledger/test_contract.py", "tests/notary/backends/postgres/test_source.py",
    ),
    "notary/backends/redis": (*REDIS, "tests/notary/store"),
    "notary/backends/redis/stores.py": (
        *REDIS, "tests/notary/store", "tests/notary/backends/postgres/test_lost_redis.py",
    ),
    "notary/backends/redis/sentinels.py": ("tests/notary/backends/redis/test_sentinels.py",),
    "notary/backends": (
        "tests/notary/backends/test_bringing.py", "tests/notary/backends/test_sqlite.py", "tests/notary/ledger",
    ),
    "notary/backends/bringing.py": ("tests/notary/backends/test_bringing.py",),
    "notary/remote_units.py": (*REDIS, "tests/notary/backends/postgres/test_lost_redis.py"),
    "notary/main.py": ("tests/notary/test_main.py", "tests/notary/backends/redis/test_fitness.py"),
    "notary/reader.py": ("tests/notary/test_reader.py",),
    "notary/trace.py": ("tests/notary/test_trace.py",),
    "notary/accept_clock.py": ("tests/notary/test_accept_clock.py",),
    "notary/accepting.py": ("tests/notary/test_accept_rollback.py", "tests/notary/test_accept_clock.py"),
    "notary/accept_rollback.py": (
        "tests/notary/test_accept_rollback.py", "tests/notary/backends/redis/test_accept_rollback.py",
    ),
    "notary/announcing.py": ("tests/notary/test_announcing.py",),
    "notary/backup.py": ("tests/notary/test_backup.py",),
    "notary/channels.py": (
        "tests/notary/test_channels.py", "tests/notary/test_service.py", "tests/notary/test_answers_again.py",
        "tests/notary/operations/test_delivering.py",
    ),
    "notary/checkpoint_file.py": (
        "tests/notary/test_checkpoint_file.py", "tests/notary/test_checkpoints.py", "tests/notary/test_backup.py",
        "tests/notary/operations/test_witnessing.py",
    ),
    "notary/checkpoints.py": (
        *(f"tests/notary/test_{name}.py" for name in (
            "checkpoints", "accept_rollback", "announcing", "backup", "signed_in_time",
        )),
        "tests/notary/operations/test_witnessing.py", "tests/notary/backends/postgres/test_shared.py",
    ),
    "notary/database.py": ("tests/notary/test_remembering.py",),
    "notary/executions.py": CALLS,
    "notary/fronts.py": (
        "tests/notary/test_fronts.py", "tests/notary/test_channels.py", "tests/notary/test_service.py",
    ),
    "notary/offline.py": (
        "tests/notary/reading/test_offline.py", "tests/notary/reading/test_kept_checkpoints.py",
    ),
    "notary/opening.py": (
        *(f"tests/notary/test_{name}.py" for name in (
            "accept_rollback", "answers_again", "checkpoints", "orphans", "signed_in_time", "unit", "upkeep",
        )),
        "tests/notary/operations/test_issue_note_revoke.py", "tests/notary/backends/redis/test_refused_starts.py",
        "tests/notary/backends/redis/test_shared.py", "tests/notary/backends/postgres/test_shared.py",
    ),
    "notary/orphans.py": ("tests/notary/test_orphans.py",),
    "notary/places.py": (
        "tests/notary/test_places.py",
        "tests/notary/backends/redis/test_fitness.py", "tests/notary/backends/postgres/test_fitness.py",
        "tests/notary/backends/postgres/test_shared.py",
    ),
    "notary/service.py": (
        *CALLS,
        *(f"tests/notary/test_{name}.py" for name in ("announcing", "orphans")),
        "tests/notary/operations/test_issue_note_revoke.py", "tests/notary/backends/redis/test_shared.py",
    ),
    "notary/state.py": tuple(
        f"tests/notary/test_{name}.py"
        for name in (
            "announcing", "channels", "executions", "remembering", "service", "state", "under_way", "unit", "upkeep",
        )
    ),
    "notary/try_backends.py": ("tests/notary/test_try_backends.py",),
    "notary/upkeep.py": (
        "tests/notary/test_upkeep.py", "tests/notary/operations/test_ended_requests.py",
        "tests/notary/operations/test_signed.py", "tests/notary/backends/postgres/test_shared.py",
    ),
    "notary/walls.py": ("tests/notary/test_walls.py",),
    "notary/workers.py": (
        "tests/notary/test_workers.py", "tests/notary/test_worker_faults.py", "tests/notary/test_under_way.py",
        "tests/notary/test_executions.py",
    ),
    "notary": (
        "tests/notary/test_unit.py", "tests/notary/test_answers_again.py", "tests/notary/test_under_way.py",
        "tests/notary/test_executions.py",
        "tests/notary/ledger/test_journal.py", "tests/notary/operations/test_withdraw.py",
        "tests/notary/operations/test_issue_note_revoke.py", "tests/notary/operations/test_resolve.py",
        "tests/notary/test_remembering.py",
        *(f"tests/notary/backends/redis/test_{name}.py" for name in ("faults", "lost_answers", "shared")),
        *(f"tests/notary/backends/postgres/test_{name}.py" for name in ("found_again", "lost_answers", "shared")),
    ),
}  # fmt: skip
"""Files or folders -> tests. A file belongs to the longest entry that it stands in."""
PROGRAMS = frozenset({
    "notary/main.py", "notary/reader.py", "notary/trace.py", "notary/try_backends.py",
    "notary/backends/redis/scripts.py",
})  # fmt: skip
"""Files that tests run in processes of their own, or whose functions run as they are loaded: which test runs which line
of them is not seen."""


def files(only: str = "") -> list[str]:
    """Every file of the rooms, or those whose path begins so, in the order of the rooms."""
    names: dict[str, None] = {}
    for room in FOLDERS:
        path = ROOT / room
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            name = str(file.relative_to(ROOT))
            if name.startswith(only) and file.name != "__init__.py":
                names[name] = None
    return list(names)


@cache
def naming(word: str) -> list[tuple[str, bytes]]:
    """Files of the packages of the rooms, and what they read, that hold this word."""
    holders = []
    for package in dict.fromkeys(room.partition("/")[0] for room in FOLDERS):
        for path in sorted((ROOT / package).rglob("*.py")):
            if word.encode() in (source := path.read_bytes()):
                holders.append((str(path.relative_to(ROOT)), source))
    return holders


def room_of(path: str) -> str:
    """The entry of FOLDERS that a file belongs to."""
    return max((room for room in FOLDERS if path == room or path.startswith(f"{room}/")), key=len)


def tests_of(path: str) -> list[list[str]]:
    """What is run for a file: its own test, and then, if that notices nothing, what else there is for its room."""
    folders = FOLDERS[room_of(path)]
    tests = [file for folder in folders for file in _files_of(ROOT / folder)]
    own = [file for file in tests if Path(file).stem == f"test_{Path(path).stem}"]
    return [part for part in (own, [file for file in tests if file not in own]) if part]


def _files_of(path: Path) -> list[str]:
    files = [path] if path.is_file() else sorted(path.rglob("test_*.py"))
    return [str(file.relative_to(ROOT)) for file in files]
