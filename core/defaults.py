"""What counts where nobody set it: each figure once, for the settings and for calls that leave it out."""

from __future__ import annotations

MOST = 1_000_000_000
"""Of what is counted: more of it than there is anywhere, and a number that everything takes."""

LEAST_WINDOW_TOKENS = 40_000
"""Of a window that is named: the answer (20,000) and the headroom (13,000) come off, which leaves nothing to work with
below it."""
KEEP_TOKENS = 20_000
"""What a compaction keeps word for word at the end."""
SUMMARY_TOKENS = 8_000
"""With the tail it leaves 16 % of a context of 180,000.  On real sessions twice as much held at most 3 points more of
the paths that were needed next."""

RESTORE_FILES = 5
RESTORE_FILE_TOKENS = 5_000
RESTORE_TOTAL_TOKENS = 50_000

RESULT_CHARS = 50_000
RESULTS_CHARS = 200_000
PREVIEW_BYTES = 2_000
"""The client's own figures for one result (measured on tools of MCP servers) and its preview; it has no limit for a
message, where 260,000 characters of parallel results went through."""

MEMORY_TOKENS = 12_000
MEMORY_FIRST_TOKENS = 12_000
MEMORY_UPDATE_TOKENS = 12_000
MEMORY_UPDATE_RESPONSES = 12
"""An update costs about as much as an ordinary request: one in 12 adds some 8 % to what a session costs."""
MEMORY_KEEP_TOKENS = 10_000
MEMORY_KEEP_MOST_TOKENS = 40_000
