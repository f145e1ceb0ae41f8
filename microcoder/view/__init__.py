"""The run directories in a browser: curves while a run goes on, and what the model wrote. It only reads.

    library.py     what there is under a folder, and the one way to its files
    state.py       a run in a line: status, step, the last values, the time left
    follow.py      metrics.jsonl as it grows: columns, curves, panels, the advisor's remarks
    groups.py      the steps of a run, the groups of a step; the results of `microcoder eval` in the same shape
    find.py        the worst, the longest, newly solved, suspected cheats ... in bounded time; two runs compared
    questions.py   every question that the pages ask, as a function
    routes.py      those functions over HTTP, and who may ask
    export.py      those functions' answers, and the pages, in one file
    static/        the pages: plain modules, one stylesheet, nothing from the network

Pages poll: every two seconds they ask again with the ETag they hold, and what has not changed costs a stat.
"""

from .export import export
from .library import Library, Missing
from .routes import app, serve

__all__ = ["Library", "Missing", "app", "export", "serve"]
