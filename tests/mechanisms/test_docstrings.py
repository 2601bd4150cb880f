"""Every parameter is described on the page of its class, by the class itself or by one that it refines."""

import re
from inspect import signature

import pytest

from ppdp import mechanisms
from ppdp.mechanisms.base import SharedDocstring


@pytest.mark.parametrize("name", mechanisms.__all__)
def test_parameters_are_described_once_and_no_others(name):
    kind = getattr(mechanisms, name)
    (section,) = re.findall(r"\n *Parameters\n *-+\n(.*?)\n\n", kind.__doc__, flags=re.S)
    assert sorted(re.findall(r"^ *(\w+) : ", section, flags=re.M)) == sorted(signature(kind).parameters)
    for title in ("Attributes", "Notes"):
        assert len(re.findall(rf"^ *{title}\n *---", kind.__doc__, flags=re.M)) == 1


def test_what_a_class_says_itself_comes_before_what_its_bases_say():
    class Base(SharedDocstring):
        """A base.

        Parameters
        ----------
        a, b : int
            Of the base.
        c : int
            Of the base, in
            two lines.

        Notes
        -----
        It is
        proved.
        """

    class Own(Base):
        """One of its own.

        Parameters
        ----------
        c : float
            Its own.

        Attributes
        ----------
        d_ : float
            Learned.
        """

    class Silent(Own):
        pass

    parameters = "Parameters\n----------\nc : float\n    Its own.\na, b : int\n    Of the base."
    attributes = "Attributes\n----------\nd_ : float\n    Learned."
    assert Own.__doc__ == "\n\n".join(["One of its own.", parameters, attributes, "Notes\n-----\nIt is\nproved."])
    assert Silent.__doc__ is None
