"""Where each key of a TOML document stands: the line numbers that tomllib does not give.

Pure. Reads text that tomllib has accepted already, so it needs no error handling of its own: it only has to skip
strings, comments and brackets the way TOML 1.0 nests them. A path is the tuple of keys and array indexes that leads
to a value in tomllib's result.
"""

import tomllib
from collections.abc import Mapping

Path = tuple[str | int, ...]

_SPACE = " \t"
_BLANK = " \t\r\n"
_ENDS_OF_BARE_VALUE = ",]}#\n"
_ENDS_OF_BARE_KEY = " \t.=]"


def key_lines(text: str) -> Mapping[Path, int]:
    """Map each path of a valid TOML document to its line, counted from 1.

    Tables have the line of their header, or of the first key that implies them; array items the line they begin on.
    """
    return _KeyLines(text).read()


class _KeyLines:
    def __init__(self, text: str) -> None:
        self.text = text.replace("\r\n", "\n")
        self.at = 0
        self.line = 1
        self.lines: dict[Path, int] = {}
        self.rows: dict[Path, int] = {}

    def read(self) -> dict[Path, int]:
        table: Path = ()
        while self.skip_blank():
            if self.sees("[["):
                table = self.read_header("]]", is_row=True)
            elif self.sees("["):
                table = self.read_header("]", is_row=False)
            else:
                self.read_pair(table)
        return self.lines

    def sees(self, token: str) -> bool:
        return self.text.startswith(token, self.at)

    def advance(self, count: int = 1) -> str:
        piece = self.text[self.at : self.at + count]
        self.line += piece.count("\n")
        self.at += count
        return piece

    def skip_spaces(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in _SPACE:
            self.at += 1

    def skip_blank(self) -> bool:
        """Skip blanks, newlines and comments; False at the end of the text."""
        while self.at < len(self.text):
            if self.text[self.at] in _BLANK:
                self.advance()
            elif self.sees("#"):
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return True
        return False

    def note(self, path: Path, line: int) -> None:
        """Record a path and the tables it implies; the first line that names a table stays."""
        for depth in range(1, len(path) + 1):
            self.lines.setdefault(path[:depth], line)

    def read_header(self, closing: str, *, is_row: bool) -> Path:
        line = self.line
        self.advance(len(closing))
        keys = self.read_keys()
        self.skip_spaces()
        self.advance(len(closing))
        path: Path = ()
        for position, key in enumerate(keys):
            path = (*path, key)
            is_last = position == len(keys) - 1
            if is_row and is_last:
                self.rows[path] = self.rows.get(path, 0) + 1
            if path in self.rows:
                path = (*path, self.rows[path] - 1)
        self.note(path, line)
        if not is_row:
            # A header is a better place to point at than the sub-table that implied the table earlier.
            self.lines[path] = line
        return path

    def read_keys(self) -> list[str]:
        keys = []
        while True:
            self.skip_spaces()
            keys.append(self.read_key())
            self.skip_spaces()
            if not self.sees("."):
                return keys
            self.advance()

    def read_key(self) -> str:
        start = self.at
        if self.text[self.at] in "\"'":
            self.skip_string()
            (key,) = tomllib.loads(self.text[start : self.at] + "=0")
            return str(key)
        while self.text[self.at] not in _ENDS_OF_BARE_KEY:
            self.at += 1
        return self.text[start : self.at]

    def read_pair(self, table: Path) -> None:
        line = self.line
        path = (*table, *self.read_keys())
        self.note(path, line)
        self.advance()
        self.skip_spaces()
        self.read_value(path)

    def read_value(self, path: Path) -> None:
        if self.sees('"') or self.sees("'"):
            self.skip_string()
        elif self.sees("["):
            self.read_array(path)
        elif self.sees("{"):
            self.read_inline_table(path)
        else:
            while self.at < len(self.text) and self.text[self.at] not in _ENDS_OF_BARE_VALUE:
                self.at += 1

    def read_array(self, path: Path) -> None:
        self.advance()
        index = 0
        while self.skip_blank() and not self.sees("]"):
            self.note((*path, index), self.line)
            self.read_value((*path, index))
            index += 1
            self.skip_blank()
            if self.sees(","):
                self.advance()
        self.advance()

    def read_inline_table(self, path: Path) -> None:
        self.advance()
        while self.skip_blank() and not self.sees("}"):
            self.read_pair(path)
            self.skip_blank()
            if self.sees(","):
                self.advance()
        self.advance()

    def skip_string(self) -> None:
        quote = self.text[self.at]
        long = quote * 3
        if not self.sees(long):
            self.advance()
            while not self.sees(quote):
                self.advance(2 if quote == '"' and self.sees("\\") else 1)
            self.advance()
            return
        self.advance(3)
        while not self.sees(long):
            self.advance(2 if quote == '"' and self.sees("\\") else 1)
        # Up to two quotes may stand directly before the closing three.
        self.advance(3)
        while self.sees(quote):
            self.advance()
