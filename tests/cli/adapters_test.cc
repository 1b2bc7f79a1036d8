// SPDX-License-Identifier: Apache-2.0
// Adapters on the command line: make-trainable --lora, inspect, export in all its forms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/onnx_io/model.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"
#include "training_info/adapters/files.h"

namespace onward::adapters_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class AdaptersOnTheCommandLine : public testing::Test {
 protected:
  void SetUp() override {
    Write("m.onnx", R"(
      m (float[N, 2] x) => (float[N, 2] y)
      <float[2, 2] W = {1, 2, 3, 4}, float[2, 2] V = {0.5, -1, 1, 0.25}, float[2] b = {0.5, 1}> {
        h = MatMul(x, W)
        t = Tanh(h)
        y = Gemm(t, V, b)
      })");
    Write("q.onnx", R"(
      m (float[N, 2] x) => (float[N, 2] y)
      <int8[2, 2] Q = {1, 2, 3, 4}, float s = {0.5}, float[2, 2] V = {0.5, -1, 1, 0.25}> {
        w = DequantizeLinear(Q, s)
        h = MatMul(x, w)
        y = MatMul(h, V)
      })");
  }
  void Write(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(WriteModel(TextModel(text), Path(name)).ok());
  }
  std::string Path(const std::string& name) const { return scratch_.Path(name); }
  // "@NAME" is a file of the scratch folder.
  CommandResult Run(std::string line) const {
    for (size_t at; (at = line.find('@')) != std::string::npos;)
      line.replace(at, 1, scratch_.folder() + "/");
    return RunOnward(BuiltProgram(), line);
  }
  void Must(const std::string& line) const {
    const CommandResult result = Run(line);
    ASSERT_EQ(result.exit_code, 0) << line << "\n" << result.errors;
  }
  void Train(const std::string& model) const {
    Must("make-trainable @" + model + " -o @t.onnx --loss mse --lora '*:rank=1,alpha=2'");
    auto training = Open(ReadModel(Path("t.onnx")).value());
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(
          training
              ->Step({{"x", Floats({2, 2}, {1, 2, 3, 4})}, {"label", Floats({2, 2}, {0, 1, 1, 0})}})
              .ok());
    }
    ASSERT_TRUE(WriteModel(*training->Export(), Path("r.onnx")).ok());
  }
  std::vector<std::string> Initializers(const std::string& name) const {
    const Graph graph = InferenceGraph(ReadModel(Path(name)).value()).value();
    std::vector<std::string> names;
    for (const auto& [n, t] : graph.initializers) names.push_back(n);
    return names;
  }

  const Scratch scratch_;
};

TEST_F(AdaptersOnTheCommandLine, GoAllTheWay) {
  Train("m.onnx");
  const CommandResult seen = Run("inspect @r.onnx");
  EXPECT_THAT(
      seen.output,
      AllOf(HasSubstr("adapters: 2\n  V: rank 1, alpha 2, V.lora_A[2, 1], V.lora_B[1, 2]\n"),
            HasSubstr("trained parameters: 8, frozen: 12\n")));
  EXPECT_THAT(Run("inspect @r.onnx --json").output,
              AllOf(HasSubstr(R"("adapters":[{"weight":"V","use":0,"a":"V.lora_A","b":"V.lora_B",)"
                              R"("rank":1,"alpha":2,"dropout":0,"parameters":4},)"),
                    HasSubstr(R"("trained_parameters":8,"frozen_parameters":12)")));
  const CommandResult merged = Run("export @r.onnx -o @merged.onnx");
  EXPECT_EQ(merged.exit_code, 0) << merged.errors;
  EXPECT_THAT(merged.errors, HasSubstr("note: adapters merged into their weights: 2\n"));
  EXPECT_THAT(Initializers("merged.onnx"), testing::ElementsAre("V", "W", "b"));
  Must("export @r.onnx -o @kept.onnx --merge none");
  Must("export @r.onnx --adapters @a.onnx -o @base.onnx");
  Must("export @m.onnx --apply @a.onnx -o @applied.onnx");
  Must("export @m.onnx --apply @a.onnx -o @applied_kept.onnx --merge none");
  Must("export @r.onnx --like @m.onnx -o @like.onnx");
  Must("export @m.onnx --apply @a.onnx --like @m.onnx -o @applied_like.onnx");
  for (const char* other : {"kept", "applied", "applied_kept", "like", "applied_like"}) {
    const CommandResult same =
        Run(std::string("compare @merged.onnx @") + other + ".onnx --rtol 1e-5 --atol 1e-5");
    EXPECT_EQ(same.exit_code, 0) << other << "\n" << same.output << same.errors;
  }
  EXPECT_EQ(Run("compare @m.onnx @base.onnx --rtol 0 --atol 0").exit_code, 0);
  EXPECT_EQ(Run("compare @m.onnx @merged.onnx --rtol 1e-5 --atol 1e-5").exit_code, 1);
  // The adapters alone are a file without nodes.
  const Model file = ReadModel(Path("a.onnx")).value();
  EXPECT_EQ(file.Metadata(kMetaAdapters), "lora");
  EXPECT_TRUE(InferenceGraph(file)->nodes.empty());
  EXPECT_THAT(Run("inspect @a.onnx").output, HasSubstr("adapters: 2\n  V: rank 1, alpha 2"));
  EXPECT_EQ(Run("check @kept.onnx").exit_code, 0);
}

