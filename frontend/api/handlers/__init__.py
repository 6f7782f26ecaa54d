"""One file a resource: ask a service, shape the answer. The table that binds them is frontend/api/routes.py.

A handler's signature is its description: frontend/api/operation.py parses what its parameters ask for, and
docs/openapi.json is made from it. Its docstring begins with one sentence in the imperative.
"""
