"""Put the adversary on the path of the tests that use it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
