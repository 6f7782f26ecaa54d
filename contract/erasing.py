"""The erasing of kept values, as operators ask for it."""

from .noun import NeverNull, Noun


class ErasedValues(Noun, frozen=True, kw_only=True):
    """The outcome of one request. Where `next` is a number, repeat the request with that number as `after`."""

    erased: int
    """Values that were erased by this request."""
    waiting: NeverNull[int]
    """Calls that wait for a person or run; they keep their values until they end."""
    sealed: NeverNull[tuple[str, ...]] = ()
    """Segments that may have values of the same principal still: erasing does not reach into them."""
    next: int | None
    """Where the next request goes on; null when all is erased."""
