# SPDX-License-Identifier: Apache-2.0
"""
Writes oracle.npz and weights.json: what LeRobot's own SmolVLA answers for seeded tiny weights.

Run with torch, transformers 5.5 (as LeRobot asks for) and numpy, and LeRobot's sources unpacked:
    python make.py PATH_TO_LEROBOT/src
Sources of LeRobot that are not needed for the model itself are replaced by empty modules, and the
hub's configuration by tiny sizes, because LeRobot asks the hub for it even for random weights.
"""

import json
import sys
import types
from pathlib import Path

import numpy as np
import torch
import transformers
from torch import nn

_HERE = Path(__file__).parent
sys.path.insert(0, str(_HERE.parents[1] / 'models'))
sys.path.insert(0, sys.argv[1])

from seeded_weights import seeded_array, seeded_weight  # noqa: E402


def _module(name: str, folder: str | None = None, **names: object) -> None:
    made = types.ModuleType(name)
    if folder is not None:
        made.__path__ = [str(Path(sys.argv[1]) / folder)]
    for key, value in names.items():
        setattr(made, key, value)
    sys.modules[name] = made


_module('lerobot', 'lerobot')
_module('lerobot.utils', 'lerobot/utils')
_module(
    'lerobot.utils.import_utils',
    _transformers_available=True,
    require_package=lambda *_args, **_kwargs: None,
)
_module('lerobot.utils.device_utils', get_safe_dtype=lambda dtype, _device: dtype)
_module('lerobot.policies', 'lerobot/policies')
_module('lerobot.policies.common', 'lerobot/policies/common')
_module('lerobot.policies.pretrained', PreTrainedPolicy=nn.Module)
_module('lerobot.policies.utils', populate_queues=None)
_module('lerobot.policies.rtc', 'lerobot/policies/rtc')
_module('lerobot.policies.rtc.modeling_rtc', RTCProcessor=object)
_module('lerobot.policies.smolvla', 'lerobot/policies/smolvla')
_module('lerobot.policies.smolvla.configuration_smolvla', SmolVLAConfig=object)

from lerobot.policies.smolvla import modeling_smolvla, smolvlm_with_expert  # noqa: E402

_TEXT = {
    'model_type': 'llama',
    'hidden_size': 48,
    'intermediate_size': 64,
    'num_hidden_layers': 5,  # one more than is used
    'num_attention_heads': 6,
    'num_key_value_heads': 2,
    'head_dim': 8,
    'vocab_size': 300,
    'rms_norm_eps': 1e-5,
    'rope_theta': 100000.0,
    'pad_token_id': 2,
}
_VISION = {
    'hidden_size': 32,
    'intermediate_size': 40,
    'num_hidden_layers': 2,
    'num_attention_heads': 4,
    'image_size': 32,
    'patch_size': 4,
}
_POLICY = {
    'vlm_model_name': 'tiny',
    'freeze_vision_encoder': True,
    'train_expert_only': True,
    'train_state_proj': True,
    'load_vlm_weights': False,
    'attention_mode': 'cross_attn',
    'num_expert_layers': -1,
    'num_vlm_layers': 4,
    'self_attn_every_n_layers': 2,
    'expert_width_multiplier': 0.75,
    'device': 'cpu',
    'max_state_dim': 8,
    'max_action_dim': 8,
    'add_image_special_tokens': False,
    'prefix_length': -1,
    'compile_model': False,
    'rtc_config': None,
    'chunk_size': 10,
    'num_steps': 10,
    'use_cache': True,
    'min_period': 4e-3,
    'max_period': 4.0,
}


def _model() -> nn.Module:
    config = transformers.SmolVLMConfig(
        text_config=_TEXT, vision_config=_VISION, scale_factor=2, tie_word_embeddings=False
    )
    tokens = types.SimpleNamespace(fake_image_token_id=0, global_image_token_id=1)
    smolvlm_with_expert.AutoConfig = types.SimpleNamespace(from_pretrained=lambda _name: config)
    smolvlm_with_expert.AutoProcessor = types.SimpleNamespace(
        from_pretrained=lambda _name: types.SimpleNamespace(tokenizer=tokens)
    )
    model = modeling_smolvla.VLAFlowMatching(types.SimpleNamespace(**_POLICY)).eval().float()
    named = {
        name: torch.from_numpy(seeded_weight('model.' + name, tuple(weight.shape)))
        for name, weight in model.state_dict().items()
    }
    model.load_state_dict(named, strict=True)
    return model


@torch.no_grad()
def main() -> None:
    """Write both files."""
    torch.set_num_threads(1)
    model = _model()
    lines = (f'"model.{name}": {list(w.shape)}' for name, w in model.state_dict().items())
    (_HERE / 'weights.json').write_text('{\n' + ',\n'.join(lines) + '\n}\n')
    (_HERE / 'config.json').write_text(json.dumps({'type': 'smolvla', **_POLICY}, indent=1) + '\n')
    images = [np.clip(seeded_array(f'image{i}', (2, 3, 32, 32)), -1, 1) for i in range(2)]
    lengths = np.array([9, 12])
    tokens = (np.abs(seeded_array('tokens', (2, 12))) * 100).astype(np.int64) % 300
    token_mask = np.arange(12) < lengths[:, None]
    image_mask = np.array([[True, True], [True, False]])
    state, noise = seeded_array('state', (2, 8)), seeded_array('noise', (2, 10, 8))
    features = [
        model.vlm_with_expert.embed_image(torch.from_numpy(image)) * 48**0.5 for image in images
    ]
    actions = model.sample_actions(
        [torch.from_numpy(image) for image in images],
        [torch.from_numpy(image_mask[:, index]) for index in range(2)],
        torch.from_numpy(tokens),
        torch.from_numpy(token_mask),
        torch.from_numpy(state),
        noise=torch.from_numpy(noise),
    )
    np.savez_compressed(
        _HERE / 'oracle.npz',
        image_mask=image_mask,
        tokens=tokens,
        token_mask=token_mask,
        features=torch.stack(features, dim=1).numpy(),
        actions=actions.numpy(),
    )


if __name__ == '__main__':
    main()
