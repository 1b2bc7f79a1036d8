// SPDX-License-Identifier: Apache-2.0
// What a training step costs on any machine: how many passes over memory it
// makes, how many reorders, how much memory beyond what has to be live, and how
// often it allocates (oneDNN does so inside its primitives). A change of these numbers is a change
// of speed; lower them freely, raise them with a reason.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "core/device/cpu.h"
#include "core/onnx_io/proto.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "onnx/onnx_pb.h"
#include "tests/support/allocations.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"

namespace onward::guard_test {

struct Row {
  std::string name, text;
  Shape input;
  size_t kernels;  // compute and commit
  int reorders;
  int64_t allocations;  // oneDNN's, and the results'; ours make none
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

// Inputs other than x are weights: they become initializers.
Model WithWeights(const std::string& text) {
  Model model = TextModel(text);
  onnx::GraphProto* graph = model.proto().mutable_graph();
  google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> fed;
  int seed = 0;
  for (const onnx::ValueInfoProto& in : graph->input()) {
    if (in.name() == "x") {
      *fed.Add() = in;
      continue;
    }
    onnx::TensorProto* tensor = graph->add_initializer();
    tensor->set_name(in.name());
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    int64_t elements = 1;
    for (const auto& d : in.type().tensor_type().shape().dim()) {
      tensor->add_dims(d.dim_value());
      elements *= d.dim_value();
    }
    for (int64_t i = 0; i < elements; ++i) {
      tensor->add_float_data(0.05f + static_cast<float>((i * 31 + ++seed) % 17) * 0.01f);
    }
  }
  graph->mutable_input()->Swap(&fed);
  return model;
}

class Guard : public testing::TestWithParam<Row> {};

TEST_P(Guard, CostsWhatItDid) {
  const Row& row = GetParam();
  auto trainable = MakeTrainable(WithWeights(row.text), AuthorOptions(), DefaultEnvironment());
  ASSERT_TRUE(trainable.ok()) << trainable.status();
  auto training = Open(std::move(trainable->model));
  Tensor x(DType::kFloat, row.input);
  for (int64_t i = 0; i < x.elements(); ++i) x.data<float>()[i] = static_cast<float>(i % 13) * 0.1f;
  Tensor label(DType::kInt64, Shape{row.input[0]});
  for (int64_t i = 0; i < label.elements(); ++i) label.data<int64_t>()[i] = i % 8;
  const TensorMap feeds = {{"x", x}, {"label", label}};
  const std::vector<std::string> wanted = {training->model().Metadata(kMetaLoss)};
  auto executor = training->PrepareStep(0, feeds, wanted);
  ASSERT_TRUE(executor.ok()) << executor.status();
  const Plan& plan = (*executor)->plan();
  EXPECT_EQ(plan.compute.size() + plan.commit.size(), row.kernels) << plan.ToText();
  EXPECT_EQ(plan.reorders, row.reorders) << plan.ToText();
  EXPECT_LE(static_cast<double>(plan.arena_bytes), 1.25 * static_cast<double>(plan.live_bytes));
  ASSERT_TRUE((*executor)->Run(feeds, &training->variables(), {}).ok());
  const int64_t allocations = CountAllocations(
      [&] { EXPECT_TRUE((*executor)->Run(feeds, &training->variables(), {}).ok()); });
  EXPECT_LE(allocations, row.allocations);
}

const std::vector<Row>& Rows() {
  static const auto* rows = new std::vector<Row>{
      {"Perceptron",
       R"(g (float[16, 64] x, float[32, 64] w1, float[32] b1, float[8, 32] w2, float[8] b2)
          => (float[16, 8] y)
          { h = Gemm <transB = 1> (x, w1, b1) r = Relu(h) y = Gemm <transB = 1> (r, w2, b2) })",
       {16, 64},
       12,
       0,
       42},
      {"Convolutions",
       R"(g (float[4, 8, 16, 16] x, float[16, 8, 3, 3] w1, float[16] b1, float[8, 1024] w2, float[8] b2)
          => (float[4, 8] y)
          { c = Conv <pads = [1, 1, 1, 1]> (x, w1, b1) r = Relu(c)
            p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r) f = Flatten(p)
            y = Gemm <transB = 1> (f, w2, b2) })",
       {4, 8, 16, 16},
       15,
       3,
       48},
      {"ResidualBlock",
       R"(g (float[4, 16, 8, 8] x, float[16, 16, 3, 3] w1, float[16] s1, float[16] b1, float[16] m1, float[16] v1,
             float[16, 16, 3, 3] w2, float[16] s2, float[16] b2, float[16] m2, float[16] v2, float[8, 16] w3)
          => (float[4, 8] y)
          { c1 = Conv <pads = [1, 1, 1, 1]> (x, w1) n1 = BatchNormalization(c1, s1, b1, m1, v1) r1 = Relu(n1)
            c2 = Conv <pads = [1, 1, 1, 1]> (r1, w2) n2 = BatchNormalization(c2, s2, b2, m2, v2)
            a = Add(n2, x) r2 = Relu(a) p = GlobalAveragePool(r2) f = Flatten(p) y = Gemm <transB = 1> (f, w3) })",
       {4, 16, 8, 8},
       20,
       1,
       32},
      // Weights of 1x1 and depthwise convolutions are used as they are: x alone is reordered.
      {"InvertedResidual",
       R"(g (float[4, 16, 8, 8] x, float[96, 16, 1, 1] w1, float[96] s1, float[96] b1, float[96] m1, float[96] v1,
             float[96, 1, 3, 3] w2, float[96] s2, float[96] b2, float[96] m2, float[96] v2,
             float[16, 96, 1, 1] w3, float[16] s3, float[16] b3, float[16] m3, float[16] v3, float[8, 16] w4)
          => (float[4, 8] y) <float low = {0}, float high = {6}>
          { c1 = Conv(x, w1) n1 = BatchNormalization(c1, s1, b1, m1, v1) r1 = Clip(n1, low, high)
            c2 = Conv <group = 96, pads = [1, 1, 1, 1]> (r1, w2) n2 = BatchNormalization(c2, s2, b2, m2, v2)
            r2 = Clip(n2, low, high) c3 = Conv(r2, w3) n3 = BatchNormalization(c3, s3, b3, m3, v3)
            a = Add(n3, x) p = GlobalAveragePool(a) f = Flatten(p) y = Gemm <transB = 1> (f, w4) })",
       {4, 16, 8, 8},
       24,
       1,
       40},
      {"TransformerBlock",
       R"(<ir_version: 10, opset_import: ["" : 20]>
          g (float[2, 8, 16] x, float[16, 16] wq, float[16, 16] wk, float[16, 16] wv, float[16] s, float[16] b,
             float[16, 32] w1, float[32] b1, float[32, 16] w2, float[16] b2, float[16, 8] wo)
          => (float[2, 8] y) <int64[4] heads = {2, 8, 2, 8}, int64[3] flat = {2, 8, 16}, int64 first = {0}>
          { q = MatMul(x, wq) k = MatMul(x, wk) v = MatMul(x, wv)
            q4 = Reshape(q, heads) k4 = Reshape(k, heads) v4 = Reshape(v, heads)
            qt = Transpose <perm = [0, 2, 1, 3]> (q4) kt = Transpose <perm = [0, 2, 3, 1]> (k4)
            vt = Transpose <perm = [0, 2, 1, 3]> (v4)
            l = MatMul(qt, kt) p = Softmax <axis = -1> (l) o = MatMul(p, vt)
            ot = Transpose <perm = [0, 2, 1, 3]> (o) of = Reshape(ot, flat)
            a = Add(x, of) n = LayerNormalization <axis = -1> (a, s, b)
            h = MatMul(n, w1) hb = Add(h, b1) g1 = Gelu(hb) z = MatMul(g1, w2) zb = Add(z, b2) e = Add(zb, n)
            c = Gather <axis = 1> (e, first) y = MatMul(c, wo) })",
       {2, 8, 16},
       31,
       0,
       150},
  };
  return *rows;
}

INSTANTIATE_TEST_SUITE_P(Models, Guard, testing::ValuesIn(Rows()),
                         [](const auto& info) { return info.param.name; });

}  // namespace onward::guard_test
