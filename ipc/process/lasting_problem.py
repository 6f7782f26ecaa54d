"""A problem that work meets again in each round or try: the log has it once, and again when its cause changes."""


class LastingProblem:
    """The last cause, until a try meets none."""

    def __init__(self) -> None:
        self._cause: str | None = None

    def is_new(self, cause: str) -> bool:
        """Take the cause of this try; true unless the try before had the same one."""
        before, self._cause = self._cause, cause
        return cause != before

    def end(self) -> None:
        """This try met none."""
        self._cause = None