TEST_F(AdaptersOnTheCommandLine, OfQuantizedWeightsStayUnlessAskedFor) {
  Train("q.onnx");
  const CommandResult kept = Run("export @r.onnx -o @kept.onnx");
  EXPECT_EQ(kept.exit_code, 0);
  EXPECT_THAT(kept.errors,
              AllOf(HasSubstr("adapters merged into their weights: 1\n"),
                    HasSubstr("adapters kept as nodes, because their weights are quantized: 1 (Q); "
                              "--merge dequantize")));
  const CommandResult all = Run("export @r.onnx -o @all.onnx --merge dequantize");
  EXPECT_EQ(all.exit_code, 0);
  EXPECT_THAT(all.errors, Not(HasSubstr("kept as nodes")));
  EXPECT_THAT(Initializers("all.onnx"), testing::ElementsAre("V", "w"));
  EXPECT_EQ(Run("compare @kept.onnx @all.onnx --rtol 1e-5 --atol 1e-5").exit_code, 0);
  EXPECT_THAT(Run("inspect @r.onnx").output, HasSubstr("trained parameters: 8, frozen: 11\n"));
  const CommandResult like = Run("export @r.onnx --like @q.onnx -o @like.onnx");
  EXPECT_EQ(like.exit_code, 2);
  EXPECT_THAT(like.errors, HasSubstr("no place for adapters of quantized weights (Q)"));
}

TEST_F(AdaptersOnTheCommandLine, RefuseWhatTheyCannotMean) {
  Train("m.onnx");
  for (const auto& [line, message] : std::vector<std::pair<std::string, std::string>>{
           {"make-trainable @m.onnx -o @x.onnx --loss mse --lora 'q*'",
            "lora: pattern 'q*' matches no weight of a MatMul, Gemm, Conv or MatMulNBits; there "
            "are: "
            "V, W"},
           {"make-trainable @m.onnx -o @x.onnx --loss mse --lora 'W:rank=0'", "rank"},
           {"make-trainable @m.onnx -o @x.onnx --loss mse --lora 'W:rang=1'",
            "did you mean 'rank'"},
           {"make-trainable @m.onnx -o @x.onnx --loss mse --init kaimin", "did you mean"},
           {"export @r.onnx", "-o OUT says where to write"},
           {"export @r.onnx --adapters @a.onnx --portable-step -o @x.onnx", "do not go together"},
           {"export @r.onnx --adapters @a.onnx --merge none", "do not go together"},
           {"export @r.onnx --like @m.onnx --merge none -o @x.onnx", "do not go together"},
           {"export @m.onnx --apply @m.onnx -o @x.onnx", "holds no adapters"},
           {"export @m.onnx --adapters @a.onnx", "has no adapters"},
           {"export @r.onnx --adapters @r.onnx", "r.onnx"},
       }) {
    const CommandResult result = Run(line);
    EXPECT_EQ(result.exit_code, 2) << line;
    EXPECT_THAT(result.errors, HasSubstr(message)) << line;
  }
  EXPECT_FALSE(std::filesystem::exists(Path("x.onnx")));
}

TEST_F(AdaptersOnTheCommandLine, TrainTakesThem) {
  scratch_.Write("d.csv", "a,b,label\n1,2,0\n3,4,1\n5,6,0\n7,8,1\n");
  Must(
      "train @m.onnx --data 'csv:@d.csv?label=label' -o @r.onnx --batch 2 --epochs 2 --lora "
      "'W:rank=1' --quiet");
  Must("train @m.onnx --data 'csv:@d.csv?label=label' -o @r.onnx --resume --epochs 3 --quiet");
  EXPECT_THAT(Run("inspect @r.onnx").output, HasSubstr("adapters: 1\n  W: rank 1, alpha 8"));
  EXPECT_EQ(Run("eval @r.onnx --data 'csv:@d.csv?label=label'").exit_code, 0);
}

}  // namespace onward::adapters_test
