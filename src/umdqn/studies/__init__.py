"""Studies: a sweep of trainings, and a report made from the finished runs."""
