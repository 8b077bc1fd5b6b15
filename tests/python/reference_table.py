"""Values and texts recorded from PyTorch 2.15.

OPTIMIZERS: the parameter [1, -2, 0.5] (float64) after five steps with the gradients of test_optim.py.
SCHEDULES: the rates of SGD(lr=0.3, momentum=0.9) over eight epochs.
REPRS: how modules print.
"""

OPTIMIZERS = [
    ('SGD', {'lr': 0.1}, [1.05, -2.1, 0.19999999999999996]),
    ('SGD', {'lr': 0.1, 'momentum': 0.9}, [0.8995649999999998, -2.2466100000000004, 0.026209999999999872]),
    ('SGD', {'lr': 0.1, 'momentum': 0.9, 'dampening': 0.2, 'weight_decay': 0.01}, [0.8681413206742319, -2.2555921653308815, 0.11552476055984602]),
    ('SGD', {'lr': 0.1, 'momentum': 0.9, 'nesterov': True, 'maximize': True, 'weight_decay': 0.1}, [0.8605666257809963, -1.374848939426012, 1.1362786066392505]),
    ('Adam', {}, [0.9978775855043767, -2.0014349452182896, 0.49689546023070347]),
    ('Adam', {'lr': 0.1, 'weight_decay': 0.1, 'amsgrad': True}, [0.7304188717382201, -2.062870077667991, 0.05772619559042347]),
    ('Adam', {'lr': 0.1, 'maximize': True, 'eps': 0.001}, [1.2117041960105381, -1.8566488279082138, 0.8088439446244505]),
    ('AdamW', {'lr': 0.1}, [0.783553551416683, -2.1330690131986025, 0.1875045285380756]),
    ('AdamW', {'lr': 0.1, 'amsgrad': True, 'maximize': True}, [1.2064664285933149, -1.8469709468213926, 0.8075054614669235]),
    ('RMSprop', {}, [1.0129493132104221, -2.0819308677937927, 0.1267815669832404]),
    ('RMSprop', {'lr': 0.1, 'momentum': 0.9, 'centered': True, 'weight_decay': 0.1}, [-1.3124085163396584, -3.4073402316330963, -11.263395624132222]),
    ('Adagrad', {}, [1.0011913618063513, -2.0081745708342473, 0.4627032980560563]),
    ('Adagrad', {'lr': 0.1, 'lr_decay': 0.1, 'weight_decay': 0.1, 'initial_accumulator_value': 0.5, 'maximize': True}, [0.9549015638158314, -1.9040619140594777, 0.6494914735564906]),
    ('Adadelta', {'lr': 0.5, 'weight_decay': 0.1}, [1.0002145745251583, -2.000647262744118, 0.4850434813172611]),
    ('Adamax', {'weight_decay': 0.1}, [0.995435765511697, -2.0013910516752556, 0.4937880276411568]),
    ('NAdam', {'weight_decay': 0.1, 'decoupled_weight_decay': True}, [0.9995140905566233, -2.0000518407835863, 0.49042505695067873]),
]

SCHEDULES = [
    ('StepLR', {'step_size': 3, 'gamma': 0.5}, [0.3, 0.3, 0.3, 0.15, 0.15, 0.15, 0.075, 0.075, 0.075]),
    ('MultiStepLR', {'milestones': [2, 4, 4, 6], 'gamma': 0.5}, [0.3, 0.3, 0.15, 0.15, 0.0375, 0.0375, 0.01875, 0.01875, 0.01875]),
    ('ExponentialLR', {'gamma': 0.9}, [0.3, 0.27, 0.24300000000000002, 0.21870000000000003, 0.19683000000000003, 0.17714700000000003, 0.15943230000000003, 0.14348907000000002, 0.12914016300000003]),
    ('CosineAnnealingLR', {'T_max': 4, 'eta_min': 0.01}, [0.3, 0.25753048327204936, 0.155, 0.05246951672795062, 0.01, 0.0524695167279506, 0.15500000000000003, 0.25753048327204947, 0.3000000000000001]),
    ('LinearLR', {'start_factor': 0.1, 'end_factor': 0.8, 'total_iters': 4}, [0.03, 0.08249999999999999, 0.13499999999999998, 0.18749999999999997, 0.23999999999999996, 0.23999999999999996, 0.23999999999999996, 0.23999999999999996, 0.23999999999999996]),
    ('ConstantLR', {'factor': 0.5, 'total_iters': 3}, [0.15, 0.15, 0.15, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3]),
    ('PolynomialLR', {'total_iters': 5, 'power': 2.0}, [0.3, 0.19200000000000003, 0.108, 0.04800000000000001, 0.011999999999999997, 0.0, 0.0, 0.0, 0.0]),
    ('OneCycleLR', {'max_lr': 1.0, 'total_steps': 9}, [0.040000000000000036, 0.6513582352345999, 0.9944154354509117, 0.8985666593464469, 0.7056447289910996, 0.46263710266697505, 0.22872995315964806, 0.060892969758032406, 4e-06]),
    ('OneCycleLR', {'max_lr': 1.0, 'epochs': 3, 'steps_per_epoch': 3, 'anneal_strategy': 'linear', 'three_phase': True}, [0.04, 0.6047058823529413, 0.8305882352941175, 0.26588235294117624, 0.03478313043478261, 0.026088347826086954, 0.0173935652173913, 0.008698782608695652, 3.9999999999970615e-06]),
    ('CosineAnnealingWarmRestarts', {'T_0': 2, 'T_mult': 2, 'eta_min': 0.01}, [0.3, 0.155, 0.3, 0.25753048327204936, 0.155, 0.05246951672795062, 0.3, 0.2889625322141366, 0.25753048327204936]),
    ('CyclicLR', {'base_lr': 0.01, 'max_lr': 0.5, 'step_size_up': 3, 'mode': 'triangular2'}, [0.01, 0.17333333333333342, 0.3366666666666666, 0.5, 0.33666666666666684, 0.1733333333333332, 0.01, 0.0916666666666668, 0.1733333333333332]),
]

