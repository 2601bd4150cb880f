import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def closed_figures():
    """Tests count figures, and those elsewhere may leave one."""
    plt.close("all")
    yield
    plt.close("all")
