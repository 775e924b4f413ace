#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command line of an application: ./manage.py work, ./manage.py stats, ./manage.py failed"""
import sys

from jobqueue import console
from shop.jobs import worker

sys.exit(console.run(sys.argv, worker))
