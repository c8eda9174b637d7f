"""The report: one HTML file that shows how good a model is on a dataset, with nothing to fetch."""
