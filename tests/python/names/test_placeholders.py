"""Parts of PyTorch that naru lacks as a whole can be imported; what is made or called says that it is not there, and questions have true answers."""
import importlib

import naru as torch
import pytest
from naru import _missing

MODULES = [
    "fx.experimental.proxy_tensor", "_subclasses.fake_tensor", "_dynamo.utils", "_functorch.vmap", "_C._functorch", "_higher_order_ops.associative_scan",
    "_guards", "utils._python_dispatch", "distributed._shard.api",
]  # fmt: skip


@pytest.mark.parametrize("module", MODULES)
def test_they_are_imported_and_say_what_they_are_when_they_are_used(module):
    found = importlib.import_module(f"naru.{module}")
    assert found.__doc__.startswith(f"`torch.{module}`: not there")
    for call in (found.some_function, found.SomeClass):
        with pytest.raises(NotImplementedError, match=rf"^torch\.{module}\.{call.__name__} is in PyTorch 2\.15 but not in naru yet"):
            call(torch.ones(1))
    assert not isinstance(torch.ones(1), found.SomeClass) and issubclass(type("Mine", (found.SomeClass,), {}), found.SomeClass)


def test_questions_are_answered():
    from naru._subclasses.fake_tensor import is_fake
    from naru.fx.experimental.proxy_tensor import get_proxy_mode
    from naru.utils._python_dispatch import is_traceable_wrapper_subclass
    from naru.utils._triton import has_triton

    x = torch.ones(1)
    assert (is_fake(x), is_traceable_wrapper_subclass(x), has_triton(), get_proxy_mode()) == (False, False, False, None)
    assert torch._C._functorch.is_batchedtensor(x) is False and torch._C._get_tracing_state() is None
    assert torch._C._are_functorch_transforms_active() is False and torch._C._is_torch_function_mode_enabled() is False
    assert not isinstance(x, torch._C._distributed_rpc.PyRRef)
    seen = []
    torch.vmap(lambda row: (seen.append(torch._C._are_functorch_transforms_active()), row)[1])(torch.ones(2, 2))
    assert seen == [True]


def test_what_is_registered_with_a_compiler_is_returned():
    from naru._inductor.decomposition import register_decomposition

    assert register_decomposition([torch.ops.aten.relu])(len) is len


def test_names_of_a_package_that_is_partly_there_are_its_own():
    import naru.fx._utils
    import naru.fx.passes.shape_prop
    import naru.fx.passes.split_utils

    assert naru.fx._utils.Node is torch.fx.Node and naru.fx.passes.split_utils.GraphModule is torch.fx.GraphModule
    with pytest.raises(NotImplementedError, match=r"^torch\.fx\.passes\.split_utils\.split_by_tags is in PyTorch 2\.15 but not in naru yet"):
        naru.fx.passes.split_utils.split_by_tags(None, [])


def test_other_modules_are_not_there():
    assert not _missing.covers("no_such_module") and not _missing.covers("fxx") and not _missing.covers("_six")
    for name in ("naru._six", "naru.nn.no_such_module", "naru._nothing"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(name)


def test_private_operators_are_keys_that_say_what_they_are_when_called():
    table = {torch.ops.aten._sparse_mm_reduce_impl.default: "sparse", torch.ops.aten.sort.stable: "sort"}
    assert table[torch.ops.aten._sparse_mm_reduce_impl.default] == "sparse"
    with pytest.raises(NotImplementedError, match=r"^aten\._sparse_mm_reduce_impl: naru has no such operator; its name can be registered for$"):
        torch.ops.aten._sparse_mm_reduce_impl(1)
    with pytest.raises(AttributeError):
        torch.ops.aten.no_such_operator  # noqa: B018


def test_operators_without_a_function_of_their_name():
    aten, x = torch.ops.aten, torch.arange(6.0).reshape(2, 3)
    assert torch.equal(aten.slice.Tensor(x, 1, 0, 3, 2), x[:, ::2]) and torch.equal(aten.index.Tensor(x, [None, torch.tensor([2, 0])]), x[:, [2, 0]])
    view, copy = aten.alias.default(x), aten._to_copy.default(x, dtype=torch.int64)
    assert view.data_ptr() == x.data_ptr() and view is not x and copy.dtype == torch.int64 and aten._to_copy(x).data_ptr() != x.data_ptr()


def test_quantization_can_be_imported_and_says_that_it_is_not_there():
    """Packages for it (torchao) are imported by others where they are installed."""
    from naru.ao.quantization import QConfig, default_observer
    from naru.nn.functional import ScalingType, SwizzleType, scaled_grouped_mm
    from naru.sparse import SparseSemiStructuredTensorCUSPARSELT

    assert (ScalingType.RowWise, SwizzleType.NO_SWIZZLE) == (1, 0) and torch._C.Tag.pointwise is not torch._C.Tag.core
    for call in (QConfig, default_observer, scaled_grouped_mm, SparseSemiStructuredTensorCUSPARSELT):
        with pytest.raises(NotImplementedError, match="is in PyTorch 2.15 but not in naru yet"):
            call(torch.ones(2, 2), torch.ones(2, 2))
    with pytest.raises(ImportError):
        exec("from naru.ao.quantization import no_such_name")


@pytest.mark.parametrize("space", ["_c10d_functional", "c10d_functional", "c10d"])
def test_collective_operators_are_keys_too(space):
    operator = getattr(torch.ops, space).all_gather_into_tensor.default
    assert {operator: 1}[getattr(torch.ops, space).all_gather_into_tensor.default] == 1
    with pytest.raises(NotImplementedError, match=f"^{space}.all_gather_into_tensor: naru has no such operator"):
        operator(torch.ones(1), 2, "0")


def test_storages_are_asked_for_what_they_can_hold():
    x = torch.ones(2)
    assert torch._has_compatible_shallow_copy_type(x, torch.ones(3)) and not torch._has_compatible_shallow_copy_type(x, x.to_sparse())


def test_plans_for_parallel_modules_are_values():
    from naru.distributed._tensor import DTensor, Replicate, Shard
    from naru.distributed._tensor.placement_types import DTensorSpec
    from naru.distributed.tensor import parallel
    from naru.distributed.tensor.parallel.style import ParallelStyle, RowwiseParallel

    assert Shard is torch.distributed.tensor.Shard and DTensor is torch.distributed.tensor.DTensor
    style = RowwiseParallel(input_layouts=Replicate(), use_local_output=False)
    assert isinstance(style, ParallelStyle) and repr(style) == (
        "RowwiseParallel(input_layouts=(Replicate(),), output_layouts=(Replicate(),), use_local_output=False)"
    )
    with pytest.raises(RuntimeError, match="No device mesh is currently active"):
        parallel.parallelize_module(torch.nn.Linear(1, 1), None, {"": style})
    with pytest.raises(NotImplementedError, match="is in PyTorch 2.15 but not in naru yet"):
        DTensorSpec()
