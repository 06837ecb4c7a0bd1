import pytest


@pytest.fixture(autouse=True)
def validation():
    """PyTorch's compiler switches off its distributions' checks when it is imported, as another test may have done."""
    distributions = pytest.importorskip("torch").distributions
    distributions.Distribution.set_default_validate_args(True)
