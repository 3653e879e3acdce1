"""Each rule of advice speaks where it should and is silent where it should be."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest

from recombine.audit.advising.advise import RULES, advise
from recombine.audit.advising.evidence import Evidence
from recombine.audit.advising.remedies import COLLECT
from recombine.audit.coverage import support_finding
from recombine.audit.findings import Deviation, Fit, Identification, PartsFinding
from recombine.audit.space import joining, planned, space_size
from recombine.audit.strata import gap_finding, mean_score
from recombine.stats.intervals import Interval

IDENTIFIED = PartsFinding(Identification(36, 11, 25, 1, 4.0, True, (), ()), interaction=False)
ROWS = list(itertools.product(range(8), range(8), range(4)))
RNG = np.random.default_rng(0)


def say(cells, parts=IDENTIFIED):
    """What the rules say of the first score, by name."""
    values = cells.mean[cells.evaluated, 0]
    overall = mean_score(values, binary=cells.binary[0])
    found = advise(Evidence(cells, 0, support_finding(cells), gap_finding(cells, 0), parts, overall))
    assert {one.rule for one in found} <= set(RULES)
    assert all(one.sentence and one.because for one in found)
    return {one.rule: one for one in found}


def scored(mean, noise=0.04):
    """Scores around means, between 0 and 1."""
    return np.clip(np.asarray(mean, dtype=float) + RNG.normal(0, noise, len(mean)), 0, 1)


def split(of=2):
    """All but every second (or third) combination; all pairs of values meet in training."""
    kept = np.array([sum(row) % of for row in ROWS])
    return kept == 0 if of == 2 else kept != 0


def test_composes(make_cells):
    said = say(make_cells(ROWS, scored(np.full(len(ROWS), 0.9)), trained=split()))
    assert set(said) == {"composes"}
    assert "margin of 0.05" in said["composes"].because


def test_composing_at_the_floor_is_not_composing(make_cells):
    said = say(make_cells(ROWS, scored(np.full(len(ROWS), 0.1)), trained=split()))
    assert set(said) == {"coverage-fine-model-limit"}
    assert "low everywhere" in said["coverage-fine-model-limit"].sentence


def test_memorises(make_cells):
    trained = split()
    said = say(make_cells(ROWS, scored(np.where(trained, 0.95, 0.2)), trained=trained))
    assert set(said) == {"memorises"}
    assert "trained 0.9" in said["memorises"].because and "all pairs met 0.2" in said["memorises"].because


def test_the_model_is_the_limit(make_cells):
    trained = split()
    said = say(make_cells(ROWS, scored(np.where(trained, 0.8, 0.65)), trained=trained))
    assert set(said) == {"coverage-fine-model-limit"}


def test_collect_pairs_names_what_the_hole_lacks(make_cells):
    hole = [a < 3 and b < 3 for a, b, _ in ROWS]
    trained = split(3) & ~np.array(hole)
    said = say(make_cells(ROWS, scored(np.where(hole, 0.4, 0.9)), trained=trained, columns=["a", "b", "c"]))
    assert set(said) == {"collect-pairs", "composes"}
    assert "whose pairs all met" in said["composes"].sentence
    advice = said["collect-pairs"]
    assert "9 of them" in advice.sentence and "with parts held constant" in advice.because
    pairs = {(one[0], one[1]) for one in advice.collect}
    assert pairs == {(f"a={a}", f"b={b}") for a in range(3) for b in range(3)}, "nine pairs, nine combinations"


def test_hard_parts_do_not_pass_for_unmet_pairs(make_cells):
    """Held-out combinations with unmet pairs are worse because they hold hard parts: nothing to collect."""
    hard = np.array([(a < 4) + (b < 4) for a, b, _ in ROWS])
    hole = np.array([a < 4 and b < 4 and (a + b) % 2 == 0 for a, b, _ in ROWS])
    cells = make_cells(ROWS, scored(0.95 - 0.15 * hard), trained=split(3) & ~hole)
    found = gap_finding(cells, 0)
    assert found.raw.low > 0.01
    assert set(say(cells)) == {"composes"}


def test_an_unseen_part(make_cells):
    trained = split() & np.array([a != 5 for a, _, _ in ROWS])
    cells = make_cells(ROWS, scored([0.3 if a == 5 else 0.9 for a, _, _ in ROWS]), trained=trained)
    said = say(cells)
    assert "unseen-part" in said and "part-not-learned" not in said
    assert any("f0=5" in one for one in said["unseen-part"].collect)


def test_more_examples_of_a_weak_value_are_named(make_cells):
    cells = make_cells(ROWS, scored([0.6 if a == 3 else 0.9 for a, _, _ in ROWS]), trained=split(of=3))
    named = say(cells)["weak-part"].collect
    assert len(named) == COLLECT and all("f0=3" in one for one in named)
    trained = {
        tuple(f"f{slot}={value}" for slot, value in enumerate(row))
        for row, t in zip(ROWS, split(of=3), strict=True)
        if t
    }
    assert set(named) <= trained


def test_if_every_held_out_combination_has_an_unseen_part_recombining_was_not_tested(make_cells):
    trained = np.array([a != 5 for a, _, _ in ROWS])
    said = say(make_cells(ROWS, scored(np.where(trained, 0.9, 0.3)), trained=trained))
    assert "was not tested" in said["undecided"].sentence and "do not show why" not in said["undecided"].sentence


def test_a_part_that_is_not_learned(make_cells):
    said = say(make_cells(ROWS, scored([0.1 if b == 2 else 0.9 for _, b, _ in ROWS]), trained=split()))
    assert set(said) == {"part-not-learned", "composes"}
    assert said["part-not-learned"].sentence.startswith("f1=2: low scores in all combinations, trained ones included")


def test_if_everything_is_low_no_part_stands_out(make_cells):
    said = say(make_cells(ROWS, scored([0.02 if b == 2 else 0.35 for _, b, _ in ROWS])))
    assert set(said) == {"low-everywhere", "no-training-information"}


def test_no_part_is_named_by_chance(make_cells):
    """Scores of coins, two hundred values: hardly ever is one named."""
    rng = np.random.default_rng(1)
    named = 0
    for _ in range(10):
        rows = sorted({(int(a), int(b)) for a, b in rng.integers(200, size=(1500, 2))})
        cells = make_cells(rows, rng.integers(2, size=len(rows)).astype(float), binary=True)
        named += "part-not-learned" in say(cells)
    assert named <= 1


def test_groups_are_joined(make_cells):
    apart = np.array([(a < 4) == (b < 4) == (c < 2) for a, b, c in ROWS])
    cells = make_cells(ROWS, scored(np.full(len(ROWS), 0.9)), trained=apart)
    said = say(cells)
    assert "join-groups" in said and "2 groups" in said["join-groups"].sentence
    one = joining(cells)[0]
    assert len(one) == 3
    sides = {(label[:3] in ("f0=", "f1=") and int(label[3]) < 4) or label in ("f2=0", "f2=1") for label in one}
    assert sides == {True, False}


def test_unknown_training_combinations(make_cells):
    assert set(say(make_cells(ROWS, scored(np.full(len(ROWS), 0.7))))) == {"no-training-information"}


def test_one_side_only(make_cells):
    said = say(make_cells(ROWS, scored(np.full(len(ROWS), 0.7)), trained=np.ones(len(ROWS), dtype=bool)))
    assert set(said) == {"one-side-only"} and "held-out" in said["one-side-only"].sentence


def test_undecided_says_how_many_more(make_cells):
    rows = ROWS[:20]
    said = say(make_cells(rows, RNG.random(20), trained=np.arange(20) % 3 > 0))
    assert "undecided" in said and "more combinations" in said["undecided"].sentence


def test_a_probable_difference_says_how_many_more_confirm_it(make_cells):
    rows = [(a, b, 0) for a in range(5) for b in range(4)]
    trained = np.array([(a + b) % 3 > 0 for a, b, _ in rows])
    values = np.random.default_rng(18).permuted(np.linspace(0.2, 1.0, 20)) - np.where(trained, 0, 0.2)
    said = say(make_cells(rows, values, trained=trained))
    sentence = said["undecided"].sentence
    assert "probably score worse" in sentence and "8 more combinations to confirm a difference of 0.35" in sentence


def test_all_solved(make_cells):
    said = say(make_cells(ROWS, np.ones(len(ROWS)), trained=split(), binary=True))
    assert set(said) == {"constant-score"} and "nothing to fix" in said["constant-score"].sentence
    said = say(make_cells(ROWS, scored(np.full(len(ROWS), 0.99)), trained=split()))
    assert "solved" in said and "composes" in said


def test_cannot_tell_hands_on_what_to_collect(make_cells):
    found = Identification(19, 25, 0, 2, 4.0, False, ("why",), ("Collect 12 more.",), (("a=1", "b=2"),) * 30)
    said = say(make_cells(ROWS, scored(np.full(len(ROWS), 0.7))), PartsFinding(found))
    assert "collect 12 more." in said["cannot-tell"].sentence and len(said["cannot-tell"].collect) == COLLECT
    assert "19 combinations for 25 parameters" in said["cannot-tell"].because


def test_hard_combinations(make_cells):
    deviation = Deviation("f0=1 + f1=2", Interval(-1, -2, -0.5, 30, 0.95, "shrunken"), 0.01, "logit")
    fit = Fit("logit", {}, Interval(1, 0.5, 2, 30, 0.95, "bootstrap"), 0.001, "")
    parts = dataclasses.replace(IDENTIFIED, interaction=True, hardest_pairs=(deviation,), fits=(fit,))
    hard = [0.3 if (a, b) == (1, 2) else 0.8 for a, b, _ in ROWS]
    said = say(make_cells(ROWS, scored(hard)), parts)
    assert "f0=1 + f1=2" in said["hard-combinations"].sentence and "p = 0.001" in said["hard-combinations"].because
    assert "Collect more of these" in said["hard-combinations"].sentence
    # Where trained combinations score higher, one that was not trained on looks hard for that alone.
    trained = split()
    said = say(
        make_cells(ROWS, scored(np.where(trained, 0.95, 0.6) - 0.4 * (np.array(hard) < 0.5)), trained=trained), parts
    )
    assert "not trained on: fix that first" in said["hard-combinations"].sentence


def test_a_score_without_a_scale_is_only_compared(make_cells):
    trained = split()
    said = say(make_cells(ROWS, 100 * scored(np.where(trained, 0.95, 0.2)), trained=trained))
    assert set(said) == {"memorises", "no-scale"}
    said = say(make_cells(ROWS, 100 * scored([0.1 if b == 2 else 0.9 for _, b, _ in ROWS]), trained=trained))
    assert set(said) == {"part-not-learned", "composes", "no-scale"}
    said = say(make_cells(ROWS, 100 * scored(np.full(len(ROWS), 0.1)), trained=trained))
    assert set(said) <= {"composes", "undecided", "no-scale"}, "low everywhere needs a scale"


def test_sets_and_roles_can_be_planned_for(make_cells):
    sets = [one for size in (1, 2, 3) for one in itertools.combinations(range(6), size)]
    cells = make_cells(sets, trained=[0 not in one or 1 not in one for one in sets], sets=True)
    assert space_size(cells) == len(sets)
    found = planned(cells).cover(5)
    assert {"parts=0", "parts=1"} <= set(found[0])
    animals = list(itertools.permutations("abcd", 2))
    cells = make_cells(animals, trained=[one != ("a", "b") for one in animals], roles=("f0", "f1"))
    assert space_size(cells) == 12
    assert planned(cells).cover(5) == (("f0=a", "f1=b"),), "a value does not meet itself"


@pytest.mark.skipif(not Path("docs/methods-audit.md").exists(), reason="run from elsewhere")
def test_the_rules_are_written_down():
    text = Path("docs/methods-audit.md").read_text()
    assert all(f"`{rule}`" in text for rule in RULES)
