"""The file of learned rules as it is now, for one front: looked at before each use, read when it has changed.

Guarantees that what another front wrote counts from its rename on, and that a file that can't be believed (not ours,
open to others, too large, not what was written) holds no rule at all, loudly. A file that is not there holds none.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from frontend.actions.targets import NOTHING_LEARNED, Learned
from frontend.deadlines import FileDeadlines
from frontend.egress.rules import InvalidRule, Rules, by_action, decode_rules
from frontend.files.exclusive import Exclusive
from frontend.telemetry.logs import log
from ipc.process.exits import Exit
from ipc.process.private_files import PrivateFileError, read_private
from ipc.settings import Settings

_Key = tuple[int, ...]
NOT_THERE: _Key = ()
FILE_NAME = "learned.json"


class RuleFile:
    """One reader of the file; `exclusive` gives turns at changing it."""

    def __init__(self, path: Path, deadlines: FileDeadlines = FileDeadlines()) -> None:
        """Raises KeyFileError, a sentence with its mend, when there is a file and it can't be believed."""
        self._path = path
        self.exclusive = Exclusive(path, deadlines=deadlines)
        self._key: _Key | None = None
        self._rules = Rules()
        self._by_action: dict[str, Learned] = {}
        self._problem: PrivateFileError | None = None
        self._expected: tuple[bytes, Rules] | None = None
        self.rules()

    def rules(self) -> Rules:
        """All rules. Raises KeyFileError while the file can't be believed."""
        self._look()
        if self._problem is not None:
            raise self._problem
        return self._rules

    def expect(self, content: bytes, rules: Rules) -> None:
        """This front is about to write `content`, which is `rules`: found there, it is not taken apart again. Checking
        thousands of rules would hold up every call, at each of many changes."""
        self._expected = content, rules

    def learned(self, action_id: str) -> Learned:
        """The rules that one action has learned, none while the file is unreadable. Costs one stat of the file."""
        self._look()
        return self._by_action.get(action_id, NOTHING_LEARNED)

    def every(self) -> Mapping[str, Learned]:
        """The same for all actions that have learned something, by id, as one state of the file."""
        self._look()
        return self._by_action

    def _look(self) -> None:
        try:
            key = _key(self._path)
        except OSError as error:
            self._key = None
            self._doubt(PrivateFileError(f"{self._path}: cannot look at it: {error.strerror}.", Exit.NO_PERMISSION))
            return
        if key == self._key:
            return
        # The key is older than what is read, if anything: a file that is replaced in between is read again.
        self._key = key
        try:
            self._believe(Rules() if key == NOT_THERE else self._read())
        except PrivateFileError as error:
            if error.exit_code == Exit.NO_PERMISSION:  # not the content: the next try may read it
                self._key = None
            self._doubt(error)

    def _read(self) -> Rules:
        content = read_private(self._path)
        if self._expected is not None and content == self._expected[0]:
            return self._expected[1]
        try:
            return decode_rules(content)
        except InvalidRule as error:
            text = f"{self._path}: {error}. Restore it from a copy, or move it away: then nothing is learned."
            raise PrivateFileError(text, Exit.CONFIG) from None

    def _believe(self, rules: Rules) -> None:
        if self._problem is not None:
            log.info("learned rules are in force again", domains=len(rules.domains), paths=len(rules.paths))
        self._rules, self._by_action, self._problem = rules, by_action(rules), None

    def _doubt(self, problem: PrivateFileError) -> None:
        if str(problem) != str(self._problem):
            log.error("the file of learned rules can't be used: no learned rule is in force", cause=str(problem))
        self._rules, self._by_action, self._problem = Rules(), {}, problem


def rules_path(settings: Settings) -> Path:
    """The file of a gateway. Its start moves one that an earlier version kept at another place."""
    return Path(settings.fronts_folder) / FILE_NAME


def learned_of(settings: Settings) -> Mapping[str, Learned]:
    """Action id -> the rules that it has learned, by the present file; empty while the file is unreadable."""
    try:
        return RuleFile(rules_path(settings)).every()
    except PrivateFileError:
        return {}


def _key(path: Path) -> _Key:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return NOT_THERE
    whose = status.st_uid, status.st_mode
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size, *whose
