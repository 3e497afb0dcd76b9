"""Who can take notes, by name; what asks a model is paid for by those who use it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from core.memory.extract import ByRule, Extractor

if TYPE_CHECKING:
    from core.api.endpoint import Endpoint
    from core.summarizers import Resources

ExtractorName: TypeAlias = Literal["extractive", "anthropic", "claude"]
EXTRACTORS: tuple[ExtractorName, ...] = get_args(ExtractorName)


def make(
    name: ExtractorName,
    resources: Callable[[], Resources],
    wrapped: Callable[[Endpoint], Endpoint] = lambda endpoint: endpoint,
) -> Extractor:
    """Whoever goes by the name; `wrapped` may put something around the endpoint, such as caps on what it costs."""
    if name == "extractive":
        return ByRule()
    from core.memory.by_model import ByModel
    from core.summarizers import asked

    endpoint, model = asked(name, resources())
    return ByModel(wrapped(endpoint), model, name)
