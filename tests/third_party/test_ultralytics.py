"""ultralytics: YOLO networks, built from their descriptions, that detect, classify, segment and find poses in made pictures."""
import os
import tempfile

os.environ.setdefault("YOLO_CONFIG_DIR", tempfile.gettempdir())
os.environ.update(YOLO_AUTOINSTALL="false", YOLO_OFFLINE="true", YOLO_VERBOSE="false")

import numpy  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402
from facts import recorded  # noqa: E402
from PIL import Image  # noqa: E402
from ultralytics import YOLO  # noqa: E402
from ultralytics.cfg import get_cfg  # noqa: E402
from ultralytics.nn.tasks import ClassificationModel, DetectionModel, PoseModel, SegmentationModel  # noqa: E402
from ultralytics.utils import ops  # noqa: E402
from ultralytics.utils.metrics import ap_per_class, bbox_iou  # noqa: E402
from ultralytics.utils.nms import non_max_suppression  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
NETWORKS = {
    "yolov8n": (DetectionModel, "yolov8n.yaml"), "yolo11n": (DetectionModel, "yolo11n.yaml"), "yolov10n": (DetectionModel, "yolov10n.yaml"),
    "segment": (SegmentationModel, "yolo11n-seg.yaml"), "pose": (PoseModel, "yolo11n-pose.yaml"), "classify": (ClassificationModel, "yolo11n-cls.yaml"),
}  # fmt: skip


def pictures(many, size=64, device="cpu"):
    return (torch.linspace(0, 900, many * 3 * size * size, device=device, dtype=torch.float64).sin() / 2 + 0.5).float().reshape(many, 3, size, size)


def network(name, device="cpu"):
    torch.manual_seed(0)
    kind, config = NETWORKS[name]
    made = kind(config, ch=3, nc=4, verbose=False)
    made.args = get_cfg(overrides={"imgsz": 64})
    return made.to(device)


def targets(device="cpu"):
    boxes = torch.tensor([[0.5, 0.5, 0.4, 0.6], [0.3, 0.4, 0.2, 0.3], [0.6, 0.6, 0.5, 0.5]], device=device)
    return {"batch_idx": torch.tensor([0.0, 0, 1], device=device), "cls": torch.tensor([[0.0], [2], [3]], device=device), "bboxes": boxes}


@recorded
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_have_pytorchs_outputs(name):
    net = network(name).eval()
    with torch.no_grad():
        found = net(pictures(1))
    found = found[0] if isinstance(found, (tuple, list)) else found
    found = found[0] if isinstance(found, (tuple, list)) else found
    return {"mean": found.mean((0, -1)), "some": found.flatten()[::97]}


@recorded
@pytest.mark.parametrize("name", ["yolov8n", "yolo11n", "pose", "segment"])
def test_losses_and_gradients_are_pytorchs(device, name):
    net = network(name, device).train()
    # Where few numbers are normalized together, the pose's gradient makes 30 times as much of a picture's last bit.
    batch = {"img": pictures(4, 96, device) if name == "pose" else pictures(2, device=device), **targets(device)}
    if name == "segment":
        batch["masks"] = torch.zeros(2, 16, 16, device=device)
        batch["masks"][0, 4:12, 4:12], batch["masks"][1, 2:9, 5:14] = 1, 1
        batch["sem_masks"] = torch.zeros(2, 16, 16, device=device, dtype=torch.long)
    if name == "pose":
        batch["keypoints"] = torch.linspace(0.2, 0.7, 3 * 17 * 3, device=device).reshape(3, 17, 3)
    loss, parts = net(batch)
    loss.sum().backward()
    norms = {key: value.grad.norm().item() for key, value in net.named_parameters() if value.grad is not None and value.ndim > 1}
    return {"loss": loss, "parts": list(parts.values()) if isinstance(parts, dict) else parts, "norms": dict(list(norms.items())[-12:])}


@recorded
def test_boxes_are_suppressed_as_in_pytorch(device):
    spread = torch.linspace(0, 400, 60, device=device)
    boxes = torch.stack([spread.sin() * 20 + 32, spread.cos() * 20 + 32, spread.sin().abs() * 9 + 8, spread.cos().abs() * 9 + 8])
    found = torch.cat([boxes, torch.linspace(0, 90, 180, device=device).sin().abs().reshape(3, 60)])[None]
    kept = non_max_suppression(found, conf_thres=0.4, iou_thres=0.3)[0]
    agnostic = non_max_suppression(found, conf_thres=0.4, iou_thres=0.3, agnostic=True, multi_label=True)[0]
    iou = bbox_iou(boxes.T[:5], boxes.T[5:10], xywh=True, CIoU=True)
    corners = ops.xywh2xyxy(boxes.T[:4])
    return {"kept": kept, "agnostic": agnostic, "iou": iou, "xyxy": corners, "scaled": ops.scale_boxes((64, 64), corners.clone(), (100, 80))}


@recorded
def test_precision_is_measured():
    found = ap_per_class(numpy.sin(numpy.arange(30)).reshape(10, 3) > 0, numpy.cos(numpy.arange(10)), numpy.arange(10) % 3, numpy.arange(12) % 3)
    return [numpy.asarray(part, dtype=float).tolist() for part in found[2:6]]


def data_set(folder):
    for part in ("train", "val"):
        (folder / "images" / part).mkdir(parents=True)
        (folder / "labels" / part).mkdir(parents=True)
        for i in range(4):
            pixels = (pictures(4)[i].permute(1, 2, 0).numpy() * 120).astype(numpy.uint8)
            pixels[16:40, 8 + 4 * i : 32 + 4 * i] = 250
            Image.fromarray(pixels).save(folder / "images" / part / f"{i}.png")
            (folder / "labels" / part / f"{i}.txt").write_text(f"{i % 2} {(20 + 4 * i) / 64} {28 / 64} {24 / 64} {24 / 64}\n")
    (folder / "data.yaml").write_text(f"path: {folder}\ntrain: images/train\nval: images/val\nnames: [one, two]\n")
    return str(folder / "data.yaml")


@recorded
def test_a_detector_is_trained_and_detects(device, tmp_path):
    torch.manual_seed(0)
    model = YOLO("yolov8n.yaml", verbose=False)
    quiet = {"device": "0" if device == "cuda" else device, "workers": 0, "verbose": False, "plots": False, "project": str(tmp_path), "imgsz": 64}
    options = {"amp": False, "pretrained": False, "val": False, "save": True, "exist_ok": True, "name": "run", "seed": 1, "mosaic": 0.5}
    model.train(data=data_set(tmp_path), epochs=2, batch=4, optimizer="SGD", lr0=0.01, **options, **quiet)
    rows = [line.split(",") for line in (tmp_path / "run" / "results.csv").read_text().splitlines()]
    losses = {name.strip(): [float(row[i]) for row in rows[1:]] for i, name in enumerate(rows[0]) if "train/" in name or "lr/" in name}
    again = YOLO(str(tmp_path / "run" / "weights" / "last.pt"), verbose=False)
    found = again.predict(str(tmp_path / "images" / "val" / "0.png"), conf=0.0001, max_det=4, **quiet)[0]
    scores = again.val(data=str(tmp_path / "data.yaml"), batch=4, **quiet)
    assert 0 <= scores.box.map <= 1
    return {**losses, "boxes": found.boxes.xyxy, "chances": found.boxes.conf}
