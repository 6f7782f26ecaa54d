"""The HTTP request of a plan for people: as it will leave, each secret by its name."""

from typing import Any
from urllib.parse import urlsplit

from ipc.network.domains import matches
from ipc.plan import Plan


def sent_request(plan: Plan) -> dict[str, Any] | None:
    """Method, url, headers and body of the planned request; None where no template makes one."""
    planned = plan.http_request
    if planned is None:
        return None
    headers, url = dict(planned.headers), planned.url
    host = urlsplit(planned.url).hostname or ""
    for secret in plan.secrets:
        if secret.way is None or not matches(host, secret.domains):
            continue
        text = secret.way.named(secret.name)
        if (header := secret.way.header_name) is not None:
            headers[header] = text
        else:
            url += ("&" if "?" in url else "?") + text
    return {"method": planned.method, "url": url, "headers": headers, "body": planned.body}
