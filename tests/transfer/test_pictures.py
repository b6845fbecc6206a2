"""Every kind of input gives the same pixels; inputs without pictures are refused."""

from __future__ import annotations

import os

import numpy as np
import pytest
from PIL import Image

from margrove.errors import InputError, ParameterError
from margrove.transfer.damaged import damaged_rows, refuse_damaged, without_damaged
from margrove.transfer.pictures import as_pictures, read_picture_folder
from margrove.transfer.preparation import Preparation


def pixels_of(X, mode="RGB"):
    return [np.asarray(picture.in_mode(mode)) for picture in as_pictures(X)]


def test_files_arrays_and_images_of_the_same_pictures_give_the_same_pixels(stripes, stripes_folder):
    pictures, _ = stripes
    folder = read_picture_folder(stripes_folder)
    by_label = {path.stem: path for path in folder}
    files = [by_label[f"{number:02}"] for number in range(len(pictures))]
    forms = (
        pictures,
        list(pictures),
        pictures / 255,
        files,
        [str(f) for f in files],
        [Image.fromarray(p) for p in pictures],
    )
    for form in forms:
        np.testing.assert_array_equal(pixels_of(form), pictures)


def test_the_class_is_the_name_of_the_folder(stripes_folder):
    folder = read_picture_folder(stripes_folder)
    assert folder.classes == ["lie", "stand"]
    assert all(path.parent.name == label for path, label in zip(folder, folder.labels, strict=True))
    assert list(folder) == sorted(folder)


def test_folders_within_a_class_belong_to_it_and_other_files_are_noted(stripes_folder):
    (stripes_folder / "lie" / "deep").mkdir()
    Image.new("RGB", (4, 4)).save(stripes_folder / "lie" / "deep" / "x.JPG", format="JPEG")
    (stripes_folder / "lie" / "notes.txt").write_text("no picture")
    (stripes_folder / ".hidden").mkdir()
    (stripes_folder / "loose.png").write_bytes((stripes_folder / "lie" / "20.png").read_bytes())
    folder = read_picture_folder(stripes_folder)
    assert len(folder) == 41
    assert folder.labels.tolist().count("lie") == 21
    assert [note.split(":")[0] for note in folder.notes] == ["1 file skipped", "1 picture skipped"]


def test_too_few_classes_are_refused_with_an_example(tmp_path):
    (tmp_path / "cat").mkdir()
    Image.new("RGB", (4, 4)).save(tmp_path / "cat" / "1.png")
    with pytest.raises(InputError, match=r"of 1 class were found.*pets/cat/1\.jpg"):
        read_picture_folder(tmp_path)
    assert len(read_picture_folder(tmp_path, needs_classes=False)) == 1
    with pytest.raises(InputError, match="there is no such folder"):
        read_picture_folder(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.zeros((5, 3072), np.uint8), r"shape \(5, 3072\).*Reshape"),
        (np.zeros((5, 3, 8, 8), np.uint8), "Put the channels last"),
        (np.full((1, 8, 8, 3), 300), "from 300 to 300"),
        (np.full((1, 8, 8), np.nan), "from nan"),
        ([], "no picture"),
        ([3], "is 3; a path"),
        (7, "is 7; pictures were expected"),
        (Image.new("RGB", (4, 4)), r"\[picture\]"),
        ([Image.new("I;16", (4, 4))], "more than 8 bits"),
    ],
)
def test_an_input_that_is_not_a_picture_is_refused(given, words):
    with pytest.raises(InputError, match=words):
        pixels_of(given)


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / "cut.png").write_bytes(b"\x89PNG\r\n\x1a\n but no more")
    Image.new("RGB", (64, 64)).save(tmp_path / "whole.jpg")
    (tmp_path / "half.jpg").write_bytes((tmp_path / "whole.jpg").read_bytes()[:300])
    for name in ("cut.png", "half.jpg", "gone.png"):
        with pytest.raises(InputError, match=name):
            pixels_of([tmp_path / name])


