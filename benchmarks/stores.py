"""A store of 10,000 runs: listing, and filters and groups by the index, against reading the files one by one."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from pathlib import Path

from measuring import row, seconds
from recombine import LocalEngine, RunConfig, Seeds, Store, SubsetSpace, load_store
from recombine.models import MLP
from recombine.probes import Scores
from recombine.recipes import Fast
from recombine.store.files import sealed
from recombine.store.index.file import NAME, read

RUNS = 10_000


def stores() -> None:
    """Copies of one small run under other names, as a sweep would leave them."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store")
        _fill(store)
        begin = time.perf_counter()
        found = store.runs_df()
        listed = time.perf_counter() - begin
        assert len(found) == RUNS
        begin = time.perf_counter()
        found.groupby("model.width")["r2_held_out"].mean()
        grouped = listed + time.perf_counter() - begin
        begin = time.perf_counter()
        _one_by_one(store)
        slow = time.perf_counter() - begin
        row(
            f"store of {RUNS:,} runs: listing",
            f"{slow / listed:.1f} x as fast as reading file by file",
            f"{listed:.1f} s against {slow:.1f} s; with a grouped query {grouped:.1f} s",
        )
        _index(store.path, slow)


def _index(path: Path, slow: float) -> None:
    """What `recombine ls` asks of a store whose index is there; each time by a store that was opened anew."""
    begin = time.perf_counter()
    assert len(load_store(path).index.refresh().new) == RUNS
    first = time.perf_counter() - begin
    _settle(path)

    def filtered() -> None:
        index = load_store(path).index
        found = index.frame(where="width >= 8 and family = 'hyperteacher'", sort="-score_held_out", limit=50)
        assert len(found) == 50

    def grouped() -> None:
        assert load_store(path).index.frame(group=("family", "width"))["runs"].tolist() == [RUNS]

    kept = load_store(path).index
    times = {
        "filter and sort": seconds(filtered),
        "group": seconds(grouped),
        "look for new runs": seconds(kept.refresh),
        "another filter without a look": seconds(lambda: kept.frame(where="init < 100", columns="run", refresh=False)),
    }
    row(
        f"store of {RUNS:,} runs: index",
        f"{slow / times['filter and sort']:.0f} x as fast as reading file by file",
        "; ".join(f"{name} {value:.3f} s" for name, value in times.items()) + f"; made once in {first:.1f} s",
    )


def _settle(path: Path) -> None:
    """Wait until no file is so new that it is read again, and keep that."""
    while load_store(path).index.refresh() or _unsettled(path):
        time.sleep(1)


def _unsettled(path: Path) -> bool:
    kept = read(path / NAME)
    return kept is None or None in kept[0].column("#stamp").to_pylist()


def _fill(store: Store) -> None:
    config = RunConfig(
        space=SubsetSpace(modules=6, max_active=2),
        model=MLP(width=8, depth=1),
        recipe=Fast(steps=2, tasks=4),
        validation_tasks=4,
    )
    LocalEngine().run(store, [config], [Scores()])
    runs = store.path / "runs"
    first = runs / config.run_id
    manifest = json.loads((first / "manifest.json").read_text())
    for number in range(1, RUNS):
        other = config.model_copy(update={"seeds": Seeds.replicate(number)})
        place = runs / other.run_id
        shutil.copytree(first, place)
        text = json.dumps(manifest).replace(config.run_id, other.run_id)
        changed = json.loads(text) | {"config": other.dump()}
        (place / "manifest.json").write_text(json.dumps(sealed(changed)))


def _one_by_one(store: Store) -> list[dict[str, object]]:
    import pyarrow.parquet as parquet

    found = []
    for place in sorted((store.path / "runs").iterdir()):
        record = json.loads((place / "manifest.json").read_text())
        for path in (place / "measurements").glob("*.json"):
            record |= json.loads(path.read_text())
        record["curve"] = parquet.read_table(place / "curves.parquet").to_pylist()
        found.append(record)
    return found
