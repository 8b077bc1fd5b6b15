"""naru.vision.datasets, from files that the tests write; naru.vision.utils; naru.vision as torchvision."""
import gzip
import io
import os
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import naru as torch
from naru.vision import datasets, transforms, utils
from naru.vision import io as vision_io

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install pillow")


def write_idx(path, array):
    head = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "wb") as file:
        file.write(head + array.astype(np.uint8).tobytes())


def write_mnist(root, name="MNIST", ending=""):
    folder = root / name / "raw"
    folder.mkdir(parents=True)
    random = np.random.RandomState(0)
    images = {"train": random.randint(0, 256, (5, 28, 28)), "t10k": random.randint(0, 256, (3, 28, 28))}
    for part, pixels in images.items():
        write_idx(folder / f"{part}-images-idx3-ubyte{ending}", pixels)
        write_idx(folder / f"{part}-labels-idx1-ubyte{ending}", np.arange(len(pixels)))
    return images


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("cls", [datasets.MNIST, datasets.FashionMNIST])
def test_mnist_is_read_from_idx_files(tmp_path, cls, ending):
    images = write_mnist(tmp_path, cls.__name__, ending)
    train, test = cls(tmp_path, download=True), cls(str(tmp_path), train=False, transform=transforms.ToTensor(), target_transform=lambda t: -t)
    assert (len(train), len(test)) == (5, 3)
    picture, label = train[4]
    assert (picture.mode, picture.size, label) == ("L", (28, 28), 4)
    assert np.array_equal(np.asarray(picture), images["train"][4])
    pixels, label = test[2]
    assert label == -2
    np.testing.assert_allclose(pixels.numpy()[0], images["t10k"][2] / 255, rtol=1e-6)
    batch, labels = next(iter(torch.utils.data.DataLoader(test, batch_size=3)))
    assert (batch.shape, labels.tolist()) == ((3, 1, 28, 28), [0, -1, -2])
    assert "Split: Test" in repr(test)


@pytest.mark.parametrize("download", [False, True])
def test_what_is_not_there_is_said_and_never_downloaded(tmp_path, download):
    with pytest.raises(RuntimeError, match=r"Dataset not found: MNIST needs train-images-idx3-ubyte, .* in .*MNIST/raw, and naru downloads nothing"):
        datasets.MNIST(tmp_path, download=download)
    with pytest.raises(RuntimeError, match=r"CIFAR10 needs data_batch_1.*naru downloads nothing.*tar -xzf cifar-10-python.tar.gz"):
        datasets.CIFAR10(tmp_path, download=download)


def test_damaged_idx_files_are_refused(tmp_path):
    write_mnist(tmp_path)
    path = tmp_path / "MNIST" / "raw" / "train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="5 x 28 x 28 numbers, and holds 3919"):
        datasets.MNIST(tmp_path)
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(ValueError, match="is no IDX file"):
        datasets.MNIST(tmp_path)
    write_idx(path, np.zeros((4, 28, 28)))
    with pytest.raises(ValueError, match="one an image"):
        datasets.MNIST(tmp_path)


def write_cifar(root, cls, key):
    folder = root / cls.base_folder
    folder.mkdir()
    pixels = np.random.RandomState(0).randint(0, 256, (2, 3072)).astype(np.uint8)
    for i, name in enumerate([*cls.train_list, *cls.test_list]):
        # Files from 2009 use NumPy's module names of that time.
        written = pickle.dumps({"data": pixels, key: [i, 1]}, protocol=2).replace(b"numpy._core", b"numpy.core")
        (folder / name).write_bytes(written)
    (folder / cls.meta["filename"]).write_bytes(pickle.dumps({cls.meta["key"]: ["plane", "car"]}))
    return pixels


@pytest.mark.parametrize(("cls", "key", "count"), [(datasets.CIFAR10, "labels", 10), (datasets.CIFAR100, "fine_labels", 2)])
def test_cifar_is_read_from_its_pickles(tmp_path, cls, key, count):
    pixels = write_cifar(tmp_path, cls, key)
    train, test = cls(tmp_path), cls(tmp_path, train=False)
    assert (len(train), len(test)) == (count, 2)
    picture, label = test[0]
    assert label == len(cls.train_list)
    assert np.array_equal(np.asarray(picture), pixels[0].reshape(3, 32, 32).transpose(1, 2, 0))
    assert train.class_to_idx == {"plane": 0, "car": 1}


def test_a_pickle_that_calls_something_else_is_refused(tmp_path):
    write_cifar(tmp_path, datasets.CIFAR10, "labels")

    class Evil:
        def __reduce__(self):
            return os.system, ("exit 3",)

    (tmp_path / datasets.CIFAR10.base_folder / "data_batch_1").write_bytes(pickle.dumps({"data": Evil()}))
    with pytest.raises(pickle.UnpicklingError, match=r"system has no place in a file of CIFAR"):
        datasets.CIFAR10(tmp_path)


