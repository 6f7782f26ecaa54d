"""`[[evidence.witnesses]]` in the configuration: kinds of its values, and the settings of one witness."""

import re
from typing import Any, Final

from ipc.keys.verifier_keys import WITNESS, NoVerifierKey, read_verifier_key
from ipc.settings import WitnessSettings
from supervisor.settings.kind import PathContext, Wrong, kind
from supervisor.settings.sections import webhooks

MAX_WITNESSES: Final = 15
"""Every verifier of signed notes must accept 16 signatures (C2SP signed-note); one is the log's own."""
MAX_KEY_CHARACTERS: Final = 600
_FORM = re.compile(r"[!-*,-~]+\+[0-9a-f]{8}\+B[0-9A-Za-z+/=]+")
REQUIRED: Final = {
    "name": "Name the witness: logs, metrics and status call it so.",
    "url": 'Name its submission prefix, like "https://witness.example".',
    "key": 'Name its verifier key, as "gateway witness key" prints it.',
}
"""Settings that every row has, each with what to do where it is missing."""


@kind(**webhooks.url.form)
def url(value: object, context: PathContext) -> str:
    """A submission prefix: `/add-checkpoint` follows it. Returned without a slash at its end."""
    checked = webhooks.url(value, context)
    if "?" in checked:
        raise Wrong("must hold no query", "Name the prefix that /add-checkpoint follows.", is_secret=True)
    return checked.rstrip("/")


@kind(type="string", minLength=1, maxLength=MAX_KEY_CHARACTERS, pattern=f"^{_FORM.pattern}$")
def key(value: object, _: PathContext) -> str:
    """A verifier key of a witness (C2SP tlog-cosignature, Ed25519)."""
    mend = 'Use what "gateway witness key" prints, or the vkey that the witness publishes.'
    if not isinstance(value, str) or len(value) > MAX_KEY_CHARACTERS or not _FORM.fullmatch(value):
        raise Wrong("must be a verifier key, name+id+base64", mend)
    try:
        return read_verifier_key(value, WITNESS).text
    except NoVerifierKey as error:
        raise Wrong(f"is {error}" if str(error).startswith("not") else f"can't be used: {error}", mend) from None


def witness_settings(row: dict[str, Any]) -> WitnessSettings:
    """One checked row -> the settings of a witness; for an invalid row, the readable part."""
    return WitnessSettings(**{"name": "", "url": "https://", "key": ""} | row)
