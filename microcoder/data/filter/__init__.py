"""Filter: text quality, relevance, duplicates, contamination, dates and licences."""
