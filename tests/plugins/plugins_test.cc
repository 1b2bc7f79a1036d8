// SPDX-License-Identifier: Apache-2.0
// Plugins: those of examples/ run, train and have the gradients they should; what is wrong with
// others is an error that names them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "core/graph/infer.h"
#include "core/onnx_io/proto.h"
#include "data/arrays/npy.h"
#include "environment/environment.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"
#include "training_info/gradient_model.h"
#include "training_info/lower.h"
#include "training_info/validate.h"

namespace onward::plugins_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string ExamplePlugin(const std::string& name) {
  return absl::StrCat(BuiltExamples(), "/lib", name, ".so");
}
std::string BadPlugin(const std::string& name) {
  return absl::StrCat(BadPlugins(), "/lib", name, "_plugin.so");
}

std::unique_ptr<const Environment> With(std::vector<std::string> plugins) {
  auto made = Environment::Make({.plugins = std::move(plugins)});
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *std::move(made) : nullptr;
}

constexpr char kHeader[] =
    "<ir_version: 8, opset_import: [\"\" : 18, \"com.example\" : 1, \"test\" : 1]>\n";

// A classifier of rows of 4 whose hidden layer goes through `op`.
Model ModelOf(const std::string& op, const std::string& type = "float") {
  return TextModel(absl::StrCat(kHeader, "m (", type, "[N, 4] x) => (", type, "[N, 3] y) <", type,
                                R"([4, 5] W = {0.3, -0.2, 0.5, 0.1, -0.4, 0.2, 0.6, -0.1, 0.3, 0.7,
                                     -0.5, 0.4, 0.2, -0.3, 0.1, 0.8, -0.6, 0.3, 0.2, 0.5},
                                )",
                                type, R"([5, 3] V = {0.1, 0.4, -0.2, 0.3, -0.5, 0.6, 0.2, 0.1,
                                     -0.3, 0.5, 0.2, 0.4, -0.1, 0.3, 0.2}> {
                                h = MatMul(x, W) a = )",
                                op, "(h) y = MatMul(a, V) }"));
}

// An example, what its operator computes, and whether it has a kernel.
struct Example {
  std::string plugin, op;
  double (*value)(double x);
  bool kernel = false;
};
std::ostream& operator<<(std::ostream& out, const Example& e) { return out << e.plugin; }

std::vector<Example> Examples() {
  return {{"squared_relu", "com.example.SquaredRelu <scale = 1.5>",
           [](double x) { return 1.5 * std::max(x, 0.0) * std::max(x, 0.0); }, true},
          {"squared_relu", "com.example.SquaredRelu",
           [](double x) { return std::max(x, 0.0) * std::max(x, 0.0); }, true},
          {"softclip", "com.example.SoftClip <limit = 0.5>",
           [](double x) { return 0.5 * std::tanh(x / 0.5); }},
          {"softclip", "com.example.SoftClip", [](double x) { return std::tanh(x); }}};
}

// Zeros, which both operators leave alone.
std::string TensorFile(const Shape& shape) {
  onnx::TensorProto proto;
  TensorToProto(Tensor::Zeros(DType::kFloat, shape), "", &proto);
  return proto.SerializeAsString();
}

class PluginExamples : public testing::TestWithParam<Example> {
 protected:
  const std::unique_ptr<const Environment> environment_ = With({ExamplePlugin(GetParam().plugin)});

  std::vector<double> Run(const Model& model, const TensorMap& feeds, const std::string& output) {
    auto graph = RunnableGraph(model, *environment_);
    EXPECT_TRUE(graph.ok()) << graph.status();
    CompileOptions options;
    options.device = &environment_->cpu();
    options.operators = &environment_->operators();
    Session session(*std::move(graph), options);
    auto outputs = session.Run(feeds, nullptr);
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return outputs.ok() ? *ToDoubles(outputs->at(output)) : std::vector<double>();
  }
};

TEST_P(PluginExamples, Run) {
  const Model model = TextModel(
      absl::StrCat(kHeader, "m (float[N] x) => (float[N] y) { y = ", GetParam().op, "(x) }"));
  const std::vector<double> y = Run(model, {{"x", Floats({-2, -0.5f, 0, 0.25f, 3})}}, "y");
  ASSERT_EQ(y.size(), 5u);
  const double xs[] = {-2, -0.5, 0, 0.25, 3};
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(y[i], GetParam().value(xs[i]), 1e-6) << xs[i];
}

