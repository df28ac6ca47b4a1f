"""A sequential verdict is false in at most the stated share of comparisons of a thing with itself, at any noise."""

import math
import random
from collections.abc import Callable

import pytest

from unsnarl.doctor import comparison
from unsnarl.doctor.diagnosis import THREADS_ERROR, effect_of
from unsnarl.statistics import ERROR, HIGHER, LOWER, SAME, STAKES, decide, evidence, evidence_below

Noise = Callable[[random.Random, int], float]

NOISES: dict[str, Noise] = {
    "normal, 10 %": lambda chance, _: max(0.01, chance.gauss(1, 0.1)),
    "normal, 1 %": lambda chance, _: chance.gauss(1, 0.01),
    "heavy-tailed": lambda chance, _: 1 + 0.02 * chance.paretovariate(0.8),
    "bimodal": lambda chance, _: chance.choice((1.0, 1.6)) * chance.gauss(1, 0.02),
    "two values": lambda chance, _: chance.choice((1.0, 2.0)),
    "drift": lambda chance, slot: 1 + 0.05 * slot + chance.gauss(0, 0.001),
    "alternating load": lambda chance, slot: 1 + slot % 2 + chance.gauss(0, 0.001),
}
"""The time of one run, from the number of the run in the examination."""


def examine(noise: Noise, chance: random.Random, factor: float = 1.0, pairs: int = 20) -> list[str]:
    """Return the verdicts of an examination on three ways that take ``factor`` times as long as stock."""
    rounds: list[list[float]] = []
    verdicts = [comparison.TOO_FEW] * 3
    slot = 0
    for _ in range(pairs):
        made = [0.0] * 4
        for way in chance.sample(range(4), 4):
            made[way] = noise(chance, slot) * (factor if way else 1.0)
            slot += 1
        rounds.append(made)
        for way in range(3):
            if verdicts[way] == comparison.TOO_FEW:
                verdicts[way] = comparison.verdict([(each[0], each[1 + way]) for each in rounds], 3)
    return verdicts


@pytest.mark.parametrize("name", NOISES)
def test_a_comparison_with_itself_gives_few_false_verdicts(name: str) -> None:
    chance = random.Random(name)
    found = [set(examine(NOISES[name], chance)) for _ in range(400)]
    false = sum(bool(verdicts & {comparison.FASTER, comparison.SLOWER}) for verdicts in found)
    assert false <= ERROR * len(found)


@pytest.mark.parametrize("name", ["normal, 10 %", "normal, 1 %", "heavy-tailed"])
def test_a_real_difference_is_found(name: str) -> None:
    chance = random.Random(name)
    found = [verdict for _ in range(50) for verdict in examine(NOISES[name], chance, 0.6)]
    assert found.count(comparison.FASTER) >= 0.8 * len(found)
    assert comparison.SLOWER not in found


def test_little_noise_is_enough_to_call_two_things_the_same() -> None:
    found = examine(NOISES["normal, 1 %"], random.Random(1))
    assert found == [comparison.SAME] * 3


@pytest.mark.parametrize("error", [0.05, 0.02, 0.01])
def test_the_error_rate_is_exact_whenever_a_caller_stops(error: float) -> None:
    """The probability, over all sequences of 60 fair signs, that any look reaches the threshold."""
    reached, open_paths = 0.0, {0: 1.0}  # by the number of pairs whose second side is lower
    for count in range(1, 61):
        grown: dict[int, float] = {}
        for lower, probability in open_paths.items():
            for following in (lower, lower + 1):
                grown[following] = grown.get(following, 0.0) + probability / 2
        open_paths = {}
        for lower, probability in grown.items():
            if evidence([(2.0, 1.0)] * lower + [(1.0, 2.0)] * (count - lower)) >= 1 / error:
                reached += probability
            else:
                open_paths[lower] = probability
    assert 0 < reached <= error


def test_the_shares_of_the_capital_are_the_whole_capital() -> None:
    assert math.isclose(2 * sum(share for _, share in STAKES), 1)
    assert math.isclose(evidence([]), 1)
    assert math.isclose(evidence_below([], 1.0), 1)
    assert math.isclose(evidence([(1.0, 1.0)] * 50), 1)  # a tie is no sign


def test_threads_between_stock_and_stock_are_seldom_said_to_be_helped() -> None:
    chance = random.Random(7)
    helped = 0
    for _ in range(400):
        waits: list[tuple[float, float]] = []
        for _ in range(20):
            waits.append((chance.paretovariate(0.5), chance.paretovariate(0.5)))
            if effect_of("a", waits, 1).helps:
                helped += 1
                break
    assert helped <= THREADS_ERROR * 400


@pytest.mark.parametrize(
    ("pairs", "decision"),
    [
        ([(1.0, 0.5)] * 7, LOWER),
        ([(1.0, 2.0)] * 7, HIGHER),
        ([(1.0, 1.01)] * 7, SAME),
        ([(0.0, 0.0)] * 9, None),
        ([(1.0, 2.0)] * 4, None),
        ([], None),
    ],
)
def test_decisions(pairs: list[tuple[float, float]], decision: str | None) -> None:
    assert decide(pairs, 0.05, 0.02) == decision
