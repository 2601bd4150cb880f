"""Engines: what delivers rows that need not be in memory. They deliver blocks and nothing else; all sums are ours.

An engine is one file: a :class:`~ppdp.data.engine.source.BlockSource`, and a function ``opened(data)`` that makes one
of what a user passes, or answers None. A new file is found by :mod:`ppdp.data.engine.registry`, and its test in
``tests/data/engine`` compares its fits with those of an array, bit for bit. One that only delivers gives
:meth:`BlockSource.tables`. One that computes elsewhere is a :class:`~ppdp.data.engine.tasks.Workers`, which gives
tasks to a cluster, and a function ``on_workers(address)`` by which ``ppdp.engine`` takes its name.
"""
