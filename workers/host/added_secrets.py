"""The secrets of a call as its request carries them: headers and parameters, for the hosts that they are bound to.

Guarantees that none goes to another host, without TLS, or in a form that could end a line or stand beside a parameter
of the same name; and that none is sent that could not be found again in an answer.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote_plus

from ipc.keys.secret_values import is_searchable
from ipc.network.domains import matches
from ipc.plan import Plan
from workers.host.meter import HostError
from workers.host.urls import MAX_URL_CHARACTERS, Target
from workers.host.wire import Headers

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_TEXT = re.compile(r"[\t -~]{0,8192}")


class AddedSecrets(NamedTuple):
    """The parts of a request that hold values. Never observed, logged or handed to a guest."""

    headers: Headers
    parameters: dict[str, str]
    """The parameter's name -> the parameter as it is sent."""

    def path_of(self, target: Target) -> str:
        """Path and query of a target, with the parameters at its end. Raises HostError."""
        if not self.parameters:
            return target.path
        query = target.path.partition("?")[2]
        # SECURITY: servers differ in which of two parameters with one name they take.
        if {unquote_plus(part.partition("=")[0]) for part in re.split("[&;]", query)} & self.parameters.keys():
            raise HostError("denied", "the request has a parameter of its own where a secret goes")
        path = (
            target.path
            + ("&" if query else "" if target.path.endswith("?") else "?")
            + "&".join(self.parameters.values())
        )
        if len(path) > MAX_URL_CHARACTERS:
            raise HostError("invalid-input", "the URL is too long with the secret that goes into its query")
        return path


def added_secrets(plan: Plan, secrets: Mapping[str, str], target: Target, *, may_be_plain: bool) -> AddedSecrets:
    """The secrets for one target. `may_be_plain`: it gets them without TLS. Raises HostError."""
    headers: list[tuple[str, str]] = []
    parameters: dict[str, str] = {}
    for use in plan.secrets:
        value = secrets.get(use.name)
        if value is None and use.required:
            raise HostError("unavailable", "a secret that the action needs was not given", name="secret_missing")
        if value is None or use.way is None or not matches(target.host, use.domains):
            continue
        if use.name == plan.egress.proxy_secret:
            raise HostError("internal", "what the proxy is shown is for the proxy alone")
        if target.scheme != "https" and not may_be_plain:
            raise HostError("denied", "a secret is never sent without TLS")
        text = use.way.text(value)
        header, parameter = use.way.header_name, use.way.parameter_name
        if not _NAME.fullmatch(header or parameter or "") or not (_TEXT.fullmatch(value) and _TEXT.fullmatch(text)):
            raise HostError("internal", "a secret can't be written in the way that the action names")
        if not is_searchable(value):
            raise HostError("denied", f"the secret {use.name} is too short to be found in an answer")
        if header is not None:
            headers.append((header.lower(), text))
        elif parameter is not None:
            parameters[parameter] = text
    return AddedSecrets(tuple(headers), parameters)
