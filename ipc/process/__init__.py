"""Parts that every process of the gateway needs: its parent, its clock, its log."""
