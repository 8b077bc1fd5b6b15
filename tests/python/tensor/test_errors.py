"""Errors: PyTorch's built-in exception types, with its text first, followed by naru's additions."""
import sys
import threading
import time

import pytest

import naru as torch


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda x: torch.add(x, "a"), r"add\(\): argument 'other' \(position 2\) must be Tensor, not str"),
        (lambda x: x.add("a"), r"add\(\): argument 'other' \(position 1\) must be Tensor, not str"),
        (lambda x: torch.add(x, 1, foo=2), r"add\(\) got an unexpected keyword argument 'foo'"),
        (lambda x: torch.matmul(x), r'matmul\(\) missing 1 required positional arguments: "other"'),
        (lambda x: x.softmax(0, None, 1), r"softmax\(\) takes from 1 to 2 positional arguments but 3 were given"),
        (lambda x: x.exp(1), r"exp\(\) takes 0 positional arguments but 1 was given"),
        (lambda x: torch.add(x, 1, other=2), r"add\(\) got multiple values for argument 'other'"),
        (lambda x: torch.zeros("a"), r"zeros\(\): argument 'size' \(position 1\) must be tuple of ints, not str"),
        (lambda x: torch.cat(x), r"cat\(\): argument 'tensors' \(position 1\) must be tuple of Tensors, not Tensor"),
        (lambda x: torch.cat([x, 1]), "expected Tensor as element 1 in argument 0, but got int"),
        (lambda x: x.amax(keepdim=1), r"amax\(\): argument 'keepdim' must be bool, not int"),
        (lambda x: x.sum(keepdim=True), r"sum\(\) received an invalid combination of arguments - got \(keepdim=bool"),
        (lambda x: x.max("a"), r"max\(\) received an invalid combination of arguments - got \(str\), but expected one of:"),
        (lambda x: torch.relu(1), r"relu\(\): argument 'input' \(position 1\) must be Tensor, not int"),
        (lambda x: torch.Tensor.add(1, 2), "descriptor 'add' for 'Tensor' objects doesn't apply to a 'int' object"),
        (lambda x: torch.add(x, 1, out=3), "must be Tensor, not int"),
        (lambda x: torch.zeros(1, device=1.5), "must be"),
    ],
)
def test_wrong_arguments_name_the_function_and_the_argument(call, text):
    with pytest.raises(TypeError, match=text):
        call(torch.ones(2, 2))


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda x: x.view(4), RuntimeError, r"shape '\[4\]' is invalid for input of size 6"),
        (lambda x: x @ x, RuntimeError, r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x3\)"),
        (lambda x: x + torch.ones(2), RuntimeError, r"The size of tensor a \(3\) must match the size of tensor b \(2\) at non-singleton dimension 1"),
        (lambda x: x.squeeze(5), IndexError, r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 5\)"),
        (lambda x: x.sum(7), IndexError, "Dimension out of range"),
        (lambda x: x.expand(3, 3), RuntimeError, r"The expanded size of the tensor \(3\) must match the existing size \(2\)"),
        (lambda x: x[:, :1].expand(2, 3).add_(1), RuntimeError, r"more than one element of the written-to tensor refers to a single memory location.*\(add_\)"),
        (lambda x: x[0].expand(2, 3).normal_(), RuntimeError, r"more than one element of the written-to tensor refers to a single memory location.*\(normal_\)"),
        (lambda x: x.item(), RuntimeError, "a Tensor with 6 elements cannot be converted to Scalar"),
        (lambda x: x.clamp(), RuntimeError, "At least one of 'min' or 'max' must not be None"),
        (lambda x: x.div(2, rounding_mode="foo"), RuntimeError, "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found 'foo'"),
        (lambda x: torch.device("gpu"), RuntimeError, "at start of device string: gpu"),
        (lambda x: x.to("cuda:9"), RuntimeError, "cuda:9"),
        (lambda x: ~x, TypeError, "only implemented on integer and Boolean-type tensors"),
        (lambda x: torch.ones(2, dtype=torch.int32).mean(), (RuntimeError, NotImplementedError), "could not infer output dtype"),
        (lambda x: torch.ones(2, dtype=torch.int32).add_(1.5), RuntimeError, "can't be cast to the desired output type"),
        (lambda x: torch.cat([]), (RuntimeError, ValueError), "expected a non-empty list of Tensors"),
        (lambda x: torch.ones(2, requires_grad=True).add_(1), RuntimeError, "a leaf Variable that requires grad is being used in an in-place operation"),
        (lambda x: torch.nn.functional.gelu(x, approximate="no"), RuntimeError, "approximate argument must be either none or tanh"),
        (lambda x: x.apply_(1), TypeError, "not callable"),
        (lambda x: torch.broadcast_tensors(1), TypeError, "Tensors"),
    ],
)
def test_wrong_values_raise_pytorchs_kind_with_its_words(call, kind, text):
    with pytest.raises(kind, match=text):
        call(torch.ones(2, 3))


