"""One profile of hypothesis for all: the machine may be slow, and nothing is kept between runs."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "berth", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("berth")
