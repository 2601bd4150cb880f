"""A thousand mutated exports: typed errors or the very same release, and nothing is ever executed."""

import base64
import contextlib
import hashlib
import io
import json
import pickle
import random
import sys
import zipfile
from collections import Counter

import clinic
import numpy as np
import pytest
from effort import rounds

import ppdp
from ppdp import Certificate, make_pipeline
from ppdp.certificate.share.files import pack_arrays
from ppdp.cli.main import main
from ppdp.exceptions import PpdpError
from ppdp.interop.sklearn import ColumnGroup, ColumnMap
from ppdp.mechanisms import GaussianMechanism
from ppdp.pipeline.release.export import CERTIFICATE, EXAMPLE, INFERENCE, MANIFEST, PARAMETERS, README
from ppdp.transformers import NormClipper, RowMap, StandardScaler
from ppdp.transformers.columns.categories import OneHot
from ppdp.transformers.columns.features import PolynomialTerms
from ppdp.transformers.columns.maps import Binned, FillConstant, FunctionMap

patients = clinic.patients  # pytest finds a fixture by its name in the test's own module

FUNCTIONS = {"rowmap": np.tanh}
TELLTALE = {
    "compile",
    "exec",
    "import",
    "os.exec",
    "os.posix_spawn",
    "os.system",
    "pickle.find_class",
    "socket.connect",
}
TELLTALE |= {"ctypes.dlopen", "os.fork", "os.remove", "os.rename", "subprocess.Popen", "marshal.loads", "code.__new__"}


class Bomb:
    """Says when it is unpickled."""

    def __reduce__(self):
        return exec, ("import sys; sys.exploded = True",)


BOMB = pickle.dumps(Bomb())


class Watch:
    """What the interpreter is asked to do meanwhile."""

    def __init__(self):
        self.on, self.seen = False, []
        sys.addaudithook(self.heard)

    def heard(self, event, arguments):
        wrote = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
        if self.on and (event in TELLTALE or wrote):
            self.seen.append((event, arguments[0] if arguments else None))

    def __enter__(self):
        self.seen.clear()
        self.on = True
        return self

    def __exit__(self, *_):
        self.on = False


WATCH = Watch()


@pytest.fixture(scope="module")
def exports(patients, tmp_path_factory):
    """Members of four exports, and the hash of each."""
    folder, found = tmp_path_factory.mktemp("exports"), []
    blocks = (
        ColumnGroup([0], (OneHot(((0, "x"),)),)),
        ColumnGroup([1], (FillConstant(0.0), FunctionMap(np.tanh), PolynomialTerms(2), Binned(3, hot=True))),
    )
    columns = ColumnMap((*blocks, ColumnGroup(None, (FillConstant(None),), rest=True)), (-1, 1))
    X = patients[0].fillna(0.0).to_numpy() / 100
    for name, pipe, y in (
        ("classifier", clinic.classifier(random_state=None), patients[1]),
        ("map", make_pipeline(NormClipper(), RowMap(np.tanh, out_ranges=(-1, 1)), StandardScaler(), delta=1e-5), None),
        ("counts", make_pipeline(NormClipper(), GaussianMechanism("histogram", bins=4), delta=1e-5), None),
        ("columns", make_pipeline(columns, StandardScaler(), delta=1e-5), None),
    ):
        pipe.fit(patients[0] if y is not None else X, y)
        hashed = pipe.export(folder / f"{name}.zip")
        with zipfile.ZipFile(folder / f"{name}.zip") as archive:
            found.append((pipe, {member: archive.read(member) for member in archive.namelist()}, hashed))
        ppdp.load(folder / f"{name}.zip", functions=FUNCTIONS)  # whatever is imported on the way is now
    return found


# ---------------------------------------------------------------- tools


def packed(members, *, compression=zipfile.ZIP_STORED, again=()):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in [*members.items(), *again]:
            archive.writestr(zipfile.ZipInfo(name), data, compression)
    return buffer.getvalue()


