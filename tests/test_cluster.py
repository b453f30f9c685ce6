"""Toys on real Dask clusters, whose parts die and come; and in batch jobs without one."""

import functools
import gc
import os
import signal
import sys
import time
import uuid

import numpy as np
import pytest
from click.testing import CliRunner
from test_store import CHUNK, N_TOYS, THREE_CHUNKS, assert_same, make_samples, names, quick

import sparker
from sparker.calibration.toys import ClusterError
from sparker.cli.main import main
from sparker.statistics import batched

distributed = pytest.importorskip("distributed")
cluster_module = pytest.importorskip("sparker.calibration.cluster")

LocalCluster = functools.partial(
    distributed.LocalCluster, threads_per_worker=1, dashboard_address=":0", silence_logs=50
)
ON_CPU = {"JAX_PLATFORMS": "cpu"}


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes that most tests share; who is killed comes back."""
    with LocalCluster(n_workers=2, processes=True, env=ON_CPU) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster, set_as_default=False) as client:
        yield client


def mean_shift(rng, sample):
    means = [weight @ sample.points / weight.sum() for weight in sample[1:]]
    return np.abs(means[1] - means[0])


def witnessed(rng, sample, folder, pause=0.1):
    """A slow statistic that leaves behind who evaluated it."""
    (folder / f"{os.getpid()}-{uuid.uuid4()}").touch()
    time.sleep(pause)
    return mean_shift(rng, sample)


@pytest.fixture
def slow(tmp_path):
    folder = tmp_path / "witnesses"
    folder.mkdir()
    return functools.partial(witnessed, folder=folder)


def witnesses(slow):
    """How often each process evaluated it for a toy: all but once, when it prepared."""
    pids = [name.partition("-")[0] for name in os.listdir(slow.keywords["folder"])]
    return {int(pid): pids.count(pid) - 1 for pid in set(pids) - {str(os.getpid())}}


def run(**settings):
    return sparker.test(*make_samples(), **quick(**settings))


def at(wanted, act):
    """Progress that acts once, when so many are done."""
    acted = []

    def tell(done, total):
        if done == wanted and not acted:
            acted.append(done)
            act()

    return tell


def assert_same_but_for_the_name(one, other):
    """The same, whatever other function computed the same statistic."""
    assert one.p_value == other.p_value
    np.testing.assert_array_equal(one.statistics, other.statistics)
    np.testing.assert_array_equal(one.null_statistics, other.null_statistics)


@functools.cache
def expected():
    return run(statistic=mean_shift)


def pids(cluster):
    return [worker.pid for worker in cluster.workers.values()]


# All is well.


OTHERS = sparker.Simulator(np.random.default_rng(9).normal(size=(300, 2)))


@pytest.mark.parametrize("null", ["permutation", OTHERS], ids=["shared points", "their own"])
def test_workers_find_the_same_to_the_bit(null, client, tmp_path):
    here = run(null=null)  # first: what is compiled here serves the workers
    told = []
    found = run(
        null=null, cluster=client, store=tmp_path, progress=lambda done, total: told.append(done)
    )
    assert_same(found, here)
    assert told[0] == 0
    assert told[-1] == N_TOYS + 1
    assert told == sorted(set(told))
    assert_same(run(null=null, store=tmp_path), here)  # and the store has the same


def test_the_chunk_is_what_suits_the_workers(client, tmp_path, monkeypatch):
    def two(self, toys, number, n_toys):  # here; there, it is 16
        return 2

    monkeypatch.setattr(batched.PreparedBatches, "chunk_size", two)
    run(statistic=mean_shift, chunk=None, cluster=client, store=tmp_path)
    assert names(tmp_path) == ["toys-000000-000011.sparker"]


def test_a_full_store_needs_no_worker(client, tmp_path):
    run(statistic=mean_shift, store=tmp_path)
    client.close()
    assert_same(run(statistic=mean_shift, chunk=None, store=tmp_path, cluster=client), expected())


def test_stopping_early_cancels_what_is_not_needed(client, slow):
    settings = {"n_toys": 400, "stop": sparker.Sequential(exceedances=1, first=10)}
    slow = functools.partial(slow, pause=0.02)
    found = run(statistic=slow, cluster=client, **settings)
    assert_same_but_for_the_name(found, run(statistic=mean_shift, **settings))
    assert found.n_toys < 100
    time.sleep(0.5)  # for what was running
    made = sum(witnesses(slow).values())
    assert made < 300
    time.sleep(0.5)
    assert sum(witnesses(slow).values()) == made


INSIDE, MAX_INSIDE = [], []


def counted(rng, sample):
    INSIDE.append(1)
    MAX_INSIDE.append(len(INSIDE))
    time.sleep(0.01)
    INSIDE.pop()
    return mean_shift(rng, sample)


def test_a_worker_with_several_threads_makes_one_chunk_at_a_time():
    with (
        LocalCluster(n_workers=1, processes=False, threads_per_worker=4) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        assert_same_but_for_the_name(run(statistic=counted, cluster=client), expected())
    assert len(MAX_INSIDE) > N_TOYS
    assert max(MAX_INSIDE) == 1


# Who dies, comes late or loses touch.


@pytest.mark.parametrize("n_killed", [1, 2])  # with both of them the samples are lost, too
def test_a_worker_killed_in_the_middle_costs_nothing(n_killed, cluster, client, slow):
    killed = pids(cluster)[:n_killed]

    def kill():
        for pid in killed:
            os.kill(pid, signal.SIGKILL)

    found = run(statistic=slow, chunk=2, cluster=client, progress=at(4, kill))
    assert_same_but_for_the_name(found, expected())
    assert set(killed) & set(witnesses(slow))  # it had work


def shared_out(rng, sample, home, **settings):
    """After a few toys a worker waits until another one has taken some."""
    folder = settings["folder"]
    own = f"{os.getpid()}-"
    deadline = time.monotonic() + 60
    while os.getpid() != home and time.monotonic() < deadline:
        by = [name for name in os.listdir(folder) if not name.startswith(f"{home}-")]
        if len(by) < 4 or any(not name.startswith(own) for name in by):
            break
        time.sleep(0.05)
    return witnessed(rng, sample, **settings)


def test_workers_may_come_late(slow):
    with (
        LocalCluster(n_workers=0, processes=True, env=ON_CPU) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        cluster.adapt(minimum=0, maximum=1, interval="100ms")  # the first comes when there is work

        def join():
            cluster.adapt(minimum=2, maximum=2, interval="100ms")

        both = functools.partial(shared_out, home=os.getpid(), **slow.keywords)
        found = run(statistic=both, chunk=1, cluster=client, progress=at(2, join))
    assert_same_but_for_the_name(found, expected())
    assert len(witnesses(slow)) == 2
    assert sum(witnesses(slow).values()) == N_TOYS + 1


def test_another_client_continues_where_one_was_interrupted(cluster, slow, tmp_path):
    def interrupt():
        raise KeyboardInterrupt

    settings = {"statistic": slow, "store": tmp_path / "store"}
    address = cluster.scheduler_address
    with distributed.Client(address, set_as_default=False) as first:
        with pytest.raises(KeyboardInterrupt) as caught:
            run(cluster=first, progress=at(2 * CHUNK, interrupt), **settings)
        (note,) = caught.value.__notes__
        assert note.startswith("8 of 12 experiments were finished and are kept in")
    kept = names(tmp_path / "store")
    assert len(kept) == 2
    assert set(kept) < set(THREE_CHUNKS)
    before = sum(witnesses(slow).values())
    told = []
    with distributed.Client(address, set_as_default=False) as second:
        found = run(cluster=second, progress=lambda done, total: told.append(done), **settings)
    assert told == [8, 12]
    # What was running when the first was interrupted may have ended since, but no more than that.
    assert sum(witnesses(slow).values()) - before <= 2 * CHUNK
    assert_same_but_for_the_name(found, expected())
    assert names(tmp_path / "store") == THREE_CHUNKS


def test_a_client_that_loses_touch_reconnects(client, slow):
    def cut():
        client.loop.add_callback(client.scheduler_comm.comm.abort)

    found = run(statistic=slow, cluster=client, progress=at(CHUNK, cut))
    assert_same_but_for_the_name(found, expected())


def test_a_lost_scheduler_is_said_and_what_was_finished_is_kept(slow, tmp_path):
    settings = {"statistic": slow, "store": tmp_path / "store"}
    cluster = LocalCluster(n_workers=1, processes=False)
    client = distributed.Client(cluster.scheduler_address, timeout=1, set_as_default=False)
    message = (
        "connection to the Dask scheduler at .* is lost; start it anew, .* 4 of 12 experiments "
        "were finished and are kept in .*; the same call continues there"
    )
    with cluster, client, pytest.raises(ClusterError, match=message):
        run(cluster=client, progress=at(CHUNK, cluster.close), **settings)
    assert names(tmp_path / "store") == THREE_CHUNKS[:1]
    assert_same_but_for_the_name(run(**settings), expected())


# What cannot be.


def fatal(rng, sample, home):
    if os.getpid() != home:
        os.kill(os.getpid(), signal.SIGKILL)
    return 0.0


def test_toys_that_kill_every_worker_are_given_up(monkeypatch):
    monkeypatch.setattr(cluster_module, "BACK", 20.0)  # Dask itself may give workers up
    message = r"lost 3 times in a row|workers died one after another|none came back within 20 s"
    with (
        LocalCluster(n_workers=2, processes=True, env=ON_CPU) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        pytest.raises(ClusterError, match=message),
    ):
        run(statistic=functools.partial(fatal, home=os.getpid()), cluster=client)


def test_workers_that_do_not_come_back_are_said(monkeypatch):
    monkeypatch.setattr(cluster_module, "BACK", 1.0)
    with (
        LocalCluster(n_workers=1, processes=False) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        workers = cluster_module.Workers(client, None)
        workers._patience = cluster_module.BACK
        cluster.scale(0)
        with pytest.raises(ClusterError, match=r"none came back within 1 s; start workers"):
            workers._submit(os.getpid, [0])


def broken(rng, sample, home):
    if os.getpid() != home:
        raise FileNotFoundError("there is no such file on the worker")
    return 0.0


def test_errors_of_tasks_reach_the_caller_as_they_are(client):
    with pytest.raises(FileNotFoundError, match=r"^there is no such file on the worker$"):
        run(statistic=functools.partial(broken, home=os.getpid()), cluster=client)


def test_workers_with_other_versions_are_refused(client, monkeypatch):
    versions = cluster_module.versions() | {"jax": "0.0.1"}
    monkeypatch.setattr(cluster_module, "versions", lambda: versions)
    with pytest.raises(ClusterError, match=r"the worker tcp.* has jax .* \(the client has 0\.0\.1"):
        run(statistic=mean_shift, cluster=client)


def test_what_is_no_client_is_refused(cluster):
    for other in (cluster, cluster.scheduler_address):
        with pytest.raises(ValueError, match=r"cluster must be a distributed\.Client, .*got"):
            run(cluster=other)


def test_a_client_that_is_closed_is_said_to_be(cluster):
    with distributed.Client(cluster, set_as_default=False) as client:
        pass
    with pytest.raises(ClusterError, match=r"scheduler at tcp.* is lost|unknown address is lost"):
        run(cluster=client)


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:9", "nowhere://x:1", "foo://bar", "nonsense", ""]
)
def test_an_address_without_a_scheduler_is_refused(address):
    began = time.perf_counter()
    with (
        pytest.raises(ClusterError, match="no Dask scheduler answers at"),
        cluster_module.connected(address, timeout=1),
    ):
        pass
    gc.collect()  # a client that was only half made would take its time here
    assert time.perf_counter() - began < 10


# The command line, with a cluster and with batch jobs.


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for name, rows in zip(("reference", "data"), make_samples(), strict=True):
        np.save(folder / f"{name}.npy", rows)
    return folder / "reference.npy", folder / "data.npy"


def invoke(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


SMALL = ["--toys", N_TOYS, "--statistic", "mahalanobis"]


@pytest.fixture(scope="module")
def answer(files):
    """What `sparker test` says, all in one."""
    done = invoke("test", *files, *SMALL)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_scheduler_by_its_address(cluster, files, answer):
    done = invoke("test", *files, *SMALL, "--scheduler", cluster.scheduler_address)
    assert done.exit_code == 0, done.output
    assert done.stdout == answer


def test_a_scheduler_that_is_not_there(files, monkeypatch):
    monkeypatch.setattr(cluster_module.connected.__wrapped__, "__defaults__", (1,))
    done = invoke("test", *files, *SMALL, "--scheduler", "tcp://127.0.0.1:9")
    assert done.exit_code == 2
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in done.stderr


def test_without_the_extra_it_says_what_to_install(files, monkeypatch):
    monkeypatch.delitem(sys.modules, "sparker.calibration.cluster")
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = invoke("test", *files, *SMALL, "--scheduler", "tcp://127.0.0.1:9")
    assert done.exit_code == 2
    assert 'needs distributed, which is not installed; pip install "sparker[cluster]"' in (
        done.stderr
    )


def test_parts_made_apart_are_merged_to_the_same_answer(files, answer, tmp_path):
    parts = {"0:5": tmp_path / "a", "5:12": tmp_path / "b"}
    for toys, store in parts.items():
        done = invoke("test", *files, *SMALL, "--only", toys, "--store", store)
        assert done.exit_code == 0, done.output
        first, last = (int(end) for end in toys.split(":"))
        assert done.stdout == (
            f"experiments {first} to {last - 1} of 0 to {N_TOYS} are made and kept in {store}\n"
        )
    done = invoke("merge", *parts.values(), "--into", tmp_path / "all")
    assert done.exit_code == 0, done.output
    assert done.stdout == f"12 experiments are in {tmp_path / 'all'}\n"
    before = names(tmp_path / "all")
    done = invoke("test", *files, *SMALL, "--store", tmp_path / "all")
    assert done.stdout == answer
    assert names(tmp_path / "all") == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--only", "0:5"], "--only needs --store: finished toys are kept there, to be merged"),
        (["--only", "5:0", "--store", "s"], "'5:0' is not A:B, two whole numbers with A < B"),
        (["--only", "3", "--store", "s"], "'3' is not A:B"),
        (["--only", "-1:3", "--store", "s"], "'-1:3' is not A:B"),
        (["--only", "0:13", "--store", "s"], "experiments 0 to 11, so 0:12 is all of them"),
        (
            ["--only", "0:5", "--store", "s", "--json"],
            "--json does not go with --only, since some of the toys reach no verdict",
        ),
        (
            ["--only", "0:5", "--store", "s", "--alpha", "0.1"],
            "--alpha does not go with --only, since some of the toys reach no verdict",
        ),
    ],
)
def test_parts_that_cannot_be_are_refused(options, said, files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = invoke("test", *files, *SMALL, *options)
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.stderr.split())
    assert not (tmp_path / "s").exists()


def test_what_cannot_be_merged_is_refused(files, tmp_path):
    done = invoke("merge", tmp_path / "nothing", "--into", tmp_path / "all")
    assert done.exit_code == 2
    assert "has no manifest.json; it is not a store" in done.stderr
    assert invoke("merge", "--into", tmp_path / "all").exit_code == 2
    assert not (tmp_path / "all").exists()
