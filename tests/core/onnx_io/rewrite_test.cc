// SPDX-License-Identifier: Apache-2.0
// What is read and written again means the same: types of every kind, attributes of every
// kind, also through a change of opset.
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "core/onnx_io/proto.h"
#include "onnx/defs/parser.h"
#include "tests/support/text_model.h"

namespace onward::rewrite_test {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::HasSubstr;

onnx::TypeProto TypeOfText(const std::string& text) {
  onnx::TypeProto type;
  const auto status = onnx::OnnxParser::Parse(type, text.c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage() << " in " << text;
  return type;
}

constexpr const char* kTypes[] = {
    "float[2, N]",
    "float[]",
    "string",
    "sparse_tensor(double[3, 4])",
    "seq(int64[N])",
    "optional(float[2])",
    "optional(seq(float[2, N]))",
    "seq(seq(int32[1]))",
    "map(string, float)",
    "map(int64, seq(float[2]))",
    "seq(map(string, float[1]))",
};

TEST(Rewrite, TypesOfEveryKind) {
  for (const char* text : kTypes) {
    const onnx::TypeProto before = TypeOfText(text);
    onnx::TypeProto after;
    TypeToProto(TypeFromProto(before), &after);
    EXPECT_TRUE(MessageDifferencer::Equals(before, after)) << text << "\n" << after.DebugString();
    EXPECT_EQ(TypeFromProto(before), TypeFromProto(after)) << text;
  }
}

TEST(Rewrite, TypesDifferByWhatTheyHold) {
  const auto type = [](const char* text) { return TypeFromProto(TypeOfText(text)); };
  for (const char* a : kTypes) {
    for (const char* b : kTypes) EXPECT_EQ(type(a) == type(b), a == b) << a << " and " << b;
  }
}

TEST(Rewrite, DeclaredTypesOfContainersStay) {
  for (const char* text : kTypes) {
    onnx::GraphProto before;
    before.set_name("g");
    for (auto* values : {before.mutable_input(), before.mutable_output()}) {
      auto* v = values->Add();
      v->set_name("v");
      *v->mutable_type() = TypeOfText(text);
    }
    auto graph = GraphFromProto(before, nullptr);
    ASSERT_TRUE(graph.ok()) << graph.status();
    onnx::GraphProto after;
    GraphToProto(*graph, &after);
    EXPECT_TRUE(MessageDifferencer::Equals(before, after)) << text << "\n" << after.DebugString();
  }
}

// A node with one attribute of each kind that AttributeProto has.
onnx::NodeProto NodeWithAttributes() {
  onnx::NodeProto node;
  node.set_op_type("Custom");
  node.set_domain("local");
  node.add_output("y");
  const auto add = [&](const char* name, onnx::AttributeProto::AttributeType type) {
    onnx::AttributeProto* a = node.add_attribute();
    a->set_name(name);
    a->set_type(type);
    return a;
  };
  const auto tensor = [](onnx::TensorProto* t) {
    TensorToProto(Tensor::FromValues<float>({2}, {1, 2}), "", t);
  };
  using A = onnx::AttributeProto;
  add("a_int", A::INT)->set_i(3);
  add("b_float", A::FLOAT)->set_f(0.5f);
  add("c_string", A::STRING)->set_s("text");
  tensor(add("d_tensor", A::TENSOR)->mutable_t());
  add("e_graph", A::GRAPH)->mutable_g()->set_name("g");
  *add("f_type", A::TYPE_PROTO)->mutable_tp() = TypeOfText("optional(seq(float[2]))");
  add("g_ints", A::INTS)->add_ints(4);
  add("h_floats", A::FLOATS)->add_floats(0.25f);
  add("i_strings", A::STRINGS)->add_strings("word");
  onnx::AttributeProto* tensors = add("j_tensors", A::TENSORS);
  tensor(tensors->add_tensors());
  tensor(tensors->add_tensors());
  onnx::AttributeProto* graphs = add("k_graphs", A::GRAPHS);
  graphs->add_graphs()->set_name("g1");
  graphs->add_graphs()->set_name("g2");
  *add("l_types", A::TYPE_PROTOS)->add_type_protos() = TypeOfText("map(string, float)");
  onnx::AttributeProto* reference = add("m_reference", A::TYPE_PROTO);
  reference->set_ref_attr_name("outer");
  return node;
}

TEST(Rewrite, AttributesOfEveryKind) {
  const onnx::NodeProto before = NodeWithAttributes();
  auto node = NodeFromProto(before, nullptr);
  ASSERT_TRUE(node.ok()) << node.status();
  onnx::NodeProto after;
  NodeToProto(*node, &after);
  EXPECT_TRUE(MessageDifferencer::Equals(before, after)) << after.DebugString();
}

// Every walk over bodies sees those in lists.
TEST(Rewrite, BodiesInListsCapture) {
  onnx::NodeProto proto;
  proto.set_op_type("Custom");
  proto.set_domain("local");
  proto.add_output("y");
  onnx::AttributeProto* graphs = proto.add_attribute();
  graphs->set_name("bodies");
  graphs->set_type(onnx::AttributeProto::GRAPHS);
  for (const char* captured : {"first", "second"}) {
    onnx::GraphProto* g = graphs->add_graphs();
    g->set_name("g");
    onnx::NodeProto* inner = g->add_node();
    inner->set_op_type("Neg");
    inner->add_input(captured);
    inner->add_output("out");
    g->add_output()->set_name("out");
  }
  auto node = NodeFromProto(proto, nullptr);
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_THAT(AllInputs(*node), ::testing::ElementsAre("first", "second"));
}

TEST(Rewrite, RaisingKeepsTypesAndAttributes) {
  // Softmax changes its form at 13, so the whole graph goes through the converter.
  Model model = TextModel(
      "<ir_version: 8, opset_import: [\"\" : 12, \"local\" : 1]>\n"
      "m (float[2, 3] x, map(string, float) table) => (float[2, 3] y, optional(seq(float[2])) z)"
      "{ y = Softmax(x) z = local.Maybe(table) }");
  onnx::NodeProto custom = NodeWithAttributes();
  custom.mutable_attribute()->RemoveLast();  // a reference stands in functions only
  *model.proto().mutable_graph()->mutable_node(1)->mutable_attribute() = custom.attribute();
  auto graph = InferenceGraph(model);
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto raised = RaiseOpset(*graph, 18);
  ASSERT_TRUE(raised.ok()) << raised.status();
  EXPECT_EQ(raised->inputs[1].type.ToString(), "map(string, float[])");
  EXPECT_EQ(raised->outputs[1].type.ToString(), "optional(seq(float[2]))");
  for (const Node& node : raised->nodes) {
    if (!node.Is("Maybe", "local")) continue;
    EXPECT_EQ(node.attributes.size(), static_cast<size_t>(custom.attribute_size()));
  }
}

// onnx.proto: nodes bind against the highest version of their domain that is imported.
TEST(Rewrite, OfSeveralVersionsTheHighestCounts) {
  Model model = TextModel(R"(
    <ir_version: 8, opset_import: ["" : 9, "" : 18, "ai.onnx" : 13, "" : 1]>
    g (float[2] x) => (float[2] y) { y = Relu(x) })");
  ASSERT_EQ(model.proto().opset_import_size(), 4);
  EXPECT_EQ(Reread(model).opsets(), (std::map<std::string, int>{{"", 18}}));
}

// onnxruntime looks for these in the standard's domain, whatever the opset.
TEST(Rewrite, OperatorsOfARuntimeStayInTheStandardsDomain) {
  const Model model = TextModel(R"(
    <ir_version: 8, opset_import: ["" : 11]>
    g (float[2, 3] x, float[3] scale) => (float[2, 3] z) {
      y = LayerNormalization(x, scale)
      z = SimplifiedLayerNormalization(y, scale)
    })");
  absl::StatusOr<Graph> graph = InferenceGraph(model);
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (const int opset : {11, 18, 28}) {
    const absl::StatusOr<Graph> raised = RaiseOpset(*graph, opset);
    ASSERT_TRUE(raised.ok()) << raised.status();
    const Model written = ModelFromGraph(*raised, 8, "test");
    ASSERT_EQ(written.proto().graph().node_size(), 2);
    for (const onnx::NodeProto& node : written.proto().graph().node()) {
      EXPECT_EQ(node.domain(), "") << node.op_type() << " at opset " << opset;
    }
  }
}

}  // namespace onward::rewrite_test
