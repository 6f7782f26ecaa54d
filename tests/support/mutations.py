"""Hypothesis strategies that spoil real files: bytes cut, doubled, exchanged, and words of the format put anywhere."""

from collections.abc import Sequence

from hypothesis import strategies as st


def spoilt(originals: Sequence[bytes], words: Sequence[str]) -> st.SearchStrategy[bytes]:
    """One of `originals` after up to six changes; `words` are what is put in."""
    pieces = st.one_of(st.sampled_from([word.encode() for word in words]), st.binary(max_size=4))
    change = st.tuples(st.floats(0, 1), st.integers(0, 40), pieces)

    def changed(original: bytes, changes: list[tuple[float, int, bytes]]) -> bytes:
        data = original
        for where, length, piece in changes:
            start = int(where * len(data))
            data = data[:start] + piece + data[start + length :]
        return data

    return st.builds(changed, st.sampled_from(list(originals)), st.lists(change, max_size=6))
