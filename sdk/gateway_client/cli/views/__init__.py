"""Calls, holds, intents and receipts as people read them."""