def resealed(members):
    """The members, with a manifest that speaks the truth about their hashes."""
    manifest = json.loads(members[MANIFEST])
    others = {name: data for name, data in members.items() if name != MANIFEST}
    manifest["sha256"] = {name: hashlib.sha256(data).hexdigest() for name, data in others.items()}
    with contextlib.suppress(KeyError, TypeError, ValueError, RecursionError):
        certificate = json.loads(members[CERTIFICATE])
        manifest |= {"certificate": certificate["digest"], "status": certificate["status"]}
    return {MANIFEST: json.dumps(manifest).encode(), **others}


def leaves(value, path=()):
    if isinstance(value, (dict, list)) and value:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, key))
    else:
        yield path


def edited(data, rng):
    """One leaf of a JSON document is another value, is gone, or has company."""
    document = json.loads(data)
    path = rng.choice(list(leaves(document)))
    parent = document
    for key in path[:-1]:
        parent = parent[key]
    odd = [None, True, -1, 10**400, 1e308, "", "x", "..", [], {}, {"array": {}}, {"function": "os.system"}, [[]] * 3]
    odd += [{"array": {"dtype": "|O8", "shape": [1], "data": base64.b64encode(BOMB).decode()}}, {"tuple": 3}]
    odd += [{"mapping": [[[], 1]]}, {"number": "1"}, {"object": "builtins.exec"}, {"a": 1, "b": 2}]
    if rng.random() < 0.8:
        parent[path[-1]] = rng.choice(odd)
    elif isinstance(parent, dict):
        del parent[path[-1]]
    else:
        parent.append(rng.choice(odd))
    return json.dumps(document).encode()


def array_file(header, data=b"\0" * 24):
    text = header.encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


def odd_array(rng):
    """A file of one array as nobody should write it."""
    objects = io.BytesIO()
    np.save(objects, np.array([Bomb()], dtype=object), allow_pickle=True)
    header = "{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}\n"
    return rng.choice(
        [
            objects.getvalue(),
            BOMB,
            b"",
            array_file(header.format("<f8", False, "(3,)"), np.array([np.nan, 1, 2]).tobytes()),
            array_file(header.format("<f8", False, "(3,)"), np.array([np.inf, 1, 2]).tobytes()),
            array_file(header.format("<f8", False, f"({10**18},)")),
            array_file(header.format("<f8", False, f"({'9' * 5000},)")),
            array_file(header.format("<f8", False, "(-3,)")),
            array_file(header.format("<f8", True, "(3,)")),
            array_file(header.format("|O", False, "(3,)"), BOMB),
            array_file(header.format("<f4", False, "(6,)")),
            array_file("__import__('sys').__setattr__('exploded', True)\n"),
        ]
    )


# ---------------------------------------------------------------- mutations