def write_stl10(root):
    folder = root / "stl10_binary"
    folder.mkdir()
    random = np.random.RandomState(0)
    pixels = {part: random.randint(0, 256, (many, 3, 96, 96)).astype(np.uint8) for part, many in (("train", 4), ("test", 2), ("unlabeled", 3))}
    for part, array in pixels.items():
        array.transpose(0, 1, 3, 2).tofile(folder / f"{part}_X.bin")  # by columns
        if part != "unlabeled":
            (np.arange(len(array), dtype=np.uint8) + 1).tofile(folder / f"{part}_y.bin")
    (folder / "fold_indices.txt").write_text("0 2\n3 1\n")
    (folder / "class_names.txt").write_text("airplane\nbird\n")
    return pixels


def test_stl10_is_read_from_its_files(tmp_path):
    pixels = write_stl10(tmp_path)
    train = datasets.STL10(tmp_path)
    assert (len(train), train[3][1], train.classes, "Split: train" in repr(train)) == (4, 3, ["airplane", "bird"], True)
    assert np.array_equal(np.asarray(train[3][0]), pixels["train"][3].transpose(1, 2, 0))
    assert [label for _, label in datasets.STL10(tmp_path, folds=1)] == [3, 1]
    both = datasets.STL10(tmp_path, "train+unlabeled", transform=transforms.ToTensor(), target_transform=lambda t: -t)
    assert (len(both), both[5][0].shape, [label for _, label in both]) == (7, (3, 96, 96), [0, -1, -2, -3, 1, 1, 1])
    assert np.array_equal(np.asarray(datasets.STL10(tmp_path, "test")[1][0]), pixels["test"][1].transpose(1, 2, 0))


def test_stl10_refuses_what_it_cannot_read(tmp_path):
    with pytest.raises(RuntimeError, match=r"STL10 needs train_X.bin, train_y.bin in .*stl10_binary.*tar -xzf stl10_binary.tar.gz"):
        datasets.STL10(tmp_path)
    write_stl10(tmp_path)
    with pytest.raises(ValueError, match=r"wanted split to be one of 'train', .* got 'all'"):
        datasets.STL10(tmp_path, "all")
    with pytest.raises(ValueError, match=r"wanted folds to be None or an int from 0 to 9, got 10"):
        datasets.STL10(tmp_path, folds=10)
    (tmp_path / "stl10_binary" / "test_X.bin").write_bytes(b"short")
    with pytest.raises(ValueError, match=r"test_X.bin is damaged: it should have 27648 bytes for each picture, 55296 in all, and has 5"):
        datasets.STL10(tmp_path, "test")


def test_folders_are_classes(tmp_path):
    for path, color in (("cat/b.png", 1), ("cat/in/a.png", 2), ("ant/z.JPG", 3), ("ant/no.txt", 4)):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (4, 3), color * 10).save(tmp_path / path, format="jpeg" if path.endswith("JPG") else "png")
    found = datasets.ImageFolder(tmp_path, transform=transforms.PILToTensor())
    assert found.classes == ["ant", "cat"]
    assert [(os.path.relpath(path, tmp_path), label) for path, label in found.imgs] == [("ant/z.JPG", 0), ("cat/b.png", 1), ("cat/in/a.png", 1)]
    assert found.targets == [0, 1, 1]
    assert found[1][0].shape == (3, 3, 4)
    assert found[2][0].unique().tolist() == [20]
    texts = datasets.DatasetFolder(tmp_path, lambda path: path[-6:], extensions=(".txt",), allow_empty=True)
    assert texts[0] == ("no.txt", 0)
    with pytest.raises(FileNotFoundError, match="Found no valid file for the classes cat. Supported extensions are: .txt"):
        datasets.DatasetFolder(tmp_path, str, extensions=(".txt",))
    with pytest.raises(FileNotFoundError, match="Couldn't find any class folder"):
        datasets.ImageFolder(tmp_path / "cat" / "in")


def test_fake_data_is_the_same_whenever_it_is_asked_for():
    data = datasets.FakeData(3, (3, 6, 5), 4, transforms.PILToTensor())
    torch.manual_seed(0)
    expected = torch.rand(2)
    torch.manual_seed(0)
    first = data[1]
    assert torch.equal(torch.rand(2), expected)
    assert torch.equal(data[1][0], first[0])
    assert data[1][1] == first[1]
    with pytest.raises(IndexError):
        data[3]


