"""Private numbers, and where they must not be found: among numbers, in texts and in bytes."""

import math
import re
import struct

import numpy as np


class Secrets:
    """Private numbers, as they come up inside a fit."""

    def __init__(self):
        self.values = set()
        self.counts = set()

    def add(self, values):
        """Remember every number that tells something; 0, 1 and public ends of ranges do not."""
        array = np.asarray(values, dtype=np.float64).ravel()
        array = array[np.isfinite(array)]
        self.values.update(array[(array != np.rint(array)) & (np.abs(array) > 1e-12)].tolist())

    def sorted(self):
        return np.sort(np.fromiter(self.values, dtype=np.float64))


def numbers_in(objects):
    floats, integers = [], []
    for item in objects:
        if isinstance(item, (bool, np.bool_)):
            continue
        if isinstance(item, (int, np.integer)):
            integers.append(int(item))
        elif isinstance(item, (float, np.floating)):
            floats.append(float(item))
        elif isinstance(item, np.ndarray) and item.dtype.kind == "f":
            floats.extend(item.astype(np.float64).ravel().tolist())
        elif isinstance(item, np.ndarray) and item.dtype.kind in "iu":
            integers.extend(item.ravel().tolist())
    return floats, integers


def assert_no_secret_among(numbers, secrets):
    """No number agrees with a private one to nine digits, not even with its negative."""
    known = secrets.sorted()
    found = np.abs(np.asarray([x for x in numbers if math.isfinite(x)], dtype=np.float64))
    known = np.sort(np.abs(known))
    at = np.clip(np.searchsorted(known, found), 1, len(known) - 1)
    close = np.minimum(np.abs(known[at] - found), np.abs(known[at - 1] - found)) <= 1e-9 * found
    assert not found[close & (found > 0)].tolist()


def assert_text_is_public(text, secrets):
    """No number in a text is a private one, as far as its digits go."""
    text = re.sub(r"""(?s)<(style|script).*?</\1>|(?<="), line \d+|'sha256-[^']*'""", "", text)
    tokens = re.findall(r"(?<![\w.#-])-?\d+\.?\d*(?:[eE][-+]?\d+)?(?![\w])", text)
    assert not secrets.counts & {int(token) for token in tokens if token.isdigit()}
    known = np.abs(secrets.sorted())
    for token in tokens:
        digits = len(re.sub(r"[eE].*|^-?0*\.?0*|\D", "", token))
        if digits >= 6 and float(token):
            rounded = np.abs(known / abs(float(token)) - 1) < 0.5 * 10.0 ** (1 - digits)
            assert not rounded.any(), token


def assert_bytes_are_public(data, secrets):
    """No eight bytes in a row, in either order, are a private number; nor is its text."""
    windows = {data[i : i + 8] for i in range(len(data) - 7)}
    for value in secrets.values:
        for pattern in (struct.pack("<d", value), struct.pack(">d", value)):
            assert pattern not in windows
        assert repr(value).encode() not in data


def texts_of(pipe):
    texts = [repr(pipe), str(pipe), pipe._repr_html_(), str(pipe._repr_mimebundle_()), repr(pipe.get_params(deep=True))]
    texts += [repr(step) for step in pipe.named_steps.values()] + [repr(vars(pipe))]
    certificate = getattr(pipe, "certificate_", None)
    if certificate is not None:
        texts += [repr(certificate), certificate.to_text(full=True), certificate.to_html(), certificate._repr_html_()]
        texts += [certificate.to_json(), repr(certificate.verify()), repr(pipe.release_)]
    return texts
