"""Ids become codes, each read by itself: no two persons become one, and what is no id is nobody's."""

import numpy as np
import pandas as pd

from ppdp.data.persons import NOBODY, persons_of


def test_large_numbers_and_text_that_looks_like_a_number_are_persons_of_their_own():
    for ids in ([2**53, 2**53 + 1, 2**80, 2**80 + 1, -1], [1, "1", b"1", "01", " 1"]):
        assert persons_of(None, ids, "error").tolist() == [0, 1, 2, 3, 4]
    assert persons_of(None, np.array([2**53, 2**53 + 1]), "error").tolist() == [0, 1]


def test_what_is_no_id_is_nobodys():
    nobodys = [None, float("nan"), pd.NA, pd.NaT, "", "  ", 1.0, True, (1, 2), [], b""]
    ids, whose = [*nobodys, "a", "b", "a"], [NOBODY] * len(nobodys) + [0, 1, 0]
    assert persons_of(None, ids, "repair").tolist() == whose
