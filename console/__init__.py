"""The operators' page and the process that serves it: forwards what the page asks of a gateway, and holds no key."""
