"""Optimal power flow: against pypower's own matrices, flows and solutions."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.problems.power_flow import PowerFlow
from recombine.problems.power_flow.constraints import injected, mismatch, violations_of
from recombine.problems.power_flow.interior_point import best_answers
from recombine.problems.power_flow.network import State, as_network, case_of, network_of


def with_loads(power, loads, answer=None):
    """pypower's case with loads, and with an answer's controls if there is one."""
    case, network = case_of(power.case), power.network
    case["bus"][network.load_buses[:, None], [2, 3]] = loads.reshape(2, -1).T
    if answer is not None:
        made, _, magnitude, _ = (answer[part] for part in network.parts.values())
        case["gen"][:, 1] = made
        case["gen"][:, 5] = magnitude[network.generator_buses]
    return case


def solve(power, loads):
    """pypower's best answer to loads and its cost; NaN if its solver does not converge."""
    from pypower.opf import opf
    from pypower.ppoption import ppoption

    options = ppoption(VERBOSE=0, OUT_ALL=0, PDIPM_FEASTOL=1e-9, PDIPM_GRADTOL=1e-9, PDIPM_COMPTOL=1e-9)
    solution = opf(with_loads(power, loads), options)
    answer = np.concatenate([solution["gen"][:, [1, 2]].T.ravel(), solution["bus"][:, [7, 8]].T.ravel()])
    return (answer if solution["success"] else np.full_like(answer, np.nan)), float(solution["f"])


def test_the_admittance_matrix_is_pypowers(power):
    from pypower.ext2int import ext2int
    from pypower.makeYbus import makeYbus

    inside = ext2int(case_of(power.case))
    whole, first, second = makeYbus(inside["baseMVA"], inside["bus"], inside["branch"])
    network = power.network
    np.testing.assert_allclose(network.admittance, whole.toarray(), atol=1e-12)
    limited = np.flatnonzero(inside["branch"][:, 5] < 9900)
    for row, (pair, block) in zip(limited, zip(network.line_ends, network.line_admittance, strict=True), strict=True):
        np.testing.assert_allclose(block[0], first.toarray()[row, pair], atol=1e-12)
        np.testing.assert_allclose(block[1], second.toarray()[row, pair], atol=1e-12)


def test_a_phase_shifter_is_in_the_matrix():
    from pypower.ext2int import ext2int
    from pypower.makeYbus import makeYbus

    case = case_of("case14")
    case["branch"][7, 9] = 12.0
    inside = ext2int({**case, "branch": case["branch"].copy()})
    whole = makeYbus(inside["baseMVA"], inside["bus"], inside["branch"])[0]
    np.testing.assert_allclose(as_network(case).admittance, whole.toarray(), atol=1e-12)


def test_properties_of_the_standard_cases():
    small, large = network_of("case9"), network_of("case14")
    assert (small.buses, small.generators, len(small.limits)) == (9, 3, 9)
    assert (large.buses, large.generators, len(large.limits)) == (14, 5, 0)
    assert len(small.load_buses) == 3 and len(large.load_buses) == 11
    assert {one.name: one.number for one in PowerFlow(case="case14").types} == {
        "p-bounds": 5,
        "q-bounds": 5,
        "voltage-bounds": 14,
        "reference": 1,
        "p-balance-unloaded": 3,
        "q-balance-unloaded": 3,
        "p-balance-loaded": 11,
        "q-balance-loaded": 11,
    }


def test_the_best_answer_is_pypowers(power, drawn):
    instances = drawn(power)
    expected, cost = solve(power, instances.questions[0])
    np.testing.assert_allclose(instances.answers[0], expected, atol=1e-3)
    assert instances.costs[0] == pytest.approx(cost, rel=1e-8)
    violations = power.violations(instances.questions[:1], expected[None])
    assert max(values.max() for values in violations.values()) <= 1e-6
    # What MATPOWER's manual gives for the case as it is.
    nominal = power.network.nominal.ravel()
    found, cost = solve(power, nominal)
    assert cost == pytest.approx({"case9": 5296.69, "case14": 8081.53}[power.case], abs=0.01)
    assert cost == pytest.approx(power.costs(nominal[None], found[None])[0], rel=1e-12)
    np.testing.assert_allclose(best_answers(power.network, nominal[None])[0][0], found, atol=1e-3)


def test_loads_that_cannot_be_served_have_no_best_answer(power):
    nominal = power.network.nominal.ravel()[None]
    _, found = best_answers(power.network, np.concatenate([nominal, 5 * nominal, nominal]))
    assert found.tolist() == [True, False, True]
    if power.case == "case9":  # The other takes long to give up.
        assert np.isnan(solve(power, 5 * nominal[0])[0]).all()


