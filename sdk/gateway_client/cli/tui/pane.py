"""What the panes of the desk have in common: each is told the news, and none asks the gateway by itself."""

from textual.containers import Container

from gateway_client.cli.tui.feed import News

EVERYWHERE = "1-5 panes  r now  q quit"
WIDE = 120
"""Columns from which identifiers stand whole."""


class Pane(Container):
    """One of the five."""

    KEYS = "↑↓ scroll"

    @property
    def keys(self) -> str:
        """What can be pressed now."""
        return f"{self.KEYS}  {EVERYWHERE}"

    def take(self, news: News) -> None:
        """What a round has found."""

    def begin(self) -> None:
        """It is shown from now on."""
