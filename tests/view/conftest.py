"""What the tests of the viewer share: a store made by hand (nothing is trained), and the server on a free port."""

from __future__ import annotations

import dataclasses
import http.client
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

RESULTS = Path(__file__).resolve().parents[2] / "docs/results"
TOKEN = "the-token-of-the-tests"


@dataclasses.dataclass
class Client:
    """Requests to a server, with the headers that a test wants."""

    port: int
    viewer: Any

    @property
    def link(self) -> str:
        return f"http://127.0.0.1:{self.port}/?token={TOKEN}"

    def page(self, where: str) -> str:
        return f"http://127.0.0.1:{self.port}/#/{where}"

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str | None
    ) -> tuple[int, dict[str, str], bytes]:
        """The status, headers and body of an answer. By default a script's request; None leaves a header out."""
        given = {"Host": f"127.0.0.1:{self.port}", "Authorization": f"Bearer {TOKEN}"}
        given |= {name.replace("_", "-"): text for name, text in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, text in given.items():
                if text is not None:
                    connection.putheader(name, text)
            if body is not None and "Content-Length" not in given:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, {name.lower(): text for name, text in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        status, _, body = self.ask("GET", f"/api/{path}")
        assert status == 200, body
        return json.loads(body)

    def refused(self, method: str, path: str, document: Any = None) -> tuple[int, dict[str, Any]]:
        """The status and the error of a request that is refused."""
        body = None if document is None else json.dumps(document).encode()
        status, _, answer = self.ask(method, f"/api/{path}", body)
        assert status >= 400, answer
        return status, json.loads(answer)

    def post(self, path: str, document: Any) -> Any:
        status, _, body = self.ask("POST", f"/api/{path}", json.dumps(document).encode())
        assert status == 200, body
        return json.loads(body)


@pytest.fixture(scope="session")
def serving() -> Iterator[Callable[..., Client]]:
    """Makes a server of a store."""
    import uvicorn

    from recombine.view.serve import listen
    from recombine.view.server import make_app

    servers = []

    def make(store: Path, *results: Path) -> Client:
        listener = listen(0)
        port = listener.getsockname()[1]
        app = make_app(store, results, TOKEN, port)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
        server.install_signal_handlers = lambda: None  # type: ignore[method-assign]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        servers.append((server, thread, listener))
        return Client(port, app.state.viewer)

    yield make
    for server, thread, listener in servers:
        server.should_exit = True
        thread.join(30)
        listener.close()


HELD_OUT = {20: 0.2, 120: 0.6}
"""The score of the runs by their number of training combinations."""


@pytest.fixture(scope="session")
def study_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of the study data-scaling at smoke size, as if it had run: weights, curves, tables and effects are made up."""
    import jax

    from recombine.component import find
    from recombine.design import Effect, Study
    from recombine.design.run import record_name, request_of
    from recombine.probes import Decodability, Scores
    from recombine.store import Store
    from recombine.store.provenance import provenance
    from recombine.store.requests import remember
    from recombine.training import Outcome, Setting

    store = Store(tmp_path_factory.mktemp("view") / "runs")
    kind = find("studies", "data-scaling")
    assert issubclass(kind, Study)
    study = kind.profile("smoke")
    design = study.design
    remember(store, request_of(study, "smoke"))
    network = jax.tree.map(lambda leaf: leaf + 0.5, Setting(design.runs[0][0]).network())
    for config, labels in design.runs:
        score = HELD_OUT.get(labels["number"], 0.4) + 0.01 * (labels["replicate"] % 2)
        curves = [
            {"step": step, "loss": 1.0 / step, "score_in": 0.005 * step, "score_held_out": score * step / 100}
            for step in (25, 50, 75, 100)
        ]
        ending = {"steps": 100, "seconds": 1.5, "compile_seconds": 0.5, "reached": None, "failed_at": None}
        store.commit(Outcome(config=config, network=network, curves=curves, stack_size=1, **ending))
        for measurement in design.measurements:
            made = _scores(score) if isinstance(measurement, Scores) else None
            made = _decodability(score) if isinstance(measurement, Decodability) else made
            if made is not None:
                store.add_measurement(config.run_id, measurement, made)
    effects = [
        Effect(claim.of(study.kind), np.full((len(claim.test.scales) or 1, 2), 0.3 + 0.01 * np.arange(2)).squeeze())
        for claim in design.claims
    ]
    record = {"study": study.kind, "profile": "smoke", "overrides": [], "config": study.model_dump(mode="json")}
    record |= {"runs": design.run_ids, "effects": [effect.record() for effect in effects], "provenance": provenance()}
    store.write_study(record_name(study, "smoke"), record)
    return store.path


def _scores(score: float) -> Any:
    from recombine.probes.base import Measured

    records = []
    for first in range(4):
        for second in range(first + 1, 5):
            where = "trained" if (first + second) % 2 else "held_out"
            error = 1 - (0.9 if where == "trained" else score)
            place = {"combination": f"{first} + {second}", "constituents": [first, second], "draw": 0, "region": where}
            numbers = {"agreement": 1.0, "error": error, "power": 1.0, "ratio": 0.5, "spread": 1.0}
            records.append(place | {"stratum": "all_pairs_met"} | numbers)
    return Measured.from_records({"r2_in": 0.9, "r2_held_out": score}, records)


def _decodability(score: float) -> Any:
    from recombine.probes.base import Measured

    records = [
        {"site": site, "network": network, "form": "intrinsic", "strength": "chosen", "value": 1.0}
        | {"r2": score if network == "trained" else 0.1, "control": 0.05, "selectivity": 0.2}
        for site in ("encoding", "hidden 1", "hidden 2")
        for network in ("trained", "untrained")
    ]
    return Measured.from_records({"intrinsic": score, "selectivity": 0.2}, records)


@pytest.fixture(scope="session")
def client(serving: Callable[..., Client], study_store: Path) -> Client:
    """A server of the store, with the exported results of the project."""
    return serving(study_store, RESULTS)


@pytest.fixture(scope="session")
def many_runs(study_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of 10,000 runs: copies of one run under other names, with other widths and seeds."""
    import os
    import shutil

    from recombine.store import load_store
    from recombine.store.files import sealed
    from recombine.training import Seeds

    run = next(load_store(study_store).runs())
    place = tmp_path_factory.mktemp("many") / "runs"
    shutil.copytree(study_store, place, ignore=shutil.ignore_patterns("runs", "studies", "requests", "index*"))
    (place / "runs").mkdir()
    for number in range(10_000):
        config = run.config.replace(width=(8, 16, 32, 64, 128)[number % 5])
        config = config.model_copy(update={"seeds": Seeds.replicate(number)})
        target = place / "runs" / config.run_id
        (target / "measurements").mkdir(parents=True)
        for file in (path for path in run.folder.rglob("*") if path.is_file() and path.name != "manifest.json"):
            os.link(file, target / file.relative_to(run.folder))
        manifest = run.manifest | {"run": config.run_id, "config": config.dump()}
        (target / "manifest.json").write_text(json.dumps(sealed(manifest)))
    return place
