"""A cluster of processes computes what an array gives, to the last bit; rows, ledger and noise stay where they are."""

import importlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import cloudpickle
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from effort import rounds
from sklearn.base import clone
from streamed import front, left, partitions, table_of

import ppdp
from ppdp import Domain, Ledger, make_column_map, make_pipeline
from ppdp.core.boundary import at_step
from ppdp.data.engine import arrow, tasks
from ppdp.data.engine import dask as engine
from ppdp.data.engine.dask import connected
from ppdp.data.engine.registry import opened_source
from ppdp.data.parallel import PIECE
from ppdp.exceptions import (
    DomainMismatch,
    InvalidInput,
    InvalidParameter,
    InvalidValue,
    NonNumericData,
    RowsChanged,
    StageFailed,
    WorkerLost,
)
from ppdp.mechanisms import GaussianMechanism, GradientBoostingClassifier, KMeans, LogisticRegression
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers import PCA, CategoryEncoder, MeanImputer, MinMaxScaler, RegressionImputer, RowMap

distributed = pytest.importorskip("distributed")
dd = pytest.importorskip("dask.dataframe")
dask = pytest.importorskip("dask")
delayed = dask.delayed
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import a test

N, D = 2 * PIECE + 4321, 3
SECRET = 777123.5

pytestmark = [
    pytest.mark.filterwarnings("ignore::ppdp.exceptions.CompositionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of workers that are killed
]


TABLE = table_of(N, D)

FITS = {
    "few steps": lambda: (*front(), LogisticRegression(classes=(0, 1), max_iter=2)),
    "newton": lambda: (*front(), LogisticRegression(classes=(0, 1, 2), solver="newton", max_iter=2)),
    "boosting": lambda: (front()[0], GradientBoostingClassifier(classes=(0, 1, 2), max_iter=1, max_bins=16)),
    "clusters": lambda: (*front()[:2], KMeans(3, max_iter=1)),
    "a sample first": lambda: (*front(), LogisticRegression(classes=(0, 1))),
    "classes read": lambda: (*front(), PCA(2), LogisticRegression(max_iter=1)),
    "covariance": lambda: (*front()[:1], RegressionImputer(), GaussianMechanism("covariance")),
}


def fitted(X, name="few steps", **how):
    y = None if name == "covariance" else "y"
    return make_pipeline(*FITS[name](), random_state=5, **how).fit(X, y)


@pytest.fixture(scope="module")
def whole():
    return left(fitted(TABLE))


PARTITIONS = partitions(N, many=9999)


def written(folder, partition="random", table=TABLE, size=20_000):
    for number, (a, b) in enumerate(pairwise(PARTITIONS[partition])):
        pq.write_table(table.slice(a, b - a), folder / f"{number:02}.parquet", row_group_size=size)
    return folder


def frame_of(partition, table=TABLE):
    whole = table.to_pandas()
    parts = [delayed(whole.iloc[a:b], pure=False) for a, b in pairwise(PARTITIONS[partition])]
    return dd.from_delayed(parts, meta=whole.iloc[:0], verify_meta=False)


@pytest.mark.repeated("partition", keep=3)
@pytest.mark.parametrize("partition", PARTITIONS)
def test_no_partition_of_files_shows_in_a_bit(partition, tmp_path, chosen, whole):
    size = 7777 * (1 + len(partition))
    assert left(fitted(written(tmp_path, partition, size=size))) == whole


@pytest.mark.repeated("partition", keep=2)
@pytest.mark.parametrize("partition", PARTITIONS)
def test_no_partition_of_a_frame_shows_in_a_bit(partition, chosen, whole):
    assert left(fitted(frame_of(partition))) == whole


@pytest.mark.parametrize("name", ["newton", "boosting", "clusters"])
def test_many_passes_give_the_same_bits(name, tmp_path, chosen):
    whole = left(fitted(TABLE, name))
    assert left(fitted(written(tmp_path, "many"), name)) == left(fitted(frame_of("thin"), name)) == whole


@pytest.mark.repeated("name")
@pytest.mark.parametrize("name", ["a sample first", "covariance"])
def test_tasks_of_several_blocks_give_the_same_bits(name, tmp_path, chosen, monkeypatch):
    table = TABLE if name == "a sample first" else TABLE.drop_columns(["y"])
    monkeypatch.setattr(tasks, "_blocks", lambda *_: 2)
    for given in (written(tmp_path, table=table), frame_of("random", table)):
        assert left(fitted(given, name)) == left(fitted(table, name))


@pytest.mark.repeated("size", "least")
@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("size", [1000, PIECE, 50_000, N])
@pytest.mark.parametrize("least", [1, 3])
def test_every_row_is_read_once_and_few_row_groups_twice(partition, size, least, tmp_path, monkeypatch):
    numbers = pa.table({"a": np.arange(N)})
    monkeypatch.setattr(tasks, "_blocks", lambda *_: least)
    monkeypatch.setattr(engine, "kind_of", lambda _: tasks.kind_here())
    source = tasks.of_files(arrow.opened(written(tmp_path, partition, numbers, size)), engine.DaskWorkers(None))
    given = source._tasks(lambda first, block: (first, block["a"].to_numpy()), ["a"], 1, list)
    found = [one for task in given for one in task.compute(scheduler="sync")]
    assert [first for first, _ in found] == list(range(0, N, PIECE))
    assert np.array_equal(np.concatenate([rows for _, rows in found]), np.arange(N))
    read = [id(group._fragments[0]) for make, _ in source.jobs for group in make.args[0].parts]
    assert len(read) <= len(set(read)) + len(source.jobs)


@pytest.mark.repeated("solver")
@pytest.mark.parametrize("solver", ["dpgd", "poisson"])
def test_weights_of_rows_and_classes(solver, tmp_path, chosen):
    weights = np.random.default_rng(1).uniform(0, 3, N)
    table = TABLE.append_column("w", pa.array(weights))
    fits = []
    for given in (table, written(tmp_path, table=table), frame_of("random", table)):
        model = LogisticRegression(classes=(0, 1), max_iter=2, solver=solver, class_weight="balanced")
        pipe = make_pipeline(*front(), model, domain=ppdp.Domain(max_weight=2.0), random_state=5)
        fits.append(left(pipe.fit(given, "y", sample_weight="w")))
    assert fits[0] == fits[1] == fits[2]
    pipe = make_pipeline(*front(), clone(model), domain=ppdp.Domain(max_weight=2.0), random_state=5)
    assert left(pipe.fit(table.set_column(D + 1, "w", pa.array(weights[::-1])), "y", sample_weight="w")) != fits[0]


def test_rows_stay_with_the_workers(tmp_path, chosen, monkeypatch):
    """The scheduler of this cluster is in this process, so that whatever goes to either is counted."""
    from distributed.comm import tcp

    came, read, answers, results = [], tcp.from_frames, [], engine.DaskWorkers.results

    async def counted(frames, *given, **named):
        came.append(sum(memoryview(frame).nbytes for frame in frames))
        return await read(frames, *given, **named)

    def answered(*given):
        for result in results(*given):
            answers.append(len(cloudpickle.dumps(result)))
            yield result

    monkeypatch.setattr(tcp, "from_frames", counted)
    monkeypatch.setattr(engine.DaskWorkers, "results", answered)
    fitted(written(tmp_path), "classes read")
    assert 0 < sum(answers) < TABLE.nbytes / 100
    assert sum(answers) < sum(came) < TABLE.nbytes / 4  # with all tasks, which come from this process


class Kept(Exception):
    """What must not travel did."""


def test_only_this_process_spends_and_draws_noise(tmp_path, chosen, monkeypatch):
    def refuse(*_):
        raise Kept

    monkeypatch.setattr(Ledger, "__reduce_ex__", refuse)
    monkeypatch.setattr(Noise, "__reduce_ex__", refuse, raising=False)
    ledger = Ledger(epsilon=5.0, delta=1e-5)
    fitted(written(tmp_path), ledger=ledger, dataset="d")
    assert len(ledger.entries()) == 1


@pytest.mark.repeated("when")
@pytest.mark.parametrize("when", ["first", "later"])
def test_where_no_worker_is_nobody_waits_for_ever(when, tmp_path, monkeypatch):
    if when == "later":
        monkeypatch.setattr(engine, "kind_of", lambda _: tasks.kind_here())
    monkeypatch.setattr(engine, "PATIENCE", 0.1)
    written(tmp_path)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as own,
        distributed.Client(own) as empty,
        pytest.raises(WorkerLost),
        ppdp.engine("dask", empty),
    ):
        fitted(tmp_path)


