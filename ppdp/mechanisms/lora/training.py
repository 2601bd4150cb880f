"""Private training of an adapter: samples, clipped gradients, noise, one step of an ordinary optimizer."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray

from ppdp.certificate.document import Certificate
from ppdp.core.boundary import at_step, discreet
from ppdp.core.checks import choice, integer, positive
from ppdp.exceptions import InvalidInput, InvalidParameter, PpdpError
from ppdp.mechanisms.learn.sampling import poisson_sample
from ppdp.mechanisms.lora.adapter import (
    adapter_of,
    adapter_rank,
    arrays_of,
    described,
    files_of,
    make_adapter,
)
from ppdp.mechanisms.lora.data import Batch, check_form, length_of, taken, versions
from ppdp.mechanisms.lora.export import write_adapter
from ppdp.mechanisms.lora.gradients import FullGradients, GradientsOfB, Loss
from ppdp.mechanisms.lora.layers import STAGE, Tensor, covered_layers, mark_trained, refuse, refuse_trained
from ppdp.mechanisms.lora.optimizer import made_of, mark_used, refuse_used
from ppdp.mechanisms.lora.plan import make_plan
from ppdp.mechanisms.lora.probe import Probe
from ppdp.mechanisms.lora.state import conditions, fingerprint, others
from ppdp.mechanisms.lora.sums import Sums
from ppdp.privacy.ledger.fit_charging import FitCharge, charge
from ppdp.privacy.ledger.ledger import Ledger
from ppdp.privacy.noise.sampler import Noise

KINDS: dict[str, Any] = {"fa": GradientsOfB, "m2": FullGradients}


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
    clip : float, default=1.0
        Longest gradient of an example, over all layers together.
    learning_rate : float, default=0.1
        Of plain gradient descent on the mean over ``batch_size``.
    optimizer : callable, optional
        Makes another ``torch.optim.Optimizer`` of the list of trained tensors.
    microbatch : int, default=1
        Examples in one call of ``loss``. At 1 every gradient is computed in a call of its own, in which nothing can mix
        examples. More are faster, and then **you declare** that the model treats the examples of a batch
        independently: the probe looks at made-up ones only, and the certificate says so first.
    ledger : Ledger, optional
        Where training is charged before it looks at what an example holds.
    dataset : str, optional
        Public name of the private data, for ledger and certificate.
    random_state : int, RandomState instance or None, default=None
        Seeds batches, projections and noise. For tests only: the certificate then says SEEDED.

    Attributes
    ----------
    plan_ : LoRAPlan
        Noise and cost, known before any example is seen.
    certificate_ : Certificate
        Once all steps are done, or :meth:`finish` was called.

    Raises
    ------
    InvalidParameter
        For everything that is not covered, before anything is spent; the model is as it was.

    Notes
    -----
    **Guarantee** (``docs/theory/low-rank-training.md``): (epsilon, delta) for one added or removed example, of all
    adapters on the way together. Examples whose gradient is not finite count as if they were not there.

    **Assumed**, and said by the certificate, which is CONDITIONAL: model, loss, dataset and loop keep nothing of one
    example for another; under "m2", projections are exactly uniform. Noise and sums are exact, and what rounding (TF32,
    bfloat16) makes of a gradient that is computed alone is part of that gradient.

    **Whatever stops a step ends the training for good**: it is charged, and leaves no certificate.

    Examples
    --------
    The loop is an ordinary one::

        private = PrivateLoRA(model, loss, probe=fake, n_rows=5000, batch_size=64, steps=200)
        for batch in private.batches(examples):
            private.step(batch)
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
        clip: float = 1.0,
        learning_rate: float = 0.1,
        optimizer: Callable[[list[Tensor]], Any] | None = None,
        microbatch: int = 1,
        ledger: Ledger | None = None,
        dataset: str | None = None,
        random_state: Any = None,
    ) -> None:
        choice("method", method, list(KINDS), STAGE)
        self.model, self.loss, self.method = model, loss, method
        self.microbatch = integer("microbatch", microbatch, STAGE)
        if ledger is not None and not isinstance(ledger, Ledger):
            raise InvalidParameter("ledger must be a Ledger or None.", stage=STAGE, parameter="ledger")
        self.ledger, self.dataset = ledger, dataset
        self._noise = Noise(random_state)
        steps = integer("steps", steps, STAGE)
        self._layers, self._adapter, rank = covered_layers(model, method, rank, self.microbatch)
        probed = Probe(model, loss, KINDS[method], self._layers, probe)
        terms = probed.check(self.microbatch, integer("batch_size", batch_size, STAGE))
        self._probed, self._conditions = (model, loss, method, self.microbatch), conditions(model)
        self._form = {name: one[:0].detach() for name, one in probe.items()}
        self.plan_ = make_plan(
            self._layers,
            sorted(probe),
            method=method,
            rank=rank,
            terms=terms,
            adapter_rank=adapter_rank(self._layers, None if optimizer else steps * rank),
            microbatch=self.microbatch,
            epsilon=epsilon,
            delta=delta,
            n_rows=n_rows,
            batch_size=batch_size,
            steps=steps,
            clip=clip,
        )
        public = {name: one[:1].detach() for name, one in probe.items()}
        self._sums = Sums(model, loss, KINDS[method], self._layers, self.plan_, public, self.microbatch, self._noise)
        trained = [layer.trained for layer in self._layers]
        rate = positive("learning_rate", learning_rate, STAGE)
        self._optimizer = made_of(trained, optimizer, rate)
        self._start = [tensor.detach().clone() for tensor in trained]
        self._left = fingerprint(trained)  # as the last step left them
        self._rest = fingerprint(others(model, self._layers))
        self._charged: FitCharge | None = None
        self._process = os.getpid()
        self._drawn: Batch | None = None
        self._done = 0
        self._turn = threading.Lock()
        self._ended = False  # by an error
        self.certificate_: Certificate | None = None

    @discreet
    def fit(self, data: Any) -> PrivateLoRA:
        """Take all steps on private examples.

        Parameters
        ----------
        data : mapping of str to Tensor, or sequence of such mappings
            Private examples, in the form of the probe: tensors of all of them, or a dataset that gives one by its
            index.

        Raises
        ------
        PpdpError
            See :mod:`ppdp.exceptions`. Whatever is raised after the first batch was drawn counts as spent.
        """
        begun = self._charged is not None
        try:
            for batch in self.batches(data):
                self.step(batch)
        except BaseException:
            if self._charged is not None and not begun and not self._ended:
                self._end()  # nobody has a batch to go on with
            raise
        return self

    def batches(self, data: Any) -> Iterator[Batch]:
        """Charge the whole training, then draw one secret batch after the other for :meth:`step`.

        Each holds every example with probability ``batch_size / n_rows``, perhaps none. After the last step the
        certificate is issued.
        """
        with self._alone():
            if self._charged is not None:
                refuse("this training was begun before.", "a new PrivateLoRA over a fresh model.")
            self._check_own()
            count = length_of(data, self._form)
            if isinstance(data, Mapping):  # as it is now: not one that draws whenever it is asked
                data = {name: data[name] for name in self._form}
            refuse_trained(self._layers, self._adapter)
            self._check_conditions((self._conditions[0], *conditions(self.model)[1:]))  # autocast may begin later
            self._check_rest()
            self._check_left()
            refuse_used(self._optimizer)
            self._certificate({}, {})  # no public word may fail after the spend
            self._charged = charge(self.ledger, self.plan_.cost, dataset=self.dataset, label=STAGE)
            with self._spending():
                mark_trained(self._layers, self._adapter, True)
                mark_used(self._optimizer)
                if count > self.plan_.domain.n:
                    what = "there are more examples than n_rows declares."
                    raise InvalidInput(what, stage=STAGE, fix="a larger n_rows.")
        while self._done < self.plan_.question.steps and self.certificate_ is None:
            self._drawn = self._draw(data, count)
            yield self._drawn
            if self._drawn is not None:
                raise InvalidParameter("a batch was drawn and not used.", stage=STAGE, fix="step(batch) for each.")
        self.finish()

    @discreet
    def _draw(self, data: Any, count: int) -> Batch:
        self._check_own()
        with self._alone(), self._spending():
            chosen = poisson_sample(self._noise, count, self.plan_.rate)
            batch = taken(data, chosen, self._form, self._noise)
            check_form(batch, self._form)
            self._as_drawn = versions(batch)
            self._examples = {name: one.clone() for name, one in batch.items()}
            return batch

    @discreet
    def step(self, batch: Batch) -> None:
        """One step on the batch that was drawn last.

        Raises
        ------
        InvalidParameter
            If it is another one, or the training has ended.
        StageFailed
            If model or loss stop, draw a random number or remember something, or the optimizer stops. The training has
            then ended.
        """
        self._check_own()
        with self._alone():
            if batch is not self._drawn or batch is None:
                refuse("this is not the batch that was drawn last.", "private.batches().")
            if versions(batch) != self._as_drawn:
                refuse("the batch was changed, which may mix its examples.", "such changes in loss(model, batch).")
            self._check_conditions(conditions(self.model))
            self._check_left()
            self._drawn = None
            self._done += 1  # before anything of it is seen
            self._update(self._examples)  # as they were drawn, whatever a loop did to them

    def _update(self, batch: Batch) -> None:
        with self._spending():
            projections = self._sums.projections()
            counts = self._sums.counts(batch, projections)
            if fingerprint(others(self.model, self._layers)) != self._rest:
                self._sums.impure("something beside the adapter changed.")
            answers = [self._sums.noisy(one) for one in counts]
            for layer, answer, projection in zip(self._layers, answers, projections):
                whole = answer if projection is None else answer @ projection.T
                layer.trained.grad = layer.shaped(whole).to(layer.trained.device)
            self._optimizer.step()
            self._optimizer.zero_grad(set_to_none=True)
            self._left = fingerprint(layer.trained for layer in self._layers)

    def finish(self) -> Certificate:
        """Issue the certificate; a training that is stopped early costs as much as a whole one.

        Under "m2" the layers get back the weights that they began with, and the sum of all steps becomes the adapter.
        """
        if self.certificate_ is not None:
            return self.certificate_
        self._check_own()
        if self._charged is None or not self._done:
            raise InvalidParameter("nothing was trained yet.", stage=STAGE, fix="fit(data), or the loop.")
        with self._alone():
            self._check_rest()
            self._check_left()
        with self._alone(), self._spending():
            self._drawn = None
            start, self._start = self._start, []
            if self.method == "m2":
                rank = self.plan_.question.parameters["adapter_rank"]
                make_adapter(self.model, self._layers, start, self._adapter, rank)
            arrays = arrays_of(adapter_of(self._layers, self._adapter), whole=self.method == "m2")
            certificate = self._certificate(arrays, self._charged.issued(self.plan_.cost.delta))
            self.certificate_ = certificate
            self._charged.settle("released")
        return certificate

    def export(self, folder: str | os.PathLike[str], *, conditional: bool = False) -> str:
        """Write the adapter, as PEFT reads it, and its certificate into a new folder; the path.

        All of it is there, or nothing. :func:`~ppdp.mechanisms.lora.certified` reads it.

        Parameters
        ----------
        folder : path-like
            Must not exist.
        conditional : bool, default=False
            Whether a CONDITIONAL certificate may leave, as all of training are.

        Raises
        ------
        ExportError
            If it may not leave like that, or the adapter is not as it was when training ended.
        """
        return write_adapter(self.model, self._adapter, self.finish(), folder, conditional=conditional)

    def _certificate(self, arrays: Mapping[str, NDArray[np.float64]], issued: Mapping[str, Any]) -> Certificate:
        return self.plan_.certificate(
            arrays,
            seeded=self._noise.seeded,
            inference=described(files_of(self.model, self._adapter)),
            issued=issued,
            dataset=self.dataset,
        )

    @contextmanager
    def _spending(self) -> Iterator[None]:
        """In this context private examples are looked at: what goes wrong ends the training, and is not quoted.

        Interrupts as well: whoever goes on after half a step would make more updates than are certified.
        """
        assert self._charged is not None
        try:
            with at_step(STAGE):
                yield
        except PpdpError as error:
            self._end()
            raise (error if self._charged.ledger is None else error.charged()) from None
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        """End the training for good: it is paid for, has no certificate, and the model is as it began."""
        if self.certificate_ is not None:
            return
        self._ended, self._drawn = True, None
        if self._charged is not None:  # first, for the rest may fail in turn
            self._charged.settle("failed")
        pure = fingerprint(others(self.model, self._layers)) == self._rest and self._sums.are_pure()
        with torch.no_grad():
            for layer, before in zip(self._layers, self._start):
                layer.trained.grad = None
                layer.trained.copy_(before)
        if self._start and pure:
            mark_trained(self._layers, self._adapter, False)

    def _check_own(self) -> None:
        """Refuse a training that has ended, and a copy of it in another process."""
        if self._ended or self.certificate_ is not None:
            why = "by an error" if self._ended else "with a certificate"
            fix = "a new PrivateLoRA over a fresh model; its cost comes on top."
            raise InvalidParameter(f"this training has ended {why}.", stage=STAGE, fix=fix)
        if os.getpid() != self._process:
            raise InvalidParameter("this training was begun in another process.", stage=STAGE, fix="train it there.")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Refuse a second thread, and whoever calls from inside a step: both would use a batch once more."""
        if not self._turn.acquire(blocking=False):
            raise InvalidParameter("a step is under way.", stage=STAGE, fix="one after the other.")
        try:
            yield
        finally:
            self._turn.release()

    def _check_conditions(self, found: tuple[Any, ...]) -> None:
        """Refuse what the probe did not see."""
        now = (self.model, self.loss, self.method, self.microbatch)
        if any(one is not before for one, before in zip(now, self._probed)):
            refuse("model, loss, method or microbatch are others than the probe went through.", "a new PrivateLoRA.")
        if found != self._conditions:
            refuse("autocast, TF32, modules or hooks of the model are not as for the probe.", "the same settings.")

    def _check_rest(self) -> None:
        if fingerprint(others(self.model, self._layers)) != self._rest:
            refuse("the model's weights changed since they were looked at.", "PrivateLoRA(...) after such changes.")

    def _check_left(self) -> None:
        """Refuse weights that something else than a step changed: private examples may be in them, without noise."""
        if fingerprint(layer.trained for layer in self._layers) != self._left:
            what = "the trained weights changed, and no step did it."
            refuse(what, "optimizer=..., which step(batch) calls; changes behind finish().")

    def __reduce_ex__(self, _: Any) -> NoReturn:
        """Refuse copies: each would go on with the steps that were paid for once."""
        raise InvalidParameter("a training is neither copied nor pickled.", stage=STAGE, fix="export(folder).")
