"""The outcome of running a schedule on this machine, beside the prediction."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["LocalReport", "NetworkOutcome"]


@dataclass(frozen=True, slots=True)
class NetworkOutcome:
    """One network of a schedule: its longest latency, predicted and in the best round.

    `difference` is the largest difference of its outputs from the whole network in unoptimised onnxruntime,
    over an output's largest magnitude; None where rounding decides and no tolerance could be stated.
    """

    network: str
    predicted_ms: float
    measured_ms: float
    difference: float | None


@dataclass(frozen=True, slots=True)
class LocalReport:
    """A schedule, executed: outputs equal to a plain run, nothing out of order (else there is no report).

    A plain run has the same pieces in the same engines, in sequence in one process: outputs are equal
    bit for bit. Against the whole network in unoptimised onnxruntime they are within `tolerance`.

    `measured_ms` is the least makespan of `rounds`, `median_ms` the median, `predicted_ms` the simulator's;
    `fps` are frames per second in steady state, of the best round. In `undisturbed` rounds no unit lost its
    core to another process; where there are few, the machine was not free, and the times mean little. After
    Ctrl-C it is `interrupted`: the rounds up to then.
    """

    soc: str
    units: tuple[str, ...]
    networks: tuple[NetworkOutcome, ...]
    frames: int
    rounds: int
    steps: int
    outputs_compared: int
    order_violations: int
    predicted_ms: float
    measured_ms: float
    median_ms: float
    predicted_fps: float
    measured_fps: float
    tolerance: float
    notes: tuple[str, ...] = ()
    interrupted: bool = False
    undisturbed: int = 0

    @property
    def error(self) -> float:
        """The measured makespan relative to the predicted one: measured / predicted - 1."""
        return self.measured_ms / self.predicted_ms - 1.0

    def data(self) -> dict[str, Any]:
        """Return the report, for JSON."""
        return {"format": "onchip.local/1", **asdict(self), "error": self.error}

    def lines(self) -> list[str]:
        """Return the report for people, a fact a line."""
        frames = self.frames * self.rounds
        rows = [
            f"{len(self.networks)} networks on {self.soc}: {frames:,} frames in {self.rounds:,} rounds,"
            f" {self.steps * self.rounds:,} groups run{', interrupted' if self.interrupted else ''}",
            f"makespan: {self.measured_ms:.3f} ms at best, {self.median_ms:.3f} median;"
            f" {self.predicted_ms:.3f} predicted ({self.error:+.1%});"
            f" undisturbed by other processes: {self.undisturbed:,} rounds",
        ]
        if self.frames > 1:
            rows.append(f"steady state: {self.measured_fps:.2f} frames/s; {self.predicted_fps:.2f} predicted")
        for network in self.networks:
            near = (
                "not compared with other engines"
                if network.difference is None
                else f"within {network.difference:.2g} of the whole network, unoptimised"
            )
            rows.append(
                f"{_printable(network.network)}: latency {network.measured_ms:.3f} ms,"
                f" {network.predicted_ms:.3f} predicted; outputs {near}"
            )
        rows.append(
            f"{self.outputs_compared:,} outputs bit for bit as in a plain run;"
            f" {self.order_violations} steps out of order"
        )
        return [*rows, *self.units, *self.notes]


def _printable(name: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in name)
