"""What resources are called."""

from __future__ import annotations

from urllib.parse import quote

SCHEME = "foldmark://"
SESSIONS = f"{SCHEME}sessions"
STATUS = f"{SCHEME}session/{{session}}/status"
VIEW = f"{SCHEME}session/{{session}}/view{{?offset}}"
SUMMARY = f"{SCHEME}session/{{session}}/summary"
MEMORY = f"{SCHEME}session/{{session}}/memory"
OUTPUTS = f"{SCHEME}session/{{session}}/outputs"
OUTPUT = f"{SCHEME}session/{{session}}/output/{{output}}{{?offset}}"


def status_uri(session_id: str) -> str:
    """The status of one session."""
    return STATUS.format(session=quote(session_id, safe=""))


def memory_uri(session_id: str) -> str:
    """The notes of one session."""
    return MEMORY.format(session=quote(session_id, safe=""))


def session_uris(session_id: str) -> list[str]:
    """What changes when a session does."""
    ident = quote(session_id, safe="")
    whole = (STATUS, VIEW.removesuffix("{?offset}"), SUMMARY, OUTPUTS)
    return [uri.format(session=ident) for uri in whole]
