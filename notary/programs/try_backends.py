"""`python -m notary.programs.try_backends`, settings as JSON on standard input: can the backends of the notary be used?

Behind `gateway check --connect`. Prints one JSON array of what is wrong, by setting. A process of its own, because the
supervisor, which asks for it, speaks to no backend. Changes nothing in them but a key that says it is a try, which ends
by itself.
"""

import sys

import msgspec

from ipc.keys.key_reports import BackendProblem
from ipc.process.parent import refuse_core_dumps
from ipc.settings import Settings
from notary.servers.table import servers


def problems(settings: Settings) -> list[BackendProblem]:
    """Try every server that is configured."""
    told = [(server.declared.setting, server.problem(settings)) for server in servers(settings)]
    return [BackendProblem(setting, sentence) for setting, sentence in told if sentence is not None]


def main() -> int:
    """Entry point. Returns an exit code of ipc/process/exits.py."""
    refuse_core_dumps()
    settings = msgspec.json.decode(sys.stdin.buffer.read(), type=Settings)
    sys.stdout.buffer.write(msgspec.json.encode(problems(settings)) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
