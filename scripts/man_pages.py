"""Man pages of `gateway`, of `gatectl` and of each of their commands, made of the parsers that read their words.

Usage: python -m scripts.man_pages FOLDER     from the root of a tree, with its `sdk` on the path
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from gateway_client.cli.main import cli
from gateway_client.version import __version__

from scripts.command_texts import CommandText, of_command, of_parser
from supervisor.cli import command_parser, version


def pages() -> dict[str, str]:
    """Name of a page, as gateway-run -> its text in roff."""
    root = command_parser()
    gateway = of_parser("gateway", root.description or "", root)
    return _pages(gateway, f"action-gateway {version()}") | _pages(of_command("gatectl", cli), f"gatectl {__version__}")


def _pages(root: CommandText, source: str) -> dict[str, str]:
    made = {root.name: _page(root, root, source)}
    return made | {one.name.replace(" ", "-"): _page(one, root, source) for one in root.below}


def _page(command: CommandText, root: CommandText, source: str) -> str:
    """One page. The commands below the root have pages of their own; all below them stand on theirs."""
    is_root = command is root
    name = command.name.replace(" ", "-")
    about, _, more = command.about.partition("\n")
    lines = [f'.TH "{name.upper()}" 1 "" "{source}" "Action gateway"', ".SH NAME"]
    lines += [f"{_roff(name)} \\- {_roff(about)}", ".SH SYNOPSIS", _roff(command.usage)]
    lines += [".SH DESCRIPTION", *_paragraphs(more)] if more.strip() else []
    if is_root:
        lines.append(".SH COMMANDS")
        for one in command.below:
            title = f"\\fB{_roff(one.name.replace(' ', '-'))}\\fR(1)"
            lines += [".TP", title, _roff(one.about.partition("\n")[0])]
    lines += [".SH OPTIONS", *_described(command, skip_below=is_root)]
    lines.append(".SH SEE ALSO")
    lines.append("the documentation beside the program's source" if is_root else f"\\fB{root.name}\\fR(1)")
    return "\n".join(lines) + "\n"


def _described(
    command: CommandText, *, skip_below: bool = False, told: frozenset[tuple[str, str]] = frozenset()
) -> Iterator[str]:
    """Options that the page has not told yet, the commands below with theirs, and the words at the end of the help."""
    for form, text in command.options:
        if (form, text) not in told:
            yield from (".TP", f"\\fB{_roff(form)}\\fR", _roff(text) or "\\&")
    for one in () if skip_below else command.below:
        yield f'.SH "{_roff(one.name.partition(" ")[2].partition(" ")[2].upper())}"'
        yield from _paragraphs(one.about)
        yield from (".PP", _roff(one.usage))
        yield from _described(one, told=told.union(command.options))
    if command.epilog:
        yield from (".PP", ".nf", *map(_roff, command.epilog.splitlines()), ".fi")


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(one for one in text.split("\n\n") if one.strip()):
        yield from (".PP", _roff(paragraph)) if number else (_roff(paragraph),)


def _roff(text: str) -> str:
    """One line of text: nothing in it is a request or an escape."""
    plain = " ".join(text.split()) if "\n" in text else text
    escaped = plain.replace("\\", "\\e").replace("-", "\\-").replace("\b", "")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def main(folder: Path) -> None:
    """Write each page."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / f"{name}.1").write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
