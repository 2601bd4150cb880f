"""``ppdp sign`` and ``ppdp verify --signature``: what they do, and what they say of what cannot be done."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import keys
import pytest
from zoo import document, sealed

from ppdp import Certificate
from ppdp.certificate import Signature, StatusList
from ppdp.cli.main import main
from ppdp.exceptions import SignatureError

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


def test_a_status_list_is_signed_as_a_certificate_is(folder, capsys):
    asked = [
        "verify",
        "certificate.json",
        "--signature",
        "signed.sig",
        "--public-key",
        "key.pub",
        "--status",
        "list.json",
    ]
    StatusList("2999-01-01", "2999-02-01", {}).save("list.json")
    for made, said in ((None, "which is not signed"), ("key", "signed with the same key")):
        if made:
            assert main(["sign", "list.json", "--key", f"{made}.pem"]) == 0
        capsys.readouterr()
        assert main(asked) == 0
        assert f"status: not withdrawn, by the list of 2999-01-01, {said}" in capsys.readouterr().out
    assert main([*asked[:2], *asked[-2:]]) == 0
    assert "whose signature was not checked" in capsys.readouterr().out
    assert main([*asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status_list"] == "signed with the same key"
    StatusList("2999-01-02", "2999-02-01", {}).save("list.json")
    assert main(asked) == 2
    assert "another list" in capsys.readouterr().err
    Path("list.json.sig").unlink()
    assert main(["sign", "list.json", "--key", "another.pem"]) == 0
    assert main(asked) == 2
    assert "another key" in capsys.readouterr().err


def test_no_signature_of_a_list_passes_for_one_of_a_certificate(folder):
    listed, one = StatusList("2999-01-01", "2999-02-01", {}), Certificate.load("certificate.json")
    of_list, of_one = listed.sign("key.pem"), one.sign("key.pem")
    assert Signature.from_json(of_list.to_json()) == of_list
    for forged, what in (
        (replace(of_one, context=of_list.context), one),
        (replace(of_list, context=of_one.context), listed),
    ):
        with pytest.raises(SignatureError, match="another"):
            forged.check(what, "key.pub")
    relabelled = replace(of_one, certificate=of_list.certificate, context=of_list.context)
    with pytest.raises(SignatureError, match="not made with this key"):
        relabelled.check(listed, "key.pub")
