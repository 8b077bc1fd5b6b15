"""stable-baselines3: agents that learn in gymnasium's environments."""
import pytest
import torch
from facts import compare
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3

pytestmark = pytest.mark.filterwarnings("ignore")
AGENTS = {
    "ppo": (PPO, "CartPole-v1", {"n_steps": 32, "batch_size": 16, "n_epochs": 2}),
    "a2c": (A2C, "CartPole-v1", {"n_steps": 8}),
    "dqn": (DQN, "CartPole-v1", {"learning_starts": 16, "batch_size": 8, "buffer_size": 64}),
    "sac": (SAC, "Pendulum-v1", {"learning_starts": 16, "batch_size": 8, "buffer_size": 64}),
    "td3": (TD3, "Pendulum-v1", {"learning_starts": 16, "batch_size": 8, "buffer_size": 64}),
}


@pytest.mark.parametrize("name", AGENTS)
def test_agents_learn_as_in_pytorch(name, tmp_path):
    kind, world, options = AGENTS[name]
    agent = kind("MlpPolicy", world, seed=3, device="cpu", policy_kwargs={"net_arch": [16]}, **options).learn(64)
    agent.save(tmp_path / "agent")
    again = kind.load(tmp_path / "agent", device="cpu")
    seen = agent.get_env().reset() * 0 + 0.1
    assert (agent.predict(seen, deterministic=True)[0] == again.predict(seen, deterministic=True)[0]).all()
    norms = {key: value.float().norm().item() for key, value in agent.policy.state_dict().items()}
    compare(f"stable_baselines.{name}", norms, tolerance=2.0**-24 * 2048)  # 64 steps of the world between the parameters and what they did


def test_an_agent_learns_on_a_device(device):
    agent = PPO("MlpPolicy", "CartPole-v1", n_steps=32, batch_size=16, device=device, seed=0).learn(32)
    assert next(agent.policy.parameters()).device.type == device and torch.isfinite(agent.policy.action_net.weight).all()
