"""What tests of whole fronts do once in a process and takes longest, done once for all trials that are forked of it.

What runs here is noted like what runs as modules are loaded: a change of it is tried in a process of its own.
"""

import sys
from typing import Final

ANSWER_SECONDS: Final = 15.0
"""Instead of a minute: an answer that does not come is a find."""
_ANSWERS: Final = (("tests.support.asking", "ANSWER_SECONDS"), ("tests.support.played_workers", "SECONDS"))


def before_trials() -> None:
    """In the process that forks: the document that answers are held against."""
    if (documented := sys.modules.get("tests.support.documented")) is not None:
        documented.prepare()


def in_trial() -> None:
    """In the fork, while it has no other thread: the process that forks workers, without an interpreter of its own. And
    less patience than tests have, who must not fail on a machine that is busy with all of them."""
    for name, constant in _ANSWERS:
        if (module := sys.modules.get(name)) is not None:
            setattr(module, constant, ANSWER_SECONDS)
    if (templates := sys.modules.get("tests.support.echo_template")) is not None:
        templates.echo_template(is_forked=True)
