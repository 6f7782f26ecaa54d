"""Events, receipts and kept values, as all processes spell them."""
