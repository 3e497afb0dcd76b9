"""Who takes notes, by name."""

from __future__ import annotations

import pytest

from core.api.endpoint import Endpoint
from core.errors import ApiError
from core.memory.by_model import ByModel
from core.memory.extract import ByRule
from core.memory.extractors import make
from core.model import Usage
from core.summarizers import Resources
from core.testing import Transcript
from tests.memory.build import part_of
from tests.memory.test_by_model import Says

PART = part_of(Transcript().prompt("Go").answer("Done."))


def never() -> Resources:
    raise AssertionError


def test_rules_need_nothing() -> None:
    assert isinstance(make("extractive", never), ByRule)


def test_a_model_is_asked_through_what_is_put_around_its_endpoint() -> None:
    says, wrapped = Says(), list[Endpoint]()

    def wrap(endpoint: Endpoint) -> Endpoint:
        wrapped.append(endpoint)
        return endpoint

    extractor = make("anthropic", lambda: Resources(lambda: says, model="m1"), wrap)

    assert isinstance(extractor, ByModel)
    assert extractor.name == "anthropic"
    assert extractor.extract(PART).usage == Usage(1_000, output_tokens=50)
    assert wrapped == [says]
    assert says.bodies[0]["model"] == "m1"


def test_a_model_that_is_not_there_is_missed_when_it_is_asked() -> None:
    with pytest.raises(ApiError) as raised:
        make("claude", Resources).extract(PART)

    assert raised.value.kind == "auth"