REPRS = [
    ('nn.RReLU(.1, .2, True)', 'RReLU(lower=0.1, upper=0.2, inplace=True)'),
    ('nn.CrossMapLRN2d(3, k=2)', 'CrossMapLRN2d(3, alpha=0.0001, beta=0.75, k=2)'),
    ('nn.CosineSimilarity()', 'CosineSimilarity()'),
    ('nn.MultiMarginLoss()', 'MultiMarginLoss()'),
    ('nn.CTCLoss()', 'CTCLoss()'),
    ('nn.EmbeddingBag(3, 4, padding_idx=1)', "EmbeddingBag(3, 4, mode='mean', padding_idx=1)"),
    ('nn.FeatureAlphaDropout(.3)', 'FeatureAlphaDropout(p=0.3, inplace=False)'),
    ('nn.Linear(3, 4)', 'Linear(in_features=3, out_features=4, bias=True)'),
    ('nn.Linear(3, 4, bias=False)', 'Linear(in_features=3, out_features=4, bias=False)'),
    ('nn.Bilinear(2, 3, 4)', 'Bilinear(in1_features=2, in2_features=3, out_features=4, bias=True)'),
    ('nn.Identity(3)', 'Identity()'),
    ('nn.Flatten()', 'Flatten(start_dim=1, end_dim=-1)'),
    ('nn.Unflatten(1, (2, 3))', 'Unflatten(dim=1, unflattened_size=(2, 3))'),
    ('nn.ReLU()', 'ReLU()'),
    ('nn.ReLU(inplace=True)', 'ReLU(inplace=True)'),
    ('nn.LeakyReLU()', 'LeakyReLU(negative_slope=0.01)'),
    ('nn.ELU()', 'ELU(alpha=1.0)'),
    ('nn.GELU()', "GELU(approximate='none')"),
    ('nn.GELU("tanh")', "GELU(approximate='tanh')"),
    ('nn.SiLU()', 'SiLU()'),
    ('nn.Tanh()', 'Tanh()'),
    ('nn.Sigmoid()', 'Sigmoid()'),
    ('nn.Softmax(1)', 'Softmax(dim=1)'),
    ('nn.LogSoftmax(-1)', 'LogSoftmax(dim=-1)'),
    ('nn.Softplus()', 'Softplus(beta=1.0, threshold=20.0)'),
    ('nn.Sequential()', 'Sequential()'),
    ('nn.Sequential(nn.Linear(1, 2), nn.ReLU())', 'Sequential(\n  (0): Linear(in_features=1, out_features=2, bias=True)\n  (1): ReLU()\n)'),
    ('nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU()])', 'ModuleList(\n  (0-1): 2 x Linear(in_features=2, out_features=2, bias=True)\n  (2): ReLU()\n)'),
    ('nn.ModuleDict({"a": nn.Linear(1, 1), "b": nn.Sequential(nn.ReLU())})', 'ModuleDict(\n  (a): Linear(in_features=1, out_features=1, bias=True)\n  (b): Sequential(\n    (0): ReLU()\n  )\n)'),
    ('nn.ParameterList([torch.ones(2, 3), 3])', 'ParameterList(\n    (0): Parameter containing: [torch.float32 of size 2x3]\n    (1): Object of type: int\n)'),
    ('nn.Embedding(4, 3)', 'Embedding(4, 3)'),
    ('nn.Embedding(4, 3, padding_idx=-1, max_norm=2.0)', 'Embedding(4, 3, padding_idx=3, max_norm=2.0)'),
    ('nn.LayerNorm(5)', 'LayerNorm((5,), eps=1e-05, elementwise_affine=True, bias=True)'),
    ('nn.LayerNorm((2, 3), bias=False)', 'LayerNorm((2, 3), eps=1e-05, elementwise_affine=True, bias=False)'),
    ('nn.Dropout(0.2)', 'Dropout(p=0.2, inplace=False)'),
    ('nn.CrossEntropyLoss()', 'CrossEntropyLoss()'),
    ('nn.MSELoss()', 'MSELoss()'),
]
