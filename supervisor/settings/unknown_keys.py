"""Messages about keys that the schema does not have, with the likeliest one that it does have. A search takes
milliseconds: it is made for the first MAX_TOLD keys."""

import difflib

from supervisor.settings import schema
from supervisor.settings.problems import MAX_TOLD, dotted, short
from supervisor.settings.toml_lines import Path


class UnknownKeys:
    """The unknown keys of one document."""

    def __init__(self) -> None:
        self._count = 0

    def told(self, key: str, table: schema.SettingsTable, path: Path) -> tuple[str, str]:
        """Count an unknown key; returns the text of its problem, and the mend."""
        self._count += 1
        place = f" in [{dotted(path)}]" if path else ""
        likely = _likely(key, table, path) if self._count <= MAX_TOLD else ""
        return f'unknown key "{short(key)}"{place}.', f"Did you mean {likely}?" if likely else ""


def _likely(key: str, table: schema.SettingsTable, path: Path) -> str:
    siblings = difflib.get_close_matches(key, table.fields, n=1)
    if siblings:
        spelt = dict(schema.spellings(table, tuple(str(part) for part in path)))[siblings[0]]
        return spelt.split(" in [")[0]
    everywhere = dict(schema.spellings())
    close = difflib.get_close_matches(key, everywhere, n=1)
    return everywhere[close[0]] if close else ""
