"""Estimates of tokens, and how they are calibrated."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.context.tokens.estimate import (
    GROUPS,
    MAX_FACTOR,
    MIN_FACTOR,
    PRIOR,
    Calibration,
    Estimator,
    Sample,
    calibrate,
    media_tokens,
)
from core.context.tokens.ledger import items_of
from core.context.tokens.models import Model, lookup
from core.context.view import messages_of
from core.model import Block
from core.transcript.chain import active_chain
from core.transcript.media import Media
from core.transcript.outline import CODE, DENSITIES, BlockOutline, outline_blocks
from core.transcript.reader import open_log

CASES = Path(__file__).resolve().parents[2] / "data" / "cases"
OLD, NEW = lookup("claude-opus-4-5"), lookup("claude-opus-5-5")

outlines = st.builds(
    BlockOutline,
    kind=st.sampled_from(["text", "thinking", "tool_use", "tool_result", "image", "document", "other"]),
    chars=st.integers(0, 10**7),
    density=st.sampled_from(DENSITIES),
    wide=st.integers(0, 10**6),
    media=st.lists(
        st.builds(Media, width=st.integers(0, 20_000), height=st.integers(0, 20_000), pages=st.integers(0, 9)),
        max_size=2,
    ).map(tuple),
)


def tokens(block: Block, model: Model = OLD) -> float:
    return Estimator(model).tokens(outline_blocks([block]))


def text(value: str) -> Block:
    return {"type": "text", "text": value}


@pytest.mark.parametrize("model", [OLD, NEW, lookup("unheard-of")], ids=["old", "new", "unknown"])
def test_japanese_counts_by_the_character_and_emoji_at_least_one_each(model: Model) -> None:
    assert 1_700 <= tokens(text("これは日本語の長い説明です。" * 200), model) <= 3_400
    assert tokens(text("👍" * 50), model) >= 50
    assert tokens(text("✅" * 50), model) >= 50


def test_the_case_file_of_scripts_and_pictures_is_within_bounds() -> None:
    with open_log(CASES / "tokens-1.jsonl") as log:
        messages = messages_of(log, active_chain(log))
    japanese, picture, call, result, emoji = (
        Estimator(lookup("claude-test-1")).tokens(item.outlines) for item in items_of(messages)
    )

    assert 1_700 <= japanese <= 3_400
    assert 1_000 <= picture <= 5_000
    assert 1_000 <= result <= 5_000
    assert call > 0
    assert emoji >= 50


@pytest.mark.parametrize(
    ("model", "low", "high"), [pytest.param(OLD, 2.3, 2.9, id="old"), pytest.param(NEW, 1.9, 2.5, id="new")]
)
def test_tool_output_costs_a_token_for_each_two_to_three_characters(model: Model, low: float, high: float) -> None:
    code = "  for e in log[start:]:\n    if e.uuid in seen: return f(e.uuid, seen[e.uuid])\n" * 300
    block: Block = {"type": "tool_result", "tool_use_id": "t", "content": code}

    assert low <= len(code) / tokens(block, model) <= high


def test_every_kind_of_block_counts() -> None:
    filler = "word " * 1000
    shown: list[Block] = [
        {"type": "tool_use", "id": "t", "name": "Write", "input": {"content": filler}},
        {"type": "tool_result", "tool_use_id": "t", "content": [text(filler)]},
        {"type": "thinking", "thinking": filler, "signature": ""},
        {"type": "of_the_future", "payload": filler},
    ]

    for block in shown:
        assert tokens(block) > 1000


@pytest.mark.parametrize(
    ("width", "height", "standard", "high"),
    [
        (1000, 1000, 1296, 1296),
        (1920, 1080, 1560, 2691),
        (3840, 2160, 1560, 4784),
        (28, 29, 2, 2),
        (0, 0, 1500, 1500),
        (10**6, 1, 56, 92),
    ],
)
def test_pictures_count_by_patches_after_they_are_shrunk(width: int, height: int, standard: int, high: int) -> None:
    picture = Media(width, height)

    assert media_tokens(picture, "standard") == standard
    assert media_tokens(picture, "high") == high


def test_a_large_picture_does_not_count_by_its_base64() -> None:
    picture: Block = {"type": "image", "source": {"type": "base64", "data": "A" * 2_500_000}}

    assert 1_000 <= tokens(picture) <= 5_000


def test_documents_count_by_the_page() -> None:
    assert 6_000 <= media_tokens(Media(pages=3), "standard") <= 8_000


@given(outlines, st.integers(1, 10**6))
def test_more_content_never_counts_less(outline: BlockOutline, more: int) -> None:
    estimator = Estimator(OLD)
    longer = BlockOutline(outline.kind, outline.chars + more, outline.density, outline.wide, media=outline.media)

    assert 0 <= estimator.tokens([outline]) < estimator.tokens([longer])


@given(st.lists(outlines, max_size=5))
def test_features_are_the_estimate_by_group_without_media(content: list[BlockOutline]) -> None:
    bare = [BlockOutline(o.kind, o.chars, o.density, o.wide) for o in content]
    estimator = Estimator(NEW)

    assert sum(estimator.features(content)) == pytest.approx(estimator.tokens(bare))


def test_a_calibration_scales_each_group_on_its_own() -> None:
    factors = tuple(2.0 if group == "result_code" else 1.0 for group in GROUPS)
    plain, scaled = Estimator(OLD), Estimator(OLD, Calibration(factors))
    result, prose = BlockOutline("tool_result", 1000, CODE), BlockOutline("text", 1000)

    assert scaled.tokens([result]) == pytest.approx(2 * plain.tokens([result]))
    assert scaled.tokens([prose]) == plain.tokens([prose])


def step(group: str, expected: float, tokens: int) -> Sample:
    return Sample(tuple(expected if name == group else 0.0 for name in GROUPS), tokens)


def test_a_calibration_learns_what_a_group_costs() -> None:
    found = calibrate([step("text", 1000, 1400)] * 50 + [step("tool_use", 500, 500)] * 50)

    assert found.factors[GROUPS.index("text")] == pytest.approx(1.4, abs=0.05)
    assert found.factors[GROUPS.index("tool_use")] == pytest.approx(1.0, abs=0.01)
    assert found.factors[GROUPS.index("thinking")] == 1.0
    assert found.samples == 100


def test_one_step_moves_a_calibration_but_little() -> None:
    (text_factor,) = (f for f in calibrate([step("text", 200, 400)]).factors if f != 1)

    assert 1 < text_factor < 1.1


def test_steps_with_unseen_content_are_left_out() -> None:
    honest = [step("text", 1000, 1100)] * 20
    hidden = [step("text", 100, 16_000), step("text", 1000, -50), step("text", 5000, 10)]

    assert calibrate(honest + hidden) == Calibration(calibrate(honest).factors, 20)


def test_without_steps_the_priors_stand() -> None:
    assert calibrate([]) == PRIOR


@given(
    st.lists(
        st.builds(
            Sample,
            st.tuples(*[st.floats(0, 10**6) for _ in GROUPS]),
            st.integers(-(10**6), 10**6),
        ),
        max_size=12,
    )
)
def test_factors_stay_within_bounds(samples: list[Sample]) -> None:
    found = calibrate(samples)

    assert all(MIN_FACTOR <= factor <= MAX_FACTOR for factor in found.factors)
    assert found.samples <= len(samples)
