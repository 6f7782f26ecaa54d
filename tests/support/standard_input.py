"""Standard input for a program that a test calls in its own process."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def standard_input(data: bytes) -> Iterator[None]:
    """These bytes, and then the end."""
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(data))
    try:
        yield
    finally:
        sys.stdin = before
