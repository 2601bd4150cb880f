"""Private training of an adapter in one call: everything public is checked, then charged, then trained."""

from __future__ import annotations

import copy
import logging
import os
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from functools import partial
from typing import Any, NoReturn

from ppdp.certificate.document import Certificate
from ppdp.certificate.issuer import issuer_words
from ppdp.core.boundary import at_step, discreet
from ppdp.core.checks import choice, integer
from ppdp.exceptions import InvalidInput, InvalidParameter, PpdpError
from ppdp.mechanisms.lora.adapter import (
    Matrices,
    adapter_rank,
    arrays_of,
    configuration_of,
    described,
    files_of,
    kept_adapter,
    put_adapter,
    sum_of_steps,
    write_adapter,
)
from ppdp.mechanisms.lora.conditions import Probed, refuse_altered_torch, refuse_inside, told_nothing
from ppdp.mechanisms.lora.data import Batch, table_of, versions
from ppdp.mechanisms.lora.gradients import FullGradients, GradientsOfB, Loss
from ppdp.mechanisms.lora.layers import STAGE, Tensor, covered_layers, mark_trained, refuse, unmark
from ppdp.mechanisms.lora.plan import make_plan
from ppdp.mechanisms.lora.probe import Probe
from ppdp.mechanisms.lora.process import refuse_shared
from ppdp.mechanisms.lora.sums import Sums
from ppdp.mechanisms.lora.weights import Optimizer, Weights
from ppdp.privacy.ledger.fit_charging import FitCharge, charge
from ppdp.privacy.ledger.ledger import Ledger
from ppdp.privacy.noise.sampler import Noise

KINDS: dict[str, Any] = {"fa": GradientsOfB, "m2": FullGradients}
AGAIN = "a new PrivateLoRA over a fresh model; its cost comes on top."


