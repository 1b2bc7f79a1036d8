// SPDX-License-Identifier: Apache-2.0
// Models that lie about their tensors, functions, nodes and training: each is
// refused with a message, quickly, and without much memory.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "core/onnx_io/proto.h"
#include "tests/support/attempt.h"
#include "tests/support/text_model.h"

namespace onward::hostile_test {

using Rows = std::vector<Hostile>;

class HostileModel : public testing::TestWithParam<Hostile> {};

TEST_P(HostileModel, IsRefused) { ExpectRefused(GetParam()); }

// --- tensors

// y = x * W, where W is an initializer that a row spoils.
Hostile Weight(std::string name, std::function<void(onnx::TensorProto&)> spoil, std::string says) {
  return {std::move(name),
          [spoil = std::move(spoil)] {
            Model model =
                TextModel("m (float[2] x) => (float[2] y) <float[2] W> { y = Mul(x, W) }");
            onnx::TensorProto* weight = model.proto().mutable_graph()->add_initializer();
            weight->set_name("W");
            weight->set_data_type(onnx::TensorProto::FLOAT);
            spoil(*weight);
            return model;
          },
          std::move(says)};
}

void Dims(onnx::TensorProto& t, std::initializer_list<int64_t> dims) {
  for (int64_t d : dims) t.add_dims(d);
}

Hostile DimsOnly(std::string name, std::initializer_list<int64_t> dims, std::string says) {
  return Weight(
      std::move(name),
      [dims = std::vector<int64_t>(dims)](auto& t) {
        for (int64_t d : dims) t.add_dims(d);
      },
      std::move(says));
}

Hostile OfType(std::string name, int32_t type, std::string says) {
  return Weight(
      std::move(name),
      [type](auto& t) {
        t.add_dims(2);
        t.set_data_type(type);
        t.set_raw_data("12345678");
      },
      std::move(says));
}

Rows Tensors() {
  return {
      Weight(
          "RawTooShort",
          [](auto& t) {
            Dims(t, {2});
            t.set_raw_data("1234567");
          },
          "tensor 'W': raw_data has 7 bytes"),
      Weight(
          "RawTooLong",
          [](auto& t) {
            Dims(t, {2});
            t.set_raw_data("123456789");
          },
          "raw_data has 9 bytes"),
      Weight(
          "RawAndTyped",
          [](auto& t) {
            Dims(t, {2});
            t.set_raw_data("12345678");
            t.add_float_data(1);
            t.add_float_data(2);
          },
          "tensor 'W': keeps its values in more than one place"),
      Weight(
          "TwoTypedFields",
          [](auto& t) {
            Dims(t, {1});
            t.add_float_data(1);
            t.add_int32_data(1);
          },
          "more than one place"),
      Weight(
          "WrongField",
          [](auto& t) {
            Dims(t, {1});
            t.add_double_data(1);
          },
          "tensor 'W': has 0 values"),
      Weight(
          "TooFewValues",
          [](auto& t) {
            Dims(t, {2});
            t.add_float_data(1);
          },
          "has 1 values, but its shape needs 2"),
      Weight(
          "TooManyValues",
          [](auto& t) {
            Dims(t, {1});
            t.add_float_data(1);
            t.add_float_data(2);
          },
          "has 2 values, but its shape needs 1"),
      Weight(
          "ValuesOfNothing",
          [](auto& t) {
            Dims(t, {0});
            t.add_float_data(1);
          },
          "has 1 values, but its shape needs 0"),
      Weight(
          "NegativeDim",
          [](auto& t) {
            Dims(t, {-2});
            t.set_raw_data("12345678");
          },
          "tensor 'W': negative dimension"),
      DimsOnly("ProductOverflows", {int64_t{1} << 32, int64_t{1} << 32}, "tensor 'W': shape"),
      DimsOnly("ProductWrapsToZero", {int64_t{1} << 62, 4}, "too many elements"),
      DimsOnly("OverflowBesideZero", {0, int64_t{1} << 62, int64_t{1} << 62}, "too many elements"),
      DimsOnly("BombWithoutData", {int64_t{1} << 40}, "tensor 'W': has no values"),
      Weight(
          "BombWithOneValue",
          [](auto& t) {
            Dims(t, {int64_t{1} << 40});
            t.add_float_data(1);
          },
          "has 1 values"),
      Weight(
          "Rank33",
          [](auto& t) {
            for (int i = 0; i < 33; ++i) t.add_dims(1);
          },
          "rank 33"),
      OfType("UnknownType", 99, "tensor 'W': has the unknown element type 99"),
      OfType("NegativeType", -1, "unknown element type -1"),
      OfType("UndefinedType", 0, "unknown element type 0"),
      OfType("StringsInRawData", onnx::TensorProto::STRING, "tensor 'W'"),
      Weight(
          "TooFewStrings",
          [](auto& t) {
            Dims(t, {2});
            t.set_data_type(onnx::TensorProto::STRING);
            t.add_string_data("one");
          },
          "has 1 strings, but its shape needs 2"),
      Weight(
          "StringBomb",
          [](auto& t) {
            Dims(t, {int64_t{1} << 40});
            t.set_data_type(onnx::TensorProto::STRING);
            t.add_string_data("one");
          },
          "tensor 'W': has 1 values"),
      Weight(
          "HalfPackedNibbles",
          [](auto& t) {
            Dims(t, {5});
            t.set_data_type(onnx::TensorProto::INT4);
            t.set_raw_data("12");
          },
          "raw_data has 2 bytes"),
      Weight(
          "Segment",
          [](auto& t) {
            Dims(t, {1});
            t.add_float_data(1);
            t.mutable_segment()->set_begin(0);
          },
          "tensor 'W': segmented"),
      Weight(
          "NoName",
          [](auto& t) {
            Dims(t, {1});
            t.add_float_data(1);
            t.clear_name();
          },
          "an initializer has no name"),
      {"TwoOfOneName",
       [] {
         Model model =
             TextModel("m (float[1] x) => (float[1] y) <float[1] W = {1}> { y = Mul(x, W) }");
         *model.proto().mutable_graph()->add_initializer() = model.proto().graph().initializer(0);
         return model;
       },
       "initializer 'W' is given twice"},
      {"InsideAConstantNode",
       [] {
         Model model =
             TextModel("m () => (float[2] y) { y = Constant <value = float[2] {1, 2}> () }");
         onnx::TensorProto* t =
             model.proto().mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_t();
         t->clear_float_data();
         t->set_raw_data("1234567");
         return model;
       },
       "node '-> y' (Constant), attribute 'value'"},
  };
}
INSTANTIATE_TEST_SUITE_P(Tensor, HostileModel, testing::ValuesIn(Tensors()),
                         [](const auto& row) { return row.param.name; });

// A sparse W of shape [dims] with two values at `indices`.
Hostile Sparse(std::string name, std::vector<int64_t> dims, std::vector<int64_t> indices,
               std::string says) {
  return {
      std::move(name),
      [dims, indices] {
        Model model = TextModel("m (float[4] x) => (float[4] y) <float[4] W> { y = Mul(x, W) }");
        onnx::SparseTensorProto* sparse = model.proto().mutable_graph()->add_sparse_initializer();
        for (int64_t d : dims) sparse->add_dims(d);
        TensorToProto(Floats({1, 2}), "W", sparse->mutable_values());
        TensorToProto(Tensor::FromValues<int64_t>({static_cast<int64_t>(indices.size())}, indices),
                      "", sparse->mutable_indices());
        return model;
      },
      std::move(says)};
}

Rows SparseTensors() {
  constexpr int64_t kHuge = int64_t{1} << 40;
  return {Sparse("PastTheEnd", {4}, {0, 4}, "sparse tensor 'W': has an index out of range"),
          Sparse("Negative", {4}, {-1, 0}, "index out of range"),
          Sparse("NotSorted", {4}, {2, 1}, "must be sorted and unique"),
          Sparse("Twice", {4}, {1, 1}, "must be sorted and unique"),
          Sparse("TooManyIndices", {4}, {0, 1, 2}, "do not match"),
          Sparse("NegativeDim", {-4}, {0, 1}, "negative dimension"),
          Sparse("DenseBomb", {kHuge}, {0, 1}, "sparse tensor 'W': is too large to be made dense"),
          Sparse("ProductOverflows", {kHuge, kHuge}, {0, 1}, "too many elements")};
}
INSTANTIATE_TEST_SUITE_P(SparseTensor, HostileModel, testing::ValuesIn(SparseTensors()),
                         [](const auto& row) { return row.param.name; });

// --- functions

Hostile Text(std::string name, std::string text, std::string says) {
  return {std::move(name), [text = std::move(text)] { return TextModel(text); }, std::move(says)};
}

constexpr char kCallF[] = "m (float[2] x) => (float[2] y) { y = local.f(x) }\n";

std::string FunctionText(const std::string& signature_and_body) {
  return "<domain: \"local\", opset_import: [\"\" : 18, \"local\" : 1]> " + signature_and_body +
         "\n";
}

// The lowest function calls none; each further one calls the one below `calls`
// times. Their names sort from the lowest up.
Model Tower(int levels, int calls) {
  auto level = [](int i) { return absl::StrCat("f", absl::Dec(i, absl::kZeroPad6)); };
  std::string text =
      absl::StrCat("m (float[2] x) => (float[2] y) { y = local.", level(levels - 1), "(x) }\n",
                   FunctionText(level(0) + " (a) => (b) { b = Relu(a) }"));
  for (int i = 1; i < levels; ++i) {
    std::string body;
    for (int c = 0; c < calls; ++c) {
      absl::StrAppend(&body, c + 1 == calls ? "b" : absl::StrCat("t", c), " = local.", level(i - 1),
                      "(", c == 0 ? "a" : absl::StrCat("t", c - 1), ") ");
    }
    absl::StrAppend(&text, FunctionText(absl::StrCat(level(i), " (a) => (b) { ", body, "}")));
  }
  return TextModel(text);
}

// Each function hands the next one a graph that holds what it was handed twice: no body
// is called more than once, but the last of them has 2^levels copies of the first graph.
Model HandedOn(int levels) {
  const auto level = [](int i) { return absl::StrCat("f", i); };
  const std::string twice = "If (c) <then_branch : graph = @g, else_branch : graph = @g>";
  std::string text = absl::StrCat(
      "m (float[2] x, bool c) => (float[2] y) { y = local.f0 <g = leaf () => (float[2] l) "
      "{ l = Neg(x) }> (x, c) }\n",
      FunctionText(absl::StrCat(level(levels), " <g> (a, c) => (b) { b = ", twice, " }")));
  for (int i = 0; i < levels; ++i) {
    absl::StrAppend(&text, FunctionText(absl::StrCat(
                               level(i), " <g> (a, c) => (b) { b = local.", level(i + 1),
                               " <g = s () => (float[2] o) { o = ", twice, " }> (a, c) }")));
  }
  return TextModel(text);
}

// One body with a megabyte in it, called a thousand times.
Model WideBody(bool in_name) {
  std::string text = "m () => (float y) { ";
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&text, "s", i, " = local.f() ");
  absl::StrAppend(&text, "y = Constant <value = float {1}> () }\n",
                  FunctionText("f () => (b) { b = Constant <value_string = \"\"> () }"));
  Model model = TextModel(text);
  onnx::NodeProto* node = model.proto().mutable_functions(0)->mutable_node(0);
  *(in_name ? node->mutable_name() : node->mutable_attribute(0)->mutable_s()) =
      std::string(1 << 20, 'a');
  return model;
}

