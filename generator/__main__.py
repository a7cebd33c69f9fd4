"""python3 -m generator: the compiler's tool. See cli.py. This file is read by older Pythons, too."""

import os
import sys


def _open_standard_files():
    """Those that were closed, so that no other file takes their place. Output is an error then."""
    while True:
        number = os.open(os.devnull, os.O_RDONLY)
        if number > 2:
            os.close(number)
            return
        if number == 1:
            sys.stdout = open(number, "w", closefd=False)
        elif number == 2:
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            sys.stderr = open(number, "w", closefd=False)


try:
    if sys.version_info < (3, 11):
        sys.stderr.write("generator: needs Python 3.11, and this is %d.%d\n" % sys.version_info[:2])
        sys.exit(2)
    from generator import signals
    signals.end_at_once()
    _open_standard_files()
    from generator.cli import main
    status = main(sys.argv[1:])
    signals.end_at_once()
except KeyboardInterrupt:  # before the handler was there
    os._exit(130)
sys.exit(status)