class PrivateLoRA:
    """Train the adapter of a PEFT model on private examples, with a certificate for everything that is learned.

    Every module is in evaluation mode while it trains: no dropout, no statistics of a batch.

    Parameters
    ----------
    model : peft.PeftModel
        With one LoRA adapter on linear layers; its weights must not depend on the private examples. It is trained in
        place.
    loss : callable
        ``loss(model, batch)``, the loss of every example of a batch, a tensor of shape (n,): no mean, no sum.
    probe : mapping of str to Tensor
        At least two made-up examples of the form of the private ones: names, shapes and types of the tensors.
    n_rows : int
        A public number that is no less than the number of examples, which stays private.
    batch_size : int
        Expected size of a batch, out of ``n_rows``.
    steps : int
        Number of batches.
    method : {"fa", "m2"}, default="fa"
        "fa" trains B and leaves A as it is; gradients of B are clipped. "m2" clips the gradients of whole weights, adds
        noise and projects to ``rank`` directions that are drawn afresh in every step; the sum of all steps is the
        adapter in the end.
    rank : int, optional
        Of the adapter ("fa", which then says nothing new) or of the projections; the adapter's.
    epsilon, delta : float, default=1.0 and 1e-6
        The guarantee for all steps, if one example is added or removed.
    max_grad_norm : float, default=1.0
        Longest gradient of an example, over all layers together.
    learning_rate : float or sequence of float, default=0.1
        Of the mean over ``batch_size``; one for each step is a schedule.
    optimizer : {"SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop"}, default="SGD"
        The class of ``torch.optim``, or its name; the training makes its own.
    optimizer_kwargs : mapping, optional
        Its other numbers, as ``{"momentum": 0.9}``.
    microbatch : int, default=1
        Examples in one call of ``loss``. At 1 every gradient is computed in a call of its own, in which nothing can mix
        examples. More are faster (``isolation=None``), and then **you declare** that the model treats the examples of a
        batch independently, and gives them to every adapted layer first and in their order: the probe looks at made-up
        ones only, and the certificate says so first.
    isolation : {"process", None}, default="process"
        "process" computes every gradient in a copy of this process as it is when the training begins, which ends with
        that example (Linux, no GPU, ``microbatch=1``): nothing that model and loss keep in memory lasts, and an example
        at which they stop counts as if it were not there. By None **you declare** that they keep and use nothing of
        other examples, and fail on none: all is computed here, and what is seen to be kept ends the training.
    ledger : Ledger, optional
        Where training is charged before it looks at what an example holds.
    dataset : str, optional
        Public name of the private data, for ledger and certificate.
    purpose, responsible, sources, statements : optional
        What you state beside the claim, as for :class:`ppdp.Pipeline`.
    random_state : int, RandomState instance or None, default=None
        Seeds batches, projections and noise. For tests only: the certificate then says SEEDED.

    Attributes
    ----------
    plan_ : LoRAPlan
        Noise and cost, known before any example is seen.
    certificate_ : Certificate
        Once all steps are done.

    Raises
    ------
    InvalidParameter
        For everything that is not covered, before anything is spent; the model is as it was.

    Notes
    -----
    **Guarantee** (``docs/theory/low-rank-training.md``): (epsilon, delta) for one added or removed example, of all
    adapters on the way together. Examples whose gradient is not finite count as if they were not there.

    **Declared** by you, and said by the certificate, which is CONDITIONAL: Python, NumPy and torch are as their
    makers made them, every call of the loss ends, uses no other example, reads, stops or ends no other process and
    keeps nothing outside its own, as in a file (with ``isolation=None``: keeps nothing at all), and neither model and
    loss nor the weights come from the examples; under "m2", projections are exactly uniform.
    Noise and sums are exact, and what rounding (TF32, bfloat16) makes of a gradient that is computed alone is part of
    that gradient.

    **What is certified is ppdp's own**: trained weights and optimizer are of this training alone, are written into the
    model before every step and behind the last, and are what :meth:`export` writes. What changes in the
    model beside them ends the training.

    **Whatever stops a step ends the training for good**, interrupts as well: it is charged, and leaves no certificate.
    Weights that grow without end do as well, by :class:`InvalidParameter`, and leave the last finite ones with their
    certificate: noisy sums made them so, and no example is told.

    Examples
    --------
    One call::

        private = PrivateLoRA(model, loss, probe=fake, n_rows=5000, batch_size=64, steps=200)
        private.fit(examples)
        private.export("adapter", conditional=True)
    """

    def __init__(
        self,
        model: Any,
        loss: Loss,
        *,
        probe: Mapping[str, Tensor],
        n_rows: int,
        batch_size: int,
        steps: int,
        method: str = "fa",
        rank: int | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        max_grad_norm: float = 1.0,
        learning_rate: Any = 0.1,
        optimizer: Any = "SGD",
        optimizer_kwargs: Mapping[str, Any] | None = None,
        microbatch: int = 1,
        isolation: str | None = "process",
        ledger: Ledger | None = None,
        dataset: str | None = None,
        purpose: str | None = None,
        responsible: str | None = None,
        sources: str | Mapping[str, str] | None = None,
        statements: Mapping[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        refuse_inside()
        method = choice("method", method, list(KINDS), STAGE)
        self.model, self.loss, self.method = model, loss, method
        self.microbatch = integer("microbatch", microbatch, STAGE)
        self.isolation = isolation = choice("isolation", isolation, [None, "process"], STAGE)
        if ledger is not None and not isinstance(ledger, Ledger):
            raise InvalidParameter("ledger must be a Ledger or None.", stage=STAGE, parameter="ledger")
        self.ledger, self.dataset, self._random_state = ledger, dataset, random_state
        self.purpose, self.responsible, self.sources, self.statements = purpose, responsible, sources, statements
        Noise(random_state)  # refuses what is no seed
        steps, batch_size = integer("steps", steps, STAGE), integer("batch_size", batch_size, STAGE)
        self._optimizer = Optimizer(optimizer, optimizer_kwargs, learning_rate, steps)
        refuse_altered_torch()
        layers, adapter, rank = covered_layers(model, method, rank, self.microbatch)
        self._probe = Probe(model, loss, KINDS[method], layers, probe)
        terms = self._probe.check(self.microbatch, batch_size)
        most = adapter_rank(layers, steps * rank if self._optimizer.is_plain else None)
        self._config = configuration_of(model, adapter, most if method == "m2" else None)
        self._public = self._probe.public
        if isolation:
            refuse_shared(model, self._public, self.microbatch)
        self._plan = make_plan(
            layers,
            sorted(self._public),
            method=method,
            rank=rank,
            terms=terms,
            adapter_rank=most,
            microbatch=self.microbatch,
            isolation=isolation,
            epsilon=epsilon,
            delta=delta,
            n_rows=n_rows,
            batch_size=batch_size,
            steps=steps,
            max_grad_norm=max_grad_norm,
        )
        self.plan_ = copy.deepcopy(self._plan)  # nobody changes what is trained by
        self._given = (model, loss, method, self.microbatch, isolation)
        self._probed = Probed(model, loss, KINDS[method], layers, adapter, self.microbatch)
        self._charged: FitCharge | None = None
        self._turn: dict[str, object] = {}
        self._files: dict[str, bytes] = {}
        self.certificate_: Certificate | None = None

    @discreet
    def fit(self, data: Mapping[str, Tensor]) -> PrivateLoRA:
        """Charge the whole training, take all steps on private examples, and issue the certificate.

        Under "m2" the layers get back the weights that they began with, and the sum of all steps becomes the adapter.
        The logger ``"ppdp"`` is told of every step.

        Parameters
        ----------
        data : mapping of str to Tensor
            Private examples, in the form of the probe: a tensor for each name, with a row for each example.

        Raises
        ------
        PpdpError
            See :mod:`ppdp.exceptions`. Whatever is raised after the charge counts as spent, and ends the training.
        """
        mine = object()  # by which an interrupt at any point is known to have taken the turn
        try:
            if self._turn.setdefault(STAGE, mine) is not mine:  # another thread's, or that of the loss
                refuse("this training is under way.", "one fit.")
            if self._charged is not None:
                how = "by an error" if self.certificate_ is None else "with a certificate"
                refuse(f"this training was begun before, and ended {how}.", AGAIN)
            self._fit(data)
        finally:
            self._turn.pop(STAGE if self._turn.get(STAGE) is mine else "", None)
            if self._charged is None:
                unmark(self._probed.layers, mine)
        return self

    def _fit(self, data: Any) -> None:
        refuse_inside()
        probed, plan = self._probed, self._plan
        table = table_of(data, self._public)
        before = versions(table)
        now = (self.model, self.loss, self.method, self.microbatch, self.isolation)
        if any(one is not before for one, before in zip(now, self._given)):
            refuse("model, loss, method, microbatch or isolation are others than the probe went through.", AGAIN)
        mark_trained(probed.layers, self._turn[STAGE])  # from here on no other training writes weights into the model
        self._refuse_changed()
        self._probe.again()
        refuse_altered_torch()
        self._refuse_changed()  # by the made-up call
        with closing(self._sums()) as sums:
            if not sums.try_apart():
                what = "a process of its own stops at a made-up example, as where there is a GPU, or files are open."
                refuse(what, "isolation=None; files that a call opens itself.")
            said, seeded = issuer_words(self), self._random_state is not None
            sealed = partial(plan.certificate, seeded=seeded, dataset=self.dataset, sources=self.sources)
            sealed({}, inference=described({}), issued={})  # no public word may fail after the spend
            put_back = kept_adapter(probed.model, probed.layers, probed.adapter)
            process = os.getpid()
            charged = self._charged = charge(self.ledger, plan.cost, dataset=self.dataset, label=STAGE)
            try:
                with at_step(STAGE):
                    last = self._steps(sums, table, before, process)
                    matrices = self._put(sums.weights)
                    arrays = arrays_of(matrices, whole=self._given[2] == "m2")
                    self._files = files_of(self._config, probed.layers, matrices)
                    issued = {**charged.issued(plan.cost.delta), **said}
                    self.certificate_ = sealed(arrays, inference=described(self._files), issued=issued)
                    charged.settle("released")
                if last:
                    what = f"the trained weights are finite no more behind step {last}; certified are those before it."
                    refuse(what, "a smaller learning_rate; export(folder) writes what was reached.")
            except BaseException as error:  # interrupts as well: half a step more would be certified by nothing
                if self.certificate_ is None and os.getpid() == process:
                    try:
                        # First, for the rest may fail in turn:
                        charged.settle("failed")
                    finally:
                        self._restore(sums, put_back)
                raise (error.charged() if isinstance(error, PpdpError) and charged.ledger else error) from None

    def _refuse_changed(self) -> None:
        if changed := self._probed.changed(begun=False):
            refuse(f"{changed} changed since the probe looked at them.", "PrivateLoRA(...) after such changes.")

    def _steps(self, sums: Sums, table: Batch, before: list[int], process: int) -> int:
        """Take all steps; the one behind which weights are finite no more, or 0."""
        if len(next(iter(table.values()))) > self._plan.domain.n:
            what = "there are more examples than n_rows declares."
            raise InvalidInput(what, stage=STAGE, fix="a larger n_rows.")
        last, steps = 0, self._plan.question.steps
        for done in range(1, steps + 1):
            finite = sums.step(table)
            if versions(table) != before:
                sums.impure("something wrote into the examples.")
            if os.getpid() != process:
                refuse("this training was begun in another process.", "train it there.")
            if not finite:  # which the noisy sums say
                last = done
                break
            with told_nothing():  # by handlers of logs
                logging.getLogger("ppdp").info("%s: step %d of %d", STAGE, done, steps)
        sums.check()
        return last

    def _sums(self) -> Sums:
        """What takes the steps, with noise, weights and an optimizer of its own."""
        weights = Weights(self._probed, self._optimizer)
        return Sums(self._probed, self._plan, self._public, weights, Noise(self._random_state))

    def _put(self, weights: Weights) -> Matrices:
        """Put the adapter that is released into the model; its matrices, which are not the model's."""
        probed = self._probed
        if self._given[2] == "fa":
            weights.write()
            return list(zip(weights.a, weights.own))
        rank = self._plan.question.parameters["adapter_rank"]
        matrices = [sum_of_steps(*one, rank) for one in zip(probed.layers, weights.start, weights.own)]
        weights.write(weights.start)
        put_adapter(probed.model, probed.layers, probed.adapter, matrices, self._turn[STAGE])
        return matrices

    def _restore(self, sums: Sums, put_back: Callable[[], None]) -> None:
        """Make the model what it was, so that it may be trained again, unless something private may be left in it."""
        pure = False
        try:
            with suppress(Exception):  # of a model that is none any more
                put_back()
                pure = sums.are_pure()
        finally:  # behind one more interrupt as well
            sums.weights.write(sums.weights.start)
        if pure:
            unmark(self._probed.layers, self._turn[STAGE])

    def export(self, folder: str | os.PathLike[str], *, conditional: bool = False) -> str:
        """Write the adapter, as PEFT reads it, and its certificate into a new folder; the path.

        All of it is there, or nothing. :func:`~ppdp.mechanisms.lora.certified` reads it. It is the adapter that was
        certified, whatever became of the model.

        Parameters
        ----------
        folder : path-like
            Must not exist.
        conditional : bool, default=False
            Whether a CONDITIONAL certificate may leave, as all of training are.

        Raises
        ------
        ExportError
            If it may not leave like that.
        """
        if self.certificate_ is None:
            if self._charged is None or self._turn:
                refuse("nothing was trained yet.", "fit(data), to its end.")
            refuse("this training has ended by an error.", AGAIN)
        return write_adapter(self._files, self.certificate_, folder, conditional=conditional)

    def __reduce_ex__(self, _: Any) -> NoReturn:
        """Refuse copies: each would go on with the steps that were paid for once."""
        raise InvalidParameter("a training is neither copied nor pickled.", stage=STAGE, fix="export(folder).")
