"""A line that an operator types, or pastes: what could deceive stands in it as \\uXXXX, as everywhere else."""

from textual.widgets import Input

from gateway_client.cli.display.safe import safe


class Typed(Input):
    """One line of text, without a frame."""

    DEFAULT_CSS = """
    Typed, Typed:focus { border: none; height: 1; padding: 0; background: $surface; }
    """

    def replace(self, text: str, start: int, end: int) -> None:
        """Make typed and pasted text safe: both pass through this method."""
        super().replace(safe(text), start, end)
