"""Comparison: the same budget, the same task, several ways; and the report that shows it."""