def test_mixed_devices_name_each_operand_and_its_line():
    w = torch.ones(10, 3, device="cuda")
    x = torch.ones(3, 3)
    with pytest.raises(RuntimeError) as error:
        torch.matmul(w, x)
    text = str(error.value)
    assert text.startswith("Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!")
    assert "[10, 3]" in text and "[3, 3]" in text and "test_errors.py:" in text


@pytest.mark.parametrize("call", [torch.nextafter, torch.cross, torch.linalg.cross], ids=lambda f: f.__name__)
def test_vectors_on_two_devices_are_an_error_whatever_they_are_made_into(call):
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu"):
        call(torch.ones(3), torch.ones(3, device="cuda:0"))


def test_the_line_is_the_users_even_behind_python_of_ours():
    w = torch.nn.Linear(3, 2).cuda()
    here = sys._getframe().f_lineno + 1
    x = torch.rand(70000, 3)
    with pytest.raises(RuntimeError) as error:
        w(x)
    assert f"test_errors.py:{here}" in str(error.value)


def test_a_memory_limit_raises_out_of_memory():
    with pytest.raises(torch.OutOfMemoryError) as error:
        torch.zeros(1 << 50, device="cuda")
    assert isinstance(error.value, RuntimeError) and "memory" in str(error.value)
    assert torch.cuda.OutOfMemoryError is torch.OutOfMemoryError


def test_errors_leave_the_reference_counts_as_they_were():
    x = torch.ones(2, 3)
    before = sys.getrefcount(x)
    for _ in range(100):
        for bad in (lambda: torch.add(x, "a"), lambda: x.view(7), lambda: x["a"], lambda: torch.cat([x, 1]), lambda: x.max("a"), lambda: x.sum(9)):
            with pytest.raises((TypeError, RuntimeError, IndexError)):
                bad()
    assert sys.getrefcount(x) == before


def test_python_errors_inside_callbacks_come_through():
    x = torch.ones(2, requires_grad=True)

    def hook(grad):
        raise KeyError("mine")

    x.register_hook(hook)
    with pytest.raises(KeyError, match="mine"):
        (x * 2).sum().backward()
    with pytest.raises(ZeroDivisionError):
        torch.ones(2).apply_(lambda v: 1 / 0)


def test_long_work_lets_other_threads_run():
    a = torch.rand(700, 700)
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.0001)  # releases the lock

    interval = sys.getswitchinterval()
    worker = threading.Thread(target=count)
    worker.start()
    try:
        sys.setswitchinterval(1000)  # from now on this thread keeps the lock unless it releases it explicitly
        before = counted[0]
        for _ in range(50):
            product = a @ a
        after = counted[0]
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        worker.join()
    assert after > before and product.shape == (700, 700)


def test_threads_share_tensors():
    x = torch.zeros(1000)
    results = []

    def work(k):
        for _ in range(200):
            y = x + k
        results.append(y.sum().item())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(results) == [0.0, 1000.0, 2000.0, 3000.0]


def test_the_error_of_two_devices_says_what_made_the_operands():
    with pytest.raises(RuntimeError, match=r"made by randn at .*test_errors\.py:\d+\n.*made by ones at"):
        torch.randn(2, 3) + torch.ones(2, 3, device="cuda:0")


def test_lines_are_told_in_a_program_of_many_files_and_long_ones():
    def told(path, line):
        source = "\n" * (line - 1) + "x = torch.ones(3, device='cuda:0')\n"
        scope = {"torch": torch}
        exec(compile(source, path, "exec"), scope)
        with pytest.raises(RuntimeError) as error:
            scope["x"] + torch.ones(3, device="cuda:1")
        return next(text.rsplit(" at ", 1)[1] for text in str(error.value).splitlines() if "cuda:0, made by" in text)

    for i in range(5000):  # cells of notebooks, generated code: each has a name of its own
        exec(compile("torch.ones(1, device='cuda:0')", f"/cells/{i}.py", "exec"), {"torch": torch})
    lines = (1, 4095, 4096, 4097, 70001)
    for path in ("/cells/17.py", "/cells/new.py"):
        assert [told(path, line) for line in lines] == [f"{path}:{line}" for line in lines]
