"""naru.vision.ops: boxes, regions of interest, losses, compared with their definitions written in NumPy."""
import numpy as np
import pytest

import naru as torch
from naru.vision import ops


def boxes(count, seed=0):
    random = np.random.RandomState(seed)
    corner = random.rand(count, 2) * 30
    return torch.tensor(np.concatenate([corner, corner + 1 + random.rand(count, 2) * 15], 1).astype(np.float32))


def iou(a, b):
    common = max(min(a[2], b[2]) - max(a[0], b[0]), 0) * max(min(a[3], b[3]) - max(a[1], b[1]), 0)
    return common / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common)


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.7])
def test_nms_keeps_a_box_that_no_better_kept_one_covers(threshold):
    table, scores = boxes(60), torch.tensor(np.random.RandomState(1).rand(60).astype(np.float32))
    classes = torch.arange(60) % 3

    def kept(same):
        found = []
        for i in scores.numpy().argsort()[::-1]:
            if all(iou(table[i].tolist(), table[j].tolist()) <= threshold for j in found if same(i, j)):
                found.append(int(i))
        return found

    assert ops.nms(table, scores, threshold).tolist() == kept(lambda i, j: True)
    assert ops.batched_nms(table, scores, classes, threshold).tolist() == kept(lambda i, j: i % 3 == j % 3)
    assert ops.nms(torch.zeros(0, 4), torch.zeros(0), 0.5).shape == (0,)


def test_nms_refuses_shapes_that_can_not_be_meant():
    with pytest.raises(RuntimeError, match=r"boxes should be a 2d tensor"):
        ops.nms(torch.zeros(4), torch.zeros(1), 0.5)
    with pytest.raises(RuntimeError, match="same number of elements in dimension 0, got 2 and 3"):
        ops.nms(torch.zeros(2, 4), torch.zeros(3), 0.5)


def test_ious_are_those_of_their_definitions():
    a, b = boxes(5, 2), boxes(4, 3)
    expected = [[iou(x, y) for y in b.tolist()] for x in a.tolist()]
    np.testing.assert_allclose(ops.box_iou(a, b).numpy(), expected, rtol=1e-5, atol=1e-7)
    hull = np.array([[(max(x[2], y[2]) - min(x[0], y[0])) * (max(x[3], y[3]) - min(x[1], y[1])) for y in b.tolist()] for x in a.tolist()])
    areas = ops.box_area(a).numpy()[:, None] + ops.box_area(b).numpy()
    union = areas / (1 + np.array(expected))
    np.testing.assert_allclose(ops.generalized_box_iou(a, b).numpy(), expected - (hull - union) / hull, rtol=1e-4, atol=1e-6)
    pairs = ops.generalized_box_iou_loss(a[:4], b)
    np.testing.assert_allclose(pairs.numpy(), 1 - ops.generalized_box_iou(a[:4], b).diagonal().numpy(), rtol=1e-5, atol=1e-6)
    for loss, matrix in ((ops.distance_box_iou_loss, ops.distance_box_iou), (ops.complete_box_iou_loss, ops.complete_box_iou)):
        np.testing.assert_allclose(loss(a[:4], b).numpy(), 1 - matrix(a[:4], b).diagonal().numpy(), rtol=1e-5, atol=1e-6)


def test_boxes_are_converted_there_and_back():
    table = boxes(6)
    for there in ("xywh", "cxcywh", "xyxy"):
        np.testing.assert_allclose(ops.box_convert(ops.box_convert(table, "xyxy", there), there, "xyxy").numpy(), table.numpy(), rtol=1e-6)
    with pytest.raises(ValueError, match="Unsupported Bounding Box Conversions"):
        ops.box_convert(table, "xyxy", "yxyx")


def test_boxes_are_cut_and_sorted_out():
    table = torch.tensor([[-5.0, -5, 3, 30], [1, 1, 1.5, 9], [2, 2, 9, 9]])
    assert ops.clip_boxes_to_image(table, (10, 8)).tolist() == [[0, 0, 3, 10], [1, 1, 1.5, 9], [2, 2, 8, 9]]
    assert ops.remove_small_boxes(table, 1).tolist() == [0, 2]
    masks = torch.zeros(1, 5, 6, dtype=torch.bool)
    masks[0, 1:3, 2:5] = True
    assert ops.masks_to_boxes(masks).tolist() == [[2, 1, 4, 2]]


