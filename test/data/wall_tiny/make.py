# SPDX-License-Identifier: Apache-2.0
"""
Writes what published code answers for seeded tiny weights of both generations of Wall-OSS.

Run with torch, transformers 5.5 (as LeRobot asks for) and numpy, and LeRobot's sources unpacked:
    python make.py PATH_TO_LEROBOT/src

The vision tower is that of transformers. The first generation's decoder, positions and action
head are LeRobot's own. The second generation has no code that runs without a GPU; for it, this
file says what it does in the plainest way: every token goes through the weights of its kind, and
every Euler step runs the whole sequence again.
"""

import json
import math
import sys
import types
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.models.qwen2_5_vl import modeling_qwen2_5_vl as qwen

_HERE = Path(__file__).parent
sys.path.insert(0, str(_HERE.parents[1] / 'models'))
sys.path.insert(0, sys.argv[1])

from seeded_weights import seeded_array, seeded_weight  # noqa: E402

_WIDTH, _ROWS, _JOINTS, _STEPS = 6, 5, 4, 10
_IMAGE, _STATE, _ACTION, _START = 190, 191, 192, 193
_PICTURES = ((24, 40), (24, 24))
_CONFIG = {
    'hidden_size': 32,
    'intermediate_size': 48,
    'num_hidden_layers': 3,
    'num_attention_heads': 4,
    'num_key_value_heads': 2,
    'rms_norm_eps': 1e-6,
    'rope_theta': 1000000.0,
    'rope_scaling': {'type': 'default', 'rope_type': 'default', 'mrope_section': [1, 2, 1]},
    'vocab_size': 200,
    'image_token_id': _IMAGE,
    'video_token_id': 194,
    'vision_start_token_id': _START,
    'num_experts': 2,
    'mlp_moe': True,
    'noise_scheduler': {'s': 0.999, 'num_inference_timesteps': _STEPS},
    'vision_config': {
        'depth': 3,
        'hidden_size': 32,
        'hidden_act': 'silu',
        'intermediate_size': 40,
        'num_heads': 2,
        'in_channels': 3,
        'patch_size': 4,
        'spatial_merge_size': 2,
        'temporal_patch_size': 2,
        'window_size': 16,
        'out_hidden_size': 32,
        'fullatt_block_indexes': [1],
        'tokens_per_second': 2,
    },
}


def _config(expert_width: int, expert_mlp: int, **more: object) -> dict[str, object]:
    experts = [
        {'hidden_size': 32, 'intermediate_size': 48, 'hidden_act': 'silu'},
        {'hidden_size': expert_width, 'intermediate_size': expert_mlp, 'hidden_act': 'silu'},
    ]
    return {**_CONFIG, 'experts': experts, 'dim_inputs': [32, expert_width], **more}


def _requests() -> dict[str, np.ndarray]:
    """Return prompts of two requests; the second lacks the second camera."""
    text = (np.abs(seeded_array('words', (60,))) * 1000).astype(np.int64) % 180
    first = [*text[:5], _START, *[_IMAGE] * 15, *text[5:9], _START, *[_IMAGE] * 9, *text[9:16]]
    second = [*text[20:22], _START, *[_IMAGE] * 15, *text[22:34]]
    prompts = [[*first, _STATE, *text[40:43]], [*second, _STATE, *text[43:45]]]
    longest = max(map(len, prompts))
    tokens = np.zeros((2, longest), np.int64)
    used = np.zeros((2, longest), bool)
    for row, prompt in enumerate(prompts):
        tokens[row, : len(prompt)], used[row, : len(prompt)] = prompt, True
    return {
        'tokens': tokens,
        'token_mask': used,
        'image_mask': np.array([[True, True], [True, False]]),
    }


def _fill(module: nn.Module, prefix: str, shapes: dict[str, list[int]]) -> nn.Module:
    """Give a module seeded weights, and remember their published names and shapes."""
    named = {}
    for name, weight in module.state_dict().items():
        shapes[prefix + name] = list(weight.shape)
        named[name] = torch.from_numpy(seeded_weight(prefix + name, tuple(weight.shape)))
    module.load_state_dict(named, strict=True)
    return module.eval().float()


def _patches(image: Tensor) -> tuple[Tensor, Tensor]:
    """Return a picture ``(3, h, w)`` as the published processor flattens it, and its grid."""
    patch, merge = 4, 2
    rows, columns = image.shape[1] // patch, image.shape[2] // patch
    frames = torch.stack((image, image))  # one picture counts as two frames
    split = frames.reshape(
        1, 2, 3, rows // merge, merge, patch, columns // merge, merge, patch
    ).permute(0, 3, 6, 4, 7, 2, 1, 5, 8)
    return split.reshape(rows * columns, -1), torch.tensor([[1, rows, columns]])


