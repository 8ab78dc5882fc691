"""`python -m tilewright`: the same program as the `tilewright` command."""

import sys

from tilewright.cli import main

if __name__ == "__main__":
    sys.exit(main())
