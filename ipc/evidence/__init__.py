"""What is recorded: events, receipts, kept values and effects, as all processes spell them."""