Rows FunctionRows() {
  return {
      Text("CallsItself", kCallF + FunctionText("f (a) => (b) { b = local.f(a) }"),
           "function local.f calls itself"),
      Text("CallEachOther",
           kCallF + FunctionText("f (a) => (b) { b = local.g(a) }") +
               FunctionText("g (a) => (b) { b = local.f(a) }"),
           "calls itself"),
      Text("CallsItselfInABranch",
           kCallF + FunctionText("f (a) => (b) { c = Constant <value = bool {1}> () "
                                 "b = If (c) <then_branch = g () => (t) { t = local.f(a) }, "
                                 "else_branch = h () => (e) { e = Identity(a) }> }"),
           "calls itself"),
      {"DoublesFortyTimes", [] { return Tower(41, 2); }, "more than 1000000 nodes"},
      {"CallsTenThousandDeep", [] { return Tower(10000, 1); }, "levels deep"},
      {"HandsOnAndDoubles16", [] { return HandedOn(16); }, "hand on smaller graphs"},
      {"HandsOnAndDoubles22", [] { return HandedOn(22); }, "hand on smaller graphs"},
      {"HandsOnAndDoubles90", [] { return HandedOn(90); }, "hand on smaller graphs"},
      {"LongTextExpanded", [] { return WideBody(false); }, "expanding"},
      {"LongNameExpanded", [] { return WideBody(true); }, "expanding"},
      Text("ReadsUndefined", kCallF + FunctionText("f (a) => (b) { b = Add(a, nowhere) }"),
           "nowhere"),
      Text("ReadsTheCallersValue", kCallF + FunctionText("f (a) => (b) { b = Add(a, x) }"),
           "function local.f"),
      Text("OutputNotProduced", kCallF + FunctionText("f (a) => (b) { c = Relu(a) }"),
           "'b' is not produced"),
      Text("TooManyArguments",
           "m (float[2] x) => (float[2] y) { y = local.f(x, x) }\n" +
               FunctionText("f (a) => (b) { b = Relu(a) }"),
           "called with 2 inputs"),
      Text("Missing", kCallF, "local.f"),
      Text("DefinedTwice",
           kCallF + FunctionText("f (a) => (b) { b = Relu(a) }") +
               FunctionText("f (a) => (b) { b = Neg(a) }"),
           "function local.f is defined twice"),
      Text("BodyDefinesTwice", kCallF + FunctionText("f (a) => (b) { b = Relu(a) b = Neg(a) }"),
           "defined twice"),
      Text("BodyIsACycle", kCallF + FunctionText("f (a) => (b) { b = Add(a, c) c = Relu(b) }"),
           "before it is computed"),
  };
}
INSTANTIATE_TEST_SUITE_P(Function, HostileModel, testing::ValuesIn(FunctionRows()),
                         [](const auto& row) { return row.param.name; });

