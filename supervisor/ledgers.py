"""Where the ledger is, for programs of the notary that read it; and kinds of settings of one that is a PostgreSQL."""

from ipc.postgres_address import parse_postgres_url
from ipc.settings import Settings
from supervisor import kinds
from supervisor.kind import Context, Wrong, kind


@kind(type="string", pattern="^postgres(ql)?://")
def postgres_url(value: object, context: Context) -> str:
    """Where it is. SECURITY: never with a password, which would show in status, logs and a process list."""
    given = kinds.text(value, context)
    try:
        parse_postgres_url(given)
    except ValueError as error:
        raise Wrong(str(error).removesuffix("."), is_secret=True) from None
    return given


def ledger_arguments(settings: Settings) -> tuple[str, ...]:
    """As notary/reading/source.py takes them."""
    ledger = settings.ledger
    if ledger.url is None:
        return (settings.ledger_file,)
    password = () if ledger.password_file is None else ("--password-file", ledger.password_file)
    certificates = () if ledger.ca_file is None else ("--ca-file", ledger.ca_file)
    return (ledger.url, *password, *certificates)
