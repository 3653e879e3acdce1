"""TensorBoard: files of events that `tensorboard --logdir` shows."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from recombine.trackers.base import TrackedRun, Tracker, Values, numbers

if TYPE_CHECKING:
    import pandas as pd


class TensorBoardRun(TrackedRun):
    """One folder of events."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        from tensorboardX import SummaryWriter

        self._writer = SummaryWriter(str(folder))
        if settings:
            text = json.dumps(dict(settings), indent=2, default=str)
            self._writer.add_text("settings", f"```\n{text}\n```")

    def curve(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def summary(self, step: int, values: Values) -> None:
        for name, value in numbers(values).items():
            self._writer.add_scalar(f"summary/{name}", value, step)

    def table(self, name: str, frame: pd.DataFrame) -> None:
        self._writer.add_text(name, _markdown(frame))

    def figure(self, name: str, path: Path) -> None:
        from tensorboardX.proto.summary_pb2 import Summary  # pyright: ignore[reportAttributeAccessIssue]

        # The file as it stands: no library needs to decode it. A PNG has its size behind the name of the first chunk.
        png = path.read_bytes()
        width, height = struct.unpack(">II", png[16:24])
        image = Summary.Image(width=width, height=height, colorspace=4, encoded_image_string=png)
        assert self._writer.file_writer is not None
        self._writer.file_writer.add_summary(Summary(value=[Summary.Value(tag=f"figures/{name}", image=image)]), 0)

    def close(self) -> None:
        self._writer.close()


def _markdown(frame: pd.DataFrame) -> str:
    rows = [list(frame.columns), ["---"] * len(frame.columns), *frame.itertuples(index=False)]
    return "\n".join(f"| {' | '.join(str(value).replace('|', '/') for value in row)} |" for row in rows)


class TensorBoard(Tracker):
    """TensorBoard: one folder of events per run, in a folder per study or sweep."""

    kind: Literal["tensorboard"] = "tensorboard"
    package: ClassVar[str] = "tensorboardX"
    install: ClassVar[str] = "recombine[tensorboard]"

    folder: str = "tensorboard"
    """Where the events go; `tensorboard --logdir` takes it."""

    def open(self, group: str, name: str, settings: Mapping[str, Any]) -> TensorBoardRun:
        return TensorBoardRun(Path(self.folder) / group / name, settings)
