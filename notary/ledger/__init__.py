"""Events, intents, receipts and deliveries: what is only appended, and what is to be sent because of it."""
