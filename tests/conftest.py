"""What several tests share."""

import os
import signal

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tensors are small here, and files are tested side by side

# a shell that starts the tests in the background lets them ignore Ctrl-C, and what they start would inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)


LONG = (  # files whose tests take long: first, so that none of them is still running when all others are done
    "training/test_resume", "study/test_launch", "judge/test_cases", "training/test_ranks", "training/test_packed",
    "evaluation/test_evaluate", "cli/test_train", "training/test_optimizers", "training/test_training",
    "serve/test_hostile", "view/test_hostile", "training/test_stages", "judge/test_pool", "serve/test_serve",
    "training/test_fixture", "data/test_run", "study/test_report", "judge/test_fuzz", "judge/test_compare_hostile",
)  # fmt: skip


def pytest_collection_modifyitems(items):
    ranks = {f"{name}.py": rank for rank, name in enumerate(LONG)}
    items.sort(key=lambda item: ranks.get("/".join(item.path.parts[-2:]), len(ranks)))


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
