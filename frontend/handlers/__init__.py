"""One file a resource: parse, ask a service, shape the answer. The table that binds them is frontend/routes.py."""
