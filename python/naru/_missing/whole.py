"""Parts of PyTorch that naru lacks as a whole, and that programs import: `_compat/placeholders.py` has modules in their place."""

from __future__ import annotations

# Modules without `torch.`: these, and all within them. Private ones have no list of names, so that any name is taken for one.
WHOLE = frozenset(
    """
    distributed.checkpoint distributed.fsdp distributed.pipelining distributed.rpc distributed.tensor distributed._composable
    distributed._shard distributed._symmetric_memory distributed._tensor
    fx.experimental fx.passes _C._distributed_rpc _C._functorch _dynamo _functorch _guards _higher_order_ops _inductor _library _ops _prims_common _subclasses _tensor_str sparse._triton_ops sparse._triton_ops_meta utils._ordered_set
    utils._python_dispatch utils._triton
    """.split()
)
# Packages of which only these modules are placeholders: those in names.txt, and private ones.
LISTED = frozenset(("ao", "fx"))
