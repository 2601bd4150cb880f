"""Engines: what delivers rows that need not be in memory. They deliver blocks and nothing else; all sums are ours.

An engine is one file: a :class:`~ppdp.data.engine.source.BlockSource`, and a function ``opened(data)`` that makes one
of what a user passes, or answers None. A new file is found by :mod:`ppdp.data.engine.registry`, and its test in
``tests/data/engine`` compares its fits with those of an array, bit for bit. One that computes elsewhere gives
:meth:`BlockSource.over`, and what :class:`~ppdp.data.engine.dask.DaskSource` has; one that only delivers gives
:meth:`BlockSource.tables`.
"""
