from pathlib import Path

import pytest

PRODUCTS = Path(__file__).parents[3] / "shared" / "data" / "products"


@pytest.fixture
def products():
    if not PRODUCTS.is_dir():
        pytest.skip("the shared data is not beside the repository")
    return PRODUCTS