// --- nodes

Hostile Spoilt(std::string name, std::string text, std::function<void(onnx::NodeProto&)> spoil,
               std::string says) {
  return {std::move(name),
          [text = std::move(text), spoil = std::move(spoil)] {
            Model model = TextModel(text);
            spoil(*model.proto().mutable_graph()->mutable_node(0));
            return model;
          },
          std::move(says)};
}

constexpr char kRelu[] = "m (float[2] x) => (float[2] y) { [n] y = Relu(x) }";
constexpr char kTranspose[] =
    "m (float[2, 2] x) => (float[2, 2] y) { [n] y = Transpose <perm = [1, 0]> (x) }";

Rows NodeRows() {
  return {
      Text("Cycle", "m (float[2] x) => (float[2] y) { [n] y = Add(x, z) z = Relu(y) }",
           "cycle through node 'n'"),
      Text("ReadsItself", "m (float[2] x) => (float[2] y) { [n] y = Add(x, y) }",
           "cycle through node 'n'"),
      Text("OneNameTwice", "m (float[2] x) => (float[2] y) { y = Relu(x) [n] y = Neg(x) }",
           "'y' is defined twice"),
      Text("OutputIsAnInput", "m (float[2] x) => (float[2] x) { [n] x = Relu(x) }", "node 'n'"),
      Text("ReadsUndefined", "m (float[2] x) => (float[2] y) { [n] y = Add(x, w) }",
           "node 'n' (Add): reads 'w'"),
      Text("OutputNotProduced", "m (float[2] x) => (float[2] y) { z = Relu(x) }",
           "output 'y' is not produced"),
      Text("TooFewInputs", "m (float[2] x) => (float[2] y) { [n] y = Add(x) }", "node 'n' (Add)"),
      Text("TooManyInputs", "m (float[2] x) => (float[2] y) { [n] y = Relu(x, x) }",
           "node 'n' (Relu)"),
      Text("OmittedInput", "m (float[2] x) => (int64[1] y) { [n] y = Shape(\"\") }",
           "node 'n' (Shape)"),
      Text("UnknownOperator", "m (float[2] x) => (float[2] y) { [n] y = Relux(x) }",
           "node 'n' (Relux)"),
      Text("UnknownDomain", "m (float[2] x) => (float[2] y) { [n] y = far.away.Relu(x) }",
           "node 'n' (far.away.Relu)"),
      Text("UnknownAttribute", "m (float[2] x) => (float[2] y) { [n] y = Relu <alpha = 1.0> (x) }",
           "node 'n' (Relu)"),
      Text("WrongKindOfAttribute",
           "m (float[2] x) => (float[2] y) { [n] y = LeakyRelu <alpha = [1, 2]> (x) }", "node 'n'"),
      Text("MissingAttribute", "m (float[2] x) => (float[2] y) { [n] y = Cast(x) }",
           "node 'n' (Cast)"),
      Text("SubgraphOnOrdinaryNode",
           "m (float[2] x) => (float[2] y) { [n] y = Relu <body = g () => (t) { t = Relu(x) }> (x) "
           "}",
           "node 'n' (Relu)"),
      Spoilt(
          "NoOperator", kRelu, [](auto& n) { n.clear_op_type(); }, "node 'n' ()"),
      Spoilt(
          "NoOutputs", kRelu, [](auto& n) { n.clear_output(); }, "node 'n' (Relu)"),
      Spoilt(
          "ConstantWithoutOutput",
          "m (float[2] x) => (float[2] x) { [n] c = Constant <value = float {1}> () }",
          [](auto& n) { n.clear_output(); }, "node 'n' (Constant)"),
      Spoilt(
          "ConstantWithoutValue", "m () => (float y) { [n] y = Constant <value = float {1}> () }",
          [](auto& n) { n.clear_attribute(); }, "node 'n' (Constant)"),
      Spoilt(
          "AttributeTwice", kTranspose, [](auto& n) { *n.add_attribute() = n.attribute(0); },
          "is given twice"),
      Spoilt(
          "AttributeWithoutKind", kTranspose, [](auto& n) { n.mutable_attribute(0)->clear_type(); },
          "node 'n' (Transpose), attribute 'perm'"),
      Spoilt(
          "ReferenceOutsideFunctions", kTranspose,
          [](auto& n) {
            n.mutable_attribute(0)->clear_ints();
            n.mutable_attribute(0)->set_ref_attr_name("perm");
          },
          "node 'n' (Transpose)"),
      Spoilt(
          "HugeAttributeList", kTranspose,
          [](auto& n) {
            for (int i = 0; i < 1000000; ++i) n.mutable_attribute(0)->add_ints(i);
          },
          "node 'n' (Transpose)"),
      Spoilt(
          "HugeNumberOfAttributes", kTranspose,
          [](auto& n) {
            for (int i = 0; i < 100000; ++i) {
              auto* a = n.add_attribute();
              a->set_name(absl::StrCat("a", i));
              a->set_type(onnx::AttributeProto::INT);
            }
          },
          "node 'n' (Transpose)"),
      Spoilt(
          "HugeNumberOfInputs", kRelu,
          [](auto& n) {
            for (int i = 0; i < 100000; ++i) n.add_input("x");
          },
          "node 'n' (Relu)"),
  };
}
INSTANTIATE_TEST_SUITE_P(Node, HostileModel, testing::ValuesIn(NodeRows()),
                         [](const auto& row) { return row.param.name; });