def _features(tower: nn.Module, images: list[Tensor]) -> Tensor:
    """Return ``(B, V, hidden)`` for pictures ``(B, 3, h, w)`` of each camera."""
    found = []
    for camera in images:
        flat = [_patches(image) for image in camera]
        pooled = [tower(pixels, grid_thw=grid).pooler_output for pixels, grid in flat]
        found.append(torch.stack(pooled))
    return torch.cat(found, dim=1)


def _sinusoid(times: Tensor, width: int) -> Tensor:
    half = width // 2
    rates = torch.exp(torch.arange(half) * -(math.log(10000) / (half - 1)))
    return torch.cat(((times[:, None] * rates).sin(), (times[:, None] * rates).cos()), dim=-1)


def _lerobot() -> tuple[types.ModuleType, types.ModuleType]:
    """Import LeRobot's model code; what it needs for training and data is replaced by nothing."""

    def stub(name: str, folder: str | None = None, **names: object) -> None:
        made = types.ModuleType(name)
        if folder is not None:
            made.__path__ = [str(Path(sys.argv[1]) / folder)]
        for key, value in names.items():
            setattr(made, key, value)
        sys.modules[name] = made

    for name, folder in (
        ('lerobot', 'lerobot'),
        ('lerobot.utils', 'lerobot/utils'),
        ('lerobot.policies', 'lerobot/policies'),
        ('lerobot.policies.wall_x', 'lerobot/policies/wall_x'),
        ('lerobot.policies.wall_x.qwen_model', 'lerobot/policies/wall_x/qwen_model'),
    ):
        stub(name, folder)
    stub(
        'lerobot.utils.import_utils',
        _transformers_available=True,
        _wallx_deps_available=False,
        require_package=lambda *_args, **_kwargs: None,
    )
    stub('lerobot.policies.pretrained', PreTrainedPolicy=nn.Module)
    stub('lerobot.policies.utils', populate_queues=None)
    stub('lerobot.policies.wall_x.configuration_wall_x', WallXConfig=object)
    stub('torchvision')
    stub('torchvision.transforms', InterpolationMode=None)
    stub('torchvision.transforms.v2', functional=None)
    from lerobot.policies.wall_x import modeling_wall_x
    from lerobot.policies.wall_x.qwen_model import configuration_qwen2_5_vl, qwen2_5_vl_moe

    qwen2_5_vl_moe.configuration = configuration_qwen2_5_vl
    return modeling_wall_x, qwen2_5_vl_moe


