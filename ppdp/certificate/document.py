"""The certificate: an immutable document that anybody can recompute without the data."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ppdp.certificate.canonical import copied, digest, parse, strict_json, without
from ppdp.certificate.formats import format_of
from ppdp.certificate.guarantee import draws_of, epsilon_at, loss_of
from ppdp.certificate.issue_record import Issued
from ppdp.certificate.issuer import read_statements
from ppdp.certificate.pages import renderers
from ppdp.certificate.pages.statements import view_of
from ppdp.certificate.record import Record, read_as, written
from ppdp.certificate.replay.other_adjacency import OtherAdjacencyResult, guarantee_for
from ppdp.certificate.replay.verify import Verification, verify
from ppdp.certificate.share.files import MOST_BYTES, Saved, refuse_ending, write_atomically
from ppdp.certificate.share.registry_record import Registered
from ppdp.certificate.share.signature import Signature, checked, sign
from ppdp.core.checks import path_of
from ppdp.core.names import no_attribute
from ppdp.exceptions import CertificateError, InvalidParameter
from ppdp.privacy.loss import PrivacyLoss

if TYPE_CHECKING:
    from ppdp.certificate.share.signature import PrivateKey, PublicKey
    from ppdp.core.adjacency import Adjacency

SCHEMA_NAME = "ppdp-certificate/3"
ASK_WHY = "ask `ppdp verify` why."


@contextmanager
def _readable() -> Iterator[None]:
    """One typed error for a document that nobody issued, whatever is wrong with it."""
    try:
        yield
    except Exception:
        raise CertificateError("the document is broken: no ppdp issued it.", fix=ASK_WHY) from None


class Certificate(Registered, Saved):
    """An end-to-end (epsilon, delta) guarantee with everything it rests on.

    Only :meth:`ppdp.Pipeline.fit` makes one. It holds public numbers only, so it may be handed to anybody. What cannot
    be read of a broken document is a CertificateError; only :meth:`verify` says that what can be read is true.

    Examples
    --------
    >>> Certificate.from_json('{}')  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ...
    ppdp.exceptions.CertificateError: this is not a ppdp certificate.
    """

    __slots__ = ("_content", "_record", "_verified")
    _content: dict[str, Any]
    _record: Record | None
    _verified: Verification | None
    _unread = CertificateError, "the path of a certificate.json, as certificate_.save(path) writes it.", MOST_BYTES

    def __init__(self, content: dict[str, Any]) -> None:
        self._keep(_content=copied(content), _record=None, _verified=None)

    def _keep(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        raise no_attribute(self, name)

    def __setattr__(self, name: str, value: Any = None) -> None:
        raise AttributeError("a certificate does not change.")

    __delattr__ = __setattr__

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._content,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Certificate) and self.claim() == other.claim()

    def __hash__(self) -> int:
        return hash(self.digest)

    @classmethod
    def sealed(cls, content: dict[str, Any]) -> Certificate:
        """A certificate with the digest of its content."""
        return cls({**content, "digest": digest(content)})

    def told(self, known: Mapping[str, Any]) -> Certificate:
        """The same claim, with what is known by now beside it; it stays as it is if it has no block ``issued``."""
        if self.record.issued is None:
            return self
        issued = read_as(Issued, {**written(self.record.issued), **known})
        return Certificate(written(replace(self.record, issued=issued)))

    def stating(self, **statements: Any) -> Certificate:
        """The same claim, with the same digest, and further statements of yours beside it; sign it then.

        Parameters
        ----------
        **statements
            ``purpose``, ``responsible``, and those that ``statements`` of :class:`ppdp.Pipeline` has.

        Raises
        ------
        InvalidParameter, CertificateError
            If there is no such statement or it cannot be read; if an earlier form has no place for it.
        """
        if self.record.issued is None:
            raise CertificateError("it has no place for statements.", fix="issue it with this version.")
        return self.told(read_statements(statements))

    @property
    def record(self) -> Record:
        """The document as frozen records."""
        if self._record is None:
            with _readable():
                self._keep(_record=parse(self._content))
        return cast(Record, self._record)

    def __getitem__(self, name: str) -> Any:
        """A copy of one field of the document."""
        _ = self.record  # what cannot be read has no fields
        if name not in self._content:
            raise KeyError(f"a certificate has no field {name!r}, but {', '.join(self._content)}")
        return copied(self._content[name])

    @property
    def status(self) -> str:
        """UNCONDITIONAL, CONDITIONAL or SEEDED."""
        return self.record.status

    @property
    def epsilon(self) -> float:
        """The guaranteed epsilon at ``delta``, end to end; of another delta ``epsilon_at(delta)``."""
        return float(self.record.epsilon)

    @property
    def delta(self) -> float:
        """The guaranteed delta, end to end."""
        return float(self.record.delta)

    @property
    def mu(self) -> float:
        """Gaussian parameter of everything that was released, composed."""
        return float(self.record.total.mu)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical form of the claim."""
        return self.record.digest

    @property
    def loss(self) -> PrivacyLoss:
        """Privacy loss of everything that was released."""
        with _readable():
            return loss_of(self.record)

    def epsilon_at(self, delta: float) -> float:
        """Guaranteed epsilon at another delta of one that holds; infinite below what gate and sampler need."""
        record = self._held(": it guarantees nothing")
        return epsilon_at(loss_of(record), draws_of(record), delta)

    def under(self, adjacency: Adjacency) -> OtherAdjacencyResult:
        """What the same run guarantees, with the noise that it had, where neighbours are others.

        Parameters
        ----------
        adjacency : Adjacency
            Which datasets are neighbours. What it needs, the run must have done: secret slots for rows that are added
            or removed, and the cut for persons.

        Returns
        -------
        OtherAdjacencyResult
            Its epsilon at the delta of the certificate; infinite where nothing is promised.

        Raises
        ------
        InvalidParameter, CertificateError
            If the run did not do that, or no bound of it holds there; if the certificate does not hold.
        """
        return guarantee_for(self._held(": it guarantees nothing"), adjacency)

    def claim(self) -> dict[str, Any]:
        """What is guaranteed, and of what: the document without the block ``issued`` and the digest, as a copy.

        Two certificates are equal if their claims are.
        """
        return copied(without(self._content, "digest", "issued"))

    def to_dict(self) -> dict[str, Any]:
        """The whole document, as a copy."""
        return copied(self._content)

    def to_json(self) -> str:
        """The whole document, indented."""
        with _readable():
            return json.dumps(self._content, indent=2, ensure_ascii=False, allow_nan=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON document; or the page for people, if the path ends in ``.html`` or ``.pdf``; atomically.

        A PDF is printed by a Chromium or Chrome on PATH.
        """
        place = path_of("path", path)
        form = format_of(place)
        if form is None:
            refuse_ending(place, "a name that ends in .json, or for the page in .html or .pdf.", ".json", ".JSON")
            return super().save(place)
        write_atomically(place, form.write(self._found()))

    @classmethod
    def from_json(cls, text: str | bytes) -> Certificate:
        """Read a document; its form is checked here, its truth by :meth:`verify`."""
        try:
            content = strict_json(text)
        except (TypeError, ValueError, RecursionError):
            what = "this is not a JSON document."
            raise CertificateError(what, fix="certificate.json as it was issued; ppdp.load reads an export.") from None
        try:
            one = cls(content)
            one._keep(_record=parse(content))
            return one
        except RecursionError:
            raise CertificateError("the document is nested too deeply.") from None

    def verify(
        self, *, signature: Signature | str | os.PathLike[str] | None = None, public_key: PublicKey | None = None
    ) -> Verification:
        """Recompute the whole derivation from the recorded public parameters.

        Parameters
        ----------
        signature : Signature or path-like, optional
            A signature that must hold as well; needs ``public_key``.
        public_key : path-like or Ed25519PublicKey, optional
            PEM file, or the key, of whoever is trusted to have signed.

        Raises
        ------
        SignatureError, InvalidParameter
            If the signature cannot be read; if the key cannot or is not of Ed25519, or one of the two is missing.
        """
        if (signature is None) != (public_key is None):
            fix = "give signature= and public_key=, or neither."
            raise InvalidParameter("a signature is checked with a public key.", fix=fix)
        result = verify(self._content, self._record)
        self._keep(_record=result.record or self._record)
        if signature is None or public_key is None:
            return result
        return checked(self, result, signature, public_key)

    def _found(self) -> Verification:
        """What :meth:`verify` found; kept only if it holds, for a module with further formulas may be imported."""
        found = self._verified or self.verify()
        self._keep(_verified=found or None)
        return found

    def _held(self, otherwise: str) -> Record:
        """The record of a certificate that holds."""
        record = self._found().record
        if record is None:
            raise CertificateError(f"the certificate does not hold{otherwise}.", fix=ASK_WHY)
        return record

    def sign(self, private_key: PrivateKey, *, password: bytes | None = None, conditional: bool = False) -> Signature:
        """Vouch for this certificate; needs ``pip install 'ppdp[sign]'``.

        Parameters
        ----------
        private_key : path-like or Ed25519PrivateKey
            PEM file, or the key.
        password : bytes, optional
            Of an encrypted PEM file.
        conditional : bool, default=False
            Also sign a CONDITIONAL certificate; a SEEDED one never is.

        Raises
        ------
        CertificateError, InvalidParameter
            If it does not hold, is SEEDED, or CONDITIONAL without ``conditional``; if the key cannot be read or is not
            of Ed25519.
        """
        return sign(self, private_key, password=password, conditional=conditional)

    def to_text(self, *, full: bool = False) -> str:
        """The certificate for a terminal; of one that does not hold, only that and why.

        Parameters
        ----------
        full : bool, default=False
            All of it; by default what ``print`` shows, in at most 12 lines.
        """
        return renderers.text(self._found(), full=full)

    def to_html(
        self, *, signature: Signature | str | os.PathLike[str] | None = None, public_key: PublicKey | None = None
    ) -> str:
        """The certificate as one self-contained page; of one that does not hold, only that and why.

        Parameters
        ----------
        signature, public_key : optional
            As of :meth:`verify`: a signature that holds is named on the page.
        """
        if signature is None and public_key is None:
            return renderers.page(self._found())
        return renderers.page(self.verify(signature=signature, public_key=public_key))

    def to_model_card(self, card: Any = None) -> str:
        """The certificate as the section "Privacy" of a model card, in Markdown.

        Parameters
        ----------
        card : skops.card.Card, optional
            A card to which the section is added, in the place of an earlier one.

        Returns
        -------
        str
            The section without its heading; its first word is the status.
        """
        text = renderers.render_card(view_of(self._held(", so it gets no model card")))
        if card is not None:
            renderers.add_to_card(card, text)
        return text

    def _repr_html_(self) -> str:
        return renderers.fragment(self._found())

    def __repr__(self) -> str:
        return self.to_text()
