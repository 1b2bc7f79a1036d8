// SPDX-License-Identifier: Apache-2.0
// Sequences, optionals and maps on the command line: in from .pb files, out again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/compare_tensors.h"
#include "core/onnx_io/value_file.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::values_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ValuesTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    scratch_.Write(name, Bytes(TextModel(text)));
    return scratch_.Path(name);
  }
  std::string Write(const std::string& name, const Value& value, const ValueType& type) {
    EXPECT_TRUE(WriteValueFile(value, type, "v", scratch_.Path(name)).ok());
    return scratch_.Path(name);
  }
  CommandResult Onward(const std::string& arguments) {
    return RunOnward(BuiltProgram(), arguments);
  }

  Scratch scratch_;
  const ValueType floats_ =
      ValueType::Holding(ValueType::Kind::kSequence, ValueType::Unranked(DType::kFloat));
  const Value two_ = Sequence{ValueType::Unranked(DType::kFloat), {Floats({1, 2}), Floats({3})}};
};

TEST_F(ValuesTest, SequencesGoInAndOut) {
  const std::string model =
      Write("m.onnx", R"(g (seq(float[N]) s, float[M] x) => (seq(float[N]) t) {
      t = SequenceInsert (s, x)
    })");
  const std::string in = Write("s.pb", two_, floats_);
  const CommandResult shown = Onward("run " + model + " --input s=" + in + " --input x=[7,8,9]");
  EXPECT_EQ(shown.exit_code, 0) << shown.errors;
  EXPECT_THAT(shown.output,
              AllOf(HasSubstr("seq("), HasSubstr("of 3"), HasSubstr("[2]  float[3]")));
  const CommandResult json =
      Onward("run " + model + " --json --input s=" + in + " --input x=[7,8,9]");
  EXPECT_THAT(json.output, AllOf(HasSubstr("\"items\":["), HasSubstr("\"values\":[7,8,9]")));
  const CommandResult written = Onward("run " + model + " --input s=" + in +
                                       " --input x=[7,8,9] --output-dir " + scratch_.Path("out"));
  EXPECT_EQ(written.exit_code, 0) << written.errors;
  auto back = ReadValueFile(scratch_.Path("out/t.pb"), floats_);
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_NE(back->sequence(), nullptr);
  ASSERT_EQ(back->sequence()->items.size(), 3u);
  EXPECT_EQ(Values(*back->sequence()->items[2].tensor()), (std::vector<double>{7, 8, 9}));
  const CommandResult literal = Onward("run " + model + " --input s=3 --input x=1");
  EXPECT_NE(literal.exit_code, 0);
  EXPECT_THAT(literal.errors, AllOf(HasSubstr("'s' is seq("), HasSubstr(".pb")));
}

TEST_F(ValuesTest, OptionalsMayStayAway) {
  const std::string model = Write("m.onnx", R"(g (optional(float[2]) o) => (bool there) {
      there = OptionalHasElement (o)
    })");
  EXPECT_THAT(Onward("run " + model).output, HasSubstr("  0"));
  const ValueType type =
      ValueType::Holding(ValueType::Kind::kOptional, ValueType::Unranked(DType::kFloat));
  const std::string given = Write("o.pb", Floats({1, 2}), type);
  EXPECT_THAT(Onward("run " + model + " --input o=" + given).output, HasSubstr("  1"));
}

TEST_F(ValuesTest, CompareLooksInside) {
  const std::string a = Write("a.onnx", R"(g (float[4] x) => (seq(float[N]) t) {
      t = SplitToSequence <axis = 0> (x)
    })");
  const std::string b = Write("b.onnx", R"(g (float[4] x) => (seq(float[N]) t) {
      y = Abs (x)
      t = SplitToSequence <axis = 0> (y)
    })");
  EXPECT_EQ(Onward("compare " + a + " " + b + " --input x=[1,2,3,4]").exit_code, 0);
  const CommandResult differs = Onward("compare " + a + " " + b + " --input x=[1,2,-3,4]");
  EXPECT_EQ(differs.exit_code, 1);
  EXPECT_THAT(differs.output, HasSubstr("item 2"));
}

TEST_F(ValuesTest, CompareSaysWhereInputsDiffer) {
  const std::string a = Write("a.onnx", "g (float[N, 2] x) => (float[N, 2] y) { y = Abs (x) }");
  const auto other = [&](const std::string& text) {
    const std::string b = Write("b.onnx", text);
    const CommandResult r = Onward("compare " + a + " " + b);
    EXPECT_EQ(r.exit_code, 2) << text << r.output;
    return r.errors;
  };
  const std::string named = other("g (float[N, 2] z) => (float[N, 2] y) { y = Abs (z) }");
  EXPECT_THAT(named, AllOf(HasSubstr("the models take different inputs"),
                           HasSubstr("a.onnx' takes x (float[N, 2])"),
                           HasSubstr("b.onnx' takes z (float[N, 2])"),
                           HasSubstr("--input z=FILE --output-dir DIR, then onward compare")));
  EXPECT_THAT(other("g (float[N, 3] x) => (float[N, 3] y) { y = Abs (x) }"),
              HasSubstr("b.onnx' takes x (float[N, 3])"));
  EXPECT_THAT(other("g (double[N, 2] x) => (double[N, 2] y) { y = Abs (x) }"),
              HasSubstr("different inputs"));
  EXPECT_THAT(other("g (float[N, 2] x) => (float[N, 2] w) { w = Abs (x) }"),
              HasSubstr("has no value 'y', an output of"));
  // A size that one of them leaves open is that of the other.
  const std::string b = Write("b.onnx", "g (float[3, 2] x) => (float[3, 2] y) { y = Abs (x) }");
  EXPECT_EQ(Onward("compare " + a + " " + b).exit_code, 0);
}

// Maps and sparse tensors, and containers of containers, survive a file.
TEST_F(ValuesTest, EveryKindSurvivesAFile) {
  const Map map{Tensor::FromValues<std::string>(Shape{2}, {"a", "b"}),
                {ValueType::Unranked(DType::kFloat), {Floats({1}), Floats({2})}}};
  const SparseTensor sparse{Floats({5, 6}), Int64s({1, 3}), Shape{2, 2}};
  const Value nested = Sequence{ValueType(), {two_, two_}};
  for (const Value& value : {Value(map), Value(sparse), nested, Value()}) {
    const std::string path = Write("v.pb", value, value.type());
    auto back = ReadValueFile(path, value.type());
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(CompareValues(*back, value, {0, 0}).equal) << value.ToString();
  }
  scratch_.Write("broken.pb", std::string("\xff\xff\xff\xff", 4));
  EXPECT_THAT(std::string(ReadValueFile(scratch_.Path("broken.pb"), floats_).status().message()),
              HasSubstr("broken.pb"));
}

}  // namespace onward::values_test
