"""``python -m ppdp`` is the command ``ppdp``."""

import sys

from ppdp.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