def test_a_grid_has_its_pictures_in_rows(tmp_path):
    pictures = torch.arange(5.0).view(5, 1, 1, 1).expand(5, 3, 2, 3) / 4
    grid = utils.make_grid(pictures, nrow=3, padding=1, pad_value=0.5)
    assert grid.shape == (3, 7, 13)
    assert [[grid[0, y, x].item() for x in (1, 5, 9)] for y in (1, 4)] == [[0, 0.25, 0.5], [0.75, 1, 0.5]]
    scaled = utils.make_grid([torch.tensor([[[2.0, 4.0]]])] * 2, padding=0, normalize=True)
    assert scaled[0].tolist() == [[0, 1, 0, 1]]
    utils.save_image(pictures, tmp_path / "grid.png", nrow=3, padding=1, pad_value=0.5)
    assert torch.equal(vision_io.read_image(tmp_path / "grid.png"), (grid * 255 + 0.5).to(torch.uint8))
    file = io.BytesIO()
    utils.save_image(pictures[0], file, format="png")
    assert file.getvalue()[1:4] == b"PNG"


def test_boxes_and_masks_are_drawn():
    blank = torch.zeros(3, 12, 12, dtype=torch.uint8)
    drawn = utils.draw_bounding_boxes(blank, torch.tensor([[2, 3, 6, 8]]), colors="red")
    edge = torch.zeros(12, 12, dtype=torch.bool)
    edge[3:9, 2:7] = True
    edge[4:8, 3:6] = False
    assert torch.equal(drawn[0] == 255, edge)
    assert not drawn[1:].any()
    assert utils.draw_bounding_boxes(blank.float(), torch.tensor([[2, 3, 6, 8]]), ["label"], fill=True).dtype == torch.float32
    with pytest.raises(ValueError, match="xmin, ymin, xmax, ymax"):
        utils.draw_bounding_boxes(blank, torch.tensor([[6, 3, 2, 8]]))
    layered = utils.draw_segmentation_masks(blank, edge, alpha=0.5, colors=(200, 100, 0))
    assert layered[:, 3, 2].tolist() == [100, 50, 0]
    assert not layered[:, ~edge].any()


def test_pictures_are_written_and_read(tmp_path):
    picture = torch.randint(0, 256, (3, 5, 4), dtype=torch.uint8)
    vision_io.write_png(picture, tmp_path / "a.png")
    assert torch.equal(vision_io.decode_image(vision_io.read_file(tmp_path / "a.png")), picture)
    assert vision_io.read_image(str(tmp_path / "a.png"), vision_io.ImageReadMode.GRAY).shape == (1, 5, 4)
    with pytest.raises(RuntimeError, match="no picture that Pillow can read"):
        vision_io.decode_image(torch.zeros(9, dtype=torch.uint8))


def run(tmp_path, text):
    (tmp_path / "script.py").write_text(textwrap.dedent(text))
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(torch.__file__))}
    command = [sys.executable, "-m", "naru", "run", "script.py"]
    return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)


def test_torchvision_is_naru_vision_where_none_is_installed(tmp_path):
    done = run(
        tmp_path,
        """
        import torch, torchvision
        import torchvision.transforms.functional as F
        from torchvision import datasets, models, transforms
        from torchvision.ops import nms
        print(torchvision.__version__, torchvision.transforms is transforms, hasattr(torchvision, "nothing"))
        for line in ("from torchvision.models import swin_t", "import torchvision.models.detection", "models.swin_t"):
            try:
                exec(line)
            except (ImportError, AttributeError) as error:
                print(type(error).__name__, error)
        """,
    )
    assert done.returncode == 0, done.stderr
    version, *errors = done.stdout.splitlines()
    assert version.startswith("0.") and version.endswith(" True False")
    assert [error.split()[0] for error in errors] == ["ImportError", "ModuleNotFoundError", "AttributeError"]
    assert all("not in naru.vision yet" in error for error in errors)


def test_an_installed_torchvision_goes_first(tmp_path):
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision" / "__init__.py").write_text("mine = 1")
    (tmp_path / "torchvision" / "inner.py").write_text("import torch; whose = torch.__version__")
    done = run(tmp_path, "import torchvision.inner; print(torchvision.mine, torchvision.inner.whose)")
    assert done.stdout == f"1 {torch.__version__}\n", done.stderr


def test_check_lists_what_naru_vision_lacks():
    from naru._command.check import check_source

    source = "import torchvision\nfrom torchvision import models as m, transforms\nm.resnet18()\nm.swin_t()\ntorchvision.ops.nms\ntorchvision.ops.roi_pool\n"
    found = check_source(source, "t.py")
    assert [(f.line, f.text.split(";")[0]) for f in found] == [
        (4, "torchvision.models.swin_t is not in naru.vision yet"),
        (6, "torchvision.ops.roi_pool is not in naru.vision yet"),
    ]


def test_a_data_set_is_shown_with_its_transforms_as_torchvision_shows_them():
    transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))])
    assert repr(datasets.FakeData(3, transform=transform)) == (
        "Dataset FakeData\n    Number of datapoints: 3\n    StandardTransform\n"
        "Transform: Compose(\n               ToTensor()\n               Normalize(mean=(0.5,), std=(0.5,))\n           )"
    )
