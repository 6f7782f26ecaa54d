"""How many examples properties try: the only place that says so.

`make test` tries few of each, `make test-all` many, and so does pytest by itself. A property is judged by the mistakes
it finds, never by how fast the machine is.
"""

import os

from hypothesis import HealthCheck, settings

PROFILES = {"fast": 25, "all": 100}
"""Name of a profile -> its examples."""
CHOICE = "GATEWAY_TESTS"
"""The variable of the environment that names a profile."""

for _name, _examples in PROFILES.items():
    settings.register_profile(
        _name, deadline=None, max_examples=_examples, suppress_health_check=[HealthCheck.too_slow]
    )  # fmt: skip
settings.load_profile(os.environ.get(CHOICE, "all"))

FEW = settings(max_examples=settings().max_examples // 5, stateful_step_count=20)
"""For properties whose examples are histories, processes or large trees."""
MANY = settings(max_examples=settings().max_examples * 4)
"""For readers of foreign bytes on which signatures and the bounds of requests depend: an example takes no time."""
