"""What tests of Foldmark, and of programs that use it, need: transcripts, and a model API that follows a script."""

from core.testing.api import Request, ScriptedApi
from core.testing.transcript import SESSION_ID, Transcript
from core.testing.window import WindowedModel

__all__ = ["SESSION_ID", "Request", "ScriptedApi", "Transcript", "WindowedModel"]