// --- training_info

constexpr char kScale[] = "m (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { y = Mul(x, W) }";

Hostile Training(std::string name, std::vector<EntryText> entries, std::string says) {
  return {std::move(name), [entries = std::move(entries)] { return TextModel(kScale, entries); },
          std::move(says)};
}

Rows TrainingRows() {
  const std::string algorithm = "a () => (float[2] V) { V = Add(W, x) }";
  const std::string initialization = "i () => (float[2] w) <float[2] w = {0, 0}> {}";
  return {
      Training("UpdatesUnknown", {{algorithm, {{"U", "V"}}}},
               "training_info[0].update_binding: 'U'"),
      Training("UpdateFromUnknown", {{algorithm, {{"W", "U"}}}},
               "training_info[0].update_binding: 'U'"),
      Training("UpdatesTwice", {{algorithm, {{"W", "V"}, {"W", "V"}}}}, "assigns 'W' again"),
      Training("UpdatesTwiceInTwoEntries", {{algorithm, {{"W", "V"}}}, {algorithm, {{"W", "V"}}}},
               "training_info[1].update_binding: assigns 'W' again"),
      Training("EmptyNames", {{algorithm, {{"", ""}}}}, "training_info[0].update_binding: ''"),
      Training("ReadsUndefined", {{"a () => (float[2] V) { V = Add(W, nowhere) }", {{"W", "V"}}}},
               "reads 'nowhere'"),
      Training("Cycle", {{"a () => (float[2] V) { V = Add(W, U) U = Relu(V) }", {{"W", "V"}}}},
               "training_info[0]"),
      Training("OtherShape",
               {{"a () => (float[3] V) { V = Concat <axis = 0> (W, one) } ", {{"W", "V"}}}}, "one"),
      Training("OtherType", {{"a () => (double[2] V) { V = Cast <to = 11> (W) }", {{"W", "V"}}}},
               "'W' is float[2], but 'V' is double[2]"),
      Training("ClashingNames", {{"a () => (float[2] y) { y = Add(W, x) }", {{"W", "y"}}}},
               "'y' exists in the inference"),
      Training("InitializesUnknown", {{algorithm, {{"W", "V"}}, initialization, {{"U", "w"}}}},
               "training_info[0].initialization_binding: 'U'"),
      Training("InitializesFromUnknown", {{algorithm, {{"W", "V"}}, initialization, {{"W", "u"}}}},
               "training_info[0].initialization_binding: 'u'"),
      Training("InitializationHasInputs",
               {{algorithm, {{"W", "V"}}, "i (float[2] w) => (float[2] w) {}", {{"W", "w"}}}},
               "takes no inputs"),
      Training("InitializationReadsUndefined",
               {{algorithm, {{"W", "V"}}, "i () => (float[2] w) { w = Relu(x) }", {{"W", "w"}}}},
               "reads 'x'"),
      Training("GradientOfUndefined",
               {{"a () => (float[2] G) { G = ai.onnx.preview.training.Gradient <xs = [\"W\"], y = "
                 "\"loss\"> (W) }",
                 {{"W", "G"}}}},
               "'loss'"),
      Training("GradientOfItself",
               {{"a () => (float[2] G) { G = ai.onnx.preview.training.Gradient <xs = [\"W\"], y = "
                 "\"G\"> (W) }",
                 {{"W", "G"}}}},
               "node '-> G'"),
      Training("GradientOfNothing",
               {{"a () => (float[2] G) { G = ai.onnx.preview.training.Gradient <y = \"y\"> (W) }",
                 {{"W", "G"}}}},
               "node '-> G'"),
      Training("CallsAnUnknownGraph",
               {{"a (float[2] z) => (float[2] V) { V = ai.onnx.preview.training.GraphCall "
                 "<graph_name = \"q\"> (z) }",
                 {{"W", "V"}}}},
               "calls graph 'q'"),
  };
}
INSTANTIATE_TEST_SUITE_P(TrainingInfo, HostileModel, testing::ValuesIn(TrainingRows()),
                         [](const auto& row) { return row.param.name; });

}  // namespace onward::hostile_test
