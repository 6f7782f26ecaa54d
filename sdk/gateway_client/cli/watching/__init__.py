"""Commands that go on: polls, new events, the log of a gateway."""
