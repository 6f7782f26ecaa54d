"""The OpenAPI document and the page that shows it, both made from the table of endpoints and its structs.

`python -m frontend.api.openapi` writes docs/openapi.json. Nothing here is asked when a request is answered, but for the
two endpoints of dev mode that show the document.
"""
