"""Datasette loads this as a plugin: it reads databases through dash, beside programs that write."""

from . import load

# Before Datasette opens anything, its internal database among it.
load(default=True)
