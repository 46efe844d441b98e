# SPDX-License-Identifier: Apache-2.0
"""`python -m unicon` is the command."""

import os
import sys

from ._tool import command

os.execv(command(), ["unicon", *sys.argv[1:]])