def roi_align_by_hand(image, roi, size, scale, ratio, aligned):
    """One region of (C, H, W), sample by sample."""
    _, height, width = image.shape
    x1, y1, x2, y2 = [v * scale - (0.5 if aligned else 0) for v in roi]
    w, h = (x2 - x1, y2 - y1) if aligned else (max(x2 - x1, 1), max(y2 - y1, 1))
    gy, gx = (ratio, ratio) if ratio > 0 else (int(np.ceil(h / size[0])), int(np.ceil(w / size[1])))
    out = np.zeros((image.shape[0], *size))
    for i, j, a, b in np.ndindex(*size, gy, gx):
        y, x = y1 + (i + (a + 0.5) / gy) * h / size[0], x1 + (j + (b + 0.5) / gx) * w / size[1]
        if not (-1 <= y <= height and -1 <= x <= width):
            continue
        y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
        top, left = int(y), int(x)
        low, right = min(top + 1, height - 1), min(left + 1, width - 1)
        fy, fx = y - top, x - left
        upper = image[:, top, left] * (1 - fx) + image[:, top, right] * fx
        lower = image[:, low, left] * (1 - fx) + image[:, low, right] * fx
        out[:, i, j] += upper * (1 - fy) + lower * fy
    return out / max(gy * gx, 1)


@pytest.mark.parametrize("ratio", [2, -1])
@pytest.mark.parametrize("aligned", [False, True])
def test_roi_align_takes_means_of_bilinear_samples(ratio, aligned):
    image = torch.tensor(np.random.RandomState(0).rand(2, 2, 9, 8))
    rois = torch.tensor([[0, 1, 1, 7, 8], [1, 2, 3, 4.5, 6], [1, -3, -3, 12, 5], [0, 3, 3, 3, 3]], dtype=torch.float64)
    found = ops.roi_align(image, rois, (3, 2), 0.9, ratio, aligned)
    for region, roi in zip(found, rois.tolist()):
        np.testing.assert_allclose(region.numpy(), roi_align_by_hand(image[int(roi[0])].numpy(), roi[1:], (3, 2), 0.9, ratio, aligned), atol=1e-12)
    listed = ops.roi_align(image, [rois[:1, 1:], rois[1:3, 1:]], (3, 2), 0.9, ratio, aligned)
    assert torch.equal(listed, found[:3])


def test_roi_align_has_gradients():
    image = torch.rand(1, 1, 5, 5, dtype=torch.float64, requires_grad=True)
    rois = torch.tensor([[0, 0.5, 0.7, 4.2, 3.9]], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: ops.roi_align(x, rois, 2, sampling_ratio=2, aligned=True), (image,))


def test_focal_loss_weighs_well_known_examples_less():
    logits, targets = torch.tensor([-2.0, 0.5, 3.0]), torch.tensor([0.0, 1.0, 0.0])
    p = 1 / (1 + np.exp(-logits.numpy()))
    right = np.where(targets.numpy() == 1, p, 1 - p)
    expected = np.where(targets.numpy() == 1, 0.25, 0.75) * (1 - right) ** 2 * -np.log(right)
    np.testing.assert_allclose(ops.sigmoid_focal_loss(logits, targets).numpy(), expected, rtol=1e-5)
    assert ops.sigmoid_focal_loss(logits, targets, reduction="sum").item() == pytest.approx(expected.sum(), rel=1e-5)
    with pytest.raises(ValueError, match="Invalid Value for arg 'reduction': 'median"):
        ops.sigmoid_focal_loss(logits, targets, reduction="median")


def test_frozen_batch_norm_is_batch_norm_that_does_not_train():
    norm = torch.nn.BatchNorm2d(3)
    norm(torch.rand(4, 3, 5, 5))
    frozen = ops.FrozenBatchNorm2d(3)
    frozen.load_state_dict(norm.state_dict())
    x = torch.rand(2, 3, 4, 4)
    np.testing.assert_allclose(frozen(x).numpy(), norm.eval()(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    assert not list(frozen.parameters())


def test_operators_have_torchvisions_names():
    table, scores = boxes(20), torch.linspace(1, 0, 20)
    assert torch.equal(torch.ops.torchvision.nms(table, scores, 0.3), ops.nms(table, scores, 0.3))
    assert torch.equal(torch.ops.torchvision.nms.default(table, scores, 0.7), ops.nms(table, scores, 0.7))
    pixels, regions = torch.arange(2 * 3 * 64.0).reshape(2, 3, 8, 8), torch.tensor([[0.0, 1, 1, 6, 5], [1.0, 0, 2, 7, 7]])
    found = torch.ops.torchvision.roi_align(pixels, regions, 0.5, 3, 2, 2, True)
    assert found.shape == (2, 3, 3, 2) and torch.equal(found, ops.roi_align(pixels, regions, (3, 2), 0.5, 2, True))
