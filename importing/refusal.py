"""Why an import ends without a result, or leaves one operation out."""

import sys
from collections.abc import Callable
from typing import TypeVar

import msgspec

from ipc.process.exits import Exit
from ipc.process.output import flushed, tell

Options = TypeVar("Options", bound=msgspec.Struct)


class ImportRefused(Exception):
    """The whole import ends; nothing was written. `sentence` is for the person at the terminal."""

    def __init__(self, sentence: str, code: Exit = Exit.CONFIG) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.code = code


class LeftOut(Exception):
    """This operation gets no manifest; the message says why, in a few words."""


def ended(run: Callable[[Options], int], kind: type[Options]) -> int:
    """Run an import with the options of the command line, as JSON; return the exit code."""
    try:
        return flushed(run(msgspec.json.decode(sys.argv[1], type=kind)))
    except ImportRefused as refused:
        tell(refused.sentence)
        return refused.code
    except BrokenPipeError:
        return flushed(Exit.FAILED)
