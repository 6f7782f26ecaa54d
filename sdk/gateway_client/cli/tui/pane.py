"""The base of the desk's panes: each receives the news of a round; only the feed asks the gateway."""

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
        """The keys that work now."""
        return f"{self.KEYS}  {EVERYWHERE}"

    def take(self, news: News) -> None:
        """Show the news of a round."""

    def begin(self) -> None:
        """It is shown from now on."""