def test_loads_are_within_a_fifth(power, drawn):
    questions, nominal = drawn(power).questions, power.network.nominal.ravel()
    share = questions / nominal - 1
    # But for rounding to a megawatt.
    assert np.all(np.abs(share) <= 0.2 + 0.5 / np.abs(nominal)) and np.ptp(share) > 0.35


def test_no_other_controls_are_cheaper(power, drawn):
    """Nudged and solved again, whatever stays feasible costs no less."""
    instances, network = drawn(power), power.network
    rng = np.random.default_rng(0)
    questions = np.repeat(instances.questions[:4], 200, axis=0)
    answers = np.repeat(instances.answers[:4], 200, axis=0)
    for name, size in (("Pg", 3.0), ("Vm", 0.01)):
        part = answers[:, network.parts[name]]
        part += size * rng.normal(size=part.shape)
    repaired = power.repair(questions, answers)
    violations = power.violations(questions, repaired.answers)
    feasible = np.max([found.max(axis=1) for found in violations.values()], axis=0) < 1e-6
    gap = power.costs(questions, repaired.answers) - np.repeat(instances.costs[:4], 200)
    assert feasible.sum() > 5 or power.case == "case14"
    assert np.all(gap[feasible] > -1e-3)


def test_mismatches_are_those_of_pypower(power, drawn):
    from pypower.ext2int import ext2int
    from pypower.makeSbus import makeSbus
    from pypower.makeYbus import makeYbus

    instances, network = drawn(power), power.network
    rng = np.random.default_rng(0)
    answers = instances.answers + rng.normal(size=instances.answers.shape) * 0.05
    found = mismatch(network, instances.questions, answers)
    for row in range(3):
        case = with_loads(power, instances.questions[row], answers[row])
        case["gen"][:, 2] = answers[row][network.parts["Qg"]]
        inside = ext2int(case)
        matrix = makeYbus(inside["baseMVA"], inside["bus"], inside["branch"])[0]
        voltage = network.state(answers).voltage()[row]
        left = makeSbus(inside["baseMVA"], inside["bus"], inside["gen"]) - voltage * np.conj(matrix @ voltage)
        np.testing.assert_allclose(found[row], left, atol=1e-12)


def test_flows_and_limits_are_those_of_pypower(drawn):
    from pypower.ppoption import ppoption
    from pypower.runpf import runpf

    power = PowerFlow()
    instances = drawn(power)
    case = with_loads(power, instances.questions[0], instances.answers[0])
    case["branch"][:, 5] = 40.0
    result, done = runpf(case, ppoption(VERBOSE=0, OUT_ALL=0, PF_TOL=1e-12))
    assert done
    flows = np.maximum(np.hypot(*result["branch"][:, [13, 14]].T), np.hypot(*result["branch"][:, [15, 16]].T))
    network = as_network(case)
    answer = instances.answers[:1]
    found = violations_of(network, instances.questions[:1], answer)["line-limits"][0]
    np.testing.assert_allclose(found, np.maximum(flows / 100 - 0.4, 0), atol=1e-6)
    assert 0 < (found > 0).sum() < 9


def test_every_type_notices_its_own_violation(drawn):
    power = PowerFlow()
    instances, parts = drawn(power), power.network.parts

    def broken(name, index, value):
        answers = instances.answers.copy()
        answers[:, parts[name].start + index] = value
        rates = power.check(instances, answers, [1e-4]).by_type
        return {kind for kind, rate in rates.items() if rate[0] < 1}

    assert "p-bounds" in broken("Pg", 0, 251.0) and "p-bounds" in broken("Pg", 0, 9.0)
    assert "q-bounds" in broken("Qg", 1, -301.0)
    assert "voltage-bounds" in broken("Vm", 4, 1.2) and "voltage-bounds" in broken("Vm", 4, 0.8)
    assert "reference" in broken("Va", 0, 1.0)
    assert "line-limits" in broken("Va", 8, 80.0)
    # Generators are at buses without a load, so what one makes concerns the balance there alone.
    assert broken("Pg", 0, 100.0) == {"p-balance-unloaded"}
    assert broken("Qg", 0, 100.0) == {"q-balance-unloaded"}
    # Bus 5 has a load; its neighbours 4 and 6 have none.
    expected = {f"{kind}-balance-{where}" for kind in "pq" for where in ("loaded", "unloaded")}
    assert broken("Va", 4, 0.0) == expected


def test_an_unknown_voltage_concerns_its_neighbours_only(drawn):
    power = PowerFlow()
    instances, network = drawn(power), power.network
    answers = instances.answers.copy()
    answers[:, network.parts["Va"].start + 4] = np.nan
    left = mismatch(network, instances.questions, answers)
    # Bus 5 lies between 4 and 6.
    assert np.isnan(left).all(axis=0).nonzero()[0].tolist() == [3, 4, 5]
    found = power.violations(instances.questions, answers)
    assert np.isinf(found["line-limits"]).sum(axis=1).tolist() == [2] * len(answers)
    assert np.isfinite(found["voltage-bounds"]).all()