def test_a_picture_is_turned_as_its_exif_states(tmp_path):
    image = Image.fromarray(np.arange(6, dtype=np.uint8).reshape(2, 3) * 40)
    exif = image.getexif()
    exif[0x0112] = 6  # turned by a quarter
    image.save(tmp_path / "turned.png", exif=exif)
    (picture,) = pixels_of([tmp_path / "turned.png"], "L")
    np.testing.assert_array_equal(picture, np.rot90(np.asarray(image), -1))


def test_the_middle_square_is_kept():
    wide = np.zeros((4, 12, 3), np.uint8)
    wide[:, 4:8] = 255
    (seen,) = Preparation(size=4).pixels(as_pictures([wide]))
    assert (seen == 255).all()
    (inner,) = Preparation(size=2, crop=0.5).pixels(
        as_pictures(np.pad(np.full((1, 2, 2), 9, np.uint8), ((0, 0), (1, 1), (1, 1))))
    )
    assert inner.min() > 0


def test_scale_and_shift_are_those_of_the_formula(rng):
    seen = Preparation(mean=(0.1, 0.2, 0.3), std=(0.4, 0.5, 0.6))
    a, b = seen.scale_and_shift
    p = rng.integers(0, 256, (5, 3))
    np.testing.assert_allclose(p * a + b, (p / 255 - seen.mean) / seen.std, rtol=1e-6)


def test_numbers_out_of_range_are_refused():
    seen = Preparation()
    for given, words in (
        ({"size": 0}, "size is 0"),
        ({"crop": 1.5}, "crop is 1.5"),
        ({"mean": (1, 2)}, "3 numbers"),
        ({"std": 0}, "std is 0"),
    ):
        with pytest.raises(ParameterError, match=words):
            seen.with_given(**{"size": None, "crop": None, "mean": None, "std": None, **given})


def test_digests_distinguish_pictures(rng):
    pictures = rng.integers(0, 256, (4, 6, 8, 3), dtype=np.uint8)
    forms = [*pictures, pictures[0].reshape(8, 6, 3), *(Image.fromarray(p) for p in pictures)]
    digests = [picture.digest() for picture in as_pictures(forms)]
    assert len(set(digests)) == len(forms)
    assert digests == [picture.digest() for picture in as_pictures(forms)]


def test_one_picture_in_colour_is_not_read_as_many_in_grey(stripes):
    with pytest.raises(InputError, match=r"shape \(12, 12, 3\), which looks like a single colour picture.*newaxis"):
        as_pictures(stripes[0][0])
    assert len(as_pictures(stripes[0][..., 0])) == 40


def test_a_pil_image_is_turned_as_its_file_is(tmp_path, stripes):
    exif = Image.Exif()
    exif[0x112] = 6  # orientation: lying on its side
    path = tmp_path / "turned.png"
    Image.fromarray(stripes[0][0]).save(path, exif=exif)
    with Image.open(path) as opened:
        by_file, by_image, digest = pixels_of([path])[0], pixels_of([opened])[0], as_pictures([opened])[0].digest()
    np.testing.assert_array_equal(by_file, np.rot90(stripes[0][0], -1))
    np.testing.assert_array_equal(by_image, by_file)
    assert digest == as_pictures([Image.fromarray(by_file)])[0].digest()


def test_a_pil_image_that_cannot_be_decoded_is_refused(tmp_path):
    path = tmp_path / "cut.jpg"
    Image.effect_noise((64, 64), 50).save(path)
    path.write_bytes(path.read_bytes()[:900])
    with Image.open(path) as opened, pytest.raises(InputError, match="picture 0: it cannot be decoded"):
        pixels_of([opened])
    odd = Image.new("LA", (4, 4)).convert("La")
    with pytest.raises(InputError, match="mode 'La', which cannot be converted to RGB"):
        pixels_of([odd])


