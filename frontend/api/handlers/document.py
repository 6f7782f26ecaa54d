"""GET /openapi.json and /docs, in dev mode: the interface as a document, and as a page that needs no network."""

from typing import Annotated

import trio

from frontend.api.openapi.document import encoded
from frontend.api.openapi.page import headers_of, page_of
from frontend.contract.annotations import Media, codes
from frontend.http.answers import JSON_TYPE, Answer
from frontend.services import Services

PAGE_TYPE = "text/html; charset=utf-8"
Described = Annotated[Answer, Media(JSON_TYPE, "An OpenAPI 3.1 document.", {"type": "object"})]
Shown = Annotated[Answer, Media(PAGE_TYPE, "A page for people; works without a network and without scripts.")]


@codes()
async def openapi(services: Services) -> Described:
    """Show this document; in dev mode only."""
    return Answer(200, await trio.to_thread.run_sync(lambda: encoded(services.describe())))


@codes()
async def page(services: Services) -> Shown:
    """Show this document as a page for people; in dev mode only."""
    body = await trio.to_thread.run_sync(lambda: page_of(services.describe()).encode())
    return Answer(200, body, headers_of(), PAGE_TYPE)
