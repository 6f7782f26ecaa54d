"""Every command of gatectl and gateway in a fenced block of the documents is one that the real parsers take."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from gateway_client.cli.main import cli

from supervisor.cli import command_parser

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "sdk" / "README.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "contrib").rglob("README.md"),
    ]
)
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(
    r"^(?:[$#] )?(?:\w+=\S+ |sudo (?:-u \S+ )?|[a-z]+ -f \S+ exec \S+ )*"
    r"(?:\S*/)?(gatectl|gateway) (?!dev serves|console for)([^·]+)$"
)
"""No line of a screen, which begins with a program's name too."""
ENDS = {"|", "||", "&&", ";", ">", ">>", "<", "2>", "&"}
LANGUAGES = {"", "bash", "sh", "console", "shell"}


def commands() -> Iterator[tuple[str, str, list[str]]]:
    """Page, program and arguments of each."""
    for page in PAGES:
        for language, block in FENCE.findall(page.read_text()):
            if language not in LANGUAGES:
                continue
            for line in block.replace("\\\n", " ").splitlines():
                for part in line.split(" && "):
                    match = COMMAND.match(part.strip())
                    if match is not None:
                        yield str(page.relative_to(ROOT)), match[1], words(match[2])


def words(text: str) -> list[str]:
    """The arguments, up to the end of the command."""
    found = shlex.split(text, comments=True)
    return found[: next((place for place, word in enumerate(found) if word in ENDS), len(found))]


COMMANDS = sorted({(page, program, tuple(arguments)) for page, program, arguments in commands()})


def parse_gatectl(arguments: list[str]) -> None:
    """Raises click.ClickException."""
    context = cli.make_context("gatectl", arguments)
    while isinstance(context.command, click.Group):
        rest = [*context._protected_args, *context.args]
        if not rest:  # the group's default command
            return
        name, command, rest = context.command.resolve_command(context, rest)
        assert command is not None
        context = command.make_context(name, rest, parent=context)


def problem_of(program: str, arguments: list[str]) -> str:
    """The words with which the parser refuses them; empty where it takes them."""
    try:
        if program == "gatectl":
            parse_gatectl(arguments)
        else:
            command_parser().parse_args(arguments)
    except click.ClickException as error:
        text = error.format_message()
        return "" if text.endswith("does not exist.") else text  # a file that the page has made before
    except (click.exceptions.Exit, SystemExit) as end:
        code = end.exit_code if isinstance(end, click.exceptions.Exit) else end.code
        return f"exit code {code}" if code else ""
    return ""


@pytest.mark.parametrize(("page", "program", "arguments"), COMMANDS, ids=lambda value: str(value)[:60])
def test_a_command_of_the_documents_parses(page: str, program: str, arguments: tuple[str, ...]) -> None:
    assert problem_of(program, list(arguments)) == "", f"{page}: {program} {shlex.join(arguments)}"


def test_the_documents_have_commands_of_both_programs() -> None:
    assert len(COMMANDS) > 60
    assert {program for _, program, _ in COMMANDS} == {"gatectl", "gateway"}
