// SPDX-License-Identifier: Apache-2.0
// Operators that nobody defines: all of them in one message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "core/runtime/execute/executor.h"
#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/lower.h"

namespace onward::unknown_operators_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

absl::Status RunText(const std::string& text) {
  auto graph = RunnableGraph(
      TextModel("<ir_version: 8, opset_import: [\"\" : 18, \"one\" : 1, \"two\" : 3]> " + text),
      DefaultEnvironment());
  if (!graph.ok()) return graph.status();
  CompileOptions options;
  options.device = &DefaultEnvironment().cpu();
  options.operators = &DefaultEnvironment().operators();
  Session session(*std::move(graph), options);
  return session.Run({{"x", Floats({1})}}, nullptr).status();
}

TEST(UnknownOperators, AreReportedAllAtOnce) {
  const absl::Status status = RunText(R"(m (float[N] x) => (float[N] y, float[N] z) {
      a = one.Mystery(x) b = two.Riddle(a) c = Relu(b) d = two.Riddle(c) y = two.Mystery(d)
      z = one.Mystery(y) })");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("3 operators"), HasSubstr("nodes '-> a', '-> z' (one.Mystery), version 1"),
            HasSubstr("node '-> y' (two.Mystery), version 3"),
            HasSubstr("nodes '-> b', '-> d' (two.Riddle), version 3"), HasSubstr("--plugin"),
            HasSubstr("function"), Not(HasSubstr("Relu"))));
}

TEST(UnknownOperators, AreCountedWhereThereAreMany) {
  std::string nodes = "v0 = one.Mystery(x)";
  for (int i = 1; i < 100; ++i) absl::StrAppend(&nodes, " v", i, " = one.Mystery(v", i - 1, ")");
  const absl::Status status =
      RunText("m (float[N] x) => (float[N] y) { " + nodes + " y = Relu(v99) }");
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("'-> v0'"), HasSubstr("and 92 more"), Not(HasSubstr("v99"))));
}

// What nobody asks for need not be known.
TEST(UnknownOperators, MatterWhereTheyAreNeeded) {
  EXPECT_TRUE(RunText("m (float[N] x) => (float[N] y) { y = Relu(x) a = one.Mystery(x) }").ok());
}

// The CPU without some kernels.
class PoorDevice : public Device {
 public:
  explicit PoorDevice(const std::set<std::string>& without) {
    for (const auto& [key, entries] : cpu_.kernels().all()) {
      if (without.contains(key.second)) continue;
      for (const KernelTable::Entry& entry : entries) kernels_.Add(key.second, entry, key.first);
    }
  }
  std::string name() const override { return "poor"; }
  const KernelTable& kernels() const override { return kernels_; }
  absl::StatusOr<Kernel> MakeReorder(DType dtype, const Shape& shape, const Layout& from,
                                     const Layout& to) const override {
    return cpu_.MakeReorder(dtype, shape, from, to);
  }
  absl::StatusOr<Kernel> MakeChain(absl::Span<const ChainStep> steps,
                                   absl::Span<const ValueSpec> inputs, const Shape& shape,
                                   const Layout& layout) const override {
    return cpu_.MakeChain(steps, inputs, shape, layout);
  }
  Layout LayoutForTranspose(DType dtype, const Shape& shape,
                            absl::Span<const int64_t> perm) const override {
    return cpu_.LayoutForTranspose(dtype, shape, perm);
  }
  size_t memory_limit() const override { return cpu_.memory_limit(); }

 private:
  const Device& cpu_ = DefaultEnvironment().cpu();
  KernelTable kernels_;
};

absl::Status RunPoorly(const std::string& text, const std::vector<std::string>& outputs) {
  const PoorDevice device({"Sqrt", "Erf", "Gelu"});
  auto graph = RunnableGraph(TextModel(text), DefaultEnvironment());
  if (!graph.ok()) return graph.status();
  CompileOptions options;
  options.device = &device;
  options.operators = &DefaultEnvironment().operators();
  options.outputs = outputs;
  return Session(*std::move(graph), options).Run({{"x", Floats({1})}}, nullptr).status();
}

constexpr char kWithoutKernels[] = R"(m (float[N] x) => (float[N] y, float[N] z, float[N] u) {
      a = Sqrt(x) b = Relu(a) c = Erf(b) y = Sqrt(c) z = Abs(x) u = ThresholdedRelu(x) })";

TEST(WithoutKernel, AreReportedAllAtOnce) {
  const absl::Status status = RunPoorly(kWithoutKernels, {"y", "z"});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("2 operators have no kernel"), HasSubstr("node '-> c' (Erf)"),
                    HasSubstr("nodes '-> a', '-> y' (Sqrt)"), HasSubstr("fix: "),
                    Not(HasSubstr("Relu")), Not(HasSubstr("Abs"))));
}

TEST(WithoutKernel, MatterWhereTheyAreNeeded) {
  EXPECT_TRUE(RunPoorly(kWithoutKernels, {"z", "u"}).ok());
}

}  // namespace onward::unknown_operators_test
