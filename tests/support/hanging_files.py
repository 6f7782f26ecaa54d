"""Files whose disk does not answer."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from frontend.files.claimed import read_regular


@contextmanager
def hanging(path: Path, reader: str) -> Iterator[None]:
    """A file that the module `reader` can't finish reading until the end of the context."""
    path.write_text("{}")
    answers = threading.Event()

    def read(asked: Path, most: int) -> bytes:
        if asked == path:
            answers.wait(60)
        return read_regular(asked, most)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(f"{reader}.read_regular", read)
        try:
            yield
        finally:
            answers.set()
