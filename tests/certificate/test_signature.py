"""Detached signatures: who stands for a certificate, and that nothing else passes for that."""

from __future__ import annotations

import base64
import copy
import json
import os
import pickle
import stat
import sys
import traceback
from pathlib import Path

import keys
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from keys import KEY, OTHER, PASSWORD
from zoo import certificate, document, sealed

from ppdp import Certificate, load
from ppdp.certificate import Signature
from ppdp.certificate.canonical import seal
from ppdp.certificate.share.signature import CONTEXT, fingerprint
from ppdp.cli.main import main
from ppdp.exceptions import CertificateError, ExportError, InvalidParameter, SignatureError

folder = keys.folder  # pytest finds a fixture by its name in the test's own module


P = 2**255 - 19


def heights_of_small_order() -> set[int]:
    """y of the 8 points whose eightfold is zero: 2(x, y) has height (y² + x²)/(2 + x² - y²) (RFC 8032, 5.1.4)."""
    d = -121665 * pow(121666, -1, P) % P
    # Orders 1, 2 and 4 have heights 1, -1 and 0; order 8 doubles to 0: x² = -y², so d y⁴ + 2 y² - 1 = 0.
    half = [(-1 + s * root(1 + d)) * pow(d, -1, P) % P for s in (1, -1)]
    eight = {y for square in half if pow(square, (P - 1) // 2, P) == 1 for y in (root(square), P - root(square))}
    return {1, P - 1, 0} | eight


def root(square: int) -> int:
    """A square root modulo P, P = 5 modulo 8."""
    found = pow(square, (P + 3) // 8, P)
    return found if found * found % P == square % P else found * pow(2, (P - 1) // 4, P) % P


class TestSigning:
    def test_what_is_signed_verifies(self):
        one = certificate("unconditional")
        signature = one.sign(KEY)
        result = one.verify(signature=signature, public_key=KEY.public_key())
        assert result
        assert result.signer == signature.key
        assert f"signed with the key {signature.key}" in repr(result)
        signature.check(one, KEY.public_key())

    def test_files_do_as_well_as_objects(self, folder):
        one = certificate("gated, sum")
        assert one.sign("key.pem") == one.sign(folder / "locked.pem", password=PASSWORD) == one.sign(KEY)
        assert one.verify(signature="signed.sig", public_key="key.pub")

    def test_a_signature_is_what_the_standard_says(self):
        """Ed25519 is deterministic; the message is the context, a zero byte and the seal."""
        one = certificate("gated, max")
        message = CONTEXT.encode() + b"\0" + bytes.fromhex(seal(one.to_dict()).removeprefix("sha256:"))
        assert one.sign(KEY).value == KEY.sign(message)

    def test_the_digest_alone_is_not_what_is_signed(self):
        """A signature that the key made for something else does not pass."""
        one = certificate("gated, max")
        good = one.sign(KEY)
        bare = bytes.fromhex(seal(one.to_dict()).removeprefix("sha256:"))
        later = CONTEXT.replace("/1", "/2").encode() + b"\0" + bare
        for message in (bare, one.digest.encode(), one.to_json().encode(), later):
            forged = Signature(good.certificate, good.key, KEY.sign(message))
            assert not one.verify(signature=forged, public_key=KEY.public_key())

    def test_a_certificate_that_does_not_hold_is_not_signed(self):
        forged = Certificate(sealed({**document("unconditional"), "epsilon": 0.1}))
        for one in (forged, Certificate({}), Certificate(None)):
            with pytest.raises(CertificateError, match="does not hold"):
                one.sign(KEY)

    def test_a_document_that_is_none_has_no_canonical_form(self):
        signature = certificate("unconditional").sign(KEY)
        with pytest.raises(CertificateError, match="no canonical form"):
            signature.check(Certificate(None), KEY.public_key())

    def test_without_a_signature_nobody_is_named(self):
        result = certificate("gated, max").verify()
        assert result.signer is None
        assert "signed" not in repr(result)


class TestForgeries:
    def test_the_certificate_of_another_run(self):
        """What the replay cannot find: a true statement, but not of the run that was signed."""
        one = document("unconditional")
        signature = Certificate(one).sign(KEY)
        one["released"]["sha256"] = "0" * 64
        other = Certificate.sealed(one)
        assert other.verify()
        result = other.verify(signature=signature, public_key=KEY.public_key())
        assert result.problems == (
            "the signature: it is the signature of another certificate, or the certificate was changed.",
        )
        assert result.signer is None

    def test_it_covers_when_and_on_whose_account_it_was_issued(self):
        one = certificate("unconditional")
        content = one.to_dict()
        content["issued"]["travels"] += 1  # which no other number depends on
        other = Certificate.sealed(content)
        assert other == one  # the claim is the same
        assert other.verify()
        assert not other.verify(signature=one.sign(KEY), public_key=KEY.public_key())

    def test_its_recorded_digest_is_not_believed(self):
        one = document("unconditional")
        signature = Certificate(one).sign(KEY)
        one["dataset"] = "another"  # with the digest as it was
        with pytest.raises(SignatureError, match="another certificate"):
            signature.check(Certificate(one), KEY.public_key())

    def test_what_the_signature_says_of_itself_is_not_believed(self):
        one, other = certificate("unconditional"), certificate("gated, max")
        signature = other.sign(OTHER)
        forged = Signature(seal(one.to_dict()), one.sign(KEY).key, signature.value)
        with pytest.raises(SignatureError, match="not made with this key"):
            forged.check(one, KEY.public_key())

    @pytest.mark.parametrize("position", range(0, 64, 7))
    def test_a_bit(self, position):
        one = certificate("gated, max")
        good = one.sign(KEY)
        value = bytearray(good.value)
        value[position] ^= 1
        assert not one.verify(
            signature=Signature(good.certificate, good.key, bytes(value)), public_key=KEY.public_key()
        )

    def test_another_key(self):
        one = certificate("gated, max")
        with pytest.raises(SignatureError, match="another key"):
            one.sign(OTHER).check(one, KEY.public_key())
        assert not one.verify(signature=one.sign(OTHER), public_key=KEY.public_key())

    def test_a_derivation_that_does_not_hold_is_not_healed(self):
        """Somebody signs by hand what ppdp refuses to sign."""
        forged = Certificate(sealed({**document("unconditional"), "epsilon": 0.1}))
        good = certificate("unconditional").sign(KEY)
        value = KEY.sign(CONTEXT.encode() + b"\0" + bytes.fromhex(seal(forged.to_dict()).removeprefix("sha256:")))
        signature = Signature(seal(forged.to_dict()), good.key, value)
        signature.check(forged, KEY.public_key())
        result = forged.verify(signature=signature, public_key=KEY.public_key())
        assert not result
        assert result.signer is None

    def test_a_document_without_a_canonical_form(self):
        one = certificate("gated, max")
        broken = Certificate({**one.to_dict(), "epsilon": float("nan")})
        assert not broken.verify(signature=one.sign(KEY), public_key=KEY.public_key())


CHANGES = {
    "another algorithm": {"algorithm": "RSA"},
    "no algorithm": {"algorithm": None},
    "another context": {"context": "ppdp-certificate-signature/2"},
    "a context that is a list": {"context": [CONTEXT]},
    "an algorithm that is an object": {"algorithm": {}},
    "no base64": {"signature": "?" * 88},
    "too short": {"signature": base64.b64encode(bytes(63)).decode()},
    "too long": {"signature": base64.b64encode(bytes(65)).decode()},
    "a number": {"signature": 7},
    "no ASCII": {"signature": "é" * 88},
    "line breaks": {"signature": base64.b64encode(bytes(64)).decode() + "\n"},
    "spare bits": {"signature": base64.b64encode(bytes(64)).decode()[:-3] + "B=="},
    "a digest that is none": {"certificate": "sha256:0"},
    "a key that is none": {"key": None},
    "more": {"comment": "trust me"},
}


class TestFile:
    def test_comes_back(self, folder):
        signature = Signature.load("signed.sig")
        assert signature == certificate("gated, sum").sign(KEY)
        assert Signature.from_json(signature.to_json()) == signature
        content = json.loads(Path("signed.sig").read_text())
        assert sorted(content) == ["algorithm", "certificate", "context", "key", "signature"]

    def test_is_there_whole_or_not_at_all(self, folder, monkeypatch):
        def broken(*_):
            raise OSError("full")

        monkeypatch.setattr("ppdp.certificate.document.os.fsync", broken)
        before = sorted(folder.iterdir())
        with pytest.raises(ExportError, match=r"cannot write 'new\.sig'"):
            Signature.load("signed.sig").save("new.sig")
        with pytest.raises(ExportError, match="cannot write"):
            certificate("gated, sum").save("signed.sig")
        assert sorted(folder.iterdir()) == before
        assert Signature.load("signed.sig")

    @pytest.mark.parametrize("path", ["", ".", "a pipe", "missing/x", "signed.sig/x", "a" * 256])
    def test_what_is_no_place_for_a_file_is_a_typed_error(self, folder, path):
        os.mkfifo("a pipe")
        signature = Signature.load("signed.sig")
        for write in (signature.save, certificate("gated, sum").save):
            with pytest.raises(ExportError):
                write(path)
        assert stat.S_ISFIFO(os.stat("a pipe").st_mode)

    @pytest.mark.parametrize("path", ["/", "", "."])
    def test_nor_is_there_a_certificate(self, folder, path, capsys):
        assert main(["sign", path, "--key", "key.pem"]) == 2
        assert "is no file" in capsys.readouterr().err

    @pytest.mark.parametrize("length", [0, 1, 100, 300, -3])
    def test_cut_short(self, folder, length):
        text = Path("signed.sig").read_text()
        with pytest.raises(SignatureError, match=r"not a signature|malformed"):
            Signature.from_json(text[:length])

    @pytest.mark.parametrize("change", CHANGES)
    def test_garbled(self, change):
        content = json.loads(certificate("gated, max").sign(KEY).to_json())
        with pytest.raises(SignatureError) as caught:
            Signature.from_json(json.dumps({**content, **CHANGES[change]}))
        assert caught.value.fix
        assert caught.value.code == "signature"

    @pytest.mark.parametrize("text", ["", "[]", "null", "[" * 100_000, '{"context": 1, "context": 1}', b"\xff\xfe\x00"])
    def test_something_else(self, text):
        with pytest.raises(SignatureError, match="not a signature"):
            Signature.from_json(text)

    def test_a_file_that_is_not_there_or_too_large(self, folder):
        Path("large").write_bytes(b" " * 200_000)
        for path in ("none.sig", "large", "."):
            with pytest.raises(SignatureError, match="cannot read"):
                Signature.load(path)


class TestKeys:
    @pytest.mark.parametrize(
        "key", ["none.pem", "empty", "curve.pem", "448.pem", "key.pub", "signed.sig", "locked.pem"]
    )
    def test_no_private_key(self, folder, key):
        with pytest.raises(InvalidParameter) as caught:
            certificate("gated, max").sign(key)
        assert caught.value.fix

    @pytest.mark.parametrize("key", ["none.pem", "empty", "curve.pub", "448.pub", "key.pem", "signed.sig"])
    def test_no_public_key(self, folder, key):
        with pytest.raises(InvalidParameter) as caught:
            certificate("gated, sum").verify(signature="signed.sig", public_key=key)
        assert caught.value.fix

    @pytest.mark.parametrize("again", [False, True])
    @pytest.mark.parametrize("sign", [0, 1])
    def test_no_key_of_small_order(self, sign, again):
        """Under such a key a constant is a signature of everything, or of every eighth message."""
        encoded = [y + again * P for y in heights_of_small_order() if y + again * P < 2**255]
        assert len(encoded) == (2 if again else 5)
        for y in encoded:
            weak = Ed25519PublicKey.from_public_bytes((y | sign << 255).to_bytes(32, "little"))
            one = certificate("seeded")
            forged = Signature(seal(one.to_dict()), fingerprint(weak), (1).to_bytes(64, "little"))
            with pytest.raises(InvalidParameter, match="small order"):
                one.verify(signature=forged, public_key=weak)

    @pytest.mark.parametrize("key", [None, 7, b"", KEY.public_key(), ec.generate_private_key(ec.SECP256R1())])
    def test_objects_that_are_no_private_key(self, key):
        with pytest.raises(InvalidParameter, match="Ed25519"):
            certificate("gated, max").sign(key)

    def test_a_signature_needs_a_key_and_a_key_a_signature(self):
        one = certificate("gated, max")
        for given in ({"signature": one.sign(KEY)}, {"public_key": KEY.public_key()}):
            with pytest.raises(InvalidParameter, match="public key"):
                one.verify(**given)

    def test_nothing_of_a_private_key_is_said(self, folder, capsys):
        secret = base64.b64encode(bytes(range(32))).decode().rstrip("=")
        lines = [line for line in Path("key.pem").read_text().splitlines() if "-" not in line]
        lines += Path("locked.pem").read_text().splitlines()[1:-1]
        signature = certificate("gated, sum").sign("key.pem")
        said = [repr(signature), signature.to_json(), str(pickle.dumps(signature))]
        garbled = Path("key.pem").read_text().replace("MC4C", "MC4D")
        Path("garbled.pem").write_text(garbled)
        for key, password in (
            ("garbled.pem", None),
            ("locked.pem", None),
            ("locked.pem", b"no"),
            ("key.pem", PASSWORD),
        ):
            with pytest.raises(InvalidParameter) as caught:
                certificate("gated, max").sign(key, password=password)
            assert caught.value.__context__ is None
            said.append("".join(traceback.format_exception(caught.value)))
        assert main(["sign", "certificate.json", "--key", "key.pem"]) == 0
        assert main(["sign", "certificate.json", "--key", "garbled.pem", "--out", "a"]) == 2
        said += capsys.readouterr()
        for text in said:
            assert not any(part in text for part in (secret, "correct horse", *lines))

    def test_without_the_package(self, folder, monkeypatch):
        monkeypatch.setitem(sys.modules, "cryptography", None)
        with pytest.raises(InvalidParameter, match="not installed") as caught:
            certificate("gated, max").sign("key.pem")
        assert "ppdp[sign]" in caught.value.fix


class TestExports:
    def test_the_signature_covers_the_arrays(self, tmp_path):
        """The certificate holds the hash of the arrays and of the steps, and ``load`` compares them."""
        from sklearn.datasets import load_iris

        from ppdp import Pipeline
        from ppdp.mechanisms import GaussianMechanism
        from ppdp.transformers import MinMaxScaler

        X = load_iris().data
        pipe = Pipeline(
            [("range", MinMaxScaler(ranges=(0, 10))), ("mean", GaussianMechanism())], epsilon=1.0, delta=1e-4
        )
        first, second = copy.deepcopy(pipe).fit(X), copy.deepcopy(pipe).fit(X)
        signature = first.certificate_.sign(KEY)
        for fitted, holds in ((first, True), (second, False)):  # only the noise differs
            fitted.export(tmp_path / f"{holds}.zip")
            release = load(tmp_path / f"{holds}.zip")
            assert bool(release.certificate_.verify(signature=signature, public_key=KEY.public_key())) == holds
