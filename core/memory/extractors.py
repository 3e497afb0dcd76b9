"""Who can take notes, by name; what asks a model is paid for by those who use it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

from core.api.endpoint import Endpoint
from core.memory.extract import ByRule, Extractor
from core.summarizers import Resources, asked

ExtractorName: TypeAlias = Literal["extractive", "anthropic", "claude"]
EXTRACTORS: tuple[ExtractorName, ...] = get_args(ExtractorName)


def make(
    name: ExtractorName,
    resources: Resources | None = None,
    wrapped: Callable[[Endpoint], Endpoint] = lambda endpoint: endpoint,
) -> Extractor:
    """Whoever goes by the name; `wrapped` may put something around the endpoint, such as caps on what it costs."""
    if name == "extractive":
        return ByRule()
    from core.memory.by_model import ByModel

    endpoint, model = asked(name, resources or Resources())
    return ByModel(wrapped(endpoint), model, name)
