"""On disk there is the old file or the new one, whatever happens in between."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time

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


WRITER = """
import sys
import numpy as np
from margrove import KernelPerceptron, save
X = np.random.default_rng(0).normal(size=(2000, 300))
model = KernelPerceptron(kernel="linear", random_state=0).fit(X, np.arange(2000) % 2)
print("ready", flush=True)
for number in range(10**6):
    model.intercept_[:] = number
    save(model, sys.argv[1])
"""


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_a_killed_save_leaves_a_whole_file(tmp_path):
    path = tmp_path / "model.margrove"
    rng = np.random.default_rng(0)
    for _ in range(4):
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout.readline() == "ready\n"
        while not path.exists():
            time.sleep(0.005)
        # Read while it is written, then kill at any moment.
        for _ in range(3):
            load(path)
        time.sleep(float(rng.uniform(0, 0.1)))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert load(path).status_


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


def test_places_that_cannot_be_written_are_told(tmp_path, old):
    with pytest.raises(
        ModelFileError, match=r"absent.model\.margrove: it cannot be written: No such file or directory"
    ):
        save(old, tmp_path / "absent" / "model.margrove")
    with pytest.raises(ModelFileError, match="it is a folder"):
        save(old, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelFileError, match="it cannot be written: Not a directory"):
        save(old, tmp_path / "file" / "model.margrove")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="permissions do not bind the superuser")
def test_permissions_are_told(tmp_path, old):
    path = tmp_path / "model.margrove"
    save(old, path)
    path.chmod(0)
    with pytest.raises(ModelFileError, match="it cannot be read: Permission denied"):
        load(path)
    tmp_path.chmod(0o500)
    with pytest.raises(ModelFileError, match="it cannot be written: Permission denied"):
        save(old, path)
    tmp_path.chmod(0o700)


def test_a_refused_open_is_told_by_its_own_name(monkeypatch, tmp_path, old):
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
