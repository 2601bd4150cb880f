"""Names that look the same are the same."""

import pytest

from ppdp.core.checks import columns_of
from ppdp.core.names import public_name, repeated
from ppdp.exceptions import InvalidParameter
from ppdp.privacy.ledger.ledger import Ledger

CAFE = "Caf\u00e9 2024"


@pytest.mark.parametrize(
    "twin",
    [
        "Cafe\u0301 2024",
        " Caf\u00e9  2024 ",
        "Caf\u00e9\u00a02024",
        "Caf\u200b\u00e9 2024",
        "\ufeffCaf\u00e9\t2024",
        "Caf\u00e9 ２０２４",
        "Caf\u00e9 2024\ufe0f",
        "Caf\u00e9\u034f\u2800 2024\u3164",
    ],
)
def test_look_alikes_are_one_name_and_one_account(twin):
    assert public_name("dataset", twin) == CAFE
    ledger = Ledger()
    ledger.reserve(mu=0.3, dataset=CAFE)
    ledger.reserve(mu=0.4, dataset=twin)
    assert {entry.dataset for entry in ledger.entries()} == {CAFE}
    assert len(ledger.entries(twin)) == 2
    assert ledger.spent(twin).mu == pytest.approx(0.5)


def test_look_alike_blocks_are_one_block():
    ledger = Ledger()
    ledger.block("2020").reserve(mu=0.3)
    ledger.block("2020\u200b ").reserve(mu=0.4)
    assert {entry.block for entry in ledger.entries()} == {"2020"}


@pytest.mark.parametrize("nothing", ["", " ", "\u200b", "\u2800", "half \ud800", 7, None])
def test_what_cannot_be_seen_or_written_is_no_name(nothing):
    with pytest.raises(InvalidParameter):
        public_name("dataset", nothing)


class Compared(str):
    """A name that counts how often it is compared."""

    times = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Compared.times += 1
        return str.__eq__(self, other)


def test_names_of_many_columns_are_not_compared_with_each_other():
    names = [Compared(f"c{i}") for i in range(3000)]
    assert repeated(names) == []
    assert columns_of("columns", names[::-1], tuple(names), len(names))[0] == 2999
    assert Compared.times < 10 * len(names)
