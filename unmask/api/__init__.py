"""The implementation of the public Python API. Users import the names from `unmask`, which imports these files when needed."""
