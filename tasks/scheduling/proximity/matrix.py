"""Arrays of delays and of coordinates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
"""Floats; the shape is in the docstring of what takes it."""
