"""The inputs and answers of a handler, read from its signature, and its call.

A parameter is filled by its type: Services, Request, Caller or OperatorCaller, a Query, a Body, or str for the segment
of the path that has its name. Its result is sent as JSON with the status of its type. The OpenAPI document is
made from the very same reading, so that document and behaviour can't differ.
"""

import inspect
import types
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from frontend.auth.authentication import Caller, OperatorCaller
from frontend.contract.annotations import CODES, Media, ReadsBody, StatusCode, WrittenAs
from frontend.contract.forms import MAX_BODY_BYTES, JsonBody, Query, parse_body, parse_query
from frontend.http.answers import Answer, json_answer
from frontend.http.requests import Request
from frontend.services import Services

Handler = Callable[..., Awaitable[Any]]

_SERVICES, _REQUEST, _CALLER, _QUERY, _BODY, _SEGMENT = range(6)


class NoQuery(Query, frozen=True, kw_only=True):
    """A query without parameters: a mistyped one is refused."""


class HandlerSignature:
    """One handler as the table uses it. Raises TypeError for a signature that nothing could fill.

    `is_strict`: query parameters are refused where the handler takes none.
    """

    def __init__(self, handler: Handler, *, is_strict: bool = False) -> None:
        self.handler = handler
        self.query: type[Query] | None = NoQuery if is_strict else None
        self.body: Any = None
        """Type of the JSON body, also where the handler reads it; None without a body."""
        self.caller: type[Caller | OperatorCaller] | None = None
        self.segments: tuple[str, ...] = ()
        self.answers: dict[int, list[Any]] = {}
        """Types by status."""
        self.codes = CODES.get(handler)
        """The codes that `@codes` lists; None without it."""
        self._form: type[JsonBody] | None = None
        hints = get_type_hints(handler, include_extras=True)
        returned = hints.pop("return")
        self._takes = tuple(self._source(name, hints[name]) for name in inspect.signature(handler).parameters)
        self._statuses: dict[Any, int] = {}
        for kind in _parts(returned):
            self._add_answer(kind)

    async def answer(
        self, services: Services, request: Request, caller: Caller | OperatorCaller | None, segments: Sequence[str]
    ) -> Answer:
        """Parse what the handler wants, call it, write what it returns. Raises what it raises, and GateError
        invalid_request, body_too_large, request_timeout or bad_request for what does not parse."""
        query = None if self.query is None else parse_query(self.query, request.query)
        body = None if self._form is None else parse_body(self._form, await request.read_body(MAX_BODY_BYTES))
        sources = (services, request, caller, query, body, *segments)
        answer = await self.handler(*[sources[place] for place in self._takes])
        if type(answer) is Answer:
            return answer
        return json_answer(self._statuses[type(answer)], answer)

    def _source(self, name: str, hint: Any) -> int:
        kind = hint
        if get_origin(hint) is Annotated:
            kind, *notes = get_args(hint)
            self.body = next((note.body for note in notes if isinstance(note, ReadsBody)), None)
        if kind is str:
            self.segments = (*self.segments, name)
            return _SEGMENT + len(self.segments) - 1
        if kind is Caller or kind is OperatorCaller:
            self.caller = kind
            return _CALLER
        if issubclass(kind, Query):
            self.query = kind
            return _QUERY
        if issubclass(kind, JsonBody):
            self.body = self._form = kind
            return _BODY
        if kind is Services or kind is Request:
            return _SERVICES if kind is Services else _REQUEST
        raise TypeError(f"{self.handler.__qualname__}: nothing fills {name}")

    def _add_answer(self, kind: Any) -> None:
        status, plain = 200, kind
        if get_origin(kind) is Annotated:
            plain, *notes = get_args(kind)
            status = next((note.status for note in notes if isinstance(note, StatusCode)), 200)
            if not any(isinstance(note, Media) for note in notes):
                kind = next((note.kind for note in notes if isinstance(note, WrittenAs)), plain)
        self.answers.setdefault(status, []).append(kind)
        self._statuses[get_origin(plain) or plain] = status


def _parts(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
