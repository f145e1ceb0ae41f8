"""Difficulty: predict, calibrate, select.

predict    `predictor.py` (boosted trees on `features.py`), or `rubric.py` through an endpoint
calibrate  `calibrate.py`: from scores to chances of success, by a model's pass rates (`measure.py`)
select     `select.py`: a floor or a target distribution
"""
