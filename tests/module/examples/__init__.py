"""Sixty worked scenarios and their plans, made by an independent slow implementation on the real 1.13 code."""

import gzip
import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def scenario_lines() -> list[bytes]:
    return gzip.decompress((HERE / "scenarios.jsonl.gz").read_bytes()).splitlines()


def plans() -> list[Any]:
    return [json.loads(line) for line in gzip.decompress((HERE / "plans.jsonl.gz").read_bytes()).splitlines()]
