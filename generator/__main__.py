"""python3 -m generator: the compiler's tool. See cli.py."""

import sys

from generator.cli import main

sys.exit(main(sys.argv[1:]))