def test_links_to_folders_are_classes_too(tmp_path, stripes_folder):
    (stripes_folder / "also").symlink_to(stripes_folder.parent / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    Image.new("RGB", (4, 4)).save(tmp_path / "elsewhere" / "1.png")
    (stripes_folder / "lie" / "round").symlink_to(stripes_folder)  # and so without end
    folder = read_picture_folder(stripes_folder)
    assert folder.classes == ["also", "lie", "stand"]
    assert len(folder) == 41


@pytest.mark.skipif(os.name == "nt", reason="names are text there")
def test_a_name_that_is_not_text_is_refused_before_any_work(stripes_folder):
    odd = os.path.join(os.fsencode(stripes_folder), b"caf\xe9")
    try:
        os.rename(stripes_folder / "lie", odd)
    except OSError:
        pytest.skip("this file system has names in UTF-8 only")
    with pytest.raises(InputError, match=r"caf\\xe9.*: its name is not text in UTF-8. Rename it"):
        read_picture_folder(stripes_folder)


class Tensor:
    """What numpy can read and is no array, as torch's tensors are."""

    def __init__(self, pixels):
        self.pixels = pixels

    def __array__(self, dtype=None, copy=None):
        return self.pixels

    def __len__(self):
        return len(self.pixels)

    def __iter__(self):
        return iter(self.pixels.tolist())


def test_tensors_are_arrays(stripes):
    whole, single = as_pictures(Tensor(stripes[0])), as_pictures([Tensor(stripes[0][0])])
    np.testing.assert_array_equal(pixels_of(whole), stripes[0])
    np.testing.assert_array_equal(pixels_of(single), stripes[0][:1])


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_column_of_paths_is_accepted(stripes_folder, kind):
    frames = pytest.importorskip(kind)
    paths = [str(path) for path in read_picture_folder(stripes_folder)]
    frame = frames.DataFrame({"path": paths, "size": [1] * len(paths)})
    for column in (frame["path"], frame[["path"]]):
        assert [picture.name for picture in as_pictures(column)] == paths
    with pytest.raises(InputError, match=r"a table of 2 columns, not pictures.*X\['path'\]"):
        as_pictures(frame)


def test_a_missing_file_is_reported_with_its_own_cure(tmp_path):
    gone = as_pictures([tmp_path / "gone.png"])[0]
    for ask in (gone.digest, gone.image):
        with pytest.raises(InputError, match=r"gone.png: there is no such file. Check the path"):
            ask()


def test_folders_without_a_picture_and_other_files_are_named(stripes_folder):
    (stripes_folder / "empty").mkdir()
    (stripes_folder / "lie" / "notes.txt").write_text("no picture")
    notes = read_picture_folder(stripes_folder).notes
    assert any("notes.txt" in note for note in notes)
    assert "1 folder without a picture: empty" in notes


def test_damaged_files_are_all_reported_at_once_or_left_out(stripes_folder):
    (stripes_folder / "lie" / "a.png").write_bytes(b"no picture")
    (stripes_folder / "stand" / "b.jpg").write_bytes(b"")
    with pytest.raises(InputError, match=r"2 files are damaged or not in a picture format: lie/a.png, stand/b.jpg"):
        refuse_damaged(read_picture_folder(stripes_folder))
    kept = without_damaged(read_picture_folder(stripes_folder))
    assert len(kept) == 40
    assert kept.notes[-1] == "2 files left out, damaged or not in a picture format: lie/a.png, stand/b.jpg"


def test_a_truncated_picture_is_found_by_decoding_it(stripes_folder):
    cut = stripes_folder / "lie" / "cut.jpg"
    Image.effect_noise((64, 64), 50).save(cut)
    cut.write_bytes(cut.read_bytes()[:900])
    pictures = read_picture_folder(stripes_folder)
    assert damaged_rows(pictures) == []
    assert [pictures[row] for row in damaged_rows(pictures, is_thorough=True)] == [cut]
