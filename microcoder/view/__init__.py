"""The run directories in a browser: curves while a run goes on, and what the model wrote. It only reads.

    library.py     what there is under a folder, and the one way to its files
    state.py       a run in a line: status, step, the last values, the time left
    following.py   a file that is being written, read on from where it was read to
    metrics.py     metrics.jsonl as columns
    thin.py        ten thousand points as a thousand, with every peak kept
    remarks.py     the advisor's remarks, each at the step it concerns
    rollouts.py    the steps of a run, the groups of a step, the samples of a group
    find.py        the worst, the longest, newly solved, lost ... in bounded time
    hacks.py       accepted programs that look like a cheat: a heuristic
    bench.py       the results of `microcoder bench`, in the shape of rollouts
    compare.py     two of them, problem by problem
    answers.py     every question that the pages ask, as a function
    server.py      those functions over HTTP; guard.py stands before it
    export.py      those functions' answers, and the pages, in one file
    static/        the pages: plain modules, one stylesheet, nothing from the network

Pages poll: every two seconds they ask again with the ETag they hold, and what has not changed costs a stat.
"""

from .export import export
from .library import Library, Missing
from .server import app, serve

__all__ = ["Library", "Missing", "app", "export", "serve"]
