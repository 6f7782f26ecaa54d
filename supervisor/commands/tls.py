"""`--tls-certificate` and `--tls-key` of the commands that serve beside a gateway."""

import argparse
from pathlib import Path

from ipc.process.exits import Exit
from supervisor.refusal import Refused

_HELP = "the certificate, and those between it and a root, as PEM; with --tls-key: serve TLS; followed when it changes"


def add_tls_options(command: argparse.ArgumentParser) -> None:
    """Put both beside the other options."""
    command.add_argument("--tls-certificate", type=Path, metavar="FILE", help=_HELP)
    command.add_argument("--tls-key", type=Path, metavar="FILE", help="its key, as PEM, without a password")


def tls_arguments(options: argparse.Namespace) -> list[str]:
    """The same for the process that serves, with whole paths; empty without TLS. Raises Refused."""
    if options.tls_certificate is None and options.tls_key is None:
        return []
    if options.tls_certificate is None or options.tls_key is None:
        raise Refused(Exit.USAGE, "--tls-certificate and --tls-key come together.")
    folder = Path.cwd()
    return ["--tls-certificate", str(folder / options.tls_certificate), "--tls-key", str(folder / options.tls_key)]
