"""A shell that starts the tests in the background lets them ignore Ctrl-C, and what they start would inherit that."""

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
