"""`python -m diapason ...` is the command-line tool."""

import sys

from ._tool import main

sys.exit(main())
