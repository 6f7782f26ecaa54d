"""The server that an operation goes to: from the document, or as the person names it."""

import re
from typing import Any
from urllib.parse import urljoin, urlsplit

from frontend.manifests.domains import InvalidDomain, normal_domain
from importing.openapi.document import ApiOperation
from importing.openapi.fetching import is_url
from importing.refusal import LeftOut
from importing.words import one_line

_VARIABLE = re.compile(r"\{([^{}]*)\}")


def server_of(operation: ApiOperation, given: str | None, source: str) -> str:
    """The address before the path, without a slash at its end. `source` is where the document came from. Raises
    LeftOut, which says what to do."""
    if given is not None:
        return checked(given)
    servers = [one for one in operation.servers if isinstance(one, dict) and isinstance(one.get("url"), str)]
    urls = [_whole(one, source) for one in servers] or [urljoin(source, "/") if is_url(source) else ""]
    secure = [url for url in urls if url.startswith("https://")]
    chosen = next(iter(secure or urls))
    if not is_url(chosen):
        raise LeftOut(f"the server {one_line(chosen, 80)!a} is no whole address: name it with --server")
    return checked(chosen)


def checked(url: str) -> str:
    """The address in the form in which the gateway compares it. Raises LeftOut."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        if port == 0:
            raise ValueError
        domain = normal_domain(host)
    except (ValueError, InvalidDomain) as error:
        said = f"host {error}" if isinstance(error, InvalidDomain) else "is no address"
        raise LeftOut(f"the server {one_line(url, 80)!a}: {said}; name one with --server") from None
    if parts.scheme not in {"http", "https"} or parts.query or parts.fragment or "@" in parts.netloc:
        raise LeftOut(f"the server {one_line(url, 80)!a} is no plain https:// address: name one with --server")
    return f"{parts.scheme}://{domain}{f':{port}' if port else ''}{parts.path.rstrip('/')}"


def _whole(server: dict[str, Any], source: str) -> str:
    """The address with the defaults of its variables, relative to where the document came from."""
    variables = server.get("variables")
    known = variables if isinstance(variables, dict) else {}

    def default(found: re.Match[str]) -> str:
        variable = known.get(found[1])
        return str(variable.get("default", found[0])) if isinstance(variable, dict) else found[0]

    url = _VARIABLE.sub(default, server["url"])
    try:
        return urljoin(source, url) if is_url(source) else url
    except ValueError:  # `checked` refuses what is no address
        return url
