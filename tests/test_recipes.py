"""What recipes share, and their own formulas: without the packages that they need to run."""

import ast
import hashlib
import importlib.util
import io
import json
import re
import sys
import tarfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from packaging.requirements import Requirement
from PIL import Image

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def recipe():
    spec = importlib.util.spec_from_file_location("_recipe", EXAMPLES / "_recipe.py")
    module = sys.modules["_recipe"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["_recipe"]


@pytest.mark.unit
def test_a_requirement_is_missing_if_not_installed_or_of_another_version(recipe, tmp_path):
    (tmp_path / "some.txt").write_text(
        "# numpy, BSD\nnumpy>=1\nnumpy<1  # too old\nno-such-package\n\n"
        "no-such-either; python_version < '3'\n"
    )
    assert recipe.missing("some", tmp_path) == ["numpy<1", "no-such-package"]
    assert recipe.missing("none", tmp_path) == []


def test_without_its_packages_a_recipe_ends_with_one_line(recipe, monkeypatch, capsys):
    monkeypatch.setattr(recipe, "missing", lambda name: ["some>=1", "other"])
    monkeypatch.setattr(sys, "argv", ["NAME.py"])
    with pytest.raises(SystemExit) as ended:
        recipe.begin("NAME")
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said == "NAME.py needs some>=1, other: pip install -r examples/requirements/NAME.txt\n"


def test_every_file_of_requirements_has_its_recipe_and_says_the_licence(recipe):
    sparkers = (ROOT / "pyproject.toml").read_text()
    for path in (EXAMPLES / "requirements").glob("*.txt"):
        first = path.read_text().splitlines()[0]
        assert first.startswith("#")
        script = (EXAMPLES / f"{path.stem}.py").read_text()
        assert f"examples/requirements/{path.stem}.txt" in script
        assert re.search(rf'begin\(\s*"{path.stem}"', script)
        wanted = recipe.requirements(path.stem)
        assert wanted
        assert all(isinstance(one, Requirement) for one in wanted)
        if "GPL" in path.read_text():
            assert not [one.name for one in wanted if f'"{one.name}' in sparkers]


def test_recipes_without_requirements_always_run(recipe):
    always = {"published_search", "clean_training_rows", "drift_in_ci", "energy_scale",
              "anytime_monitor", "many_runs"}  # fmt: skip
    assert always <= set(recipe.runnable())


def functions(name, *unwanted):
    """The constants and functions of a recipe, which is a page and not meant to be imported."""
    kept = []
    for node in ast.parse((EXAMPLES / f"{name}.py").read_text()).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found = getattr(node, "module", None) or node.names[0].name
            wanted = found.split(".")[0] not in {"_recipe", *unwanted}
        else:
            targets = node.targets if isinstance(node, ast.Assign) else []
            names = [one.id for to in targets for one in ast.walk(to) if isinstance(one, ast.Name)]
            is_constant = names and all(name.isupper() for name in names)
            of_this_run = any(getattr(one, "id", None) == "recipe" for one in ast.walk(node))
            wanted = isinstance(node, ast.FunctionDef) or (is_constant and not of_this_run)
        if wanted:
            kept.append(node)
    space = {}
    exec(compile(ast.Module(kept, []), name, "exec"), space)
    return SimpleNamespace(**space)


@pytest.fixture(scope="module")
def jets():
    return functions("jets", "pythia8mc", "fastjet", "awkward")


def massless(pt, y, phi):
    return np.stack([pt * np.cos(phi), pt * np.sin(phi), pt * np.sinh(y), pt * np.cosh(y)], -1)


@pytest.fixture(scope="module")
def jet():
    """Five particles on both sides of where the azimuth jumps."""
    rng = np.random.default_rng(6)
    return rng.uniform(1, 50, 5), rng.normal(0.5, 0.3, 5), rng.normal(np.pi, 0.3, 5)


class TestJets:
    def test_rapidity_and_azimuth_and_their_distance(self, jets, jet):
        pt, y, phi = jet
        found = jets.polar(massless(*jet)[None])
        for one, other in zip(found, (pt, y, np.angle(np.exp(1j * phi))), strict=True):
            np.testing.assert_allclose(one[0], other)
        apart = np.hypot(y[:, None] - y, phi[:, None] - phi)  # phi does not jump here
        np.testing.assert_allclose(jets.distances(found, found)[0], apart, atol=1e-7)

    def test_energy_correlations_are_sums_over_pairs_and_triples(self, jets, jet):
        pt, y, phi = jet
        z, n = pt / pt.sum(), range(5)
        d = np.hypot(y[:, None] - y, phi[:, None] - phi)
        e2 = sum(z[i] * z[j] * d[i, j] for i in n for j in range(i))
        e3 = sum(
            z[i] * z[j] * z[k] * d[i, j] * d[j, k] * d[k, i]
            for i in n
            for j in range(i)
            for k in range(j)
        )
        found = jets.correlations(z[None], d[None])
        np.testing.assert_allclose([one[0] for one in found], [e2, e3])
        # Places that are only filled up count nothing.
        longer = np.pad(z, (0, 3))[None], np.pad(d, (0, 3), constant_values=7)[None]
        np.testing.assert_allclose([one[0] for one in jets.correlations(*longer)], [e2, e3])

    def test_two_axes_leave_nothing_of_two_particles(self, jets):
        two = massless(np.array([30.0, 70]), np.array([0.1, 0.5]), np.array([3.1, -3.1]))[None]
        particles = jets.polar(two)
        z = particles[0] / particles[0].sum(1, keepdims=True)
        np.testing.assert_allclose(jets.subjettiness(z, particles, two), 0, atol=1e-7)
        apart = np.hypot(0.4, 2 * np.pi - 6.2)
        np.testing.assert_allclose(jets.subjettiness(z, particles, two[:, :1]), 0.7 * apart)

    def test_mass_of_two_massless_particles(self, jets):
        two = massless(np.array([200.0, 250]), np.array([0.1, 0.6]), np.array([1.0, 1.2]))
        expected = np.sqrt(2 * 200 * 250 * (np.cosh(0.5) - np.cos(0.2)))
        assert jets.mass(two.sum(0)) == pytest.approx(expected)

    def test_jets_come_back_from_their_blocks(self, jets):
        rng = np.random.default_rng(7)
        counts = rng.integers(2, 9, 600)
        momenta = rng.normal(size=(counts.sum(), 4))
        alone = np.split(momenta, np.cumsum(counts)[:-1])
        seen = []
        for rows, block in jets.padded(momenta, counts):
            for row, one in zip(rows, block, strict=True):
                np.testing.assert_array_equal(one[: counts[row]], alone[row])
                assert not one[counts[row] :].any()
                seen.append(row)
        assert sorted(seen) == list(range(600))

    def test_the_picture_is_centred_on_the_jet(self, jets):
        two = massless(np.array([100.0, 100]), np.array([0.9, 1.2]), np.array([3.0, 3.3]))
        rows, columns = np.nonzero(jets.picture(two))
        assert rows.sum() == columns.sum() == 15  # opposite cells of 16


@pytest.fixture(scope="module")
def network():
    return functions("jets_network")


def slow_activations(tensors, x):
    """ParticleNet, particle by particle and in double precision, from its description."""
    for number in range(3):
        place = x[:, :2] if number == 0 else x
        described = []
        for i in range(len(x)):
            others = [j for j in range(len(x)) if j != i]
            near = sorted(others, key=lambda j: np.sum((place[i] - place[j]) ** 2))[:16]
            messages = []
            for j in near:
                message = np.concatenate([x[i], x[j] - x[i]])
                for k in (0, 3, 6):
                    linear, norm = (f"edge_nets.{number}.model.{k + step}" for step in (0, 1))
                    message = tensors[f"{linear}.weight"] @ message + tensors[f"{linear}.bias"]
                    spread = np.sqrt(tensors[f"{norm}.running_var"] + 1e-5)
                    message = (message - tensors[f"{norm}.running_mean"]) / spread
                    message = message * tensors[f"{norm}.weight"] + tensors[f"{norm}.bias"]
                    message = np.maximum(message, 0)
                messages.append(message)
            described.append(np.concatenate([np.mean(messages, 0), x[i]]))
        x = np.array(described)
    return tensors["fc1.0.weight"] @ x.mean(0) + tensors["fc1.0.bias"]


class TestNetworkOfJets:
    def test_the_port_does_what_the_network_is_described_to_do(self, network):
        rng = np.random.default_rng(8)
        tensors, width = {}, 3
        for number, out in enumerate((4, 5, 6)):
            for k, into in ((0, 2 * width), (3, out), (6, out)):
                name = f"edge_nets.{number}.model"
                tensors[f"{name}.{k}.weight"] = rng.normal(size=(out, into)) / np.sqrt(into)
                tensors[f"{name}.{k}.bias"] = rng.normal(size=out)
                for part in ("weight", "bias", "running_mean"):
                    tensors[f"{name}.{k + 1}.{part}"] = rng.normal(size=out)
                tensors[f"{name}.{k + 1}.running_var"] = rng.uniform(0.5, 2, out)
            width += out
        tensors |= {"fc1.0.weight": rng.normal(size=(7, width)), "fc1.0.bias": rng.normal(size=7)}
        jet = rng.normal(size=(30, 3))
        found = network.activations(tensors, jet.astype(np.float32))
        np.testing.assert_allclose(found, slow_activations(tensors, jet), rtol=1e-4, atol=1e-4)

    def test_it_sees_the_hardest_particles_around_the_axis(self, network):
        rng = np.random.default_rng(9)
        pt = rng.uniform(1, 50, 40)
        eta, phi = rng.normal(1, 0.1, 40), rng.normal(np.pi, 0.1, 40)
        seen = (network.shown(massless(pt, eta, phi)) - network.SHIFT) * network.LARGEST
        assert seen.shape == (30, 3)
        hardest = np.argsort(-pt)[:30]
        share = seen[:, 2] / seen[0, 2]
        np.testing.assert_allclose(share, pt[hardest] / pt.max())
        np.testing.assert_allclose(np.diff(seen[:, 0]), np.diff(eta[hardest]))
        np.testing.assert_allclose(np.diff(seen[:, 1]), np.diff(phi[hardest]))
        # With fewer particles the rest is nothing: no share, on the axis.
        few = (network.shown(massless(pt, eta, phi)[:7]) - network.SHIFT) * network.LARGEST
        np.testing.assert_allclose(few[7:], 0, atol=1e-12)
        np.testing.assert_allclose(few[:7, 2] @ np.exp(1j * few[:7, 1]), 1, atol=1e-12)


@pytest.fixture(scope="module")
def waves():
    return functions("gravitational_waves", "ripplegw")


@pytest.fixture(scope="module")
def chirp(waves):
    """A sweep from 40 to 150 Hz in half a second, in both detectors."""
    time = np.arange(waves.N) / waves.RATE - 2
    shape = np.where((time > 0) & (time < 0.5), np.sin(2 * np.pi * time) ** 2, 0)
    return 1e-22 * np.stack([np.sin(2 * np.pi * (40 * time + 110 * time**2)) * shape] * 2)


class TestGravitationalWaves:
    def test_the_design_sees_neutron_stars_as_far_as_it_should(self, waves):
        # Sky-averaged range of 1.4 + 1.4 solar masses at a ratio of 8, Newtonian up to the last
        # stable orbit: 200 Mpc within a few per cent.
        f, df = np.arange(10, 1570, 0.1), 0.1
        chirp_mass = 1.4 * 2**-0.2 * 4.925491e-6  # seconds
        integral = np.sum(f ** (-7 / 3) / waves.design(f)) * df
        best = np.sqrt(5 / 6 * np.pi ** (-4 / 3) * chirp_mass ** (5 / 3) * integral)
        assert best * waves.LIGHT / 8 / 3.0857e22 / 2.2648 == pytest.approx(200, rel=0.03)

    def test_whitened_noise_is_white(self, waves):
        strain = waves.coloured(np.random.default_rng(1), 100)
        white = waves.whitened(strain)
        assert white.var() == pytest.approx(1, abs=0.01)
        spectrum = np.mean(np.abs(np.fft.rfft(white)) ** 2, (0, 1))
        flat = spectrum[waves.IN_BAND] / spectrum[waves.IN_BAND].mean()
        assert np.all(np.abs(flat - 1) < 6 / np.sqrt(200))
        assert np.all(spectrum[~waves.IN_BAND] < 1e-9 * spectrum.max())

    def test_the_noise_has_the_density_that_it_says(self, waves):
        strain = waves.coloured(np.random.default_rng(2), 100)
        periodogram = 2 / (waves.RATE * waves.N) * np.mean(np.abs(np.fft.rfft(strain)) ** 2, (0, 1))
        ratio = (periodogram / waves.DENSITY)[waves.IN_BAND]
        assert ratio.mean() == pytest.approx(1, abs=0.01)
        assert np.all(np.abs(ratio - 1) < 6 / np.sqrt(200))

    def test_the_signal_to_noise_ratio_is_that_of_the_matched_filter(self, waves, chirp):
        # 4 Re sum d conj(h) / S df over its own root: of noise N(0, 1), with the wave shifted by
        # the ratio.
        ratio = waves.signal_to_noise(chirp)[0]

        def filtered(strain):
            d, h = np.fft.rfft(strain) / waves.RATE, np.fft.rfft(chirp[0]) / waves.RATE
            inner = d * h.conj() / waves.DENSITY
            return 4 * inner[..., waves.IN_BAND].real.sum(-1) / waves.SECONDS / ratio

        assert filtered(chirp[0]) == pytest.approx(ratio)
        out = filtered(waves.coloured(np.random.default_rng(3), 500)).ravel()
        assert abs(out.mean()) < 4 / np.sqrt(out.size)
        assert out.std() == pytest.approx(1, abs=4 / np.sqrt(2 * out.size))

    def test_the_detectors_are_where_they_should_be(self, waves):
        apart = np.linalg.norm(waves.VERTEX[0] - waves.VERTEX[1]) / waves.LIGHT
        assert apart == pytest.approx(0.01001, abs=1e-5)
        for x, y in zip(waves.ARM_X, waves.ARM_Y, strict=True):
            np.testing.assert_allclose([x @ x, y @ y, x @ y], [1, 1, 0], atol=1e-6)

    def test_antenna_factors(self, waves):
        rng = np.random.default_rng(4)
        cos_theta, phi = rng.uniform(-1, 1, 20_000), rng.uniform(0, 2 * np.pi, 20_000)
        plus, cross, delay = waves.seen(cos_theta, phi, rng.uniform(0, np.pi, 20_000))
        # The mean of F+^2 over the sky and all polarisations is 1/5 for every L-shaped detector.
        np.testing.assert_allclose(np.mean(plus**2, 0), 0.2, rtol=0.04)
        np.testing.assert_allclose(np.mean(cross**2, 0), 0.2, rtol=0.04)
        assert np.abs(delay[:, 0] - delay[:, 1]).max() <= 0.01001 + 1e-5
        # From straight above Hanford it is fully sensitive, from between its arms not at all.
        above = np.cross(waves.ARM_X[0], waves.ARM_Y[0])
        blind = (waves.ARM_X[0] + waves.ARM_Y[0]) / np.sqrt(2)
        for k, total in ((above, 1), (blind, 0)):
            at = np.array([k[2]]), np.array([np.arctan2(k[1], k[0])]), np.array([0.3])
            f_plus, f_cross, _ = waves.seen(*at)
            assert f_plus[0, 0] ** 2 + f_cross[0, 0] ** 2 == pytest.approx(total, abs=1e-5)

    def test_the_power_of_noise_is_one_and_a_chirp_stands_out_at_its_time(self, waves, chirp):
        white = waves.whitened(waves.coloured(np.random.default_rng(5), 20))
        np.testing.assert_allclose(waves.power(white).mean((0, 1, 3)), 1, atol=0.05)
        loud = waves.power(waves.whitened(chirp * 15 / waves.signal_to_noise(chirp)[0])[None])[0, 0]
        band, moment = np.unravel_index(loud.argmax(), loud.shape)
        assert 40 < waves.CENTRES[band] < 150
        assert 2 < moment * waves.STEP / waves.RATE < 2.5


class TestPlantedText:
    def test_lines_have_one_length_and_differ(self):
        found = functions("planted_text").lines("a b c d a b e f g", n_words=2)
        assert found == ["a b", "c d", "e f"]  # the second "a b" and the lonely "g" are left out

    def test_the_machine_writes_what_follows_in_the_book(self):
        book = ["a b c d", "b c e f", "c e g h", "x y"]  # no word follows "x y"
        made = functions("planted_text").chain(book, np.random.default_rng(0), 200, n_words=4)
        known = {tuple(line.split()[i : i + 3]) for line in book for i in range(2)}
        assert {tuple(line.split()[i : i + 3]) for line in made for i in range(2)} <= known
        # Two may follow "b c", where a line goes on from the middle of another.
        assert {*made} == {"a b c d", "a b c e", "b c e f", "b c e g", "c e g h"}


def test_options_of_its_own_are_handed_over_and_recorded(recipe, monkeypatch, tmp_path):
    monkeypatch.setattr(recipe, "HERE", tmp_path)
    monkeypatch.setattr(sys, "argv", ["drift.py", "--record", "--side", "3"])
    begun = recipe.begin("drift", side={"type": int}, embed={"default": "tfidf"})
    assert (begun.options.side, begun.options.embed) == (3, "tfidf")
    begun.record(found=1)
    kept = json.loads((tmp_path / "results" / "drift.json").read_text())
    assert kept["command"] == "python examples/drift.py --record --side 3"
    assert kept["found"] == 1


def test_a_file_that_is_missing_or_another_one_is_said_in_one_line(
    recipe, monkeypatch, tmp_path, capsys
):
    content = b"numbers"
    for name, value in (("HERE", tmp_path), ("DATA", tmp_path), ("OUTPUT", tmp_path / "output")):
        monkeypatch.setattr(recipe, name, value)
    sha256 = hashlib.sha256(content).hexdigest()
    wanted = [recipe.Download("https://example.org/some/data.tgz", sha256)]
    monkeypatch.setattr(recipe, "downloads", lambda name: wanted)
    monkeypatch.setattr(sys, "argv", ["some.py"])
    (tmp_path / "some.py").touch()

    def ends_with(said, action):
        with pytest.raises(SystemExit) as ended:
            action()
        assert ended.value.code == 2
        assert said in capsys.readouterr().err

    command = "curl --create-dirs -o examples/data/data.tgz https://example.org/some/data.tgz\n"
    ends_with(f"some.py needs a file: {command}", lambda: recipe.begin("some"))
    assert recipe.runnable() == []
    (tmp_path / "data.tgz").write_bytes(b"other")
    ends_with(command, lambda: recipe.fetched("some"))
    (tmp_path / "data.tgz").write_bytes(content)
    assert recipe.begin("some").name == "some"
    assert recipe.fetched("some") == tmp_path / "data.tgz"
    assert recipe.runnable() == ["some"]


def test_the_files_of_a_recipe_have_an_address_and_a_hash(recipe):
    known = [one for path in EXAMPLES.glob("[!_]*.py") for one in recipe.downloads(path.stem)]
    assert known
    for one in known:
        assert one.url.startswith("https://")
        assert re.fullmatch("[0-9a-f]{64}", one.sha256)


class TestPhotographs:
    def test_every_line_is_a_photograph(self, tmp_path):
        pictures = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), np.uint8)
        png = io.BytesIO()
        Image.fromarray(pictures.reshape(3, 1024, 3)).save(png, "PNG")
        with tarfile.open(tmp_path / "some.tgz", "w:gz") as archive:
            member = tarfile.TarInfo("package/test_batch.png")
            member.size = len(png.getvalue())
            archive.addfile(member, io.BytesIO(png.getvalue()))
        cifar = functions("_cifar")
        assert np.array_equal(cifar.photographs(tmp_path / "some.tgz"), pictures)
        cifar.write(tmp_path / "folder", pictures)
        cifar.write(tmp_path / "folder", pictures[:2])
        files = sorted((tmp_path / "folder").iterdir())
        assert np.array_equal([np.asarray(Image.open(file)) for file in files], pictures[:2])

    def test_stripes_lie_over_every_fourth_line(self):
        found = functions("striped_images", "_cifar").striped(np.full((1, 8, 2, 3), 55, np.uint8))
        assert found[0, :, 0, 0].tolist() == [155, 55, 55, 55] * 2

    def test_generators_draw_what_they_learned(self):
        made = functions("generated_images", "_cifar")
        rng = np.random.default_rng(0)
        shapes = rng.normal(size=(2, 32 * 32 * 3))
        weights = rng.normal(size=(500, 2)) * [8, 4]
        learned = (128 + weights @ shapes).reshape(-1, 32, 32, 3)
        for drawn in (
            made.normal(learned, 2000, rng, n_directions=2),
            made.mixture(learned, 2000, n_directions=2, n_normals=2),
        ):
            assert drawn.shape == (2000, 32, 32, 3)
            assert drawn.dtype == np.uint8
            found = (drawn.reshape(2000, -1) - 128.0) @ np.linalg.pinv(shapes)
            assert np.allclose(np.cov(found.T), np.cov(weights.T), atol=8)  # of 64 and 16
            assert np.allclose(found.mean(0), weights.mean(0), atol=1)

    def test_bytes_end_at_black_and_white_and_files_are_opened_again(self):
        made = functions("generated_images", "_cifar")
        assert {*made.as_pictures(np.repeat([-9, 1.4, 300], 1024)).ravel()} == {0, 1, 255}
        smooth = np.broadcast_to(
            np.arange(0, 256, 8, dtype=np.uint8)[:, None, None], (2, 32, 32, 3)
        )
        again = made.compressed(np.ascontiguousarray(smooth))
        assert again.shape == smooth.shape
        assert 0 < np.abs(again.astype(int) - smooth).max() < 30

    def test_pictures_of_others_are_taken_as_they_are_or_refused(self, recipe, tmp_path, capsys):
        made = functions("generated_images", "_cifar").pictures_of
        made.__globals__["_recipe"] = recipe
        rng, path = np.random.default_rng(0), tmp_path / "part.npz"
        pictures = rng.integers(0, 256, (5, 32, 32, 3), np.uint8)
        np.savez(path, X=pictures, Y=np.arange(5))
        assert np.array_equal(made(path, 5, rng), pictures)
        assert made(path, 3, rng).shape == (3, 32, 32, 3)
        for wrong in ({"X": pictures / 255}, {"X": pictures[:, :, :, 0]}, {"x": pictures}):
            np.savez(path, **wrong)
            with pytest.raises(SystemExit):
                made(path, 3, rng)
        said = capsys.readouterr().err
        assert "got (5, 32, 32)" in said
        assert "has no pictures" in said