// Types go through the operator, the names of sizes too.
TEST_P(PluginExamples, AreTyped) {
  Graph graph = *InferenceGraph(ModelOf(GetParam().op));
  graph.types.clear();
  for (NamedType& out : graph.outputs) out.type = {};
  ASSERT_TRUE(InferTypes(&graph, environment_->operators()).ok());
  EXPECT_EQ(graph.TypeOf("a")->ToString(), "float[N, 5]");
}

TEST_P(PluginExamples, HaveTheGradientsOfFiniteDifferences) {
  const Model model = ModelOf(GetParam().op, "double");
  auto made = MakeGradientModel(model, {{"y"}, {"x"}}, *environment_);
  ASSERT_TRUE(made.ok()) << made.status();
  Tensor x(DType::kDouble, Shape{2, 4});
  for (int i = 0; i < 8; ++i) x.data<double>()[i] = 0.3 * i - 1.1;
  const std::vector<double> gradient = Run(made->model, {{"x", x}}, made->gradients[0]);
  ASSERT_EQ(gradient.size(), 8u);
  constexpr double kStep = 1e-5;
  for (int i = 0; i < 8; ++i) {
    const auto sum = [&](double by) {
      Tensor moved = x.Clone();
      moved.data<double>()[i] += by;
      double total = 0;
      for (const double y : Run(model, {{"x", moved}}, "y")) total += y;
      return total;
    };
    EXPECT_NEAR(gradient[i], (sum(kStep) - sum(-kStep)) / (2 * kStep), 1e-7) << i;
  }
}

TEST_P(PluginExamples, Train) {
  for (const GradientForm form : {GradientForm::kOperator, GradientForm::kExpanded}) {
    AuthorOptions options;
    options.optimizer = *ParseOptimizer("sgd:lr=0.5");
    options.gradient = form;
    auto made = MakeTrainable(ModelOf(GetParam().op), options, *environment_);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_THAT(made->trained, ElementsAre("V", "W"));
    EXPECT_TRUE(CheckModel(made->model, *environment_)->empty());
    auto training = Open(Reread(made->model), *environment_);
    const TensorMap feeds = {{"x", Floats({3, 4}, {1, 2, 0, 1, 2, 0, 1, 1, 0, 1, 1, 2})},
                             {"label", Int64s({0, 1, 2})}};
    std::vector<double> losses;
    for (int i = 0; i < 30; ++i) {
      auto step = training->Step(feeds, {"loss"});
      ASSERT_TRUE(step.ok()) << step.status();
      losses.push_back((*ToDoubles(step->at("loss")))[0]);
    }
    EXPECT_LT(losses.back(), 0.5 * losses.front());
  }
}

// On the command line, every command takes the plugin.
TEST_P(PluginExamples, ServeEveryCommand) {
  const Scratch scratch;
  const std::string model = scratch.Write("m.onnx", Bytes(ModelOf(GetParam().op)));
  scratch.Write("case/model.onnx", Bytes(ModelOf(GetParam().op)));
  scratch.Write("case/test_data_set_0/input_0.pb", TensorFile({3, 4}));
  scratch.Write("case/test_data_set_0/output_0.pb", TensorFile({3, 3}));
  ASSERT_TRUE(WriteNpy(scratch.Path("x.npy"), Tensor::Zeros(DType::kFloat, {3, 4})).ok());
  ASSERT_TRUE(WriteNpy(scratch.Path("l.npy"), Tensor::Zeros(DType::kInt64, {3})).ok());
  const std::string trainable = scratch.Path("t.onnx"), x = " -i x=" + scratch.Path("x.npy"),
                    data = " --data npy:" + scratch.Path("x.npy") + "," + scratch.Path("l.npy");
  for (const std::string& line : {
           "inspect " + model,
           "check " + model,
           "run " + model + x,
           "score " + scratch.folder(),
           "make-trainable " + model + " --loss cross_entropy -o " + trainable,
           "step " + trainable + x + " -i label=" + scratch.Path("l.npy") + " -o " +
               scratch.Path("s.onnx"),
           "train " + model + data + " --steps 2 --batch 3 --quiet -o " + scratch.Path("o.onnx"),
           "eval " + model + data,
           "export " + scratch.Path("s.onnx") + " -o " + scratch.Path("p.onnx"),
           "export " + trainable + " --portable-step -o " + scratch.Path("q.onnx"),
           "gradient " + model + " --of y --wrt x -o " + scratch.Path("g.onnx"),
           "compare " + model + " " + model,
           "bench " + model + " --mode train --seconds 0",
           std::string("ops"),
       }) {
    const CommandResult r =
        RunOnward(BuiltProgram(), line + " --plugin " + ExamplePlugin(GetParam().plugin));
    EXPECT_EQ(r.exit_code, 0) << line << "\n" << r.errors;
  }
  const std::string name = GetParam().op.substr(0, GetParam().op.find(' '));
  EXPECT_THAT(RunOnward(BuiltProgram(), "ops --plugin " + ExamplePlugin(GetParam().plugin)).output,
              HasSubstr(name));
  const CommandResult without = RunOnward(BuiltProgram(), "run " + model + x);
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_THAT(without.errors, AllOf(HasSubstr(name), HasSubstr("--plugin"), HasSubstr(model)));
}

