"""torchrl: environments, policies, losses, buffers and collectors."""
import pytest
import torch
from facts import recorded
from tensordict import TensorDict
from tensordict.nn import TensorDictModule, TensorDictSequential
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, ReplayBuffer, TensorDictReplayBuffer
from torchrl.data.replay_buffers.samplers import SamplerWithoutReplacement
from torchrl.envs import Compose, DoubleToFloat, GymEnv, ParallelEnv, RewardSum, SerialEnv, StepCounter, TransformedEnv
from torchrl.envs.utils import ExplorationType, check_env_specs, set_exploration_type
from torchrl.modules import EGreedyModule, MaskedCategorical, NormalParamExtractor, ProbabilisticActor, QValueActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss, DDPGLoss, DQNLoss, SACLoss, SoftUpdate
from torchrl.objectives.value import GAE, TDLambdaEstimator

pytestmark = pytest.mark.filterwarnings("ignore")


def network(inside, outside, *last):
    return nn.Sequential(nn.Linear(inside, 8), nn.Tanh(), nn.Linear(8, outside), *last)


@pytest.fixture(autouse=True)
def unchecked():
    """torchrl turns the checks of distributions' arguments off when it is imported; pyro turns them on. Its own distributions need them off."""
    before = torch.distributions.Distribution._validate_args
    torch.distributions.Distribution.set_default_validate_args(False)
    yield
    torch.distributions.Distribution.set_default_validate_args(before)


def cart():
    return GymEnv("CartPole-v1", categorical_action_encoding=True)


def norms(module):
    return {name: value.norm() for name, value in module.named_parameters() if value.numel()}


def steps_of_a_world(device="cpu", many=12):
    """Steps of an invented world: 3 numbers seen, 1 number done."""
    seen = torch.linspace(-2, 2, 3 * (many + 1), device=device).sin().reshape(many + 1, 3)
    reward = torch.linspace(0, 5, many, device=device).cos()[:, None]
    done = (torch.arange(many, device=device) % 5 == 4)[:, None]
    after = {"observation": seen[1:], "reward": reward, "done": done, "terminated": done.clone()}
    begun = torch.zeros_like(done)
    return TensorDict({"observation": seen[:-1], "done": begun, "terminated": begun.clone(), "next": after}, [many], device=device)


def gaussian_actor(device="cpu"):
    body = TensorDictModule(network(3, 2, NormalParamExtractor()), in_keys=["observation"], out_keys=["loc", "scale"])
    return ProbabilisticActor(body, in_keys=["loc", "scale"], distribution_class=TanhNormal, return_log_prob=True).to(device)


@recorded
def test_an_environment_is_stepped():
    world = TransformedEnv(GymEnv("CartPole-v1"), Compose(DoubleToFloat(), StepCounter(), RewardSum()))
    world.set_seed(1)
    check_env_specs(world)
    world.set_seed(2)
    torch.manual_seed(2)
    steps = world.rollout(20, break_when_any_done=False)
    return {"seen": steps["observation"], "sum": steps["next", "episode_reward"], "count": steps["step_count"], "done": steps["next", "done"]}


@recorded
@pytest.mark.parametrize("kind", ["one", "processes"])
def test_environments_are_stepped_together(kind):
    worlds = (SerialEnv if kind == "one" else ParallelEnv)(2, cart)
    worlds.set_seed(3)
    torch.manual_seed(3)
    found = worlds.rollout(6, break_when_any_done=False)["observation"]
    worlds.close()
    return found


@recorded
def test_ppo_learns(device):
    actor, critic = gaussian_actor(device), ValueOperator(network(3, 1), in_keys=["observation"]).to(device)
    steps = steps_of_a_world(device)
    with torch.no_grad(), set_exploration_type(ExplorationType.DETERMINISTIC):
        actor(steps)
    steps["action"] = steps["action"] * 0.9
    steps["action_log_prob"] = steps["action_log_prob"] - 0.1
    loss_of = ClipPPOLoss(actor, critic, entropy_coeff=0.01, entropy_bonus=False)
    advantage = GAE(gamma=0.9, lmbda=0.8, value_network=critic, average_gae=True, deactivate_vmap=True)
    optimizer, found = torch.optim.Adam(loss_of.parameters(), 0.02), []
    for _ in range(4):
        losses = loss_of(advantage(steps.clone()))
        total = losses["loss_objective"] + losses["loss_critic"]
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        found.append([losses[name].item() for name in ("loss_objective", "loss_critic", "ESS", "clip_fraction", "kl_approx")])
    return {"losses": found, **norms(loss_of)}


