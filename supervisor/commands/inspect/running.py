"""`gateway status`, `ps`, `reload` and `drain`: the running gateway of this machine, asked through its supervisor."""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ipc.process.exits import Exit
from supervisor.commands import Commands
from supervisor.commands.named import NOTHING_DONE, add_gateway
from supervisor.commands.rotation import load_named
from supervisor.dev.settings import default_state_dir
from supervisor.life.asking import ask_gateway
from supervisor.lifecycle import DRAINING, STALLED
from supervisor.settings.problems import report

LOOK_AGAIN_SECONDS = 0.2

_COMMANDS: tuple[tuple[str, str], ...] = (
    ("status", "say how the running gateway is"),
    ("ps", "list the running gateway's processes"),
    ("reload", "have the running gateway read its configuration, manifests and policy again"),
    ("drain", "have the running gateway refuse new work; calls under way end"),
)


def add(commands: Commands) -> None:
    """Put them beside the other commands."""
    for word, text in _COMMANDS:
        parser = commands.add_parser(
            word,
            help=text,
            description=f"{text[0].upper()}{text[1:]}. Only the gateway's user and root may ask. Without --config "
            "and --state-dir it is the dev gateway of the default state directory.",
        )
        add_gateway(parser)
        parser.add_argument("--json", action="store_true", help="print the answer as one JSON object")
        if word == "drain":
            parser.add_argument("--wait", action="store_true", help="return once no call is in flight")
        parser.set_defaults(run=_ANSWERS[word])


def _state_dir(options: argparse.Namespace) -> Path | None:
    if options.config is None or options.state_dir is not None:
        return Path(options.state_dir or default_state_dir(os.environ)).absolute()
    loaded = load_named(options.config, None, os.environ)
    if loaded.judged is None or not loaded.is_judged("state_dir"):
        print(report(loaded.problems, NOTHING_DONE), end="", file=sys.stderr)
        return None
    return Path(loaded.judged.state_dir)  # whatever else is wrong: the file may be in the middle of an edit


def _status(options: argparse.Namespace) -> int:
    return _told(options, "status", _lines_of_status, lambda answer: bool(answer["is_ready"]))


def _ps(options: argparse.Namespace) -> int:
    return _told(options, "ps", _table, lambda _: True)


def _reload(options: argparse.Namespace) -> int:
    return _told(options, "reload", _lines_of_reload, lambda answer: answer["error"] is None)


def _drain(options: argparse.Namespace) -> int:
    state_dir = _state_dir(options)
    if state_dir is None:
        return Exit.CONFIG
    answer = ask_gateway(state_dir, "drain")
    while options.wait and answer["in_flight"] and "error" not in answer:
        time.sleep(LOOK_AGAIN_SECONDS)
        answer = ask_gateway(state_dir, "status")
    return _print(options, answer, _lines_of_status, lambda _: True)


_DEPENDENCIES = {"redis": "key-value store", "opa": "policy engine", "approval_store": "approval store"}
"""The interface's name -> the name that people are shown."""
_MORE = "the log and docs/failure-modes.md say more"

_ANSWERS: dict[str, Callable[[argparse.Namespace], int]] = {
    "status": _status, "ps": _ps, "reload": _reload, "drain": _drain,
}  # fmt: skip


def _told(
    options: argparse.Namespace, word: str, shown: Callable[[dict[str, Any]], str],
    is_well: Callable[[dict[str, Any]], bool],
) -> int:  # fmt: skip
    state_dir = _state_dir(options)
    if state_dir is None:
        return Exit.CONFIG
    return _print(options, ask_gateway(state_dir, word), shown, is_well)


def _print(
    options: argparse.Namespace, answer: dict[str, Any], shown: Callable[[dict[str, Any]], str],
    is_well: Callable[[dict[str, Any]], bool],
) -> int:  # fmt: skip
    if set(answer) == {"error"}:
        print(f"gateway: {answer['error']}.", file=sys.stderr)
        return Exit.FAILED
    try:
        print(json.dumps(answer) if options.json else shown(answer), flush=True)
    except BrokenPipeError:  # of `gateway ps | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.OK if is_well(answer) else Exit.FAILED


def _lines_of_status(answer: dict[str, Any]) -> str:
    """`serving · 41 actions · 2 held · 3 in flight · 0 unresolved`, and the problems below it."""
    counts = ("actions", "held", "in_flight", "unresolved")
    parts = [f"{_or_unknown(answer[name])} {name.replace('_', ' ')}" for name in counts]
    lines = [" · ".join([answer["state"], *parts])]
    lines += [
        f"not ready: {name} is in a crash loop; gateway ps and the log say more" for name in answer["crash_loops"]
    ]
    if answer["state"] == STALLED:
        lines.append("not ready: no front answers; it is replaced, and the log says why")
    if answer["state"] == DRAINING:
        lines.append("not ready: it refuses new calls and leases until it is restarted; a drain is not taken back")
    if answer["is_ledger_full"]:
        lines.append("not ready: ledger full, calls are refused; make room on its volume: docs/runbooks/full-disk.md")
    if answer["log_lines_dropped"]:
        lines.append(f"log: {answer['log_lines_dropped']} lines were dropped, standard error is not read fast enough")
    if (wrong := answer["clock_error"]) is not None:
        until = f" until {wrong['until']}" if wrong["until"] else ""
        lines.append(
            f"not ready: calls are refused with clock_error{until}: {wrong['cause']}. Set the clock; if it is right, "
            "stop the gateway and run gateway ledger accept-clock"
        )
    lines += [
        f"not ready: the {_DEPENDENCIES.get(name, name)} does not answer, calls are refused; {_MORE}"
        for name in answer["down"]
    ]
    if answer["weakened"]:
        lines.append(f"weakened: {', '.join(answer['weakened'])}")
    lines.append(f"version {answer['version']}, pid {answer['pid']}, state in {answer['state_dir']}")
    return "\n".join(lines)


def _or_unknown(count: int | None) -> str:
    return "?" if count is None else str(count)


def _lines_of_reload(answer: dict[str, Any]) -> str:
    if answer["error"] is not None:
        return f"reload failed, the earlier state stays in force: {answer['error']}"
    lines = [f"reloaded: {answer['actions']} actions, policy {answer['policy_version']}"]
    if answer["changed"]:
        lines.append(f"settings that came into force: {', '.join(answer['changed'])}")
    if answer["needs_restart"]:
        lines.append(f"settings that wait for a restart: {', '.join(answer['needs_restart'])}")
    return "\n".join(lines)


def _table(answer: dict[str, Any]) -> str:
    rows: list[tuple[str, ...]] = [("PID", "PROCESS", "STATE", "IN FLIGHT", "QUEUES", "ENDS", "LAST ERROR")]
    rows.append((str(answer["supervisor"]), "supervisor", "", "", "", "", ""))
    rows += [_cells(one) for one in answer["processes"]]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    queues = ", ".join(f"{name} {count}" for name, count in row["queues"].items())
    ago = row["last_error_seconds_ago"]
    error = row["last_error"] + ("" if ago is None else f", {ago:.0f} s ago")
    in_flight = "" if row["in_flight"] is None else str(row["in_flight"])
    return (str(row["pid"] or "-"), row["name"], row["state"], in_flight, queues, str(row["ends"]), error)
