#!/usr/bin/env python3
"""Compares what TensorBoard's own reader shows of a run with its metrics.jsonl, curve by curve.

usage: read_tensorboard.py RUN
Ends with 0 if all curves are equal, 1 if one is not, 77 if the Python package tensorboard is not installed (a skip).
"""
import json
import math
import struct
import sys


def as_float(value):
    """The value as an event file holds it: 4 bytes; null stands for NaN."""
    return math.nan if value is None else struct.unpack("<f", struct.pack("<f", value))[0]


def curves_of(run):
    """Tag -> {step: value}, from metrics.jsonl. A step that is there twice is an error."""
    fields = {"train/loss": "loss", "train/grad_norm": "grad_norm", "train/lr": "lr", "speed/step_ms": "step_ms",
              "speed/tokens_per_second": "tokens_per_second", "speed/peak_share": "peak_share", "bytes/sync": "sync_bytes",
              "bytes/replica": "replica_bytes", "bytes/control": "control_bytes"}
    curves = {tag: {} for tag in fields}
    curves["eval/val_loss"] = {}
    with open(run + "/metrics.jsonl", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            if record["kind"] == "step":
                for tag, field in fields.items():
                    assert record["step"] not in curves[tag], "step %d is there twice" % record["step"]
                    curves[tag][record["step"]] = as_float(record[field])
            elif record["kind"] == "eval":
                curves["eval/val_loss"][record["step"]] = as_float(record["val_loss"])
    return curves


def main(run):
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError:
        print("skipped: the Python package tensorboard is not installed")
        return 77
    reader = EventAccumulator(run + "/tensorboard", size_guidance={"scalars": 0})
    reader.Reload()
    wrong = 0
    for tag, curve in curves_of(run).items():
        seen = [(event.step, event.value) for event in reader.Scalars(tag)] if tag in reader.Tags()["scalars"] else []
        same = [step for step, _ in seen] == sorted(curve) and all(
            value == curve[step] or (math.isnan(value) and math.isnan(curve[step])) for step, value in seen)
        wrong += not same
        ends = "  %g at step %d ... %g at step %d" % (seen[0][1], seen[0][0], seen[-1][1], seen[-1][0]) if seen else ""
        print("curve %-24s %6d points  %s%s" % (tag, len(seen), "equal" if same else "DIFFERENT from metrics.jsonl", ends))
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
