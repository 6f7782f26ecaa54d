"""The OpenAPI document and the page that shows it, both made from the table of endpoints and its structs.

`python -m frontend.api.describe` writes docs/openapi.json. No request needs anything of this, except those for the two
endpoints of dev mode that show the document.
"""