def own_key(folder):
    """Files of a key and of the certificate that it signs for itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    ends = datetime.now(UTC) - timedelta(days=1), datetime.now(UTC) + timedelta(days=1)
    shown = x509.CertificateBuilder(name, name, key.public_key(), 1, *ends)
    shown = shown.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    hidden = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    for kind, content in (
        ("key", key.private_bytes(pem, *hidden)),
        ("cert", shown.sign(key, hashes.SHA256()).public_bytes(pem)),
    ):
        (folder / kind).write_bytes(content)
    return str(folder / "cert"), str(folder / "key")


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory):
    """A client of a scheduler and a worker as users start them, who encrypt what they say; and the scheduler."""
    folder = tmp_path_factory.mktemp("cluster")
    cert, key = own_key(folder)
    tls = ["--tls-ca-file", cert, "--tls-cert", cert, "--tls-key", key]
    line = [*tls, "--scheduler-file", str(folder / "scheduler.json"), "--host", "127.0.0.1", "--no-dashboard"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    own = {"scheduler": ["--protocol", "tls", "--port", "0"], "worker": ["--no-nanny", "--nthreads", "1"]}
    started = [
        subprocess.Popen([sys.executable, "-m", f"distributed.cli.dask_{kind}", *line, *more], **quiet)
        for kind, more in list(own.items())[: rounds(1)]
    ]
    security = distributed.Security(tls_ca_file=cert, tls_client_cert=cert, tls_client_key=key, require_encryption=True)
    try:
        file = str(folder / "scheduler.json")
        with distributed.Client(scheduler_file=file, security=security, set_as_default=False) as client:
            yield client, started[0]
    finally:
        for one in started:
            one.kill()
            one.wait()


@pytest.mark.skipif(rounds(1) == 1, reason="a worker of its own is started in an attack")
def test_ordinary_processes_that_encrypt_what_they_say_give_the_same_bits(ordinary, tmp_path, whole):
    client, _ = ordinary
    for run in (client.run_on_scheduler, client.run):  # while it imports, none of them answers
        run(importlib.import_module, "ppdp.data.engine.dask")
    with ppdp.engine("dask", client):
        assert left(fitted(written(tmp_path))) == whole
    assert client.scheduler.address.startswith("tls://")


@pytest.mark.parametrize("when", ["first", "later", "killed"])
def test_where_no_scheduler_answers_nobody_waits_for_ever(when, ordinary, tmp_path, monkeypatch):
    client, scheduler = ordinary
    if when == "later":
        monkeypatch.setattr(engine, "kind_of", lambda _: tasks.kind_here())
    scheduler.send_signal(signal.SIGKILL if when == "killed" else signal.SIGSTOP)
    monkeypatch.setattr(engine, "GONE" if when == "killed" else "SILENCE", 0.5)
    written(tmp_path)
    began = time.monotonic()
    with pytest.raises(WorkerLost), ppdp.engine("dask", client):
        fitted(tmp_path)
    assert time.monotonic() - began < 10


def test_what_a_worker_raises_is_what_this_process_would(tmp_path, chosen):
    def broken(first, table):
        raise ZeroDivisionError(SECRET)

    written(tmp_path)
    with pytest.raises(StageFailed, match="it stopped with ZeroDivisionError") as raised, at_step("a step"):
        list(opened_source(str(tmp_path)).over(broken, ["x0"], 1))
    assert str(SECRET) not in str(raised.value)
    said = []
    for given in (tmp_path, TABLE):
        with pytest.raises(InvalidValue) as raised:
            make_pipeline(MinMaxScaler(ranges=(-3, 3)), GaussianMechanism()).fit(given)
        said.append(str(raised.value))
    assert said[0] == said[1]


@pytest.mark.repeated("change")
@pytest.mark.parametrize("change", ["touched", "cut", "gone"])
def test_files_that_change_after_the_first_look_release_nothing(change, tmp_path, chosen, monkeypatch):
    path, held = written(tmp_path) / "05.parquet", tasks.TaskSource.held

    def changing(self, *given):
        if change == "touched":
            os.utime(path, ns=(1, 1))
        elif change == "cut":
            path.write_bytes(path.read_bytes()[:-100])
        else:
            path.unlink()
        return held(self, *given)

    monkeypatch.setattr(tasks.TaskSource, "held", changing)
    pipe = make_pipeline(*FITS["few steps"]())
    with pytest.raises(RowsChanged):
        pipe.fit(tmp_path, "y")
    assert not hasattr(pipe, "release_")


def test_files_that_are_not_what_they_should_be(tmp_path, chosen):
    whole = written(tmp_path) / "03.parquet"
    content = whole.read_bytes()
    whole.write_bytes(content[: len(content) // 2])
    with pytest.raises(InvalidInput, match="cannot be read"):
        fitted(tmp_path)
    whole.write_bytes(content[:4] + bytes([255]) * 100 + content[104:])  # what only a worker sees
    with pytest.raises(InvalidInput, match="cannot be read"):
        fitted(tmp_path)
    pq.write_table(TABLE.drop_columns(["x1"]), whole)
    with pytest.raises(DomainMismatch, match="has other columns than"):
        fitted(tmp_path)


def test_frames_that_are_not_what_they_should_be(chosen, tmp_path):
    whole, flag = TABLE.slice(0, 1000).to_pandas(), tmp_path / "counted"

    def other(_):
        return whole.rename(columns={"x1": "z"})

    def fewer(_):
        rows = whole.iloc[: 999 if flag.exists() else 1000]
        flag.touch()
        return rows

    def failing(_):
        raise ValueError(SECRET)

    for part, kind, words in (
        (other, DomainMismatch, "some partition lacks"),
        (fewer, RowsChanged, "changed between"),
        (failing, InvalidInput, "cannot be computed"),
    ):
        frame = dd.from_map(part, [0], meta=whole.iloc[:0])
        with pytest.raises(kind, match=words) as raised:
            fitted(frame)
        assert str(SECRET) not in str(raised.value)
    with pytest.raises(InvalidInput, match="must have names"):
        fitted(dd.from_pandas(whole.rename(columns={"x1": 1}), npartitions=1))
    for kind in ("complex", "Sparse[float]"):
        with pytest.raises(InvalidInput, match="Arrow does not have"):
            fitted(dd.from_pandas(whole.astype({"x1": kind}), npartitions=1))


def test_no_cell_of_a_frame_decides_over_its_type(chosen):
    """Of objects Arrow takes the type from the cells, and of text it takes no half of a character."""
    table = pd.DataFrame({"x0": np.linspace(-1, 1, 100), "word": pd.Series(["a", "b"] * 50, dtype=object)})
    pipe = make_pipeline(make_column_map((CategoryEncoder(["a", "b"]), ["word"])), GaussianMechanism())
    pipe.set_params(epsilon=9.0, delta=1e-4, random_state=0)
    with dask.config.set({"dataframe.convert-string": False}), pytest.raises(InvalidInput, match="hold objects"):
        pipe.fit(dd.from_pandas(table, npartitions=2))
    with dask.config.set({"dataframe.convert-string": False}):
        numbers = make_pipeline(
            MinMaxScaler(ranges=(-1, 1)), LogisticRegression(classes=(0, 1)), epsilon=9.0, delta=1e-4
        )
        model = numbers.fit(table[["x0"]], np.arange(100) % 2)
        assert len(model.predict(dd.from_pandas(table, npartitions=2))) == 100  # which reads no word
        numbers.set_params(domain=Domain(max_weight=1.0))
        with pytest.raises(InvalidInput, match="hold objects"):
            numbers.fit(dd.from_pandas(table.assign(y=1), npartitions=2), y="y", sample_weight="word")
    releases = set()
    for odd in ("\ud800", "?", "c"):
        table.loc[7, "word"] = odd
        with dask.config.set({"dataframe.convert-string": False}):
            frame = dd.from_pandas(table.astype({"word": pd.StringDtype("python")}), npartitions=2)
            releases.add(pipe.fit(frame).release_.sha256)
    assert len(releases) == 1


class Odd:
    """A category that is neither text nor a number, and says so loudly."""

    def __str__(self):
        raise ValueError(SECRET)

    __repr__ = __float__ = __str__


@pytest.mark.parametrize("known", [True, False])
def test_categories_of_several_types_are_read_each_by_itself(known, chosen):
    cells = ["a", "b", 7, 7.5, "7", None, "\ud800", date(2020, 1, 2), (1, 2)] * 20
    read = ["a", "b", "7", "7.5", "7", None, "?", "2020-01-02", "\0"] * 20
    first = CategoryEncoder({"word": ["a", "7", "2020-01-02"]})
    for how in (first, MinMaxScaler(ranges={"word": (0, 10)})):
        pipe = make_pipeline(make_column_map((how, ["word"])), GaussianMechanism(), on_invalid="repair", random_state=0)
        pipe.set_params(epsilon=9.0, delta=1e-4)
        mixed = dd.from_pandas(pd.DataFrame({"word": pd.Categorical(cells)}), npartitions=2)
        mixed = mixed if known else mixed.assign(word=mixed["word"].cat.as_unknown())
        plain = pd.DataFrame({"word": pd.Series(read, dtype=object)})
        assert pipe.fit(mixed).release_.sha256 == pipe.fit(plain).release_.sha256
    odd = dd.from_pandas(pd.DataFrame({"word": pd.Categorical([Odd(), *cells])}), npartitions=1)
    with pytest.raises(NonNumericData) as raised:
        make_pipeline(MinMaxScaler(ranges=(0, 10)), GaussianMechanism()).fit(odd)
    assert str(SECRET) not in str(raised.value)


def test_rows_that_dask_holds_are_not_brought_here(chosen):
    with pytest.raises(InvalidInput, match="stay with them"):
        opened_source(frame_of("one")).tables(["x0"])


def test_workers_of_another_kind_are_refused(tmp_path, client, monkeypatch):
    """Also one that comes when all others were asked."""
    monkeypatch.setattr(engine, "kind_of", lambda _: ("another",))
    with pytest.raises(InvalidParameter, match="differ in their processors"), ppdp.engine("dask", client):
        fitted(written(tmp_path))
    monkeypatch.undo()
    monkeypatch.setattr(client, "run", lambda _: {1: ("one",), 2: ("another",)})
    with pytest.raises(InvalidParameter, match="differ in their processors"), ppdp.engine("dask", client):
        fitted(tmp_path)


def test_the_engine_is_chosen_for_files_alone(tmp_path, chosen):
    written(tmp_path)
    assert isinstance(opened_source(str(tmp_path)), tasks.TaskSource)
    assert isinstance(opened_source(ds.dataset(tmp_path)), tasks.TaskSource)
    assert opened_source(np.zeros((2, 2))) is opened_source(pd.DataFrame({"a": [1]})) is None
    assert opened_source(delayed(1)) is None
    with ppdp.engine("arrow"):
        assert type(opened_source(str(tmp_path))) is arrow.ArrowSource


def test_a_script_that_every_process_runs_from_its_first_line_says_so(monkeypatch):
    class NotStarted:
        def __init__(self, *_, **__):
            raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr(engine, "open_client", lambda: None)
    with monkeypatch.context() as child:
        child.setattr(multiprocessing.current_process(), "_inheriting", True, raising=False)
        with pytest.raises(InvalidParameter, match=r'__name__ == "__main__"'), ppdp.engine("dask"):
            pass
    monkeypatch.setattr(distributed, "Client", NotStarted)
    with pytest.raises(InvalidParameter, match="did not start, perhaps because each runs the"), ppdp.engine("dask"):
        pass


def test_a_cluster_that_runs_is_found_by_its_address(tmp_path, client, whole):
    import dask

    address, files = client.scheduler.address, written(tmp_path)
    with ppdp.engine("dask", address):
        assert left(fitted(files)) == whole
    with dask.config.set({"scheduler-address": address}), connected(distributed.Client, None) as found:
        assert found.scheduler.address == address
        assert found.cluster is None


def test_what_has_no_cluster_says_so(monkeypatch):
    with pytest.raises(InvalidParameter, match="engine"):
        ppdp.engine("spark")
    with pytest.raises(InvalidParameter, match="need no client"):
        ppdp.engine("arrow", "tcp://head:8786")
    with pytest.raises(InvalidParameter, match="no scheduler"), ppdp.engine("dask", "nowhere://"):
        pass
    monkeypatch.setattr(engine, "open_client", lambda: None)
    with pytest.raises(InvalidInput, match=r"no client of Dask is open.*ppdp\.engine"):
        fitted(frame_of("one"))
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InvalidParameter, match=r"not installed.*ppdp\[dask\]"), ppdp.engine("dask"):
        pass


def once(marker):
    """A map whose worker is killed when it comes first; the plan tries it on zeros here."""
    here = os.getpid()

    def killed(X):
        if os.getpid() == here:
            return np.tanh(X)
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return np.tanh(X)
        os.kill(os.getpid(), signal.SIGKILL)

    return killed


def mapped(function, **how):
    steps = MinMaxScaler(ranges=(-3, 3)), MeanImputer(), RowMap(function, out_norm=2.0)
    return make_pipeline(*steps, LogisticRegression(classes=(0, 1), max_iter=4), random_state=5, **how)


@pytest.mark.skipif(rounds(1) == 1, reason="a worker is killed below; in its task only in an attack")
def test_a_worker_that_is_killed_in_a_task_changes_no_bit(tmp_path, chosen):
    files, marker = tmp_path / "rows", tmp_path / "killed"
    files.mkdir()
    pipe = mapped(once(marker)).fit(written(files), "y")
    assert marker.exists()
    assert pipe.release_.arrays["logisticregression.theta"].tobytes() == (
        mapped(np.tanh).fit(TABLE, "y").release_.arrays["logisticregression.theta"].tobytes()
    )


def test_a_worker_that_is_killed_with_the_rows_it_held_changes_no_bit(tmp_path, chosen, monkeypatch):
    passes, over = [], tasks.TaskSource.over

    def killing(self, *given):
        passes.append(self)
        if len(passes) == 5:
            os.kill(next(iter(chosen.run(os.getpid).values())), signal.SIGKILL)
        return over(self, *given)

    monkeypatch.setattr(tasks.TaskSource, "over", killing)
    name = "a sample first"
    assert left(fitted(written(tmp_path), name)) == left(fitted(TABLE, name))
    assert len(passes) > 5


def test_a_worker_that_is_lost_for_good_is_a_typed_error(tmp_path, chosen):
    files = tmp_path / "rows"
    files.mkdir()

    def allow(failures, dask_scheduler=None):
        before, dask_scheduler.allowed_failures = dask_scheduler.allowed_failures, failures
        return before

    ledger, before = Ledger(epsilon=5.0, delta=1e-5), chosen.run_on_scheduler(allow, 0)
    pipe = mapped(once(tmp_path / "killed"), ledger=ledger, dataset="d")
    try:
        with pytest.raises(WorkerLost, match=r"were lost for good.*counts this fit as spent.*memory") as raised:
            pipe.fit(written(files), "y")
    finally:
        chosen.run_on_scheduler(allow, before)
    assert raised.value.__cause__ is raised.value.__context__ is None
    assert not hasattr(pipe, "release_")
    assert len(ledger.entries()) == 1


@pytest.mark.skipif(rounds(1) == 1, reason="a cluster of its own is started in an attack")
def test_a_cluster_is_started_where_none_is(tmp_path, monkeypatch, whole):
    monkeypatch.setattr(engine, "open_client", lambda: None)
    with ppdp.engine("dask"):
        assert left(fitted(written(tmp_path))) == whole


def answering(how):
    """The address of what listens, and is no scheduler."""
    import socketserver

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            if how == "a web server":
                self.request.recv(999)
                self.request.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9)

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"tcp://127.0.0.1:{server.server_address[1]}"


@pytest.mark.repeated("where")
@pytest.mark.parametrize("where", ["a web server", "nobody stays", "tcp://127.0.0.1:9", "x", "tls://127.0.0.1:9"])
def test_an_address_without_a_scheduler_leaves_nothing_behind(where, client, monkeypatch):
    import dask

    monkeypatch.setattr(tasks, "ANSWER", 0.5)
    before = dask.config.get("scheduler", None), distributed.Client.current()
    address, began = where if "://" in where or where == "x" else answering(where), time.monotonic()
    with pytest.raises(InvalidParameter, match="no scheduler of Dask answers"), ppdp.engine("dask", address):
        pass
    assert time.monotonic() - began < 5
    assert (dask.config.get("scheduler", None), distributed.Client.current()) == before == ("dask.distributed", client)


def test_a_client_without_a_connection_is_not_taken(monkeypatch):
    """As one that was made for an address where nobody is, which is the current one from then on."""

    class HalfMade:
        status = "connecting"

    monkeypatch.setattr(distributed.Client, "current", classmethod(lambda _: HalfMade()))
    assert engine.open_client() is None


def test_all_of_a_cluster_of_its_own_writes_to_one_private_folder(tmp_path, monkeypatch):
    """Scheduler and workers: the folder goes with the process."""
    import dask

    made = {}

    class Started:
        def __init__(self, **given):
            made.update(given, here=dask.config.get("temporary-directory"))
            raise OSError

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(distributed, "Client", Started)
    monkeypatch.setattr(engine, "open_client", lambda: None)
    with pytest.raises(InvalidParameter), ppdp.engine("dask"):
        pass
    assert made["local_directory"] == made["here"]
    assert os.path.dirname(made["here"]) == str(tmp_path)
    assert os.listdir(tmp_path) == []
