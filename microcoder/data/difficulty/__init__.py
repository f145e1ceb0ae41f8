"""Difficulty: predict, calibrate, select.

predict    `predictor.py` (boosted trees on `features.py`), or `rubric.py` through an endpoint
calibrate  `calibrate.py`: a model's pass rates (`measure.py`) turn scores into chances of success
select     `select.py`: a floor or a target distribution
"""
