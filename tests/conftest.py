"""What several tests share."""

import os
import signal

import pytest

# a shell that starts the tests in the background lets them ignore Ctrl-C, and what they start would inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def one_thread():
    """A second one gains nothing with tensors this small, and loses much where others use the cores."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def shown_by():
    """Everything that is written to a terminal until its other end is closed; `shown_by(ours)` of `pty.openpty()`."""

    def read(ours):
        shown = b""
        try:
            while chunk := os.read(ours, 4096):
                shown += chunk
        except OSError:  # the other end is closed
            pass
        finally:
            os.close(ours)
        return shown

    return read
