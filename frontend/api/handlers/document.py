"""GET /openapi.json, in dev mode: the interface as an OpenAPI document."""

from typing import Annotated

import trio

from frontend.api.openapi.document import encoded
from frontend.contract.annotations import Media, codes
from frontend.http.answers import JSON_TYPE, Answer
from frontend.services import Services

Described = Annotated[Answer, Media(JSON_TYPE, "An OpenAPI 3.1 document.", {"type": "object"})]


@codes()
async def openapi(services: Services) -> Described:
    """Show this document; in dev mode only."""
    return Answer(200, await trio.to_thread.run_sync(lambda: encoded(services.describe())))
