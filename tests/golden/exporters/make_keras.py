"""make_keras.py OUT: small Keras models through tf2onnx, with their loss curves; see make_torch.py for the files.

Made with tensorflow-cpu 2.21.0, keras 3.15.1, tf2onnx 1.17.0, numpy 2.3.5. Biases start at random: TensorFlow drops what is
zero, and tf2onnx writes a GRU of Keras 3 as a Loop, which has no kernel yet. Keras' epsilon stands elsewhere in the formula than PyTorch's, so it has to be small;
its AdamW squares the gradients of a row that is read twice one by one, so no row is.
"""
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np
import tensorflow as tf
import tf2onnx
from tensorflow import keras

L = keras.layers
bias = lambda: keras.initializers.RandomNormal(0, 0.1)
Dense = lambda n, **k: L.Dense(n, bias_initializer=bias(), **k)


def conv():
    """NHWC, a depthwise convolution and a normalization in pieces."""
    return keras.Sequential([
        L.Input((8, 8, 3)), L.Rescaling(2.0, offset=-1), L.Conv2D(8, 3, padding="same", activation="relu", bias_initializer=bias()),
        L.DepthwiseConv2D(3, bias_initializer=bias()), L.LayerNormalization(beta_initializer=bias()), L.GlobalAveragePooling2D(), Dense(4)])


def scaled():
    """Mean and deviation in the graph, and the slopes of PReLU."""
    mean, std = np.linspace(0.2, 0.9, 8) ** 2, np.linspace(0.5, 1.5, 8) ** 2
    x = L.Input((8,))
    h = L.Lambda(lambda t: (t - mean.astype("f")) / std.astype("f"))(x)
    h = L.PReLU(alpha_initializer=bias())(Dense(16, activation="tanh")(h))
    return keras.Model(x, Dense(4)(h))


def lstm():
    """One bias, where ONNX has two."""
    return keras.Sequential([L.Input((6, 5)), L.LSTM(8, bias_initializer=bias()), Dense(4)])


def embedding():
    return keras.Sequential([L.Input((6,), dtype="int32"), L.Embedding(40, 8), L.GlobalAveragePooling1D(), Dense(4)])


def attention():
    x = L.Input((6, 16))
    h = L.LayerNormalization(beta_initializer=bias())(x + L.MultiHeadAttention(2, 8, bias_initializer=bias())(x, x))
    return keras.Model(x, Dense(4)(L.GlobalAveragePooling1D()(h)))


MODELS = {"conv": (conv, (4, 8, 8, 3)), "scaled": (scaled, (4, 8)), "lstm": (lstm, (4, 6, 5)),
          "embedding": (embedding, (4, 6)), "attention": (attention, (4, 6, 16))}
OPTIMIZERS = {"sgd:lr=0.05": lambda: keras.optimizers.SGD(0.05),
              "adamw:lr=1e-3": lambda: keras.optimizers.AdamW(1e-3, epsilon=1e-8, weight_decay=0.01)}


def made(name):
    keras.utils.set_random_seed(0)
    return MODELS[name][0]()


out = sys.argv[1]
os.makedirs(out, exist_ok=True)
for name, (_, shape) in MODELS.items():
    draw = np.random.RandomState(1)
    x = draw.permutation(40)[:24].reshape(shape).astype("i4") if name == "embedding" else draw.rand(*shape).astype("f")
    y = np.arange(4) % 4
    np.save(f"{out}/keras_{name}.x.npy", x)
    np.save(f"{out}/keras_{name}.y.npy", y)
    model = made(name)
    spec = (tf.TensorSpec((None,) + shape[1:], x.dtype, name="x"),)
    function = tf.function(lambda t: model(t, training=False), input_signature=spec)
    tf2onnx.convert.from_function(function, input_signature=spec, opset=17, output_path=f"{out}/keras_{name}.tf2onnx.onnx")
    result, loss_of = {"loss": "cross_entropy"}, keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    for optimizer, make in OPTIMIZERS.items():
        model, opt, losses = made(name), make(), []
        for _ in range(20):
            with tf.GradientTape() as tape:
                loss = loss_of(y, model(x, training=True))
            opt.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
            losses.append(float(f"{float(loss):.8g}"))
        result[optimizer] = losses
    json.dump(result, open(f"{out}/keras_{name}.json", "w"))
    print(name, {k: (v[0], v[-1]) for k, v in result.items() if k != "loss"}, flush=True)
