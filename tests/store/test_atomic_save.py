"""On disk there is the old file or the new one, whatever happens in between."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

from margrove import BasicLinearClassifier, load, save
from margrove.errors import ModelFileError

X, Y = np.array([[0.0], [1.0], [4.0], [5.0]]), np.array([0, 0, 1, 1])


@pytest.fixture
def old():
    return BasicLinearClassifier().fit(X, Y)


@pytest.fixture
def new():
    return BasicLinearClassifier().fit(2 * X, Y)


KILLER = """
import os, random, signal, sys, time
import numpy as np
from margrove import KernelPerceptron, load, save

path, rounds = sys.argv[1], int(sys.argv[2])
X = np.random.default_rng(0).normal(size=(1000, 300))
model = KernelPerceptron(kernel="linear", max_iter=1, random_state=0).fit(X, np.arange(1000) % 2)
model.intercept_[:] = 0
save(model, path)
seen = set()
for number in range(rounds):
    child = os.fork()
    if child == 0:
        for count in range(10**6):
            model.intercept_[:] = number + count / 1000
            save(model, path)
    time.sleep(random.Random(number).uniform(0.002, 0.06))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    seen.add(float(load(path).intercept_[0]))
print(len(seen))
"""


@pytest.mark.skipif(os.name != "posix", reason="fork and SIGKILL")
def test_a_killed_save_leaves_a_whole_file(tmp_path):
    path = tmp_path / "model.margrove"
    command = [sys.executable, "-W", "ignore", "-c", KILLER, str(path), "40"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr  # every load succeeded
    assert int(told.stdout) > 3, "the file was replaced many times"
    assert all(name.startswith(".margrove-") for name in os.listdir(tmp_path) if name != path.name)


def test_a_save_that_fails_leaves_the_old_file_and_no_litter(monkeypatch, tmp_path, old, new):
    path = tmp_path / "model.margrove"
    save(old, path)
    before = path.read_bytes()

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelFileError, match=r"model\.margrove: it cannot be written: No space left on device"):
        save(new, path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.margrove"]


def test_ctrl_c_leaves_the_old_file_and_no_litter(monkeypatch, tmp_path, old, new):
    path = tmp_path / "model.margrove"
    save(old, path)

    def interrupt(source, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save(new, path)
    assert load(path).coef_[0, 0] == old.coef_[0, 0]
    assert os.listdir(tmp_path) == ["model.margrove"]


def interrupted_after(call):
    """Return the function, interrupted just as it returns."""

    def interrupted(*given):
        call(*given)
        raise KeyboardInterrupt

    return interrupted


@pytest.mark.parametrize("name", ["open", "replace"])
def test_ctrl_c_as_a_call_returns_is_only_that_and_leaves_no_litter(name, monkeypatch, tmp_path, old, new):
    path = tmp_path / "model.margrove"
    save(old, path)
    monkeypatch.setattr(os, name, interrupted_after(getattr(os, name)))
    with pytest.raises(KeyboardInterrupt) as caught:
        save(new, path)
    monkeypatch.undo()
    assert caught.value.__context__ is None
    assert load(path).coef_[0, 0] == (new if name == "replace" else old).coef_[0, 0]
    assert os.listdir(tmp_path) == ["model.margrove"]


def test_a_file_of_somebody_else_is_left_alone(monkeypatch, tmp_path, old):
    monkeypatch.setattr("secrets.token_hex", lambda n: "1")
    other = tmp_path / ".margrove-1.tmp"
    other.write_text("not ours")
    with pytest.raises(ModelFileError, match="it cannot be written: File exists"):
        save(old, tmp_path / "model.margrove")
    assert other.read_text() == "not ours"


def test_the_file_reaches_the_disk_before_it_takes_the_name(monkeypatch, tmp_path, old):
    order = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (order.append("fsync"), fsync(handle)))
    monkeypatch.setattr(os, "replace", lambda *paths: (order.append("replace"), replace(*paths)))
    save(old, tmp_path / "model.margrove")
    assert order == ["fsync", "replace"]


def test_many_threads_may_save_to_one_file(tmp_path, old):
    path = tmp_path / "model.margrove"
    threads = [threading.Thread(target=save, args=(old, path)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert load(path).predict([[0.0]]) == [0]
    assert os.listdir(tmp_path) == ["model.margrove"]


def test_paths_that_cannot_be_written_are_refused(tmp_path, old):
    with pytest.raises(
        ModelFileError, match=r"absent.model\.margrove: it cannot be written: No such file or directory"
    ):
        save(old, tmp_path / "absent" / "model.margrove")
    with pytest.raises(ModelFileError, match="it is a directory"):
        save(old, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelFileError, match="it cannot be written: Not a directory"):
        save(old, tmp_path / "file" / "model.margrove")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="permissions do not bind the superuser")
def test_missing_permissions_are_reported(tmp_path, old):
    path = tmp_path / "model.margrove"
    save(old, path)
    path.chmod(0)
    with pytest.raises(ModelFileError, match="it cannot be read: Permission denied"):
        load(path)
    tmp_path.chmod(0o500)
    with pytest.raises(ModelFileError, match="it cannot be written: Permission denied"):
        save(old, path)
    tmp_path.chmod(0o700)


def test_a_failed_open_is_reported_with_the_path_given(monkeypatch, tmp_path, old):
    """The same for everybody, the superuser included; the temporary file is not what is named."""

    def refused(*arguments):
        raise PermissionError(13, "Permission denied", "/elsewhere/.margrove-1.tmp")

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(ModelFileError, match=r"model\.margrove: it cannot be written: Permission denied\.") as caught:
        save(old, tmp_path / "model.margrove")
    assert ".tmp" not in str(caught.value)
    assert isinstance(caught.value.__cause__, PermissionError)


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
def test_modes_and_links_are_kept(tmp_path, old, new):
    path, link = tmp_path / "model.margrove", tmp_path / "latest"
    save(old, path)
    assert stat.S_IMODE(path.stat().st_mode) & 0o600 == 0o600
    path.chmod(0o640)
    link.symlink_to(path)
    save(new, link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert load(path).coef_[0, 0] == new.coef_[0, 0]


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="no /dev/null")
def test_devices_are_written_to_and_not_replaced(tmp_path, old):
    save(old, os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    loaded = []
    reader = threading.Thread(target=lambda: loaded.append(load(pipe)))
    reader.start()
    save(old, pipe)
    reader.join()
    assert loaded[0].coef_[0, 0] == old.coef_[0, 0]
