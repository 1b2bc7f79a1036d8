// SPDX-License-Identifier: Apache-2.0
// Values back into files: nothing but initializers may change.
#include "training_info/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "environment/environment.h"
#include "onnx/onnx_pb.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"
#include "training_info/import.h"

namespace onward::export_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// With everything a file may carry beside its graphs.
Model RichModel() {
  Model model = TextModel(
      std::string("m (float[2] x) => (float[2] y) <float[2] W = {1, 2}, float[2] B = {3, 4}, "
                  "int64[1] k = {7}> "
                  "{ h = Mul(x, W) y = local.Shift(h, B) }") +
          "<domain: \"local\", opset_import: [\"\" : 18]> Shift (p, q) => (r) { r = Add(p, q) }",
      {{"a (float[2] t) => (float[2] n, float[2] s) <float[2] S = {0, 0}> { e = Sub(y, t) n = "
        "Sub(W, e) s = Add(S, e) }",
        {{"W", "n"}, {"S", "s"}},
        "i () => (float[2] w) <float[2] w = {1, 1}> {}",
        {{"W", "w"}}}});
  onnx::ModelProto& proto = model.proto();
  proto.set_producer_name("someone");
  proto.set_doc_string("about the model");
  proto.set_model_version(17);
  proto.mutable_graph()->set_doc_string("about the graph");
  proto.mutable_graph()->mutable_initializer(0)->set_doc_string("about W");
  proto.mutable_graph()->add_quantization_annotation()->set_tensor_name("W");
  proto.mutable_graph()->add_metadata_props()->set_key("in the graph");
  model.SetMetadata("author", "someone");
  return model;
}

// Without the bytes of the named initializers.
Model WithoutValues(Model model, const std::vector<std::string>& names) {
  auto strip = [&](onnx::GraphProto* graph) {
    for (onnx::TensorProto& t : *graph->mutable_initializer()) {
      if (std::find(names.begin(), names.end(), t.name()) == names.end()) continue;
      t.clear_float_data();
      t.clear_raw_data();
    }
  };
  strip(model.proto().mutable_graph());
  for (auto& info : *model.proto().mutable_training_info()) strip(info.mutable_algorithm());
  return model;
}

Graph InferenceOf(const Model& model) {
  auto graph = InferenceGraph(model);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *graph : Graph{};
}

TEST(TrainingInfo, ExportChangesOnlyInitializers) {
  Model file = RichModel();
  // A field that this version of the format does not know stays, too.
  std::string bytes = Bytes(file);
  bytes += std::string("\xfa\x3e\x03new", 6);  // field 1007, three bytes
  file = *ParseModel(bytes, "file.onnx");
  file.SetMetadata(kMetaRandomSeed, "0");
  file.SetMetadata(kMetaRandomStep, "1");
  auto model = Open(file);
  ASSERT_TRUE(model->Step({{"x", Floats({1, 1})}, {"t", Floats({0, 0})}}).ok());
  model->set_random({0, 1});
  auto exported = model->Export();
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_NE(Bytes(*exported), Bytes(file));
  EXPECT_EQ(Bytes(WithoutValues(*exported, {"W", "S"})), Bytes(WithoutValues(file, {"W", "S"})));
  EXPECT_THAT(Bytes(*exported), HasSubstr(std::string("\xfa\x3e\x03new", 6)));
  EXPECT_THAT(Values(InferenceOf(*exported).initializers.at("W")), ElementsAre(-3, -4));
  EXPECT_EQ(exported->proto().graph().initializer(0).doc_string(), "about W");
}

TEST(TrainingInfo, InferenceExportDropsTraining) {
  auto model = Open(RichModel());
  ASSERT_TRUE(model->Step({{"x", Floats({1, 1})}, {"t", Floats({0, 0})}}).ok());
  const Model plain = InferenceOnly(*model->Export());
  EXPECT_FALSE(plain.has_training());
  EXPECT_FALSE(plain.opsets().contains("ai.onnx.preview.training"));
  EXPECT_TRUE(plain.opsets().contains("local"));
  EXPECT_EQ(plain.proto().functions_size(), 1);
  EXPECT_EQ(plain.Metadata("author"), "someone");
  EXPECT_EQ(plain.Metadata(kMetaRandomStep), "");
  EXPECT_THAT(Values(InferenceOf(plain).initializers.at("W")), ElementsAre(-3, -4));
  EXPECT_EQ(plain.proto().graph().SerializeAsString(),
            model->Export()->proto().graph().SerializeAsString());
}

// What make-trainable adds, the inference export takes away again.
TEST(Export, InferenceOnlyUndoesMakeTrainable) {
  const Model original = TextModel(R"(<ir_version: 8, opset_import: ["" : 18]>
      m (float[2, 2] x) => (float[2, 2] y) <float[2, 2] W = {1, 2, 3, 4}> { h = MatMul(x, W) y = Relu(h) })");
  for (const char* optimizer : {"sgd", "adamw"}) {
    AuthorOptions options;
    options.optimizer = {optimizer, {}};
    auto made = MakeTrainable(original, options, DefaultEnvironment());
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_GT(made->model.proto().functions_size(), 0);
    EXPECT_EQ(Bytes(InferenceOnly(made->model)), Bytes(original)) << optimizer;
  }
}

