"""``ppdp sign`` and ``ppdp verify --signature``: what they do, and what they say of what cannot be done."""

from __future__ import annotations

import json
from pathlib import Path

import keys
import pytest
from zoo import document, sealed

from ppdp.certificate import Signature
from ppdp.cli.main import main

folder = keys.folder  # pytest finds a fixture by its name in the test's own module


SIGN = ("sign", "certificate.json", "--key")
VERIFY = ("verify", "certificate.json", "--signature")
WRONG = {
    "no key": (SIGN[:2], "ppdp sign", "--key"),
    "a key that is not there": ((*SIGN, "none.pem"), "--key", "cannot read"),
    "a key of another kind": ((*SIGN, "curve.pem"), "--key", "Ed25519"),
    "a public key": ((*SIGN, "key.pub"), "--key", "cannot be read"),
    "no password": ((*SIGN, "locked.pem"), "--key", "password"),
    "another password": ((*SIGN, "locked.pem", "--password", "wrong"), "--key", "password"),
    "a password that is not there": ((*SIGN, "locked.pem", "--password", "none"), "--password", "cannot be read"),
    "no certificate": (("sign", "none.json", "--key", "key.pem"), "none.json", "cannot read"),
    "something else to sign": (("sign", "password", "--key", "key.pem"), "password", "not a JSON"),
    "a file that is there": ((*SIGN, "key.pem", "--out", "other.json"), "--out", "already there"),
    "no folder": ((*SIGN, "key.pem", "--out", "no/where.sig"), "--out", "make it first"),
    "a signature alone": ((*VERIFY, "signed.sig"), "--public-key", "give both"),
    "a key alone": (("verify", "certificate.json", "--public-key", "key.pub"), "--signature", "give both"),
    "no signature": ((*VERIFY, "none.sig", "--public-key", "key.pub"), "--signature", "cannot read"),
    "something else": ((*VERIFY, "other.json", "--public-key", "key.pub"), "--signature", "not a signature"),
    "a private key": ((*VERIFY, "signed.sig", "--public-key", "key.pem"), "--public-key", "public key"),
    "another kind": ((*VERIFY, "signed.sig", "--public-key", "curve.pub"), "--public-key", "Ed25519"),
}


class TestCommandLine:
    def test_signs_and_verifies(self, folder, capsys):
        assert main(["sign", "certificate.json", "--key", "key.pem"]) == 0
        assert "written: certificate.json.sig" in capsys.readouterr().out
        asked = ["verify", "certificate.json", "--signature", "certificate.json.sig", "--public-key"]
        assert main([*asked, "key.pub"]) == 0
        assert "signed with the key sha256:" in capsys.readouterr().out
        assert main([*asked, "key.pub", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["signer"] == Signature.load("signed.sig").key
        assert main([*asked, "another.pub"]) == 1
        assert "another key" in capsys.readouterr().out
        assert main(["verify", "other.json", *asked[2:], "key.pub", "--quiet"]) == 1

    def test_a_locked_key(self, folder):
        assert (
            main(["sign", "certificate.json", "--key", "locked.pem", "--password", "password", "--out", "x.sig"]) == 0
        )
        assert Path("x.sig").read_bytes() == Path("signed.sig").read_bytes()

    def test_a_certificate_that_does_not_hold_is_not_signed(self, folder, capsys):
        Path("forged.json").write_text(json.dumps(sealed({**document("gated, sum"), "epsilon": 0.1})))
        assert main(["sign", "forged.json", "--key", "key.pem"]) == 1
        assert "cost more" in capsys.readouterr().err
        assert not Path("forged.json.sig").exists()

    @pytest.mark.parametrize("case", WRONG)
    def test_what_cannot_be_carried_out(self, folder, case, capsys):
        arguments, place, what = WRONG[case]
        before = {path: path.read_bytes() for path in folder.iterdir()}
        assert main(arguments) == 2
        assert {path: path.read_bytes() for path in folder.iterdir()} == before
        out, error = capsys.readouterr()
        assert out == ""
        assert error.count("\n") == 1
        assert error.startswith(f"ppdp: error: {place}")
        assert what in error
        assert " Fix: " in error
