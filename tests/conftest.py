"""Set-up for all tests: the number of examples of properties, and signals."""

import gc
import signal

from setproctitle import getproctitle

import tests.support.properties  # noqa: F401 (loads the profile)

# A title can be set for as long as the first variable of the environment is the one of the start: tests change some.
getproctitle()

# A background process of a shell ignores SIGINT, and so would every process that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Thousands of collected tests need not be looked at again and again."""
    gc.freeze()
