"""The version of the package, which is that of the server built with it."""

__version__ = "0.1.0"
