"""Every command gives what it gave when `record` was last run: exit codes, JSON, texts, errors."""

from __future__ import annotations

import json

import pytest
from tests.guards.commands import SCRIPTS, documents_differ, observed_script
from tests.guards.record import read
from tests.guards.state import fingerprint

RECORD = read("commands")


@pytest.mark.parametrize("name", SCRIPTS)
def test_commands_give_what_they_gave(name):
    is_exact = RECORD["fingerprint"] == fingerprint()
    found = json.loads(json.dumps(observed_script(name)))
    assert list(found) == list(RECORD[name])
    wrong = [
        f"{line}: {told}"
        for line in found
        for told in documents_differ(RECORD[name][line], found[line], is_exact=is_exact)
    ]
    assert not wrong, "\n".join(wrong[:30])


def test_record_holds_no_other_scripts():
    assert RECORD.keys() - {"fingerprint"} == SCRIPTS.keys()