INSTANTIATE_TEST_SUITE_P(All, PluginExamples, testing::ValuesIn(Examples()));

TEST(Plugins, AreNamedFromTheCurrentFolderAndAddUp) {
  const Scratch scratch;
  const std::string model = scratch.Write(
      "m.onnx", Bytes(TextModel(absl::StrCat(kHeader, R"(m (float[N] x) => (float[N] y)
          { a = com.example.SoftClip(x) y = com.example.SquaredRelu(a) })"))));
  const CommandResult r = RunOnward(
      absl::StrCat("cd ", BuiltExamples(), " && ", BuiltProgram()),
      "run " + model + " -i x=3 --plugin libsoftclip.so --plugin libsquared_relu.so --json");
  EXPECT_EQ(r.exit_code, 0) << r.errors;
  EXPECT_THAT(r.output, HasSubstr("0.99"));
}

// Two environments of one process know different things.
TEST(Plugins, AddToOneEnvironmentOnly) {
  const auto one = With({ExamplePlugin("softclip")}), other = With({});
  EXPECT_NE(one->functions().Find("SoftClip", "com.example"), nullptr);
  EXPECT_EQ(other->functions().Find("SoftClip", "com.example"), nullptr);
  EXPECT_EQ(DefaultEnvironment().functions().Find("SoftClip", "com.example"), nullptr);
  EXPECT_NE(With({ExamplePlugin("softclip")}), nullptr) << "a second time";
}

TEST(Plugins, FileFunctionsComeFirst) {
  const auto environment = With({ExamplePlugin("softclip")});
  const Model model = TextModel(absl::StrCat(kHeader, R"(m (float[N] x) => (float[N] y)
      { y = com.example.SoftClip(x) }
      <domain: "com.example", opset_import: ["" : 18]> SoftClip (x) => (y) { y = Neg(x) })"));
  auto graph = RunnableGraph(model, *environment);
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->nodes.size(), 1u);
  EXPECT_EQ(graph->nodes[0].op_type, "Neg");
}

TEST(Plugins, AreNotWrittenOver) {
  const Scratch scratch;
  const std::string model = scratch.Write("m.onnx", Bytes(ModelOf("com.example.SoftClip"))),
                    library = scratch.Write("lib.so", FileBytes(ExamplePlugin("softclip")));
  const CommandResult r = RunOnward(BuiltProgram(), "make-trainable " + model + " --overwrite -o " +
                                                        library + " --plugin " + library);
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.errors, HasSubstr("would replace what --plugin reads"));
}

// What is no plugin at all.
TEST(Plugins, FilesThatAreNone) {
  const Scratch scratch;
  const std::string model = scratch.Write("m.onnx", Bytes(ModelOf("Relu")));
  const std::string whole = FileBytes(ExamplePlugin("softclip"));
  std::string other_machine = whole;
  other_machine[4] = 1;  // 32 bits
  const std::vector<std::pair<std::string, std::string>> cases = {
      {scratch.Path("nowhere.so"), "No such file"},
      {scratch.folder(), "no shared library"},
      {scratch.Write("empty.so", ""), "no shared library"},
      {scratch.Write("text.so", "int main() {}\n"), "no shared library"},
      {scratch.Write("header.so", whole.substr(0, 64)), "cut short"},
      {scratch.Write("half.so", whole.substr(0, whole.size() / 3)), "cut short"},
      {scratch.Write("other.so", other_machine), "no shared library"},
      {model, "no shared library"},
      {BuiltProgram(), "cannot be loaded"},
      {BadPlugin("empty"), "does not define onward_plugin"},
      {BadPlugin("unresolved"), "DefinedNowhere"},
  };
  for (const auto& [file, message] : cases) {
    const CommandResult r = RunOnward(BuiltProgram(), "check " + model + " --plugin " + file);
    EXPECT_EQ(r.exit_code, 2) << file;
    EXPECT_THAT(r.errors, AllOf(HasSubstr("plugin '" + file + "'"), HasSubstr(message)));
  }
}

TEST(Plugins, CutShortAnywhere) {
  const Scratch scratch;
  const std::string whole = FileBytes(ExamplePlugin("softclip"));
  for (size_t size = 0; size < whole.size(); size += 1 + whole.size() / 40) {
    const std::string file = scratch.Write("cut.so", whole.substr(0, size));
    const CommandResult r = RunOnward(BuiltProgram(), "ops --plugin " + file);
    // What lies behind the last segment is not needed.
    EXPECT_TRUE(r.exit_code == 2 || (r.exit_code == 0 && size > whole.size() / 4))
        << size << ": " << r.exit_code << " " << r.errors;
  }
}

struct Fault {
  std::string name;
  std::string message;
  // "load": refused at once; "run": when the model runs; "gradient": when it is differentiated.
  std::string when = "load";
};
std::ostream& operator<<(std::ostream& out, const Fault& f) { return out << f.name; }

class FaultyPlugin : public testing::TestWithParam<Fault> {};

TEST_P(FaultyPlugin, IsAnErrorWithItsName) {
  const Scratch scratch;
  const std::string model = scratch.Write("m.onnx", Bytes(ModelOf("test.Faulty")));
  const std::string file = BadPlugin("faulty"),
                    binary =
                        absl::StrCat("ONWARD_TEST_FAULT='", GetParam().name, "' ", BuiltProgram());
  ASSERT_TRUE(WriteNpy(scratch.Path("x.npy"), Tensor::Zeros(DType::kFloat, {3, 4})).ok());
  const std::string run = "run " + model + " -i x=" + scratch.Path("x.npy") + " --plugin " + file,
                    train = "make-trainable " + model + " --loss cross_entropy -o " +
                            scratch.Path("t.onnx") + " --plugin " + file;
  const CommandResult ran = RunOnward(binary, run);
  if (GetParam().when == "gradient") {
    EXPECT_EQ(ran.exit_code, 0) << ran.errors;
  }
  const CommandResult failed = GetParam().when == "gradient" ? RunOnward(binary, train) : ran;
  EXPECT_EQ(failed.exit_code, 2) << failed.output;
  EXPECT_THAT(failed.errors,
              AllOf(HasSubstr("plugin '" + file + "'"), HasSubstr(GetParam().message)));
  if (GetParam().when == "load") {
    EXPECT_THAT(failed.errors, Not(HasSubstr(model)));
    return;
  }
  EXPECT_THAT(failed.errors, AllOf(HasSubstr("(test.Faulty)"), HasSubstr(model)));
  if (GetParam().when == "run") {
    const CommandResult bench =
        RunOnward(binary, "bench " + model + " --mode infer --seconds 0 --plugin " + file);
    EXPECT_EQ(bench.exit_code, 2);
    EXPECT_THAT(bench.errors, AllOf(HasSubstr(file), HasSubstr(model)));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, FaultyPlugin,
    testing::Values(
        Fault{"old interface", "built for 'onward-plugin 0.0'"},
        Fault{"no interface", "which interface"}, Fault{"null plugin", "which interface"},
        Fault{"no Register", "Register is null"},
        Fault{"onward_plugin throws", "threw an exception: as told to"},
        Fault{"Register throws", "threw an exception: as told to"},
        Fault{"Register throws a number", "threw something"},
        Fault{"Register fails", "not on Tuesdays"}, Fault{"adds twice", "already"},
        Fault{"hides an error", "has no name"}, Fault{"no name", "has no name"},
        Fault{"taken domain", "domain is taken"},
        Fault{"no domain", "the standard has no such operator"},
        Fault{"known operator", "the standard says"}, Fault{"nothing", "neither kernel nor body"},
        Fault{"no type rule", "neither type rule nor body"}, Fault{"broken body", "cannot be read"},
        Fault{"other body", "test.Other"}, Fault{"new body", "opset 21"},
        Fault{"body of unknowns", "calls Nonsense"}, Fault{"circular body", "calls itself"},
        Fault{"type rule throws", "threw an exception: as told to", "run"},
        Fault{"type rule fails", "no types today", "run"},
        Fault{"too many types", "gives 2 types", "run"},
        Fault{"no such type", "type number 1000", "run"}, Fault{"absurd shape", "elements", "run"},
        Fault{"kernel maker throws", "threw an exception: as told to", "run"},
        Fault{"kernel maker throws a number", "threw something", "run"},
        Fault{"no kernel", "no function", "run"},
        Fault{"not these types", "other types only", "run"},
        Fault{"kernel throws", "threw an exception: as told to", "run"},
        Fault{"kernel throws a number", "threw something", "run"},
        Fault{"kernel fails", "it was lost", "run"},
        Fault{"forgets its output", "was not made", "run"}, Fault{"absurd output", "-5", "run"},
        Fault{"gradient rule throws", "threw an exception: as told to", "gradient"},
        Fault{"gradient rule throws a number", "threw something", "gradient"},
        Fault{"too many gradients", "gives 2 gradients", "gradient"},
        Fault{"foreign gradient", "not of this graph", "gradient"}),
    [](const auto& info) {
      std::string name = info.param.name;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
      return name;
    });

// Faults that autograd finds; the message need not name the plugin, but the node.
TEST(FaultyPlugin, GradientsOfNothing) {
  for (const char* fault : {"no such operand", "no such input", "no gradient"}) {
    setenv("ONWARD_TEST_FAULT", fault, 1);
    const auto environment = With({BadPlugin("faulty")});
    auto made = MakeTrainable(ModelOf("test.Faulty"), {}, *environment);
    EXPECT_FALSE(made.ok()) << fault;
    EXPECT_THAT(std::string(made.status().message()), HasSubstr("(test.Faulty)")) << fault;
    unsetenv("ONWARD_TEST_FAULT");
  }
}

TEST(Plugins, MayLeaveShapesToTheKernel) {
  setenv("ONWARD_TEST_FAULT", "open shape", 1);
  const auto environment = With({BadPlugin("faulty")});
  auto graph = RunnableGraph(ModelOf("test.Faulty"), *environment);
  ASSERT_TRUE(graph.ok()) << graph.status();
  CompileOptions options;
  options.device = &environment->cpu();
  options.operators = &environment->operators();
  Session session(*std::move(graph), options);
  auto outputs = session.Run({{"x", Tensor::Zeros(DType::kFloat, {3, 4})}}, nullptr);
  unsetenv("ONWARD_TEST_FAULT");
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ(outputs->at("y").shape(), (Shape{3, 3}));
}

TEST(Plugins, AreKnownFromTheirVersionOn) {
  setenv("ONWARD_TEST_FAULT", "new version", 1);
  const auto environment = With({BadPlugin("faulty")});
  unsetenv("ONWARD_TEST_FAULT");
  Node node;
  node.op_type = "Faulty";
  node.domain = "test";
  EXPECT_EQ(environment->operators().SinceVersion(node, {{"test", 6}}), 0);
  EXPECT_EQ(environment->operators().SinceVersion(node, {{"test", 7}}), 7);
}

// Of the unknown operators, those that a plugin defines are not.
TEST(Plugins, LeaveTheOthersUnknown) {
  const Scratch scratch;
  const std::string model = scratch.Write(
      "m.onnx", Bytes(TextModel(absl::StrCat(kHeader, R"(m (float[N] x) => (float[N] y) {
                    a = com.example.Mystery(x) b = test.Riddle(a) y = test.Faulty(b) })"))));
  const CommandResult without = RunOnward(BuiltProgram(), "run " + model + " -i x=1"),
                      with = RunOnward(BuiltProgram(),
                                       "run " + model + " -i x=1 --plugin " + BadPlugin("faulty"));
  for (const CommandResult& r : {without, with}) {
    EXPECT_EQ(r.exit_code, 2);
    EXPECT_THAT(r.errors, AllOf(HasSubstr(model), HasSubstr("com.example.Mystery"),
                                HasSubstr("test.Riddle"), HasSubstr("--plugin")));
  }
  EXPECT_THAT(without.errors, HasSubstr("test.Faulty"));
  EXPECT_THAT(with.errors, Not(HasSubstr("test.Faulty")));
}

}  // namespace onward::plugins_test
