"""What all tests share: property tests that are judged by what they find, never by how fast the machine is; signals."""

import gc
import signal

from hypothesis import HealthCheck, settings
from setproctitle import getproctitle

settings.register_profile("gateway", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gateway")

# A title can be set for as long as the first variable of the environment is the one of the start: tests change some.
getproctitle()

# Whatever a shell starts in the background ignores SIGINT, and so would all that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Thousands of collected tests need not be looked at again and again."""
    gc.freeze()
