"""Finished runs -> what they say of the claims.

    gathering.py   a folder of studies -> the metrics of every finished run, by arm and seed
    results.py     what a report says of them; asked.py: three tables that the paper's readers asked for
    curves.py      what a figure shows: means over seeds, evaluations, stages
    panels.py      one metric's panel, or the bars of a step's time
    figures.py     the page of a study; forest.py: the effects of all claims; drawing.py: all of a report's
    markdown.py    pieces of a page
    page.py        the report as a page; page_run.py, page_study.py, page_asked.py: its parts
    records.py     the report as numbers
    report.py      all of it, written
"""
