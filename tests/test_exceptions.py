"""What an error says can be printed anywhere: names in it are somebody else's words."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

from ppdp import exceptions, make_pipeline
from ppdp.exceptions import PpdpError, escaped
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import MinMaxScaler

HOSTILE = "\x1b[2J\x1b]0;owned\x07\r\nUNCONDITIONAL\u202e\u200b\x9b"
KINDS = [kind for kind in vars(exceptions).values() if isinstance(kind, type) and issubclass(kind, PpdpError)]


def harmless(text):
    return text.isprintable()


@pytest.mark.parametrize("kind", KINDS)
def test_no_error_moves_a_cursor_or_begins_a_line(kind):
    error = kind(f"the column {HOSTILE} is odd.", stage=HOSTILE, fix=f"rename {HOSTILE}.")
    for one in (error, error.at(HOSTILE), pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert harmless(str(one))
        assert harmless(one.message)
        assert harmless(one.fix)
        assert "\\u001b[2J" in one.message
    assert str(error.at("scale")) == str(error.at("scale").at("scale")), "nothing is escaped twice"


def test_what_can_be_printed_stays_as_it_is():
    words = "Größe 漢字 'a\\b' 1\u00a0× 10⁻⁶"
    assert escaped(words) == words
    assert str(PpdpError(words)) == words
    assert PpdpError("no fix").fix is None


def test_names_of_columns_in_errors_of_the_library():
    frame = pd.DataFrame(np.zeros((300, 2)), columns=[HOSTILE, "b"])
    for X in (frame, frame.astype(str)):
        with pytest.raises(PpdpError) as raised:
            make_pipeline(MinMaxScaler(ranges={"age": (0, 1), HOSTILE + "2": (0, 1)}), GaussianMechanism()).fit(X)
        assert harmless(str(raised.value))
