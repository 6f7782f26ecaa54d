"""gatectl desk: what waits, what is decided and how the gateway stands, on one screen. Only its command imports it."""
