"""Writes models into a folder: onnx_models.py FOLDER."""

import math
import os
import sys

import onnx
from onnx import TensorProto, helper

folder = sys.argv[1]


def weight(name, *shape):
    return helper.make_tensor(name, TensorProto.FLOAT, shape, bytes(4 * math.prod(shape)),
                              raw=True)


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def save(name, nodes, inputs, outputs, weights=(), opset=17):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    onnx.save(model, os.path.join(folder, name + ".onnx"))


def network(name, batch, opset=17):
    shape = helper.make_tensor("shape", TensorProto.INT64, [2], [0, -1])
    node = helper.make_node
    save(name, [node("Conv", ["x", "w1"], ["a"], pads=[1] * 4), node("Relu", ["a"], ["b"]),
                node("Conv", ["b", "w2"], ["c"], pads=[1] * 4), node("Add", ["b", "c"], ["d"]),
                node("Reshape", ["d", "shape"], ["e"]), node("MatMul", ["e", "w3"], ["y"])],
         [value("x", [batch, 3, 32, 32])], [value("y", [batch, 10])],
         [weight("w1", 16, 3, 3, 3), weight("w2", 16, 16, 3, 3), weight("w3", 16384, 10), shape], opset)


network("fixed", 4)
network("dynamic", "batch")
network("unknown-opset", 4, 999)
save("unknown-shape", [helper.make_node("NonZero", ["x"], ["i"])], [value("x", [8, 8])],
     [value("i", [2, "n"], TensorProto.INT64)])
body = helper.make_graph([helper.make_node("Identity", ["go"], ["on"])], "body",
                         [value("at", [], TensorProto.INT64), value("go", [], TensorProto.BOOL)],
                         [value("on", [], TensorProto.BOOL)])
save("loop", [helper.make_node("Loop", ["n", "go"], [], name="again", body=body),
              helper.make_node("Neg", ["x"], ["y"])],
     [value("n", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("x", [4])],
     [value("y", [4])])
