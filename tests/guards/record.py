"""Rewrite the record of what every learner and every command gives: ``python -m tests.guards.record``.

With ``learners`` or ``commands`` after it, only that file. It is for a deliberate change of behaviour alone, which the
CHANGELOG lists. Look at the difference before it is committed: ``parts`` tell which attributes have changed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.guards.state import PART, fingerprint, summaries_differ

FOLDER = Path(__file__).parent
_ABSENT = "-" * PART


def packed(cases: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The cases of a learner with the names of the attributes written once."""
    names = sorted({name for case in cases.values() for name in case.get("parts", ())})
    rows = {}
    for key, case in cases.items():
        parts = case.get("parts")
        rows[key] = case if parts is None else {**case, "parts": "".join(parts.get(name, _ABSENT) for name in names)}
    return {"names": names, **rows}


def unpacked(record: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What `packed` was given."""
    cases = {}
    for key, case in record.items():
        if key == "names":
            continue
        if "parts" in case:
            parts = [case["parts"][at : at + PART] for at in range(0, len(case["parts"]), PART)]
            named = zip(record["names"], parts, strict=True)
            case = {**case, "parts": {name: part for name, part in named if part != _ABSENT}}
        cases[key] = case
    return cases


def differences(recorded: dict[str, Any], found: dict[str, Any], *, is_exact: bool) -> list[str]:
    """What one case gives otherwise than it did."""
    if ("error" in recorded) != ("error" in found):
        return [f"was {recorded}, is {found}"]
    if "error" in recorded:
        told = [f"was {recorded}, is {found}"] if recorded != found else []
        return told if is_exact else summaries_differ(recorded, found)
    wrong = summaries_differ(recorded["summary"], found["summary"])
    was, now = recorded["parts"], found["parts"]
    if is_exact and (recorded["digest"] != found["digest"] or was != now):
        changed = sorted(name for name in was.keys() | now.keys() if was.get(name) != now.get(name))
        wrong.append(f"other bits in {', '.join(changed) or 'the order or the names of attributes'}")
    return wrong


def read(name: str) -> dict[str, Any]:
    """The record of ``learners`` or ``commands``."""
    return dict(json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))


def write(name: str, record: Mapping[str, Any]) -> None:
    """Write a file with one line for each case."""
    lines = [f'"fingerprint": {_line(fingerprint())}']
    for key, value in record.items():
        rows = ",\n".join(f"  {_line(case)}: {_line(told)}" for case, told in value.items())
        lines.append(f"{_line(key)}: {{\n{rows}}}")
    (FOLDER / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def main(wanted: list[str]) -> None:
    if not wanted or "learners" in wanted:
        from tests.guards.learners import LEARNERS, observed

        write("learners", {name: packed(observed(name)) for name in LEARNERS})
    if not wanted or "commands" in wanted:
        from tests.guards.commands import observed_commands

        write("commands", observed_commands())


if __name__ == "__main__":
    main(sys.argv[1:])
