// SPDX-License-Identifier: Apache-2.0
// Operators asked for the impossible: results of 2^40 elements, divisions by
// zero in shapes, attributes that contradict the tensors. Each is refused before
// anything is allocated or divided.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "environment/environment.h"
#include "tests/support/attempt.h"
#include "tests/support/guard.h"
#include "tests/support/text_model.h"
#include "training_info/validate.h"

namespace onward::hostile_operators_test {

using Rows = std::vector<Hostile>;

class HostileOperator : public testing::TestWithParam<Hostile> {};

TEST_P(HostileOperator, IsRefused) { ExpectRefused(GetParam()); }

// One node 'n' that computes y from constants or the input x; `body` is what
// stands in the braces.
Hostile Operator(std::string name, const std::string& input, const std::string& body) {
  const std::string text = absl::StrCat("m (", input, ") => (y) { ", body, " }");
  return {std::move(name), [text] { return TextModel(text); }, "node '"};
}

std::string Int64s(const std::string& name, const std::string& values) {
  return absl::StrCat(name, " = Constant <value_ints = [", values, "]> () ");
}
std::string Int64(const std::string& name, const std::string& value) {
  return absl::StrCat(name, " = Constant <value_int = ", value, "> () ");
}

constexpr char kHuge[] = "1099511627776";             // 2^40
constexpr char kLargest[] = "9223372036854775807";    // 2^63 - 1
constexpr char kSmallest[] = "-9223372036854775808";  // -2^63

// A kilobyte joined with itself again and again.
std::string Doublings(int times) {
  std::string body;
  for (int i = 0; i < times; ++i) {
    absl::StrAppend(&body, i + 1 == times ? "y" : absl::StrCat("t", i), " = Concat <axis = 0> (",
                    i == 0 ? "x, x" : absl::StrCat("t", i - 1, ", t", i - 1), ") ");
  }
  return body;
}

Rows Bombs() {
  const std::string zero = Int64("zero", "0"), one = Int64("one", "1");
  return {
      Operator("ConstantOfShape", "", Int64s("s", kHuge) + "[n] y = ConstantOfShape(s)"),
      Operator("ConstantOfShapeOverflow", "",
               Int64s("s", "4294967296, 4294967296") + "[n] y = ConstantOfShape(s)"),
      Operator("ConstantOfShapeNegative", "", Int64s("s", "-3") + "[n] y = ConstantOfShape(s)"),
      Operator("Expand", "float[1] x", Int64s("s", kHuge) + "[n] y = Expand(x, s)"),
      Operator("ExpandNegative", "float[1] x", Int64s("s", "-3") + "[n] y = Expand(x, s)"),
      Operator("Tile", "float[2] x", Int64s("s", kHuge) + "[n] y = Tile(x, s)"),
      Operator("TileOverflow", "float[4] x", Int64s("s", kLargest) + "[n] y = Tile(x, s)"),
      Operator("TileNegative", "float[4] x", Int64s("s", "-1") + "[n] y = Tile(x, s)"),
      Operator("Range", "", zero + one + Int64("limit", kHuge) + "[n] y = Range(zero, limit, one)"),
      Operator("RangeOverflow", "",
               one + Int64("a", kSmallest) + Int64("b", kLargest) + "[n] y = Range(a, b, one)"),
      Operator("RangeWithoutStep", "", zero + one + "[n] y = Range(zero, one, zero)"),
      Operator(
          "RangeOfNan", "",
          "a = Constant <value_float = 0.0> () b = Div(a, a) c = Constant <value_float = 1.0> () "
          "[n] y = Range(a, b, c)"),
      Operator("Pad", "float[2] x", Int64s("p", absl::StrCat("0, ", kHuge)) + "[n] y = Pad(x, p)"),
      Operator("PadOverflow", "float[2] x",
               Int64s("p", absl::StrCat(kLargest, ", ", kLargest)) + "[n] y = Pad(x, p)"),
      Operator("PadBelowNothing", "float[2] x", Int64s("p", "-2, -2") + "[n] y = Pad(x, p)"),
      Operator("OneHot", "int64[2] x",
               Int64("d", kHuge) + Int64s("v", "0, 1") + "[n] y = OneHot(x, d, v)"),
      Operator("OneHotNegative", "int64[2] x",
               Int64("d", "-1") + Int64s("v", "0, 1") + "[n] y = OneHot(x, d, v)"),
      Operator("RandomNormal", "", absl::StrCat("[n] y = RandomNormal <shape = [", kHuge, "]> ()")),
      Operator("RandomUniformNegative", "", "[n] y = RandomUniform <shape = [-5]> ()"),
      Operator("ConcatDoubling", "float[256] x", Doublings(40)),
      Operator("Reshape", "float[2] x",
               Int64s("s", "4294967296, 4294967296") + "[n] y = Reshape(x, s)"),
      Operator("ConvTranspose", "float[1, 1, 2, 2] x, float[1, 1, 2, 2] w",
               absl::StrCat("[n] y = ConvTranspose <strides = [", kHuge, ", ", kHuge, "]> (x, w)")),
  };
}
INSTANTIATE_TEST_SUITE_P(Bomb, HostileOperator, testing::ValuesIn(Bombs()),
                         [](const auto& row) { return row.param.name; });

Rows Contradictions() {
  const std::string image = "float[1, 4, 5, 5] x, float[4, 4, 3, 3] w";
  return {
      Operator("GroupZero", image, "[n] y = Conv <group = 0> (x, w)"),
      Operator("GroupNegative", image, "[n] y = Conv <group = -1> (x, w)"),
      Operator("GroupTooLarge", image, "[n] y = Conv <group = 3> (x, w)"),
      Operator("ConvStrideZero", image, "[n] y = Conv <strides = [0, 0]> (x, w)"),
      Operator("ConvStrideNegative", image, "[n] y = Conv <strides = [-1, 1]> (x, w)"),
      Operator("ConvDilationZero", image, "[n] y = Conv <dilations = [0, 0]> (x, w)"),
      Operator("ConvPadsHuge", image,
               absl::StrCat("[n] y = Conv <pads = [", kHuge, ", 0, 0, 0]> (x, w)")),
      Operator("ConvPadsNegative", image, "[n] y = Conv <pads = [-9, 0, 0, 0]> (x, w)"),
      Operator("ConvKernelShapeDiffers", image, "[n] y = Conv <kernel_shape = [7, 7]> (x, w)"),
      Operator("ConvTooFewStrides", image, "[n] y = Conv <strides = [1]> (x, w)"),
      Operator("ConvKernelLargerThanImage", "float[1, 1, 2, 2] x, float[1, 1, 3, 3] w",
               "[n] y = Conv(x, w)"),
      Operator("ConvUnknownAutoPad", image, "[n] y = Conv <auto_pad = \"ALWAYS\"> (x, w)"),
      Operator("ConvOfVectors", "float[4] x, float[4] w", "[n] y = Conv(x, w)"),
      Operator("PoolStrideZero", image,
               "[n] y = MaxPool <kernel_shape = [2, 2], strides = [0, 0]> (x)"),
      Operator("PoolKernelZero", image, "[n] y = AveragePool <kernel_shape = [0, 0]> (x)"),
      Operator("PoolKernelNegative", image, "[n] y = MaxPool <kernel_shape = [-2, -2]> (x)"),
      Operator("PoolKernelHuge", image,
               absl::StrCat("[n] y = MaxPool <kernel_shape = [", kHuge, ", ", kHuge, "]> (x)")),
      Operator("PoolDilationZero", image,
               "[n] y = MaxPool <kernel_shape = [2, 2], dilations = [0, 0]> (x)"),
      Operator("PermNotAPermutation", "float[2, 3] x", "[n] y = Transpose <perm = [0, 0]> (x)"),
      Operator("PermOutOfRange", "float[2, 3] x", "[n] y = Transpose <perm = [0, 7]> (x)"),
      Operator("ConcatAxis", "float[2, 3] x",
               absl::StrCat("[n] y = Concat <axis = ", kHuge, "> (x, x)")),
      Operator("SoftmaxAxis", "float[2, 3] x", "[n] y = Softmax <axis = 5> (x)"),
      Operator("FlattenAxis", "float[2, 3] x", "[n] y = Flatten <axis = 9> (x)"),
      Operator("GatherAxis", "float[2, 3] x",
               Int64("i", "0") + "[n] y = Gather <axis = -9> (x, i)"),
      Operator("GatherIndex", "float[2, 3] x", Int64("i", kHuge) + "[n] y = Gather(x, i)"),
      Operator("GatherIndexSmallest", "float[2, 3] x",
               Int64("i", kSmallest) + "[n] y = Gather(x, i)"),
      Operator("ReduceAxis", "float[2, 3] x", Int64s("a", kHuge) + "[n] y = ReduceSum(x, a)"),
      Operator("SqueezeAxis", "float[2, 3] x", Int64s("a", "0") + "[n] y = Squeeze(x, a)"),
      Operator("UnsqueezeTwice", "float[2, 3] x", Int64s("a", "0, 0") + "[n] y = Unsqueeze(x, a)"),
      Operator(
          "SliceStepZero", "float[9] x",
          Int64s("a", "0") + Int64s("b", "5") + Int64s("c", "0") + "[n] y = Slice(x, a, b, a, c)"),
      Operator("SplitNegative", "float[4] x",
               Int64s("s", "-1, 5") + "[n] y, z = Split <axis = 0> (x, s)"),
      Operator("SplitTooMuch", "float[4] x",
               Int64s("s", "3, 3") + "[n] y, z = Split <axis = 0> (x, s)"),
      Operator("SplitIntoNone", "float[4] x", "[n] y = Split <axis = 0, num_outputs = 0> (x)"),
      Operator("ReshapeTwoUnknown", "float[4] x", Int64s("s", "-1, -1") + "[n] y = Reshape(x, s)"),
      Operator("ReshapeBesideZero", "float[4] x",
               Int64s("s", "-1, 0") + "[n] y = Reshape <allowzero = 1> (x, s)"),
      Operator("ReshapeCopiesNothing", "float[4] x", Int64s("s", "4, 0") + "[n] y = Reshape(x, s)"),
      Operator("TopKTooMany", "float[4] x", Int64s("k", "5") + "[n] y, z = TopK(x, k)"),
      Operator("TopKNegative", "float[4] x", Int64s("k", "-1") + "[n] y, z = TopK(x, k)"),
      Operator("DepthToSpaceZero", image, "[n] y = DepthToSpace <blocksize = 0> (x)"),
      Operator("SpaceToDepthZero", image, "[n] y = SpaceToDepth <blocksize = 0> (x)"),
      Operator("SpaceToDepthUneven", image, "[n] y = SpaceToDepth <blocksize = 2> (x)"),
      Operator("MatMulSizes", "float[2, 3] x, float[4, 5] w", "[n] y = MatMul(x, w)"),
      Operator("GemmRank", "float[2] x, float[2, 2] w", "[n] y = Gemm(x, w)"),
      Operator("BroadcastSizes", "float[2] x, float[3] w", "[n] y = Add(x, w)"),
      Operator("DifferentTypes", "float[2] x, double[2] w", "[n] y = Add(x, w)"),
      Operator("BatchNormSizes", "float[1, 4, 5] x, float[3] w",
               "[n] y = BatchNormalization(x, w, w, w, w)"),
      Operator("LabelOutOfRange", "float[2, 3] x",
               Int64s("l", "0, 3") + "[n] y = SoftmaxCrossEntropyLoss(x, l)"),
      Operator("LabelNegative", "float[2, 3] x",
               Int64s("l", "0, -1") + "[n] y = NegativeLogLikelihoodLoss(x, l)"),
      Operator("CastToNothing", "float[2] x", "[n] y = Cast <to = 99> (x)"),
      Operator("EyeOfVector", "float[2] x", "[n] y = EyeLike(x)"),
      Operator("CumSumAxis", "float[2] x", Int64("a", "4") + "[n] y = CumSum(x, a)"),
      Operator("LayerNormAxis", "float[2] x", "[n] y = LayerNormalization <axis = 7> (x, x)"),
      Operator("ScatterIndex", "float[2, 3] x",
               Int64s("i", "7") + "one = Constant <value_floats = [1.0]> () "
                                  "j = Unsqueeze(i, zero) zero = Constant <value_ints = [0]> () "
                                  "u = Unsqueeze(one, zero) [n] y = ScatterElements(x, j, u)"),
  };
}
INSTANTIATE_TEST_SUITE_P(Contradiction, HostileOperator, testing::ValuesIn(Contradictions()),
                         [](const auto& row) { return row.param.name; });

// Integer arithmetic without a mathematical answer has some answer or is
// refused; the process goes on.
TEST(HostileArithmetic, IntegersSurvive) {
  for (const char* op : {"Div", "Mod", "Pow", "BitShift <direction = \"LEFT\">",
                         "BitShift <direction = \"RIGHT\">"}) {
    for (const DType type :
         {DType::kInt8, DType::kInt32, DType::kInt64, DType::kUint8, DType::kUint64}) {
      for (const char* divisor : {"0", "-1", "63", "64"}) {
        const std::string text =
            absl::StrCat("m () => (y) { ", Int64("a", kSmallest), Int64("b", divisor),
                         "c = Cast <to = ", static_cast<int>(type),
                         "> (a) d = CastLike(b, c) [n] y = ", op, " (c, d) }");
        Guard guard;
        guard.Trying(text);
        Attempt(TextModel(text)).IgnoreError();
      }
    }
  }
}

// Strings are not bytes: whatever moves elements has to know.
TEST(HostileType, StringsMove) {
  for (const char* body : {"y = Identity(x)",
                           "y = Where(c, x, x)",
                           "y = Concat <axis = 0> (x, x)",
                           "y = Gather(x, i)",
                           "y = Reshape(x, i)",
                           "y = Expand(x, i)",
                           "y = Transpose(x)",
                           "y = Slice(x, i, i)",
                           "y = Tile(x, i)",
                           "y = Unsqueeze(x, i)",
                           "y, z = Split <num_outputs = 2> (x)",
                           "t = Identity(x) y = Identity(t)",
                           "y = Cast <to = 8> (i)",
                           "y = CastLike(i, x)",
                           "y = GatherElements(x, i)",
                           "y = Compress(x, c)",
                           "y = Flatten(x)",
                           "y = Squeeze(x)",
                           "y = ScatterElements(x, i, x)",
                           "y = Pad(x, i)",
                           "y = Unique(x)",
                           "y = Mul(x, x)"}) {
    Guard guard;
    guard.Trying(body);
    Attempt(TextModel(absl::StrCat("m (string[2] x, bool[2] c, int64[1] i) => (y) { ", body, " }")))
        .IgnoreError();
  }
}

// A length that is only declared decides how many axes there are; nothing is
// allocated for it.
TEST(HostileType, DeclaredLengthsOfShapes) {
  for (const char* body : {"y = Reshape(x, s)", "y = Expand(x, s)", "y = ConstantOfShape(s)",
                           "y = Resize(x, \"\", \"\", s)", "y = Tile(x, s)", "y = Pad(x, s)",
                           "y = AffineGrid(x, s)", "y = Squeeze(x, s)", "y = Unsqueeze(x, s)",
                           "y = ReduceSum(x, s)", "y = Slice(x, s, s)", "y = Upsample(x, s)"}) {
    Guard guard;
    const Model model =
        TextModel(absl::StrCat("m (float[1, 2, 3] x, int64[", kHuge, "] s) => (y) { ", body, " }"));
    guard.Trying(body);
    CheckModel(model, DefaultEnvironment()).status().IgnoreError();
    EXPECT_LT(guard.GrownBytes(), size_t{64} << 20) << body;
  }
}

// Onward's own functions have no schema that would count their inputs. A file may
// bring a body for them too.
TEST(HostileCall, OwnFunctionsWithOddInputs) {
  for (const auto& [key, def] : DefaultEnvironment().functions().all()) {
    for (const char* type : {"float", "float[0]", "float[3]", "float[2, 3]", "float[1, 2, 3, 4]",
                             "int64[2, 3]", "float16[2, 3]", "string[2]"}) {
      for (int inputs = 0; inputs < 4; ++inputs) {
        for (const bool with_body : {false, true}) {
          const std::string text = absl::StrCat(
              "<ir_version: 8, opset_import: [\"\" : 18, \"ai.onward\" : 2]>\nm (", type,
              " x) => (y) { y = ai.onward.", key.name, "(",
              absl::StrJoin(std::vector<std::string>(inputs, "x"), ", "), ") }\n",
              with_body ? absl::StrCat("<domain: \"ai.onward\", opset_import: [\"\" : 18]> ",
                                       key.name, " (a) => (b) { b = Neg(a) }")
                        : "");
          Guard guard;
          guard.Trying(text);
          Attempt(TextModel(text)).IgnoreError();
        }
      }
    }
  }
}

}  // namespace onward::hostile_operators_test
