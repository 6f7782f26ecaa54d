"""What all tests share: property tests that are judged by what they find, never by how fast the machine is."""

from hypothesis import HealthCheck, settings

settings.register_profile("gateway", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gateway")
