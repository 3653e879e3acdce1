"""k-coverage from examples alone, against a graph of all inputs that is built pair by pair."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator, Sequence

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.supports.coverage_graph import SEEN, CoverageGraph, cut as coverage_cut, product as coverage_product
from recombine.supports.coverage_graph.next_examples import next_examples

Input = tuple[int, ...]
Examples = dict[Input, int]
CUTS = {
    2: [[(0,)], [(1,)], [(0,), (1,)]],
    3: [[(0, 1)], [(1,)], [(0, 1), (1, 2)], [(0,), (1,), (2,)]],
    4: [[(0, 1), (0, 1, 2)], [(1, 2)], [(0, 1, 2)]],
}


def parted(one: Input, fragment: Sequence[int]) -> tuple[Input, Input]:
    return tuple(one[place] for place in fragment), tuple(
        token for place, token in enumerate(one) if place not in fragment
    )


def equivalents(examples: Examples, fragment: Sequence[int]) -> dict[tuple[Input, Input], int]:
    """Pairs of fragments that agree on all shared contexts, and how many these are: by the definition."""
    behaviour: dict[Input, Examples] = {}
    for one, outcome in examples.items():
        own, context = parted(one, fragment)
        behaviour.setdefault(own, {})[context] = outcome
    found = {}
    for a, b in itertools.permutations(behaviour, 2):
        shared = behaviour[a].keys() & behaviour[b].keys()
        if shared and all(behaviour[a][c] == behaviour[b][c] for c in shared):
            found[a, b] = len(shared)
    return found


def swaps(examples: Examples, fragments: Sequence[Sequence[int]], inputs: Sequence[Input], k: int) -> nx.Graph:
    """All inputs that the tokens of examples and inputs can make; links are swaps at k."""
    tokens = [sorted({one[place] for one in (*examples, *inputs)}) for place in range(len(inputs[0]))]
    graph = nx.Graph()
    graph.add_nodes_from(itertools.product(*tokens))
    for fragment in fragments:
        alike = equivalents(examples, fragment)
        whole = {parted(one, fragment): one for one in graph.nodes}
        contexts = {context for _, context in whole}
        for (a, b), shared in alike.items():
            if shared >= k:
                graph.add_edges_from((whole[a, c], whole[b, c]) for c in contexts)
    return graph


def cutoffs(examples: Examples, fragments: Sequence[Sequence[int]], inputs: Sequence[Input]) -> list[int]:
    """Cutoffs by the definition: one graph for each k, components by networkx."""
    most = max((n for one in fragments for n in equivalents(examples, one).values()), default=0)
    found = dict.fromkeys(inputs, 0)
    for k in range(1, most + 1):
        for group in nx.connected_components(swaps(examples, fragments, inputs, k)):
            if group & examples.keys():
                found |= {one: k for one in group if one in found}
    return [SEEN if one in examples else found[one] for one in inputs]


def built(examples: Examples, fragments: Sequence[Sequence[int]]) -> CoverageGraph:
    return CoverageGraph(np.array([*examples]), np.array([*examples.values()]), fragments)


@st.composite
def worlds(draw: st.DrawFn, several: bool = True) -> tuple[Examples, list[tuple[int, ...]], list[Input]]:
    """Examples, cuts, and inputs to ask for: those of the examples' tokens and of one token more."""
    places = draw(st.integers(2, 4))
    cuts = draw(st.sampled_from([one for one in CUTS[places] if several or len(one) == 1]))
    size = 2 if places == 4 else 3
    some = draw(st.lists(st.tuples(*[st.integers(0, size - 1)] * places), min_size=1, max_size=24, unique=True))
    # Few outcomes and many examples: agreement by chance, contradictions and chains all occur.
    outcomes = draw(st.lists(st.integers(0, 1), min_size=len(some), max_size=len(some)))
    asked = [*itertools.product(range(size), repeat=places), *[(size,) * places, (0,) * (places - 1) + (size,)]]
    return dict(zip(some, outcomes, strict=True)), cuts, asked


@settings(max_examples=120, deadline=None)
@given(worlds())
def test_cutoffs_are_those_of_the_definition(world):
    examples, cuts, asked = world
    assert built(examples, cuts).cutoffs(np.array(asked)).tolist() == cutoffs(examples, cuts, asked)


