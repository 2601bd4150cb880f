"""The attack at length: what its summary says, and that a release has one."""

from types import SimpleNamespace

import attack

import ppdp


def report(place, outcome="passed", when="call", **noted):
    return SimpleNamespace(
        nodeid=place, outcome=outcome, when=when, passed=outcome == "passed", user_properties=list(noted.items())
    )


def test_the_summary_counts_every_test_once_and_keeps_the_closest():
    tally = attack.Tally()
    for one in (
        report("tests/bounds/test_pca_adversary.py::test_a[1]", closest=0.5),
        report("tests/bounds/test_pca_adversary.py::test_a[1]", when="teardown"),
        report("tests/bounds/test_pca_adversary.py::test_a[2]", closest=0.75),
        report("tests/cli/test_cli.py::test_b", "failed"),
        report("tests/cli/test_cli.py::test_c", "skipped", when="setup"),
        report("literature/claims.py::literature.claims"),
    ):
        tally.pytest_runtest_logreport(one)
    page = attack.page(tally, [], 1.5)
    assert f"ppdp {ppdp.__version__}, " in page
    assert "everything, in 1.5 hours: 3 passed, 1 failed, 1 skipped." in page
    assert "| `tests/bounds` | 2 | 0 | 0 |" in page
    assert "| `tests/cli` | 0 | 1 | 1 |" in page
    assert "| pca | 0.7500 |" in page


def test_what_was_mended_is_run_again_beside_the_run_before(monkeypatch, tmp_path):
    monkeypatch.setattr(attack, "SUMMARY", tmp_path / "summary.md")
    monkeypatch.setattr(attack, "LAST", tmp_path / "kept" / "attack.json")
    ends = iter(["failed", "failed", "passed", "failed"])

    def run(options, plugins):
        for test in ("tests/cli/test_cli.py::test_a", "tests/cli/test_cli.py::test_b"):
            plugins[0].pytest_runtest_logreport(report(test, next(ends)))
        return 1

    monkeypatch.setattr(attack.pytest, "main", run)
    for parts, said in (([], ": 0 passed, 2 failed, 0 skipped."), (["--again", "a", "b"], ": 1 passed, 1 failed, ")):
        assert attack.main(parts) == 1
        assert said in attack.SUMMARY.read_text("utf-8")
    assert "Of these 1 had failed" in attack.SUMMARY.read_text("utf-8")


def test_only_the_test_that_reads_the_summary_is_left_out_of_the_run(monkeypatch, tmp_path, request):
    asked = []
    monkeypatch.setattr(attack.pytest, "main", lambda options, plugins: asked.extend(options) or 0)
    monkeypatch.setattr(attack, "SUMMARY", tmp_path / "summary.md")
    monkeypatch.setattr(attack, "LAST", tmp_path / "attack.json")
    assert attack.main([]) == 0
    left_out = [option for option in asked if "::" in option]
    assert left_out == [request.node.nodeid.replace(request.node.name, test_the_release_was_attacked.__name__)]


def test_the_release_was_attacked():
    said = attack.SUMMARY.read_text("utf-8")
    assert f"ppdp {ppdp.__version__}, " in said
    assert ", 0 failed," in said
