"""Client of the action enforcement gateway: agents, operators, and receipts verified offline."""
