"""The world outside of a dev gateway: `upstream.gateway.test`, a small bank that echoes whatever else it is sent."""
