"""The console script `gateway`: command lines in, one sentence or a list of problems out, exit codes of `ipc.exits`."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from setproctitle import setproctitle

from ipc.exits import Exit
from ipc.settings import Settings
from supervisor import dev
from supervisor.children import Programs
from supervisor.config import Loaded, check, open_document
from supervisor.keys import make_keys
from supervisor.launch import launch, prepare_run
from supervisor.logs import configure_logs
from supervisor.problems import report
from supervisor.production import broken_rules, weakened
from supervisor.provision import provision
from supervisor.refusal import Refused

_EXITS = """exit codes:
  0 stopped as asked · 8 a ledger does not verify · 69 a port or a dependency is not available
  75 another gateway holds the state directory · 77 a folder can't be used · 78 the configuration is refused
  137 calls were cut by the hard deadline · 1 something nobody foresaw; the log says what"""


def main(arguments: Sequence[str] | None = None, programs: Programs | None = None) -> int:
    """Run one command; return its exit code. `programs` are the children to start, for those who bring their own."""
    options = _parser().parse_args(arguments)
    options.programs = programs or Programs()
    try:
        return int(options.run(options))
    except Refused as refused:
        print(f"gateway: {refused.sentence}", file=sys.stderr)
        return refused.code
    except KeyboardInterrupt:
        # Before signals are received in the event loop; nothing has been taken yet.
        return Exit.KILLED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gateway",
        description="Action enforcement gateway: stands between AI agents and their side effects.",
        epilog=_EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"gateway {_version()}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="serve with a configuration that is safe for production")
    run.add_argument("--config", type=Path, required=True, metavar="FILE", help="configuration (TOML)")
    run.set_defaults(run=_run)

    develop = commands.add_parser(
        "dev",
        help="serve on this machine without any configuration; weakened, for development only",
        description="Serve without any configuration: embedded stores, example actions, keys and one operator made at "
        "the first start and kept. Prints one line of JSON on standard output when it serves.",
    )
    develop.add_argument(
        "--listen", metavar="ADDR:PORT", help=f"TCP address (default {dev.DEFAULT_LISTEN}; port 0 picks a free one)"
    )
    develop.add_argument(
        "--state-dir", type=Path, metavar="DIR", help="where state is kept (default ~/.local/state/gateway-dev)"
    )
    develop.add_argument("--config", type=Path, metavar="FILE", help="configuration that overrides dev defaults (TOML)")
    develop.add_argument("--ready-file", type=Path, metavar="FILE", help="write the ready line to this file too")
    develop.set_defaults(run=_dev)

    check_config = commands.add_parser("check", help="say everything that is wrong with a configuration, start nothing")
    check_config.add_argument("--config", type=Path, required=True, metavar="FILE", help="configuration (TOML)")
    check_config.set_defaults(run=_check)

    keys = commands.add_parser("keys", help="make the keys that a configuration names")
    keys_commands = keys.add_subparsers(title="commands", required=True, metavar="COMMAND")
    make = keys_commands.add_parser("make", help="make signing keys and one operator's credential, keep what is there")
    make.add_argument("folder", type=Path, metavar="DIR", help="where they are kept, mode 0700")
    make.add_argument("--operator", default="admin", metavar="NAME", help="the operator's name (default admin)")
    make.set_defaults(run=_keys_make)

    ledger = commands.add_parser("ledger", help="work on a ledger file without the service")
    ledger_commands = ledger.add_subparsers(title="commands", required=True, metavar="COMMAND")
    verify = ledger_commands.add_parser("verify", help="check the chain of events and every receipt's signature")
    verify.add_argument("file", type=Path, metavar="FILE", help="ledger (SQLite file) or a copy of one")
    verify.add_argument("--keys", type=Path, required=True, metavar="FILE", help="receipt keys (JWKS)")
    verify.set_defaults(run=_ledger_verify)
    return parser


def _version() -> str:
    return Settings(state_dir="", public_base_url="").version


def _load_for_production(file: Path) -> Loaded:
    """Settings from a file, held against the rules of production too."""
    document, context, problems = open_document(file, os.environ)
    loaded = check(document, context, problems)
    if loaded.settings is None:
        return loaded
    broken = tuple(document.problem(finding.path, finding.text) for finding in broken_rules(loaded.settings))
    return Loaded(document, broken, None if broken else loaded.settings)


def _run(options: argparse.Namespace) -> int:
    loaded = _load_for_production(options.config)
    if loaded.settings is None:
        print(report(loaded.problems), end="", file=sys.stderr)
        return Exit.CONFIG
    setproctitle("gateway: supervisor")
    configure_logs()
    return launch(prepare_run(loaded.settings), os.environ, options.programs)


def _dev(options: argparse.Namespace) -> int:
    given = dev.DevOptions(options.listen, options.state_dir, options.config, options.ready_file)
    loaded = dev.load_dev(given, os.environ)
    if loaded.settings is None:
        print(report(loaded.problems), end="", file=sys.stderr)
        return Exit.CONFIG
    setproctitle("gateway: supervisor")
    configure_logs()
    return launch(dev.prepare_dev(loaded, given, os.environ), os.environ, options.programs)


def _check(options: argparse.Namespace) -> int:
    loaded = _load_for_production(options.config)
    if loaded.settings is None:
        print(report(loaded.problems), end="")
        return Exit.CONFIG
    names = weakened(loaded.settings)
    print(f"{options.config}: no problems." + (f" Weakened: {', '.join(names)}." if names else ""))
    return Exit.OK


def _keys_make(options: argparse.Namespace) -> int:
    print(provision(options.folder, options.operator, make_keys), end="")
    return Exit.OK


def _ledger_verify(options: argparse.Namespace) -> int:
    command = ["-I", "-m", "frontend.evidence.offline", str(options.file), "--keys", str(options.keys)]
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *command])  # noqa: S606 - our own interpreter and module


if __name__ == "__main__":
    sys.exit(main())
