"""NAME: {"name"} -> {"initials"}, the first character of each word."""

import json

import wit_world
from componentize_py_types import Err
from wit_world.imports.types import ErrorKind, ProviderError


class WitWorld(wit_world.WitWorld):
    """The gateway calls this class, in a new instance for each call."""

    def run(self, input: str) -> str:  # noqa: A002 - the name in wit/world.wit
        """`input` is the request, as the manifest's request_schema has it; the result holds to response_schema."""
        words = json.loads(input)["name"].split(" ")
        initials = "".join(word[:1] for word in words)
        if not initials:
            details = json.dumps({"field": "name"})
            raise Err(ProviderError(ErrorKind.INVALID_INPUT, "a name has at least one word", details, False))
        return json.dumps({"initials": initials})
