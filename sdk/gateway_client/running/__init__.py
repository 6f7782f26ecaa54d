"""Runs flows over HTTP: in threads, or in tasks of asyncio and trio."""
