"""The address of the ledger, as arguments for programs of the notary that read it."""

from ipc.settings import Settings


def ledger_arguments(settings: Settings) -> tuple[str, ...]:
    """The arguments that notary/reading/source.py takes."""
    ledger = settings.ledger
    if ledger.url is None:
        return (settings.ledger_file,)
    password = () if ledger.password_file is None else ("--password-file", ledger.password_file)
    certificates = () if ledger.ca_file is None else ("--ca-file", ledger.ca_file)
    return (ledger.url, *password, *certificates)
