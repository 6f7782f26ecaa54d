"""The authorities of the system are read once for all tests of witnesses: none here has TLS, and it takes long."""

from collections.abc import Iterator

import pytest

from frontend.webhooks.network import make_tls
from frontend.witnesses import submission


@pytest.fixture(scope="package", autouse=True)
def _read_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        tls = make_tls()
        patch.setattr(submission, "make_tls", lambda: tls)
        yield