@settings(max_examples=60, deadline=None)
@given(worlds(several=False), st.integers(1, 4))
def test_classes_are_connected_components(world, k):
    examples, cuts, _ = world
    graph = built(examples, cuts)
    (cut,) = graph.cuts
    alike = nx.Graph()
    names = [tuple(one) for one in _tokens(graph, cut)]
    alike.add_nodes_from(names)
    pairs = equivalents(examples, cuts[0])
    alike.add_edges_from(pair for pair, shared in pairs.items() if shared >= k)
    labels = dict(zip(names, cut.classes(k).tolist(), strict=True))
    found = {frozenset(name for name in names if labels[name] == one) for one in labels.values()}
    assert found == {frozenset(group) for group in nx.connected_components(alike)}
    most = [max((n for (a, _), n in pairs.items() if a == name), default=0) for name in names]
    assert cut.evidence().tolist() == most


def _tokens(graph: CoverageGraph, cut: coverage_cut.Cut) -> Iterator[list[int]]:
    for codes in cut.fragments.tolist():
        yield [int(graph.tokens[place][code]) for place, code in zip(cut.fragment, codes, strict=True)]


@settings(max_examples=60, deadline=None)
@given(worlds())
def test_an_explanation_is_a_shortest_chain_that_holds(world):
    examples, cuts, asked = world
    graph = built(examples, cuts)
    for one in asked[:: max(1, len(asked) // 6)]:
        found = graph.explain(one)
        assert found.cutoff == graph.cutoffs(np.array([one]))[0]
        if found.cutoff == 0:
            assert found.trained is None and found.outcome is None and found.swaps == ()
            continue
        at = list(one)
        for swap in found.swaps:
            assert [at[place] for place in swap.positions] == list(swap.before)
            shared = equivalents(examples, swap.positions)[swap.before, swap.after]
            assert shared == swap.shared >= found.cutoff
            for place, token in zip(swap.positions, swap.after, strict=True):
                at[place] = token
        assert tuple(at) == found.trained and found.outcome == examples[tuple(at)]
        if found.cutoff == SEEN:
            assert found.swaps == ()
        else:
            lengths = nx.single_source_shortest_path_length(swaps(examples, cuts, asked, found.cutoff), one)
            assert len(found.swaps) == min(lengths[end] for end in examples if end in lengths)


@settings(max_examples=25, deadline=None)
@given(worlds(), st.integers(1, 3))
def test_what_to_collect_covers_what_it_claims(world, k):
    examples, cuts, asked = world
    before = built(examples, cuts).cutoffs(np.array(asked))
    low = [one for one, cutoff in zip(asked, before.tolist(), strict=True) if 0 <= cutoff < k]
    found = next_examples(built(examples, cuts), np.array(low or np.zeros((0, len(asked[0])), int)), k=k, number=4)
    known = [one for one in found if all(one.example[p] in {e[p] for e in examples} for p in range(len(asked[0])))]
    assert bool(found) == bool(low)
    gains = [one.at_best for one in found]
    assert all(first <= gains[0] for first in gains)
    for one in found if len(cuts) == 1 else known:
        counts = {}
        for outcome in (*{*examples.values()}, 99):
            after = built(examples | {one.example: outcome}, cuts).cutoffs(np.array(asked))
            # Nothing is lost, and what is gained lies between the two numbers.
            assert not ((before >= k) & (after < k) & (after != SEEN)).any()
            mine = dict(zip(asked, ((after >= k) | (after == SEEN)).tolist(), strict=True))
            counts[outcome] = sum(mine[other] for other in low)
        assert counts[99] == one.sure == min(counts.values())
        if len(cuts) == 1:
            assert one.at_best == max(counts.values())
            assert one.outcome is None or counts[one.outcome] == one.at_best


def test_the_greedy_choice_covers_everything_in_the_end():
    examples = {(a, c): (a * c) % 3 for a in range(4) for c in range(5) if (a + c) % 3}
    graph = built(examples, [(0,)])
    asked, _ = graph.untrained(100)
    low = asked[graph.cutoffs(asked) == 0]
    found = next_examples(graph, low, number=100)
    assert len({one.example for one in found}) == len(found) <= len(low)


def test_collecting_what_is_advised_covers_more_than_collecting_at_random():
    left = {}
    for advised in (True, False):
        inputs, outcomes, _ = two_hop(10, 1000, 7)
        known = np.arange(1000) < 250
        rng = np.random.default_rng(0)
        for _ in range(3):
            graph = CoverageGraph(inputs[known], outcomes[known], [(0, 1)])
            found = graph.cutoffs(inputs)
            low = inputs[(found != SEEN) & (found < 2)]
            chosen = next_examples(graph, low, k=2, number=5) if advised else ()
            new = [one.example for one in chosen] or [tuple(one) for one in rng.permutation(low)[:5].tolist()]
            known |= (inputs[:, None] == np.array(new)).all(axis=2).any(axis=1)
        found = CoverageGraph(inputs[known], outcomes[known], [(0, 1)]).cutoffs(inputs)
        left[advised] = int(((found != SEEN) & (found < 2)).sum())
    assert known.sum() == 250 + 15 and left[True] < left[False]


def two_hop(n: int, number: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random functions f1 and f2, and triples; the bridge is returned for the tests only."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, n, (2, n, n))
    flat = rng.choice(n**3, number, replace=False)
    inputs = np.stack([flat // n**2, flat // n % n, flat % n], axis=1)
    bridge = first[inputs[:, 0], inputs[:, 1]]
    return inputs, second[bridge, inputs[:, 2]], bridge


def test_the_same_bridge_is_never_contradicted():
    inputs, outcomes, bridge = two_hop(8, 300, 0)
    graph = CoverageGraph(inputs, outcomes, [(0, 1)])
    (cut,) = graph.cuts
    of_fragment = np.empty(len(cut.fragments), dtype=np.int64)
    _, c = cut.numbers(graph.codes(inputs))
    a, _ = cut.numbers(graph.codes(inputs))
    of_fragment[a] = bridge
    assert (c >= 0).all()
    assert (cut.behaviour(np.arange(len(of_fragment)))[of_fragment[:, None] == of_fragment] >= 0).all()


def test_more_evidence_is_more_often_right():
    """What a chain says of an input: at a large cutoff the truth, at 1 often chance."""
    n = 12
    inputs, outcomes, _ = two_hop(n, n**3, 3)
    rng = np.random.default_rng(0)
    train = rng.random(len(inputs)) < 0.45
    graph = CoverageGraph(inputs[train], outcomes[train], [(0, 1)])
    held_out, truth = inputs[~train], outcomes[~train]
    found = graph.cutoffs(held_out)
    right = {}
    for name, chosen in (("low", found == found[found > 0].min()), ("high", found >= 4)):
        places = np.flatnonzero(chosen)[:40]
        assert len(places)
        right[name] = np.mean([graph.explain(held_out[p].tolist()).outcome == truth[p] for p in places])
    assert right["high"] > 0.9 and right["high"] >= right["low"]


def test_non_tree_fragments_join_only_with_the_same_second_token():
    """t = f2(f1(x1, x2), x2, x3): with all examples there, alike is what has the same bridge and the same x2."""
    rng = np.random.default_rng(1)
    n = 5
    first, second = rng.integers(0, n, (n, n)), rng.integers(0, 1000, (n, n, n))
    inputs = np.array([*itertools.product(range(n), repeat=3)])
    x1, x2, x3 = inputs.T
    graph = CoverageGraph(inputs, second[first[x1, x2], x2, x3], [(0, 1)])
    (cut,) = graph.cuts
    classes = cut.classes(n)
    a, b = cut.fragments[:, 0], cut.fragments[:, 1]
    truth = first[a, b] * n + b
    assert (np.equal.outer(classes, classes) == np.equal.outer(truth, truth)).all()


def test_three_hops_mix_swaps_of_both_levels():
    """(0, 0) and (1, 1) are alike as beginnings, (1, 1, 0) and (2, 2, 2) as longer ones: one swap of each."""
    examples = {(0, 0, 1, c): c for c in (0, 1)} | {(1, 1, 1, c): c for c in (0, 1)}
    examples |= {(1, 1, 0, 0): 7, (2, 2, 2, 0): 7, (2, 2, 2, 1): 8}
    asked = np.array([[0, 0, 0, 1]])
    assert built(examples, [(0, 1)]).cutoffs(asked).tolist() == [0]
    assert built(examples, [(0, 1, 2)]).cutoffs(asked).tolist() == [0]
    both = built(examples, [(0, 1), (0, 1, 2)])
    assert both.cutoffs(asked).tolist() == [1]
    chain = both.explain([0, 0, 0, 1])
    assert [(one.before, one.after, one.shared) for one in chain.swaps] == [
        ((0, 0), (1, 1), 2),
        ((1, 1, 0), (2, 2, 2), 1),
    ]
    assert chain.trained == (2, 2, 2, 1) and chain.outcome == 8


@pytest.mark.parametrize("block", [1, 7, 1000])
def test_blocks_change_nothing(monkeypatch, block):
    inputs, outcomes, _ = two_hop(9, 350, 5)
    whole = CoverageGraph(inputs, outcomes, [(0, 1)])
    asked, total = whole.untrained(10**6)
    monkeypatch.setattr(coverage_cut, "BLOCK", block)
    shares: list[float] = []
    parts = CoverageGraph(inputs, outcomes, [(0, 1)], shares.append)
    assert (parts.cutoffs(asked) == whole.cutoffs(asked)).all() and total == len(asked)
    assert shares == sorted(shares) and shares[-1] == 1.0


def test_untrained_inputs():
    inputs, outcomes, _ = two_hop(6, 60, 2)
    graph = CoverageGraph(inputs, outcomes, [(0, 1)])
    fragments = {tuple(one) for one in inputs[:, :2].tolist()}
    everything = {(*a, c) for a in fragments for c in {*inputs[:, 2].tolist()}}
    rest = everything - {tuple(one) for one in inputs.tolist()}
    asked, total = graph.untrained(10**6)
    assert {tuple(one) for one in asked.tolist()} == rest and total == len(rest) == len(asked)
    for most in (1, 7, 50):
        some, total = graph.untrained(most)
        drawn = {tuple(one) for one in some.tolist()}
        assert drawn <= rest and len(drawn) == most and total == len(rest)
    several = CoverageGraph(inputs, outcomes, [(0, 1), (1, 2)])
    asked, total = several.untrained(10**6)
    assert total == len(asked) == 6**3 - 60


def test_repeats_and_any_tokens():
    """Examples may come twice, and tokens be any whole numbers."""
    inputs, outcomes, _ = two_hop(6, 80, 4)
    graph = CoverageGraph(inputs, outcomes, [(0, 1)])
    asked, _ = graph.untrained(100)
    strange = CoverageGraph(
        np.concatenate([inputs, inputs[:9]]) * 10**12 - 5, np.concatenate([outcomes, outcomes[:9]]) - 3, [(0, 1)]
    )
    assert (strange.cutoffs(asked * 10**12 - 5) == graph.cutoffs(asked)).all()
    assert (strange.cutoffs(inputs * 10**12 - 5) == SEEN).all()


def test_contradictions_are_refused():
    with pytest.raises(BadInput, match="Examples 0 and 2 have the same input"):
        CoverageGraph(np.array([[1, 2], [3, 4], [1, 2]]), np.array([5, 5, 6]), [(0,)])


@pytest.mark.parametrize("fragments", [[], [()], [(0, 1, 2)], [(0, 0)], [(3,)], [(0, 1), (1, 0)]])
def test_bad_fragments(fragments):
    with pytest.raises(BadInput, match="ragment"):
        CoverageGraph(np.zeros((1, 3), int), np.zeros(1, int), fragments)


def test_too_many_inputs_for_several_cuts(monkeypatch):
    monkeypatch.setattr(coverage_product, "LISTED", 100)
    inputs, outcomes, _ = two_hop(6, 80, 4)
    with pytest.raises(BadInput, match="216 inputs"):
        CoverageGraph(inputs, outcomes, [(0, 1), (1, 2)])


def test_no_jax():
    program = "import sys, recombine.supports.coverage_graph.next_examples; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
