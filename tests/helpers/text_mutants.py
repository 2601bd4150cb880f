"""Changes of the text of a certificate: some say the same in other characters, some nothing at all."""

from __future__ import annotations

import json
import random
import re

from ppdp.exceptions import PpdpError

_NUMBER = re.compile(r"(?<=[\s\[])-?\d+(\.\d+)?([eE][+-]?\d+)?(?=[,\s\]])")


def truncated(rng: random.Random, text: str) -> str:
    return text[: rng.randrange(len(text.rstrip()))]


def characters(rng: random.Random, text: str) -> str:
    """Some characters are gone, or others."""
    letters = list(text.rstrip())
    for _ in range(rng.choice((1, 1, 2, 10))):
        i = rng.randrange(len(letters))
        letters[i] = rng.choice(("", rng.choice(letters), chr(rng.randrange(0xD800)), letters[i] * 2))
    return "".join(letters)


def other_digit(rng: random.Random, text: str) -> str:
    i = rng.choice([m.start() for m in re.finditer(r"\d", text)])
    return text[:i] + rng.choice([d for d in "0123456789" if d != text[i]]) + text[i + 1 :]


def no_number(rng: random.Random, text: str) -> str:
    """What some readers of JSON take for a number."""
    words = ("NaN", "Infinity", "-Infinity", "1e400", "-1e400", "0x10", "01", "+1", ".5", "1.", "1_0", "1e", "9" * 5000)
    return _number(rng, text, lambda _: rng.choice(words))


def key_twice(rng: random.Random, text: str) -> str:
    """A key that is there twice, with the same value or another."""
    line = rng.choice(list(re.finditer(r'^ *"(\w+)": ([^\[\{\n]+?),?$', text, flags=re.M)))
    value = rng.choice((line[2], "0.001", "null", '"UNCONDITIONAL"'))
    return text[: line.start()] + f'"{line[1]}": {value},\n' + text[line.start() :]


def more_behind(rng: random.Random, text: str) -> str:
    return text + rng.choice(("{}", "x", "]", ",", "\x00", "// checked", '{"status": "UNCONDITIONAL"}'))


def wrapped(rng: random.Random, text: str) -> str:
    depth = rng.choice((1, 100, 100_000))
    return "[" * depth + text + "]" * depth


def bytes_of_another_kind(rng: random.Random, text: str) -> bytes:
    data = bytearray(text.encode())
    for _ in range(rng.choice((1, 3, 50))):
        data[rng.randrange(len(data) - 1)] = rng.randrange(128, 256)
    return bytes(data)


def another_layout(rng: random.Random, text: str) -> str:
    return json.dumps(json.loads(text), indent=rng.choice((None, 0, 7)), ensure_ascii=rng.random() < 0.5)


def another_order(rng: random.Random, text: str) -> str:
    def shuffled(pairs: list) -> dict:
        rng.shuffle(pairs)
        return dict(pairs)

    return json.dumps(json.loads(text, object_pairs_hook=shuffled))


def another_encoding(rng: random.Random, text: str) -> bytes:
    return text.encode(rng.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig")))


def another_spelling(rng: random.Random, text: str) -> str:
    """The same double in other digits."""

    def respelled(number: str) -> str:
        if not re.search(r"[.eE]", number):
            return number  # 1 and 1.0 differ to the digest
        return rng.choice((f"{float(number):.25e}", f"{float(number):.60f}" if abs(float(number)) > 1e-9 else number))

    return _number(rng, text, respelled)


def escaped(rng: random.Random, text: str) -> str:
    i = rng.choice([m.start() for m in re.finditer(r"[A-Za-z](?=\w*\":)", text)])
    return text[:i] + f"\\u{ord(text[i]):04x}" + text[i + 1 :]


def _number(rng: random.Random, text: str, change: object) -> str:
    found = rng.choice(list(_NUMBER.finditer(text)))
    return text[: found.start()] + change(found[0]) + text[found.end() :]


NEUTRAL = (another_layout, another_order, another_encoding, another_spelling, escaped)
TEXT_CHANGES = (
    truncated, characters, characters, other_digit, no_number, key_twice, more_behind, wrapped, bytes_of_another_kind,
    *NEUTRAL,
)  # fmt: skip


def bits_flipped(path, read, whole, runs):
    """How often a file is refused of which one bit is another; what is read of it otherwise is the whole."""
    content, refused = path.read_bytes(), 0
    for seed in range(runs):
        rng, data = random.Random(seed), bytearray(content)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(data))
        try:
            assert read(path) == whole
        except PpdpError:
            refused += 1
    return refused
