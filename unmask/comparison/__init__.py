"""The report that compares the results of several models. The demo writes it."""
