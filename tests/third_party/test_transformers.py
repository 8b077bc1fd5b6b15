"""transformers: small models made from a config; forward, backward, generation, files."""
import copy

import pytest
import torch
from facts import recorded
from transformers import (
    AutoModelForCausalLM, BertConfig, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, get_linear_schedule_with_warmup,
)  # fmt: skip

IDS = [[40, 32, 26, 55, 37, 41, 52, 27], [17, 7, 2, 17, 49, 63, 25, 55]]


def gpt2(**options):
    torch.manual_seed(0)
    settings = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "bos_token_id": 1, "eos_token_id": 2, **options}
    return GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=4, **settings))


def bert():
    torch.manual_seed(0)
    return BertForSequenceClassification(
        BertConfig(
            vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37, max_position_embeddings=32,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        )
    )  # fmt: skip


def llama():
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=64, eos_token_id=2, bos_token_id=1,
        )
    )  # fmt: skip


def gradients(model):
    return {name: p.grad.norm().item() for name, p in model.named_parameters() if p.grad is not None}


@recorded
def test_gpt2_has_pytorchs_loss_and_gradients(device):
    model, ids = gpt2().to(device), torch.tensor(IDS, device=device)
    loss = model(ids, labels=ids).loss
    loss.backward()
    return {"loss": loss.item(), "gradients": gradients(model)}


@recorded
def test_gpt2_generates_pytorchs_tokens(device):
    model, ids = gpt2().to(device).eval(), torch.tensor(IDS, device=device)
    greedy = model.generate(ids, max_new_tokens=6, do_sample=False, pad_token_id=0)
    beams = model.generate(ids, max_new_tokens=4, num_beams=3, pad_token_id=0, do_sample=False)
    return [greedy, beams]


@recorded
def test_sampling_draws_pytorchs_tokens(device):
    model, ids = gpt2().to(device).eval(), torch.tensor(IDS, device=device)
    torch.manual_seed(1)
    return model.generate(ids, max_new_tokens=6, do_sample=True, top_k=10, top_p=0.9, temperature=0.8, pad_token_id=0)


@recorded
def test_bert_with_padding_has_pytorchs_loss_and_gradients(device):
    model, ids = bert().to(device), torch.tensor(IDS, device=device)
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    out = model(ids, attention_mask=mask, labels=torch.tensor([0, 1], device=device))
    out.loss.backward()
    return {"loss": out.loss.item(), "logits": out.logits, "gradients": gradients(model)}


@recorded
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_llama_has_pytorchs_loss_and_tokens(device, attention):
    model, ids = llama().to(device), torch.tensor(IDS, device=device)
    model.set_attn_implementation(attention)
    loss = model(ids, labels=ids).loss
    loss.backward()
    tokens = model.eval().generate(ids, max_new_tokens=6, do_sample=False, pad_token_id=0)
    return {"loss": loss.item(), "gradients": gradients(model), "tokens": tokens}


@recorded
def test_training_steps_with_a_schedule_give_pytorchs_losses(device):
    model, ids = gpt2().to(device).train(), torch.tensor(IDS, device=device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = get_linear_schedule_with_warmup(optimizer, 2, 6)
    losses = []
    for _ in range(5):
        loss = model(ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def test_a_saved_model_is_read_back(tmp_path, device):
    model = gpt2().to(device)
    model.save_pretrained(tmp_path)
    again = AutoModelForCausalLM.from_pretrained(tmp_path).to(device)
    assert all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), again.state_dict().values()))


def test_a_model_is_copied_and_checkpointed(device):
    model, ids = gpt2().to(device), torch.tensor(IDS, device=device)
    other = copy.deepcopy(model)
    other.gradient_checkpointing_enable()
    for each in (model, other.train()):
        each(ids, labels=ids).loss.backward()
    assert all(torch.equal(a.grad, b.grad) for a, b in zip(model.parameters(), other.parameters()))


@recorded
def test_the_trainer_gives_pytorchs_losses(tmp_path, device):
    from transformers import Trainer, TrainingArguments

    data = [{"input_ids": torch.arange(i, i + 8), "labels": torch.arange(i, i + 8)} for i in range(16)]
    settings = {"num_train_epochs": 2, "per_device_train_batch_size": 4, "report_to": [], "logging_steps": 2, "disable_tqdm": True}
    arguments = TrainingArguments(output_dir=str(tmp_path), save_strategy="epoch", use_cpu=device == "cpu", **settings)
    if arguments.n_gpu > 1:
        arguments._n_gpu = 1  # else DataParallel doubles the batch
    trainer = Trainer(model=gpt2(), args=arguments, train_dataset=data)
    trainer.train()
    assert trainer.model.device.type == device
    return {"losses": [float(entry["loss"]) for entry in trainer.state.log_history if "loss" in entry], "evaluated": trainer.evaluate(data[:4])["eval_loss"]}


SMALL = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 64}
MODELS = {
    "Mistral": {"num_key_value_heads": 2, "sliding_window": 4}, "Qwen2": {"num_key_value_heads": 2}, "Gemma": {"num_key_value_heads": 2, "head_dim": 8},
    "Mixtral": {"num_key_value_heads": 2, "num_local_experts": 4}, "GPTNeoX": {},
}  # fmt: skip


@recorded
@pytest.mark.parametrize("name", MODELS)
def test_other_language_models_have_pytorchs_losses_and_tokens(device, name):
    import transformers

    torch.manual_seed(0)
    model = getattr(transformers, f"{name}ForCausalLM")(getattr(transformers, f"{name}Config")(**SMALL, **MODELS[name], bos_token_id=1, eos_token_id=2)).to(device)
    ids = torch.tensor(IDS, device=device)
    loss = model(ids, labels=ids).loss
    loss.backward()
    return {"loss": loss.item(), "gradients": gradients(model), "tokens": model.eval().generate(ids, max_new_tokens=3, do_sample=False, pad_token_id=0)}


@recorded
def test_models_of_pictures_sound_and_pairs_have_pytorchs_losses(device):
    from transformers import CLIPConfig, CLIPModel, T5Config, T5ForConditionalGeneration, ViTConfig, ViTForImageClassification, WhisperConfig, WhisperForConditionalGeneration

    ids, losses = torch.tensor(IDS, device=device), []
    picture = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 32, "patch_size": 8}
    pixels = torch.linspace(-1, 1, 2 * 3 * 32 * 32, device=device).reshape(2, 3, 32, 32)
    sound = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48}
    tokens = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
    cases = [
        (T5ForConditionalGeneration, T5Config(vocab_size=64, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0, dropout_rate=0.0), {"input_ids": ids, "labels": ids}),
        (ViTForImageClassification, ViTConfig(**picture), {"pixel_values": pixels, "labels": torch.tensor([1, 0], device=device)}),
        (CLIPModel, CLIPConfig(text_config=SMALL, vision_config=picture, projection_dim=16), {"input_ids": ids, "pixel_values": pixels, "return_loss": True}),
        (WhisperForConditionalGeneration, WhisperConfig(vocab_size=64, num_mel_bins=8, max_source_positions=16, max_target_positions=32, dropout=0.0, **sound, **tokens),
         {"input_features": pixels[0, 0, :8].unsqueeze(0), "labels": ids[:1]}),
    ]  # fmt: skip
    for kind, config, inputs in cases:
        torch.manual_seed(0)
        model = kind(config).to(device).eval()
        loss = model(**inputs).loss
        loss.backward()
        losses += [loss.item(), sum(gradients(model).values())]
    return losses
