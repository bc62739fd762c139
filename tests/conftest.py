"""What all tests share: one thread each, for the tests run side by side, and the same random numbers every time."""

import pytest
import torch
from hypothesis import HealthCheck, settings

torch.set_num_threads(1)
settings.register_profile(
    "capsroute", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("capsroute")


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Seed torch before each test, so that none depends on the order in which they run."""
    torch.manual_seed(0)
