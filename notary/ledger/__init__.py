"""Events, intents and receipts, which are only appended, and the deliveries that they cause."""
