"""What the data of a claim show, computed once."""

from functools import cache

from literature import claim


@cache
def evidence(name):
    return claim(name).evidence()
