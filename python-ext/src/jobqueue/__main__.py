# SPDX-License-Identifier: MIT
"""python -m jobqueue"""
import sys

from .console import main

if __name__ == "__main__":
    sys.exit(main())
