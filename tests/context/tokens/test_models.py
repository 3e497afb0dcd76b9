"""The model table: names as they stand in logs, and tables of the user."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from core.context.tokens.models import SYNTHETIC, load, lookup
from core.errors import SettingsError

PRICES = {"input": 1, "output": 5, "write_5m": 1, "write_1h": 2, "read": 0.1}


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("claude-opus-4-20250514", "claude-opus-4-0"),
        ("claude-4-opus-20250514", "claude-opus-4-0"),
        ("claude-3-7-sonnet-latest", "claude-3-7-sonnet"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4-0"),
        ("anthropic.claude-fable-5", "claude-fable-5"),
        ("arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-opus-4-6-v1", "claude-opus-4-6"),
        ("anthropic/claude-opus-4.5", "claude-opus-4-5"),
        ("anthropic/claude-3.5-haiku:beta", "claude-3-5-haiku"),
        ("claude-4.5-sonnet-thinking", "claude-sonnet-4-5"),
        ("claude-opus-4-8-fast", "claude-opus-4-8"),
        (" Claude-Opus-5 ", "claude-opus-5"),
        ("claude-mythos-5-2", "claude-mythos-5-2"),
        ("opus", "claude-opus-5-5"),
    ],
)
def test_ids_are_understood_as_logs_write_them(name: str, model: str) -> None:
    found = lookup(name)

    assert (found.id, found.known) == (model, True)


def test_an_unknown_model_gets_the_default_and_keeps_its_name() -> None:
    model = lookup("gpt-9-codex")

    assert (model.id, model.known, model.window_tokens) == ("gpt-9-codex", False, 200_000)
    assert model.prices_for(1000) is None


def test_the_long_window_is_asked_for_in_the_id() -> None:
    assert lookup("claude-sonnet-4-5-20250929").window_tokens == 200_000
    assert lookup("claude-sonnet-4-5-20250929[1m]").window_tokens == 1_000_000
    assert lookup("claude-opus-4-6").client_window_tokens == 200_000
    assert lookup("claude-opus-4-6[1m]").client_window_tokens is None


def test_messages_that_the_client_made_up_cost_nothing() -> None:
    model = lookup(SYNTHETIC)
    prices = model.prices_for(1000)

    assert model.known
    assert prices
    assert prices.input == prices.output == 0


@pytest.mark.parametrize(
    ("name", "multiplier"),
    [("claude-opus-4-5", 0.1), ("claude-sonnet-5-5", 0.05), ("claude-fable-5-1", 0.025), ("claude-haiku-5-5", 0.1)],
)
def test_reading_from_the_cache_is_cheaper_by_a_factor(name: str, multiplier: float) -> None:
    (prices, *_) = lookup(name).prices

    assert prices.read / prices.input == pytest.approx(multiplier)


def test_haiku_5_5_is_dearer_above_100_000_tokens() -> None:
    model = lookup("claude-haiku-5-5")
    small, large = model.prices_for(100_000), model.prices_for(100_001)

    assert small
    assert large
    assert (small.input, large.input) == (0.1, 0.5)


def test_cache_writes_cost_a_fixed_multiple_of_input_in_every_row() -> None:
    names = [name for row in json.loads(TABLE.read_text("utf-8"))["models"] for name in row["ids"]]

    for name in names:
        for prices in lookup(name).prices:
            assert prices.write_5m == pytest.approx(1.25 * prices.input)
            assert prices.write_1h == pytest.approx(2 * prices.input)
            assert prices.output == pytest.approx(5 * prices.input)
    assert len(names) > 20


def test_a_tier_that_covers_no_larger_prompt_is_used_for_it_all_the_same(tmp_path: Path) -> None:
    row = own_row("tiny", window_tokens=8000)
    row["prices"] = [{"up_to_tokens": 10, "input": 1, "output": 5, "write_5m": 1, "write_1h": 2, "read": 0.1}]
    prices = load(write(tmp_path, {"models": [row]})).lookup("tiny").prices_for(11)

    assert prices
    assert prices.input == 1


def test_a_table_of_the_user_adds_corrects_and_sets_the_default(tmp_path: Path) -> None:
    table = {
        "models": [own_row("house-model", window_tokens=64_000), own_row("claude-opus-5", window_tokens=500_000)],
        "aliases": {"opus": "claude-opus-5"},
        "default": own_row("default", window_tokens=32_000),
    }
    models = load(write(tmp_path, table))

    assert models.lookup("house-model").window_tokens == 64_000
    assert models.lookup("opus").window_tokens == 500_000
    assert models.lookup("claude-sonnet-5").window_tokens == 1_000_000
    assert models.lookup("other").window_tokens == 32_000


def test_without_a_file_the_built_in_table_is_loaded() -> None:
    assert load().lookup("claude-opus-5") == lookup("claude-opus-5")


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"models": [{"ids": ["x"]}]}', '{"modles": []}', '{"models": "\xff'],
    ids=["empty", "list", "fields missing", "misspelt", "torn"],
)
def test_a_bad_table_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "models.json"
    path.write_bytes(text.encode("latin-1"))

    with pytest.raises(SettingsError) as error:
        load(path)
    assert str(path) in str(error.value)
    assert error.value.hint


@pytest.mark.parametrize("name", ["none.json", "pipe", "\0"])
def test_a_table_that_is_not_there_is_refused(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(SettingsError):
        load(tmp_path / name)


@pytest.mark.parametrize(
    ("key", "value"),
    [("ids", []), ("window_tokens", -1), ("window_tokens", 10**12), ("prices", [{**PRICES, "input": -1}]),
     ("prices", [{**PRICES, "read": 1e308}])],
)  # fmt: skip
def test_figures_that_cannot_be_are_refused(tmp_path: Path, key: str, value: object) -> None:
    with pytest.raises(SettingsError):
        load(write(tmp_path, {"models": [{**own_row("any", 8_000), key: value}]}))


TABLE = Path(__file__).resolve().parents[3] / "core" / "context" / "tokens" / "models.json"


def own_row(name: str, window_tokens: int) -> dict[str, object]:
    return {
        "ids": [name],
        "window_tokens": window_tokens,
        "max_output_tokens": 4096,
        "tokenizer": "old",
        "image": "standard",
        "cache_min_tokens": 1024,
    }


def write(folder: Path, table: object) -> Path:
    path = folder / "models.json"
    path.write_text(json.dumps(table), encoding="utf-8")
    return path
