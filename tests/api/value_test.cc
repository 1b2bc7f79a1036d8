// SPDX-License-Identifier: Apache-2.0
// Values of the public interface: sequences, maps, sparse tensors, nothing.
#include "onward/value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onward/inference.h"

namespace {

using onward::ElementType;
using onward::InferenceSession;
using onward::Model;
using onward::Tensor;
using onward::Value;
using onward::ValueKind;
using onward::ValueMap;
using testing::ElementsAre;
using testing::HasSubstr;

Tensor Floats(const std::vector<float>& values) {
  return Tensor::From<float>({static_cast<int64_t>(values.size())}, values).value();
}

TEST(Value, IsWhatItHolds) {
  const Value nothing, tensor = Floats({1, 2});
  EXPECT_TRUE(nothing.empty());
  EXPECT_EQ(nothing.kind(), ValueKind::kOptional);
  EXPECT_FALSE(nothing.tensor().defined());
  EXPECT_TRUE(nothing.items().empty());
  EXPECT_EQ(tensor.kind(), ValueKind::kTensor);
  EXPECT_THAT(tensor.shape(), ElementsAre(2));
  EXPECT_TRUE(Value(Tensor()).empty());
  const Value sequence = Value::Sequence(ElementType::kFloat, {tensor, Floats({3})});
  EXPECT_EQ(sequence.kind(), ValueKind::kSequence);
  ASSERT_EQ(sequence.items().size(), 2u);
  EXPECT_THAT(*sequence.items()[1].tensor().Values<float>(), ElementsAre(3));
  EXPECT_THAT(sequence.ToString(), HasSubstr("of 2"));
}

TEST(Value, ChecksWhatItIsMadeOf) {
  const Tensor keys = Tensor::From<std::string>({2}, {"a", "b"}).value();
  EXPECT_EQ(Value::Map(keys, {Floats({1}), Floats({2})}).value().items().size(), 2u);
  EXPECT_THAT(Value::Map(keys, {Floats({1})}).status().message(), HasSubstr("2 keys and 1 values"));
  EXPECT_FALSE(Value::Map(Floats({1}), {Floats({1})}).ok());
  const Tensor at = Tensor::From<int64_t>({2}, {0, 3}).value();
  const Value sparse = Value::Sparse(Floats({5, 6}), at, {2, 2}).value();
  EXPECT_EQ(sparse.kind(), ValueKind::kSparseTensor);
  EXPECT_THAT(sparse.shape(), ElementsAre(2, 2));
  EXPECT_FALSE(Value::Sparse(Floats({5}), at, {2, 2}).ok());
}

// g (seq(float[N]) s, float[M] x) => (seq(float[N]) t, int64 n)
//   { t = SequenceInsert (s, x)  n = SequenceLength (t) }
constexpr unsigned char kInsert[] = {
    0x08, 0x08, 0x3a, 0x85, 0x01, 0x0a, 0x1b, 0x0a, 0x01, 0x73, 0x0a, 0x01, 0x78, 0x12, 0x01, 0x74,
    0x22, 0x0e, 'S',  'e',  'q',  'u',  'e',  'n',  'c',  'e',  'I',  'n',  's',  'e',  'r',  't',
    0x3a, 0x00, 0x0a, 0x18, 0x0a, 0x01, 0x74, 0x12, 0x01, 0x6e, 0x22, 0x0e, 'S',  'e',  'q',  'u',
    'e',  'n',  'c',  'e',  'L',  'e',  'n',  'g',  't',  'h',  0x3a, 0x00, 0x12, 0x01, 0x67, 0x5a,
    0x14, 0x0a, 0x01, 0x73, 0x12, 0x0f, 0x22, 0x0d, 0x0a, 0x0b, 0x0a, 0x09, 0x08, 0x01, 0x12, 0x05,
    0x0a, 0x03, 0x12, 0x01, 0x4e, 0x5a, 0x10, 0x0a, 0x01, 0x78, 0x12, 0x0b, 0x0a, 0x09, 0x08, 0x01,
    0x12, 0x05, 0x0a, 0x03, 0x12, 0x01, 0x4d, 0x62, 0x14, 0x0a, 0x01, 0x74, 0x12, 0x0f, 0x22, 0x0d,
    0x0a, 0x0b, 0x0a, 0x09, 0x08, 0x01, 0x12, 0x05, 0x0a, 0x03, 0x12, 0x01, 0x4e, 0x62, 0x0b, 0x0a,
    0x01, 0x6e, 0x12, 0x06, 0x0a, 0x04, 0x08, 0x07, 0x12, 0x00, 0x42, 0x04, 0x0a, 0x00, 0x10, 0x12};

TEST(Value, GoesThroughASession) {
  const Model model = Model::Parse(kInsert, sizeof kInsert).value();
  InferenceSession session = InferenceSession::Create(model).value();
  const Value empty = Value::Sequence(ElementType::kFloat, {});
  ValueMap out = session.RunValues({{"s", empty}, {"x", Floats({7, 8})}}).value();
  EXPECT_THAT(*out["n"].tensor().Values<int64_t>(), ElementsAre(1));
  out = session.RunValues({{"s", out["t"]}, {"x", Floats({9})}}).value();
  ASSERT_EQ(out["t"].items().size(), 2u);
  EXPECT_THAT(*out["t"].items()[0].tensor().Values<float>(), ElementsAre(7, 8));
  EXPECT_THAT(session.Run({{"x", Floats({9})}}).status().message(), HasSubstr("'s'"));
  EXPECT_THAT(session.RunValues({{"s", Floats({1})}, {"x", Floats({9})}}).status().message(),
              HasSubstr("'s' must be seq("));
}

}  // namespace
