"""A body of an error as tests expect it: by its code, whatever else a dev gateway says beside it."""

from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Coded:
    """Equal to every JSON object whose `error` is `code`."""

    code: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dict) and other.get("error") == self.code

    __hash__ = None  # type: ignore[assignment]
