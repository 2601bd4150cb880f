"""Ids become codes, each read by itself: nobody becomes two persons, and what is no id is nobody's."""

import numpy as np
import pandas as pd

from ppdp.data.slot_assignment import NOBODY, encode_ids


def test_a_reader_that_makes_numbers_of_some_ids_makes_no_two_persons_of_one():
    """As pandas does of a long column without a type."""
    assert encode_ids(None, [7, "7", b"7", " 7", "07", 2**80, str(2**80)], "error").tolist() == [0, 0, 0, 0, 1, 2, 2]


def test_large_numbers_are_persons_of_their_own():
    assert encode_ids(None, [2**53, 2**53 + 1, 2**80, 2**80 + 1, -1], "error").tolist() == [0, 1, 2, 3, 4]
    assert encode_ids(None, np.array([2**53, 2**53 + 1]), "error").tolist() == [0, 1]


def test_what_is_no_id_is_nobodys():
    nobodys = [None, float("nan"), pd.NA, pd.NaT, "", "  ", 1.0, True, (1, 2), [], b""]
    ids, whose = [*nobodys, "a", "b", "a"], [NOBODY] * len(nobodys) + [0, 1, 0]
    assert encode_ids(None, ids, "repair").tolist() == whose


def test_which_ids_are_equal_hangs_on_no_other_row():
    """Half a character and its name, and texts that differ behind a NUL, are two persons, with and without a gap."""
    for ids in (["\ud800", "'\\ud800'"], ["a\0b", "a\0c", "a"]):
        alone = list(range(len(ids)))
        assert encode_ids(None, np.array(ids, dtype=object), "error").tolist() == alone
        assert encode_ids(None, np.array([*ids, None], dtype=object), "repair").tolist() == [*alone, NOBODY]
