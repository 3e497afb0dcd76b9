"""Foldmark's core: reads, measures, compacts and restores agent transcripts.  The shells stand on top of it."""

__version__ = "0.1.0"