TEST(Export, WithVariablesFindsEveryPlace) {
  Variables values;
  values.emplace("W", Floats({5, 6}));
  values.emplace("S", Floats({7, 8}));
  auto out = WithVariables(RichModel(), values);
  ASSERT_TRUE(out.ok()) << out.status();
  auto spec = ImportTraining(*out);
  ASSERT_TRUE(spec.ok());
  EXPECT_THAT(Values(*spec->FindInitializer("W")), ElementsAre(5, 6));
  EXPECT_THAT(Values(*spec->FindInitializer("S")), ElementsAre(7, 8));
  EXPECT_THAT(Values(*spec->FindInitializer("B")), ElementsAre(3, 4));
}

TEST(Export, WithVariablesRefusesWhatDoesNotFit) {
  const std::pair<Variables, const char*> cases[] = {
      {{{"nothing", Floats({1})}, {"x", Floats({1, 2})}},
       "the model has no initializer for: nothing, x"},
      {{{"W", Floats({1, 2, 3})}}, "initializer 'W' is float[2], but its new value is float[3]"},
      {{{"k", Floats({1})}}, "initializer 'k' is int64[1], but its new value is float[1]"},
  };
  for (const auto& [values, message] : cases) {
    EXPECT_THAT(std::string(WithVariables(RichModel(), values).status().message()),
                HasSubstr(message));
  }
}

// The original is of an opset that make-trainable had to raise.
TEST(Export, LikeKeepsTheOriginal) {
  const Model original =
      TextModel(R"(<ir_version: 4, producer_name: "someone", opset_import: ["" : 11]>
      m (float[2, 2] x) => (float[2, 2] y) <float[2, 2] W = {1, 2, 3, 4}, float[2] unused = {1, 2}>
      { h = MatMul(x, W) y = Softmax <axis = 1> (h) })");
  auto made = MakeTrainable(original, {}, DefaultEnvironment());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->model.opsets().at(""), 18);
  auto training = Open(made->model);
  ASSERT_TRUE(
      training->Step({{"x", Floats({2, 2}, {1, 2, 3, 4})}, {"label", Int64s({0, 1})}}).ok());
  auto like = ExportLike(*training->Export(), original, DefaultEnvironment());
  ASSERT_TRUE(like.ok()) << like.status();
  EXPECT_EQ(like->opsets().at(""), 11);
  EXPECT_EQ(Bytes(WithoutValues(*like, {"W"})), Bytes(WithoutValues(original, {"W"})));
  EXPECT_EQ(Values(InferenceOf(*like).initializers.at("W")), ValueOf(*training, "W"));
  EXPECT_NE(Values(InferenceOf(*like).initializers.at("W")),
            Values(InferenceOf(original).initializers.at("W")));
}

TEST(Export, LikeReplacesConstants) {
  const Model original = TextModel(R"(<ir_version: 8, opset_import: ["" : 18]>
      m (float[2, 2] x) => (float[2, 2] y) {
        W = Constant <value = float[2, 2] {1, 2, 3, 4}> ()
        y = MatMul(x, W)
      })");
  auto made = MakeTrainable(original, {}, DefaultEnvironment());
  ASSERT_TRUE(made.ok()) << made.status();
  auto training = Open(made->model);
  ASSERT_TRUE(
      training->Step({{"x", Floats({2, 2}, {1, 2, 3, 4})}, {"label", Int64s({0, 1})}}).ok());
  auto like = ExportLike(*training->Export(), original, DefaultEnvironment());
  ASSERT_TRUE(like.ok()) << like.status();
  EXPECT_EQ(like->proto().graph().initializer_size(), 0);
  EXPECT_EQ(Values(*InferenceOf(*like).nodes[0].TensorAttribute("value")), ValueOf(*training, "W"));
}

TEST(Export, LikeRefusesStrangers) {
  auto made =
      MakeTrainable(TextModel(R"(m (float[2, 2] x) => (float[2, 2] y) <float[2, 2] W = {1, 2, 3, 4}>
      { y = MatMul(x, W) })"),
                    {}, DefaultEnvironment());
  ASSERT_TRUE(made.ok()) << made.status();
  const Model other =
      TextModel("m (float[2] x) => (float[2] y) <float[2] V = {1, 2}> { y = Mul(x, V) }");
  EXPECT_THAT(std::string(ExportLike(made->model, other, DefaultEnvironment()).status().message()),
              HasSubstr("the original has no initializer for: W; leave --like out"));
  EXPECT_THAT(
      std::string(
          ExportLike(InferenceOnly(made->model), other, DefaultEnvironment()).status().message()),
      HasSubstr("no weights in common"));
}

}  // namespace onward::export_test
