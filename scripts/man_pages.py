"""Man pages of `gateway` and of each of its commands, made of the parsers that read their words.

Usage: python -m scripts.man_pages FOLDER     from the root of a tree
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from supervisor.cli import command_parser, version

Command = tuple[str, str, argparse.ArgumentParser]
"""A command's word, its help, and its parser."""


def pages() -> dict[str, str]:
    """Name of a page, as gateway-run -> its text in roff."""
    root = command_parser()
    made = {"gateway": _page(root, "gateway", root.description or "", [*_commands(root)])}
    for name, about, parser in _commands(root):
        made[f"gateway-{name}"] = _page(parser, f"gateway-{name}", about, [])
    return made


def _page(parser: argparse.ArgumentParser, name: str, about: str, others: list[Command]) -> str:
    """One page. `others` are commands that have pages of their own; all below them stand on this one."""
    lines = [f'.TH "{name.upper()}" 1 "" "action-gateway {version()}" "Action gateway"', ".SH NAME"]
    lines += [f"{_roff(name)} \\- {_roff(about)}", ".SH SYNOPSIS", _usage(parser)]
    if others:
        lines.append(".SH COMMANDS")
        for word, help_text, _ in others:
            lines += [".TP", f"\\fBgateway\\-{_roff(word)}\\fR(1)", _roff(help_text)]
    lines += [".SH OPTIONS", *_described(parser, skip_commands=bool(others))]
    lines.append(".SH SEE ALSO")
    lines.append("\\fBgateway\\fR(1)" if not others else "the documentation beside the program's source")
    return "\n".join(lines) + "\n"


def _commands(parser: argparse.ArgumentParser) -> Iterator[Command]:
    """Each command directly below this parser."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {one.dest: one.help or "" for one in action._choices_actions}
            for word, below in action.choices.items():
                yield word, helps.get(word, ""), below


def _described(parser: argparse.ArgumentParser, *, skip_commands: bool) -> Iterator[str]:
    """Options, the commands below with theirs, and the words at the end of the help."""
    formatter = parser._get_formatter()
    for action in parser._actions:
        if action.help is argparse.SUPPRESS or isinstance(action, argparse._SubParsersAction):
            continue
        text = formatter._expand_help(action) if action.help else ""
        yield from (".TP", f"\\fB{_roff(formatter._format_action_invocation(action))}\\fR", _roff(text) or "\\&")
    if not skip_commands:
        for word, about, below in _commands(parser):
            yield from (f'.SH "{_roff(word.upper())}"', _roff(about), ".PP", _usage(below))
            yield from _described(below, skip_commands=False)
    if parser.epilog:
        yield from (".PP", ".nf", *map(_roff, parser.epilog.replace("%(prog)s", parser.prog).splitlines()), ".fi")


def _usage(parser: argparse.ArgumentParser) -> str:
    return _roff(" ".join(parser.format_usage().removeprefix("usage: ").split()))


def _roff(text: str) -> str:
    """One line of text: nothing in it is a request or an escape."""
    plain = " ".join(text.split()) if "\n" in text else text
    escaped = plain.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def main(folder: Path) -> None:
    """Write each page."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / f"{name}.1").write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