def flip(members, rng):
    data = bytearray(packed(members))
    for _ in range(rng.choice([1, 1, 3])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def cut(members, rng):
    data, at = packed(members), rng.random()
    first, second = sorted(rng.randrange(len(data)) for _ in range(2))
    return data[:first] if at < 0.4 else data[:first] + data[second:] if at < 0.7 else data[first:second] * 2 + data


def shuffle(members, rng):
    """Members swapped, gone, renamed, twice, compressed, too many."""
    one, other = rng.sample(sorted(members), 2)
    name = rng.choice(["../../x.py", "/etc/x", "sitecustomize.py", "a/", "", "CON", one.upper(), f"./{one}", "a\0b"])
    kind = rng.randrange(6)
    if kind == 0:
        return packed({**members, one: members[other], other: members[one]})
    if kind == 1:
        return packed({key: data for key, data in members.items() if key != one})
    if kind == 2:
        return packed({name if key == one else key: data for key, data in members.items()})
    if kind == 3:
        with pytest.warns(UserWarning, match="Duplicate"):
            return packed(members, again=[(one, rng.choice([members[one], members[other], BOMB]))])
    if kind == 4:
        return packed({**members, one: b"\0" * 10**6}, compression=zipfile.ZIP_DEFLATED)
    return packed({**members, name: BOMB})


def edit(members, rng):
    name = rng.choice([MANIFEST, CERTIFICATE, INFERENCE])
    changed = {**members, name: edited(members[name], rng)}
    return packed(changed if name == MANIFEST else resealed(changed))


def replace(members, rng):
    """A member of something else, by somebody who computes the hashes again."""
    name = rng.choice(sorted(members.keys() - {MANIFEST}))
    odd = [BOMB, b"", b"null", b"[" * 10**5, b'{"schema": 1, "schema": 2}', b"\xff\xfe", b"NaN", members[README]]
    return packed(resealed({**members, name: rng.choice(odd)}))


def arrays(members, rng):
    """Arrays changed, swapped or odd, by somebody who computes the hashes again."""
    name = rng.choice([name for name in (PARAMETERS, EXAMPLE) if name in members])
    with zipfile.ZipFile(io.BytesIO(members[name])) as archive:
        inner = {member: archive.read(member) for member in archive.namelist()}
    one, other = rng.choice(sorted(inner)), rng.choice(sorted(inner))
    kind = rng.randrange(4)
    if kind == 0:
        inner[one] = odd_array(rng)
    elif kind == 1:
        data = bytearray(inner[one])
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        inner[one] = bytes(data)
    elif kind == 2:
        inner[rng.choice(["../x.npy", "model.theta.pkl", "y.npy"])] = inner.pop(one)
    else:
        inner[one], inner[other] = inner[other], inner[one]
    return packed(resealed({**members, name: packed(inner)}))


def forge(members, rng):
    """A certificate that was edited and sealed again, with hashes that fit: only the hash of the export tells."""
    changed = json.loads(edited(members[CERTIFICATE], rng))
    with contextlib.suppress(TypeError, ValueError):
        changed = Certificate.sealed(changed).to_dict() if isinstance(changed, dict) else changed
    return packed(resealed({**members, CERTIFICATE: json.dumps(changed).encode()}))


def invent(members, rng):
    """Other steps, in a certificate that was issued for them by whoever made them up."""
    inference = edited(members[INFERENCE], rng)
    certificate = json.loads(members[CERTIFICATE])
    certificate["released"]["inference"] = hashlib.sha256(inference).hexdigest()
    sealed = json.dumps(Certificate.sealed(certificate).to_dict()).encode()
    return packed(resealed({**members, INFERENCE: inference, CERTIFICATE: sealed}))


MUTATIONS = [flip, cut, shuffle, edit, replace, arrays, forge]


def same(loaded, pipe):
    return (
        loaded.certificate_ == pipe.certificate_
        and loaded.release_.sha256 == pipe.release_.sha256
        and loaded.release_.inference == pipe.release_.inference
        and all(repr(vars(a)) == repr(vars(b)) for (_, a), (_, b) in zip(loaded.twins_, pipe.twins_, strict=True))
    )


@pytest.mark.parametrize("mutate", MUTATIONS)
def test_a_mutated_export_is_refused_or_the_same_and_executes_nothing(exports, tmp_path, mutate):
    outcomes = Counter()
    seeds = rounds(24)
    for seed in range(seeds):
        rng = random.Random(seed)
        pipe, members, hashed = exports[seed % len(exports)]
        path = tmp_path / "mutated.zip"
        path.write_bytes(mutate(members, rng))
        error = loaded = None
        with WATCH:
            try:
                loaded = ppdp.load(path, functions=FUNCTIONS, sha256=hashed if mutate is forge else None)
            except PpdpError as refused:
                error = refused
        assert not WATCH.seen, (seed, error)
        assert not hasattr(sys, "exploded")
        assert error is not None or same(loaded, pipe), seed
        assert [entry.name for entry in tmp_path.iterdir()] == ["mutated.zip"]
        outcomes["refused" if error else "same"] += 1
    assert outcomes["refused"] > 0.6 * seeds


def test_an_export_that_somebody_made_up_executes_nothing_either(exports, tmp_path):
    """It agrees with itself, so only its hash tells; whatever it says, errors are typed and nothing runs."""
    path, outcomes = tmp_path / "invented.zip", Counter()
    for seed in range(rounds(75)):
        _, members, hashed = exports[seed % len(exports)]
        path.write_bytes(invent(members, random.Random(seed)))
        with pytest.raises(PpdpError, match="another export"):
            ppdp.load(path, functions=FUNCTIONS, sha256=hashed)
        with WATCH:
            try:
                ppdp.load(path, functions=FUNCTIONS)
                outcomes["loaded"] += 1
            except PpdpError:
                outcomes["refused"] += 1
        assert not WATCH.seen, seed
        assert not hasattr(sys, "exploded")
    assert outcomes["refused"] > rounds(25)


def test_the_watch_hears_what_a_bomb_does():
    try:
        with WATCH:
            pickle.loads(BOMB)
        assert "exec" in [event for event, _ in WATCH.seen]
        assert sys.exploded
    finally:
        del sys.exploded


def test_a_certificate_of_another_release_is_refused(exports, tmp_path):
    (_, one, _), (_, other, _) = exports[:2]
    (tmp_path / "x.zip").write_bytes(packed(resealed({**one, CERTIFICATE: other[CERTIFICATE]})))
    with pytest.raises(PpdpError):
        ppdp.load(tmp_path / "x.zip")


def test_other_numbers_do_not_verify(exports, tmp_path, capsys):
    """Whoever changes them can make a manifest that agrees with them, but no certificate."""
    (_, members, _), *_ = exports
    with np.load(io.BytesIO(members[PARAMETERS])) as arrays:
        other = pack_arrays({name: array + 1.0 for name, array in arrays.items()})
    for changed in ({PARAMETERS: other}, {INFERENCE: members[INFERENCE] + b" "}):
        (tmp_path / "x.zip").write_bytes(packed(resealed({**members, **changed})))
        assert main(["verify", str(tmp_path / "x.zip")]) == 1
        assert "are not those that the certificate was issued for" in capsys.readouterr().err
        with pytest.raises(PpdpError):
            ppdp.load(tmp_path / "x.zip")


@pytest.mark.parametrize("before", [True, False], ids=["before", "behind"])
def test_nothing_stands_beside_the_members(exports, tmp_path, before):
    (_, members, _), *_ = exports
    data, beside = packed(members), b"rows of a table"
    (tmp_path / "x.zip").write_bytes(beside + data if before else data + beside)
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        assert archive.testzip() is None
    with pytest.raises(PpdpError, match="archive"):
        ppdp.load(tmp_path / "x.zip")


def test_members_that_share_their_bytes_are_no_bomb(exports, tmp_path):
    """A central directory may point to the same bytes many times; together they would be longer than the file."""
    data = bytearray(packed({"a": b"\0" * 1000}))
    entry = data[data.index(b"PK\x01\x02") : data.index(b"PK\x05\x06")]
    start, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    many = b"".join(bytes(entry[:-1]) + bytes([98 + i]) for i in range(9))
    tail = data[end:]
    tail[8:12] = (10).to_bytes(2, "little") * 2
    tail[12:16] = (len(entry) + len(many)).to_bytes(4, "little")
    (tmp_path / "x.zip").write_bytes(bytes(data[:start]) + bytes(entry) + many + bytes(tail))
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        assert len(archive.infolist()) == 10
    with pytest.raises(PpdpError, match="archive"):
        ppdp.load(tmp_path / "x.zip")
