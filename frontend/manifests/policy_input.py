"""Field `policy_input`: the pointers to values of a request that policy may decide by."""

from collections.abc import Callable

from frontend.files.problems import shown
from frontend.manifests.manifest import Manifest
from frontend.manifests.yamltree import Path
from frontend.schemas.pointers import can_have

MAX_POINTERS = 32


def check_policy_input(manifest: Manifest, note: Callable[[Path, str, str], None]) -> None:
    """Note each pointer that no request of the action can have."""
    schema = manifest.io.request_schema
    for index, pointer in enumerate(manifest.policy_input):
        if schema is not None and not can_have(schema, pointer, lists=True):
            message = (
                f"policy_input[{index}] = {shown(pointer)}: io.request_schema allows no text, number or truth value, "
                "and no list of these, there."
            )
            note(("policy_input", index), message, "Correct the pointer, or declare the value in the schema.")