@settings(derandomize=True, deadline=None, max_examples=8)
@given(st.integers(0, 1000))
def test_the_newton_correction_is_pypowers_power_flow(power, drawn, seed):
    from pypower.ppoption import ppoption
    from pypower.runpf import runpf

    instances, network = drawn(power), power.network
    rng = np.random.default_rng(seed)
    row = int(rng.integers(len(instances)))
    question, answer = instances.questions[row : row + 1], instances.answers[row : row + 1].copy()
    answer[:, network.parts["Pg"]] += rng.normal(size=network.generators) * 10
    answer[:, network.parts["Vm"]] += rng.normal(size=network.buses) * 0.02
    answer[:, network.parts["Va"]] = np.nan  # no control
    repaired = power.repair(question, answer)
    result, done = runpf(with_loads(power, question[0], answer[0]), ppoption(VERBOSE=0, OUT_ALL=0, PF_TOL=1e-12))
    assert done and repaired.corrected.all()
    made, reactive, magnitude, angle = (repaired.answers[0, part] for part in network.parts.values())
    np.testing.assert_allclose(made, result["gen"][:, 1], atol=1e-6)
    np.testing.assert_allclose(reactive, result["gen"][:, 2], atol=1e-6)
    np.testing.assert_allclose(magnitude, result["bus"][:, 7], atol=1e-8)
    np.testing.assert_allclose(angle, result["bus"][:, 8], atol=1e-6)


def test_after_the_correction_power_balances_and_controls_are_kept(power, drawn):
    instances, network = drawn(power), power.network
    training = power.instances(20, seed=5)
    answers = power.baseline("mean", training, instances.questions)
    repaired = power.repair(instances.questions, answers)
    assert repaired.corrected.all()
    found = power.check(instances, repaired.answers, [1e-8])
    for name, rates in found.by_type.items():
        if "balance" in name or name == "reference":
            assert rates == [1.0]
    kept = [network.parts["Vm"].start + bus for bus in network.generator_buses]
    kept += [index for index, bus in enumerate(network.generator_buses) if bus != network.reference]
    np.testing.assert_allclose(repaired.answers[:, kept], answers[:, kept], rtol=1e-14)
    before = power.check(instances, answers, [1e-3])
    assert before.by_type["p-balance-loaded"][0] < 0.5


def test_controls_that_are_nonsense_stay_uncorrected(power, drawn):
    instances, network = drawn(power), power.network
    answers = instances.answers[:5].copy()
    generator = int(np.flatnonzero(network.generator_buses != network.reference)[0])
    held = network.parts["Vm"].start + network.generator_buses[generator]
    answers[0, generator] = np.nan
    answers[1, held] = np.nan
    answers[2, held] = 0.0
    answers[3, generator] = 9999.0  # more than the lines can carry
    repaired = power.repair(instances.questions[:5], answers)
    assert repaired.corrected.tolist() == [False, False, False, False, True]
    np.testing.assert_array_equal(repaired.answers[:4], answers[:4])


def test_states_and_answers_convert_both_ways(power, drawn):
    answers = drawn(power).answers
    state = power.network.state(answers)
    assert isinstance(state, State) and injected(power.network, state.voltage()).shape == state.angle.shape
    np.testing.assert_allclose(power.network.answers(state), answers, rtol=1e-14)


def test_steps_add_up(power, drawn):
    instances = drawn(power)
    names = [field.name for field in power.texts.steps.fields]
    written = power.texts.steps.read(power.write_answers(instances.questions, instances.answers, steps=True))
    active, reactive = np.split(instances.questions, 2, axis=1)
    made = power.texts.answer.rounded(instances.answers)[:, power.network.parts["Pg"]]
    np.testing.assert_allclose(written[:, 0], active.sum(axis=1), atol=1e-9)
    np.testing.assert_allclose(written[:, 1], reactive.sum(axis=1), atol=1e-9)
    losses = written[:, names.index("losses")]
    np.testing.assert_allclose(losses, made.sum(axis=1) - written[:, 0], atol=1e-9)
    assert np.all(losses > 0) and names.index("losses") == 2 + power.network.generators


def test_without_pypower_it_says_what_to_install(monkeypatch):
    network_of.cache_clear()
    monkeypatch.setitem(sys.modules, "pypower.case9", None)
    with pytest.raises(BadInput, match="pypower") as caught:
        network_of("case9")
    assert "recombine[constraints]" in str(caught.value)
