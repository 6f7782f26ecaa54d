"""The commands of `gateway` and of `gatectl` as their man pages show them, read from what parses their words."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import click


@dataclass(frozen=True, slots=True)
class CommandText:
    """One command: what its help says of it."""

    name: str
    """All its words, as `gateway ledger verify`."""
    about: str
    usage: str
    options: tuple[tuple[str, str], ...]
    """(form, help) of each argument and option."""
    below: tuple["CommandText", ...]
    epilog: str


def of_parser(name: str, about: str, parser: argparse.ArgumentParser) -> CommandText:
    """A command that argparse reads."""
    formatter = parser._get_formatter()
    shown = [one for one in parser._actions if one.help is not argparse.SUPPRESS]
    options = [one for one in shown if not isinstance(one, argparse._SubParsersAction)]
    return CommandText(
        name,
        about,
        parser.format_usage().removeprefix("usage: "),
        tuple(
            (formatter._format_action_invocation(one), formatter._expand_help(one) if one.help else "")
            for one in options
        ),
        tuple(of_parser(f"{name} {word}", text, below) for word, text, below in _parsers(parser)),
        (parser.epilog or "").replace("%(prog)s", parser.prog),
    )


def _parsers(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """Word, help and parser of each command directly below this one."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {one.dest: one.help or "" for one in action._choices_actions}
            for word, below in action.choices.items():
                yield word, helps.get(word, ""), below


def of_command(name: str, command: click.Command) -> CommandText:
    """A command that click reads."""
    context = click.Context(command, info_name=name)
    records = [one.get_help_record(context) for one in command.get_params(context)]
    below = command.commands if isinstance(command, click.Group) else {}
    return CommandText(
        name,
        command.help or "",
        " ".join([name, *command.collect_usage_pieces(context)]),
        tuple(one for one in records if one is not None),
        tuple(of_command(f"{name} {word}", one) for word, one in below.items() if not one.hidden),
        command.epilog or "",
    )
