"""`gateway import openapi`: a manifest for each operation of an OpenAPI 3.0 or 3.1 document."""
