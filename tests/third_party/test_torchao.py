"""torchao: computes with wrappers of tensors, which naru lacks; it is installed here so that transformers and peft, which import it, run beside it."""
import pytest
import torch


def test_it_is_imported_and_says_what_it_lacks():
    import torchao
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    assert torchao.__version__.startswith("0.18")
    with pytest.raises(NotImplementedError, match="_make_wrapper_subclass"):
        quantize_(torch.nn.Sequential(torch.nn.Linear(32, 32)), Int8WeightOnlyConfig())


def test_packages_that_import_it_find_it():
    from peft.import_utils import is_torchao_available as of_peft
    from transformers.utils import is_torchao_available as of_transformers

    assert of_transformers() and of_peft()
