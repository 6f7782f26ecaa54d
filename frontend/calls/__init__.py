"""The way of a call, step by step, from admission to signed evidence."""
