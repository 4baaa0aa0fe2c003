"""The version of this package and of the plugin it comes with; the same as in the file VERSION."""

__version__ = "0.1.0"
