"""torch-fidelity: scores of generators, with an extractor and a similarity of the test's own, as nothing is downloaded."""
import pytest
import torch
import torch_fidelity
from facts import recorded
from torch_fidelity.feature_extractor_base import FeatureExtractorBase
from torch_fidelity.generative_model_modulewrapper import GenerativeModelModuleWrapper
from torch_fidelity.sample_similarity_base import SampleSimilarityBase

pytestmark = pytest.mark.filterwarnings("ignore")


class Extractor(FeatureExtractorBase):
    """A small convolution: features and logits."""

    def __init__(self, name, features_list, **kwargs):
        super().__init__(name, features_list)
        weight = (torch.arange(6 * 3 * 9) * 7 % 17 - 8).reshape(6, 3, 3, 3) / 8
        self.register_buffer("weight", weight)
        self.requires_grad_(False)

    @staticmethod
    def get_provided_features_list():
        return "features", "logits"

    @staticmethod
    def get_default_feature_layer_for_metric(metric):
        return "logits" if metric == "isc" else "features"

    @staticmethod
    def can_be_compiled():
        return True

    @staticmethod
    def get_dummy_input_for_compile():
        return (torch.rand([1, 3, 8, 8]) * 255).to(torch.uint8)

    def forward(self, pictures):
        found = torch.nn.functional.conv2d(pictures.float() / 255, self.weight, stride=2).tanh().mean((2, 3))
        return tuple({"features": found, "logits": found * 3}[name] for name in self.features_list)


class Similarity(SampleSimilarityBase):
    """The mean square of differences."""

    def __init__(self, name, sample_similarity_resize=None, sample_similarity_dtype=None, **kwargs):
        super().__init__(name)

    def forward(self, one, other):
        return (one.float() - other.float()).square().mean((1, 2, 3)) / 255**2


class Pictures(torch.utils.data.Dataset):
    """Made pictures of bytes below a limit. They are the same bytes everywhere (the last digit of a sine would turn one into its neighbour), and data
    sets of other limits are far apart: a distance of similar ones is a difference of large numbers, of which rounding decides the digits."""

    def __init__(self, limit):
        i = torch.arange(40 * 3 * 64).reshape(40, 3, 8, 8)
        self.all = ((i * i % 251 + i // 64) % limit).to(torch.uint8)

    def __len__(self):
        return len(self.all)

    def __getitem__(self, i):
        return self.all[i]


class Generator(torch.nn.Module):
    """Pictures from noise."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(5, 192)

    def forward(self, noise):
        return ((self.layer(noise).tanh().reshape(-1, 3, 8, 8) + 1) * 127).round().to(torch.uint8)


torch_fidelity.register_feature_extractor("made", Extractor)
torch_fidelity.register_sample_similarity("square", Similarity)
OPTIONS = {"feature_extractor": "made", "verbose": False, "cache": False, "save_cpu_ram": True, "batch_size": 16}


@recorded
def test_data_sets_are_compared(device):
    return torch_fidelity.calculate_metrics(
        input1=Pictures(256), input2=Pictures(90), isc=True, fid=True, kid=True, prc=True,
        kid_subset_size=10, kid_subsets=4, cuda=device == "cuda", **OPTIONS
    )


@recorded
def test_a_generator_is_scored(device):
    torch.manual_seed(0)
    model = GenerativeModelModuleWrapper(Generator().to(device), 5, "normal", 0)
    return torch_fidelity.calculate_metrics(
        input1=model, input2=Pictures(256), input1_model_num_samples=24, fid=True, isc=True, ppl=True, ppl_sample_similarity="square", ppl_epsilon=0.1,
        ppl_discard_percentile_lower=None, ppl_discard_percentile_higher=None, ppl_reduction="mean", cuda=device == "cuda", **OPTIONS
    )
