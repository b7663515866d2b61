"""The report that shows what several ways came to: the demo writes it."""