@recorded
@pytest.mark.parametrize("name", ["ddpg", "sac"])
def test_continuous_agents_learn(device, name):
    torch.manual_seed(0)
    steps = steps_of_a_world(device)
    steps["action"] = steps["observation"][:, :1].tanh()
    joined = TensorDictSequential(
        TensorDictModule(lambda seen, action: torch.cat([seen, action], -1), in_keys=["observation", "action"], out_keys=["both"]),
        ValueOperator(network(4, 1), in_keys=["both"], out_keys=["state_action_value"]),
    ).to(device)
    if name == "sac":
        loss_of = SACLoss(gaussian_actor(device), joined, num_qvalue_nets=2, action_spec=None, target_entropy=-1.0, deactivate_vmap=True)
    else:
        actor = TensorDictModule(network(3, 1, nn.Tanh()), in_keys=["observation"], out_keys=["action"]).to(device)
        loss_of = DDPGLoss(actor, joined, delay_actor=True)
    target, optimizer, found = SoftUpdate(loss_of, tau=0.1), torch.optim.Adam(loss_of.parameters(), 0.01), []
    for _ in range(4):
        losses = loss_of(steps)
        parts = {key: value for key, value in losses.items() if key.startswith("loss_")}
        optimizer.zero_grad()
        sum(parts.values()).backward()
        optimizer.step()
        target.step()
        found.append({key: value.item() for key, value in parts.items()})
    return {"losses": found, **norms(loss_of)}


@recorded
def test_q_values_are_learned_from_a_buffer(device):
    actor = QValueActor(network(3, 2), in_keys=["observation"], action_space="one_hot").to(device)
    steps = actor(steps_of_a_world(device)).detach()
    buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(32, device=device), batch_size=6, sampler=SamplerWithoutReplacement(shuffle=False))
    buffer.extend(steps)
    loss_of = DQNLoss(actor, action_space="one_hot", delay_value=True)
    loss_of.make_value_estimator(gamma=0.9)
    optimizer, found = torch.optim.SGD(loss_of.parameters(), 0.1), []
    for _ in range(4):
        sample = buffer.sample()
        loss = loss_of(sample)["loss"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append([loss.item(), sample["index"].tolist()])
    return {"losses": [loss for loss, _ in found], "which": [which for _, which in found], **norms(loss_of)}


@recorded
def test_steps_are_collected():
    world = TransformedEnv(GymEnv("CartPole-v1", categorical_action_encoding=True), DoubleToFloat())
    world.set_seed(5)
    torch.manual_seed(3)
    actor = QValueActor(network(4, 2), spec=world.action_spec, in_keys=["observation"])
    explores = EGreedyModule(world.action_spec, eps_init=0.5, eps_end=0.1, annealing_num_steps=20)
    collector = Collector(world, TensorDictSequential(actor, explores), frames_per_batch=10, total_frames=30)
    found = []
    for batch in collector:
        explores.step(batch.numel())
        found.append({"seen": batch["observation"], "action": batch["action"], "trajectory": batch["collector", "traj_ids"]})
    collector.shutdown()
    return {"batches": found, "eps": explores.eps}


@recorded
def test_returns_and_distributions():
    steps = steps_of_a_world()
    value = ValueOperator(network(3, 1), in_keys=["observation"])
    returns = TDLambdaEstimator(gamma=0.9, lmbda=0.7, value_network=value, deactivate_vmap=True)(steps)["value_target"]
    at = torch.linspace(-0.9, 0.9, 7)[:, None]
    gaussian = TanhNormal(torch.zeros(7, 1) + 0.2, torch.ones(7, 1) * 0.7)
    masked = MaskedCategorical(logits=torch.linspace(-1, 1, 12).reshape(3, 4), mask=torch.arange(12).reshape(3, 4) % 3 != 0)
    buffer = ReplayBuffer(storage=LazyTensorStorage(10), batch_size=4)
    buffer.extend(torch.arange(10))
    return {
        "returns": returns, "log": gaussian.log_prob(at), "mode": gaussian.deterministic_sample, "drawn": gaussian.sample(),
        "masked": masked.sample((5,)), "masked log": masked.log_prob(torch.tensor([1, 0, 3])), "buffer": buffer.sample(),
    }  # fmt: skip
