"""gatectl: the tree of commands, and the one place where outcomes become exit codes.

Guarantees one line on standard error for whatever goes wrong, never a stack trace for what a user caused, and 130 with
whole files after Ctrl-C.
"""

import gc
import os
import sys
from typing import NoReturn

import click

from gateway_client.cli import commands
from gateway_client.cli.commands import (
    agent,
    allowlist,
    approvals,
    audit,
    bundles,
    checkpoints,
    completion,
    context,
    desk,
    doctor,
    evidence,
    exports,
    intents,
    keys,
    learned,
    mcp,
    policy,
    receipts,
    running,
    sessions,
    standing,
    summary,
    value_rules,
    watching,
    webhooks,
    why,
)
from gateway_client.cli.complaints import tell
from gateway_client.cli.desk import CliContext, Group
from gateway_client.cli.exits import Failure, ScriptExit
from gateway_client.errors import GatewayError
from gateway_client.keys import KeyFileError
from gateway_client.version import __version__

COMPLETE_VARIABLE = "_GATECTL_COMPLETE"
HELP = """Operate an action gateway: decide what waits, read the evidence, change what agents may do.

A gateway dev that runs here is found without further ado: gatectl status. Others are contexts: gatectl context.
"""

cli = Group("gatectl", help=HELP, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})


def _version(context: click.Context, _option: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        click.echo(__version__)
        context.exit()


cli.params.append(
    click.Option(["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show it.")
)
for _module in (running, desk, approvals, standing, why, watching, audit, summary, checkpoints, exports, receipts,
                bundles, intents, sessions, evidence, learned, policy, value_rules, webhooks, allowlist, agent, mcp,
                keys, doctor, context, completion):  # fmt: skip
    _module.add_to(cli)
__all__ = ["cli", "commands", "main"]


def main() -> NoReturn:
    """The console script."""
    _open_streams()
    arguments = sys.argv[1:]
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal may know fewer characters than a request
    code = run(arguments)
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python complains once more at its end
        code = code or ScriptExit.FAILED
    gc.freeze()  # or the interpreter looks through all that it is about to take apart, three times
    sys.exit(int(code))


def _open_streams() -> None:
    """Open standard streams that were closed on /dev/null, so that no socket takes their numbers."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def run(arguments: list[str], desk: CliContext | None = None) -> int:
    """Run one command; gives the exit code."""
    if not arguments and COMPLETE_VARIABLE not in os.environ:
        click.echo(cli.get_help(click.Context(cli, info_name="gatectl")), err=True)
        return ScriptExit.USAGE
    is_json = "--json" in (arguments[: arguments.index("--")] if "--" in arguments else arguments)
    try:
        result = cli.main(
            arguments,
            prog_name="gatectl",
            complete_var=COMPLETE_VARIABLE,
            standalone_mode=False,
            obj=desk or CliContext(),
        )
        return result if isinstance(result, int) else ScriptExit.DONE
    except click.exceptions.Exit as end:
        return end.exit_code
    except (click.Abort, KeyboardInterrupt):
        return tell(Failure(ScriptExit.INTERRUPTED, "interrupted", "what was sent by then goes on"), is_json)
    except click.ClickException as error:
        mend = "" if error.format_message().endswith("?") else "see --help"
        if isinstance(error, click.UsageError) and error.ctx is not None:
            mend = f"see {error.ctx.command_path} --help"
        message = " ".join(error.format_message().split()).rstrip(".")
        return tell(Failure(ScriptExit.USAGE, "usage", message, mend), is_json)
    except (GatewayError, Failure) as error:
        return tell(error, is_json)
    except KeyFileError as error:
        return tell(Failure(ScriptExit.DENIED, "key_file", str(error)), is_json)
    except ValueError as error:
        return tell(Failure(ScriptExit.USAGE, "usage", str(error)), is_json)
    except OSError as error:
        name = "" if error.filename is None else f"{error.filename}: "
        return tell(Failure(ScriptExit.FAILED, "failed", f"{name}{error.strerror or error}"), is_json)
