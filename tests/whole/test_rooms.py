"""Every line has a room, and imports run downwards, wherever they stand in a file."""

import pytest
from rooms import ROOMS
from sources import MODULES, ROOT, needs

STRANGERS = {"transformers": {"mechanisms"}, "mechanisms": {"transformers"}, "datasets": set(ROOMS[1:])}


def room_of(module):
    return module.split(".")[1]


def test_every_file_is_in_a_room():
    found = {path.stem for path in ROOT.iterdir() if path.name != "__pycache__"} - {"__init__", "py"}
    assert found == set(ROOMS)
    assert len(ROOMS) <= 16


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_knows_only_those_below(room):
    known = {*ROOMS[: ROOMS.index(room) + 1]} - STRANGERS.get(room, set()) | {room}
    for module in (name for name in MODULES if name != "ppdp" and room_of(name) == room):
        above = {name for name in needs(module, everywhere=True) if room_of(name) not in known}
        assert not above, f"{module} imports {sorted(above)}"


def test_no_two_files_import_each_other_in_a_circle():
    """Files can be put in an order in which each needs only earlier ones."""
    waiting = {module: needs(module, everywhere=True) for module in MODULES if module != "ppdp"}
    while waiting:
        ready = [module for module, wanted in waiting.items() if not wanted & set(waiting)]
        assert ready, f"imports run in a circle among {sorted(waiting)}"
        for module in ready:
            del waiting[module]


def test_verification_knows_nothing_of_what_made_the_certificate():
    """Also not through what it imports."""
    seen, waiting = set(), ["ppdp.certificate.replay.verify"]
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting += needs(module, everywhere=True)
    assert {room_of(name) for name in seen} == {"exceptions", "core", "privacy", "bounds", "data", "certificate"}
