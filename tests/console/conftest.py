"""One browser for all tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.support.browser import Browser, browser


@pytest.fixture(scope="package")
def only_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """The process."""
    with browser(tmp_path_factory.mktemp("browser")) as running:
        yield running


@pytest.fixture
def page(only_browser: Browser) -> Iterator[Browser]:
    """The browser, of which nothing may complain."""
    only_browser.complaints.clear()
    only_browser.resize(1024, 768)
    yield only_browser
    assert only_browser.complaints == []
    only_browser.open("about:blank")
