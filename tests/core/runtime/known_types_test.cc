// SPDX-License-Identifier: Apache-2.0
// A graph that is compiled again for other shapes does not ask the standard again.
#include "core/runtime/compile/known_types.h"

#include <gtest/gtest.h>

#include "core/runtime/execute/executor.h"
#include "core/runtime/execute/program.h"
#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/lower.h"

namespace onward::known_types_test {

// Counts the calls whose types are asked for.
class CountingOperators : public KnownTypes {
 public:
  CountingOperators()
      : KnownTypes(DefaultEnvironment().operators(), DefaultEnvironment().cpu().kernels(), none_) {}
  absl::StatusOr<std::vector<ValueType>> Infer(
      const Node& node, absl::Span<const InputFact> inputs,
      const std::map<std::string, int>& opsets) const override {
    ++asked_[node.op_type];
    return KnownTypes::Infer(node, inputs, opsets);
  }
  std::map<std::string, int> Asked() { return std::exchange(asked_, {}); }

 private:
  ElementTypes none_;
  mutable std::map<std::string, int> asked_;
};

class KnownTypesTest : public testing::Test {
 protected:
  Program ProgramOf(const std::string& text) {
    auto graph = RunnableGraph(TextModel(text), DefaultEnvironment());
    EXPECT_TRUE(graph.ok()) << graph.status();
    CompileOptions options;
    options.device = &DefaultEnvironment().cpu();
    options.operators = &operators_;
    return Program(std::make_shared<const Graph>(*std::move(graph)), options);
  }

  static FeedType Feed(DType dtype, Shape shape) { return {dtype, std::move(shape), nullptr}; }

  CountingOperators operators_;
};

constexpr char kMixed[] = R"(g (float[N,4] x, float[M,4] c) => (float[K,L] y, int64[K] n) {
  joined = Concat <axis = 0> (x, c)
  bent = Tanh(joined)
  mean = ReduceMean <keepdims = 1> (bent)
  sum = Add(bent, mean)
  turned = Transpose <perm = [1, 0]> (sum)
  squares = MatMul(sum, turned)
  above = Greater(squares, mean)
  y = Where(above, squares, mean)
  whole = Cast <to = 7> (sum)
  zero = Constant <value = int64 {0}> ()
  n = Gather <axis = 1> (whole, zero)
})";

TEST_F(KnownTypesTest, NewShapesAskForNothing) {
  Program program = ProgramOf(kMixed);
  ASSERT_TRUE(program.Prepare({Feed(DType::kFloat, {2, 4}), Feed(DType::kFloat, {1, 4})}).ok());
  EXPECT_EQ(operators_.Asked().size(), 11u);
  auto executor = program.Prepare({Feed(DType::kFloat, {5, 4}), Feed(DType::kFloat, {3, 4})});
  ASSERT_TRUE(executor.ok()) << executor.status();
  const std::map<std::string, int> again = operators_.Asked();
  EXPECT_EQ(again, (std::map<std::string, int>{{"Constant", 1}}));
  Tensor x(DType::kFloat, {5, 4}), c(DType::kFloat, {3, 4});
  std::fill_n(x.data<float>(), 20, 0.5f);
  std::fill_n(c.data<float>(), 12, 0.5f);
  const Value feeds[] = {x, c};
  const Value* const pointers[] = {&feeds[0], &feeds[1]};
  auto results = program.Run(pointers, nullptr, {});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ((*results)[0].tensor()->shape(), (Shape{8, 8}));
  EXPECT_EQ((*results)[1].tensor()->dtype(), DType::kInt64);
  EXPECT_EQ((*results)[1].tensor()->shape(), Shape{8});
}

TEST_F(KnownTypesTest, EachNodeIsAskedForOnce) {
  Program program = ProgramOf(kMixed);
  ASSERT_TRUE(program.Prepare({Feed(DType::kFloat, {2, 4}), Feed(DType::kFloat, {1, 4})}).ok());
  for (const auto& [op, times] : operators_.Asked()) EXPECT_EQ(times, 1) << op;
}

// Other element types lead elsewhere: Cast's input, and whether Tanh takes it at all.
TEST_F(KnownTypesTest, NewElementTypesAsk) {
  Program program = ProgramOf(R"(g (x) => (y) { y = Abs(x) })");
  ASSERT_TRUE(program.Prepare({Feed(DType::kFloat, {2})}).ok());
  operators_.Asked();
  auto executor = program.Prepare({Feed(DType::kInt32, {2})});
  ASSERT_TRUE(executor.ok()) << executor.status();
  EXPECT_EQ(operators_.Asked()["Abs"], 1);
}

// What the rules cannot place is refused in the standard's words, as it would have been first.
TEST_F(KnownTypesTest, ContradictionsAreTheStandards) {
  Program program = ProgramOf(kMixed);
  ASSERT_TRUE(program.Prepare({Feed(DType::kFloat, {2, 4}), Feed(DType::kFloat, {1, 4})}).ok());
  const std::vector<FeedType> wrong = {Feed(DType::kFloat, {2, 4}), Feed(DType::kFloat, {1, 3})};
  const absl::Status again = program.Prepare(wrong).status();
  EXPECT_FALSE(again.ok());
  EXPECT_EQ(again, ProgramOf(kMixed).Prepare(wrong).status());
}

}  // namespace onward::known_types_test