def _first_generation(visual: nn.Module, shapes: dict[str, list[int]], inputs: dict) -> Tensor:
    """Return actions of LeRobot's decoder and action head, the whole sequence at every step."""
    modeling, moe = _lerobot()
    settings = _config(32, 24)
    made = {key: value for key, value in settings.items() if key != 'vision_config'}
    config = moe.configuration.Qwen2_5_VLTextConfig(**made, pad_token_id=0, attention_moe=False)
    decoder = _fill(moe.Qwen2_5_VLMoEModel(config), 'model.', shapes)
    head = modeling.ActionHead(
        types.SimpleNamespace(
            dof_config={'all': _WIDTH}, agent_pos_config={'all': _WIDTH}, hidden_size=32
        )
    )
    _fill(head, 'action_preprocessor.', shapes)
    shapes['lm_head.weight'] = [200, 32]
    whole = types.SimpleNamespace(
        config=types.SimpleNamespace(
            **{name: settings[name] for name in settings if name.endswith('_token_id')},
            vision_config=types.SimpleNamespace(spatial_merge_size=2, tokens_per_second=2),
        )
    )
    chunks = []
    for row in range(2):  # one by one, so that no padding stands between prompt and rows
        used = inputs['token_mask'][row]
        tokens = torch.cat((inputs['tokens'][row][used], torch.full((_ROWS,), _ACTION)))[None]
        shown = inputs['image_mask'][row]
        sizes = [s for s, there in zip(_PICTURES, shown, strict=True) if there]
        grid = torch.tensor([[1, height // 4, width // 4] for height, width in sizes])
        positions, _ = modeling.Qwen2_5_VLMoEForAction.get_rope_index(whole, tokens, grid)
        x = decoder.embed_tokens(tokens)
        count = int((tokens == _IMAGE).sum())
        x[tokens == _IMAGE] = inputs['features'][row, :count]
        mask = (torch.arange(_WIDTH) < _JOINTS).float()
        x[tokens == _STATE] = head.proprioception_proj(inputs['state'][row], mask)
        actions = inputs['noise'][row][None]
        for step in range(_STEPS):
            time = torch.tensor([step / _STEPS])
            x[tokens == _ACTION] = head.step(time, actions, mask.expand(1, _ROWS, -1))[0]
            found = decoder(
                inputs_embeds=x,
                position_ids=positions,
                moe_token_types=(tokens == _ACTION).long(),
                use_cache=False,
            ).last_hidden_state
            actions = actions + head.action_proj_back(found[tokens == _ACTION])[None] / _STEPS
        chunks.append(actions)
    return torch.cat(chunks)


class _SecondGeneration:
    """The decoder with weights of its own for every kind of token, in the fused layout."""

    def __init__(self, shapes: dict[str, list[int]]) -> None:
        self.weights: dict[str, Tensor] = {}
        widths, mlps, heads = (32, 24), (48, 40), (4 + 2 * 2) * 8
        names: dict[str, tuple[int, ...]] = {'model.embed_tokens.weight': (200, 32)}
        for kind, (width, mlp) in enumerate(zip(widths, mlps, strict=True)):
            names[f'model.norms.{kind}.weight'] = (width,)
            for layer in range(3):
                place = f'model.layers.{layer}'
                names |= {
                    f'{place}.input_layernorms.{kind}.weight': (width,),
                    f'{place}.post_attention_layernorms.{kind}.weight': (width,),
                    f'{place}.self_attn.qkv_proj_experts.{kind}.weight': (heads, width),
                    f'{place}.self_attn.qkv_proj_experts.{kind}.bias': (heads,),
                    f'{place}.self_attn.o_proj_experts.{kind}.weight': (width, 32),
                    f'{place}.moe.experts.{kind}.gate_up_proj.weight': (2 * mlp, width),
                    f'{place}.moe.experts.{kind}.down_proj.weight': (width, mlp),
                }
        names |= {
            'action_preprocessor.w1.weight': (24, 2 * _WIDTH),
            'action_preprocessor.w2.weight': (24, 48),
            'action_preprocessor.w3.weight': (24, 24),
            'action_preprocessor.action_proj_back.weight': (_WIDTH, 24),
            'action_preprocessor.propri_proj.weight': (28, 2 * _WIDTH),
        }
        for name, shape in names.items():
            shapes[name] = list(shape)
            self.weights[name] = torch.from_numpy(seeded_weight(name, shape))

    def head(self, name: str, x: Tensor) -> Tensor:
        return x @ self.weights[f'action_preprocessor.{name}.weight'].T

    def norm(self, place: str, kind: int, x: Tensor) -> Tensor:
        scale = x.square().mean(-1, keepdim=True).add(1e-6).rsqrt()
        return x * scale * self.weights[f'{place}.{kind}.weight']

    def layer(self, index: int, parts: list[Tensor], angles: tuple, visible: Tensor) -> list:
        place, weights = f'model.layers.{index}', self.weights
        heads = []
        for kind, part in enumerate(parts):
            fused = f'{place}.self_attn.qkv_proj_experts.{kind}'
            normed = self.norm(f'{place}.input_layernorms', kind, part)
            heads.append(normed @ weights[fused + '.weight'].T + weights[fused + '.bias'])
        merged = torch.cat(heads).view(-1, 8, 8).transpose(0, 1)
        queries, keys, values = merged[:4], merged[4:6], merged[6:]
        cosine, sine = angles
        turn = lambda x: x * cosine + torch.cat((-x[..., 4:], x[..., :4]), -1) * sine  # noqa: E731
        keys, values = turn(keys).repeat_interleave(2, 0), values.repeat_interleave(2, 0)
        scores = turn(queries) @ keys.transpose(1, 2) / 8**0.5
        mixed = scores.masked_fill(~visible, -math.inf).softmax(-1) @ values
        mixed = mixed.transpose(0, 1).reshape(len(visible), -1)
        out, start = [], 0
        for kind, part in enumerate(parts):
            own = mixed[start : start + len(part)]
            start += len(part)
            x = part + own @ weights[f'{place}.self_attn.o_proj_experts.{kind}.weight'].T
            normed = self.norm(f'{place}.post_attention_layernorms', kind, x)
            mlp = f'{place}.moe.experts.{kind}'
            gate, up = (normed @ weights[mlp + '.gate_up_proj.weight'].T).chunk(2, -1)
            out.append(x + (functional.silu(gate) * up) @ weights[mlp + '.down_proj.weight'].T)
        return out

    def actions(self, inputs: dict, row: int, padding_target: float | None) -> Tensor:
        used = inputs['token_mask'][row]
        tokens = inputs['tokens'][row][used]
        mask = (torch.arange(_WIDTH) < _JOINTS).float()
        prompt = self.weights['model.embed_tokens.weight'][tokens].clone()
        count = int((tokens == _IMAGE).sum())
        prompt[tokens == _IMAGE] = inputs['features'][row, :count]
        state = self.head('propri_proj', torch.cat((inputs['state'][row], mask)))
        prompt[tokens == _STATE] = functional.pad(state, (0, 4))
        angles = _line_and_plane(tokens, inputs['image_mask'][row])
        total = len(tokens) + _ROWS
        visible = torch.ones(total, total, dtype=torch.bool).tril()
        noise = x = inputs['noise'][row]
        times = torch.linspace(0, 1, _STEPS + 1) * 0.999
        for step in range(_STEPS):
            time = _sinusoid(times[step : step + 1], 24).expand(_ROWS, -1)
            embedded = self.head('w1', torch.cat((x, mask.expand(_ROWS, -1)), -1))
            rows = self.head('w2', torch.cat((embedded, time), -1))
            parts = [prompt, self.head('w3', functional.silu(rows))]
            for index in range(3):
                parts = self.layer(index, parts, angles, visible)
            velocity = self.head('action_proj_back', self.norm('model.norms', 1, parts[1]))
            if padding_target is not None:
                velocity = velocity * mask + (padding_target - noise) * (1 - mask)
            x = x + (times[step + 1] - times[step]) * velocity
        return x


def _line_and_plane(tokens: Tensor, shown: Tensor) -> tuple[Tensor, Tensor]:
    """Return cosine and sine of all tokens, walking over the prompt one token at a time."""
    places, line, index = [], 0, 0
    grids = [
        (height // 8, width // 8)
        for (height, width), there in zip(_PICTURES, shown, strict=True)
        if there
    ]
    picture = 0
    while index < len(tokens):
        if tokens[index] != _IMAGE:
            places.append((line, line, line))
            line, index = line + 1, index + 1
            continue
        rows, columns = grids[picture]
        places += [(line, line + r, line + c) for r in range(rows) for c in range(columns)]
        line, index, picture = line + max(rows, columns), index + rows * columns, picture + 1
    places += [(line + row,) * 3 for row in range(_ROWS)]
    rates = 1e6 ** (-torch.arange(0, 8, 2) / 8)
    turns = torch.tensor(places)[:, [0, 1, 1, 2]] * rates  # sections 1, 2, 1
    turns = torch.cat((turns, turns), -1)
    return turns.cos(), turns.sin()


def _write(name: str, shapes: dict[str, list[int]], config: dict[str, object]) -> None:
    lines = (f'"{key}": {shape}' for key, shape in shapes.items())
    (_HERE / f'weights_{name}.json').write_text('{\n' + ',\n'.join(lines) + '\n}\n')
    (_HERE / f'config_{name}.json').write_text(json.dumps(config, indent=1) + '\n')


@torch.no_grad()
def main() -> None:
    """Write the answers, and names and shapes of the weights."""
    torch.set_num_threads(1)
    arrays = _requests()
    inputs = {name: torch.from_numpy(value) for name, value in arrays.items()}
    inputs['noise'] = torch.from_numpy(seeded_array('noise', (2, _ROWS, _WIDTH)))
    inputs['state'] = torch.from_numpy(seeded_array('state', (2, _WIDTH)))
    inputs['state'][:, _JOINTS:] = 0.0
    vision = qwen.Qwen2_5_VLVisionConfig(**_CONFIG['vision_config'])
    visual_shapes: dict[str, list[int]] = {}
    visual = qwen.Qwen2_5_VisionTransformerPretrainedModel(vision)
    visual = _fill(visual, 'visual.', visual_shapes)
    images = [
        torch.from_numpy(seeded_array(f'picture{index}', (2, 3, *size)))
        for index, size in enumerate(_PICTURES)
    ]
    inputs['features'] = _features(visual, images)
    first, second = dict(visual_shapes), dict(visual_shapes)
    actions_first = _first_generation(visual, first, inputs)
    decoder = _SecondGeneration(second)
    actions_second = torch.stack([decoder.actions(inputs, row, None) for row in range(2)])
    actions_padded = torch.stack([decoder.actions(inputs, row, -1.0) for row in range(2)])
    _write('first', first, _config(32, 24))
    more = {'attention_moe': True, 'norm_moe': True, 'causal_action_attention_mask': True}
    _write('second', second, _config(24, 40, **more))
    np.savez_compressed(
        _HERE / 'oracle.npz',
        **arrays,
        features=inputs['features'].numpy(),
        actions_first=actions_first.numpy(),
        actions_second=actions_second.numpy(),
        actions_second_padded=actions_padded.numpy(),
    )


if __name__ == '__main__':
    main()
