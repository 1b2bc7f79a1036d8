// SPDX-License-Identifier: Apache-2.0
// Files that are damaged, too deep, or small but large once read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "core/onnx_io/proto.h"
#include "tests/support/attempt.h"
#include "tests/support/guard.h"
#include "tests/support/text_model.h"

namespace onward::hostile_bytes_test {

using ::testing::HasSubstr;

// A model with a bit of everything: a function, a shape as data, an initialization
// that draws numbers, and a training step with Gradient and Adam.
std::string SmallTrainingModel() {
  Model model = TextModel(
      R"(m (float[2, 3] x, int64[2] label) => (float[2, 2] y)
         <float[3, 4] A = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
          float[4, 2] B = {1, -1, 2, -2, 3, -3, 4, -4},
          int64[2] shape = {-1, 4}> {
           h = MatMul(x, A)
           r = local.Soft <alpha = 0.1> (h)
           f = Reshape(r, shape)
           [last] y = Gemm <transB = 0> (f, B)
         }
         <domain: "local", opset_import: ["" : 18]>
         Soft <alpha> (a) => (b) { b = LeakyRelu <alpha : float = @alpha> (a) })",
      {{R"(a (float R) => (float loss, float[3, 4] A_new, float[4, 2] B_new, float[4, 2] V_new,
                           float[4, 2] H_new, int64 T_new)
           <float[4, 2] V = {0, 0, 0, 0, 0, 0, 0, 0}, float[4, 2] H = {0, 0, 0, 0, 0, 0, 0, 0},
            int64 T = {1}, int64 one = {1}> {
             loss = SoftmaxCrossEntropyLoss(y, label)
             dA, dB = ai.onnx.preview.training.Gradient <xs = ["A", "B"], y = "loss"> (A, B)
             s = Mul(dA, R)
             A_new = Sub(A, s)
             B_new, V_new, H_new = ai.onnx.preview.training.Adam (R, T, B, dB, V, H)
             T_new = Add(T, one)
           })",
        {{"A", "A_new"}, {"B", "B_new"}, {"V", "V_new"}, {"H", "H_new"}, {"T", "T_new"}},
        "i () => (float[3, 4] fresh) { fresh = RandomNormal <shape = [3, 4], seed = 1.0> () }",
        {{"A", "fresh"}}}});
  model.SetMetadata(kMetaLoss, "loss");
  return Bytes(model);
}

constexpr char kPath[] = "damaged.onnx";

void ExpectOkOrNamed(const absl::Status& status, const std::string& what) {
  if (status.ok()) return;
  EXPECT_NE(status.code(), absl::StatusCode::kInternal) << what << ": " << status;
  EXPECT_FALSE(status.message().empty()) << what;
}

TEST(DamagedFile, IsSoundBeforehand) {
  const absl::Status status = AttemptBytes(SmallTrainingModel(), kPath);
  EXPECT_TRUE(status.ok()) << status;
}

TEST(DamagedFile, EveryPrefix) {
  const std::string bytes = SmallTrainingModel();
  Guard guard;
  for (size_t size = 0; size < bytes.size(); ++size) {
    guard.Trying(absl::StrCat("prefix of ", size, " bytes"));
    ExpectOkOrNamed(AttemptBytes(bytes.substr(0, size), kPath), absl::StrCat(size, " bytes"));
  }
}

// What comes before training_info is the model.
TEST(DamagedFile, InfersWhereTheTrainingPartIsCutOff) {
  const Model model = TextModel(
      "m (float[2] x) => (float[2] y) <float[2] W = {1, 2}> "
      "{ y = Mul(x, W) }",
      {{"a () => (float[2] n) { n = Add(W, x) }", {{"W", "n"}}}});
  Model plain = model;
  plain.proto().clear_training_info();
  const std::string bytes = Bytes(model);
  const size_t begin = Bytes(plain).size();
  // Two bytes of tag and the length come first.
  for (size_t size = begin + 3; size < bytes.size(); ++size) {
    const absl::StatusOr<Model> read = ParseModel(bytes.substr(0, size), kPath);
    ASSERT_TRUE(read.ok()) << size << ": " << read.status();
    EXPECT_TRUE(read->training_damaged()) << size;
    EXPECT_EQ(Bytes(*read), Bytes(plain)) << size;
  }
}

// Numbers of bytes tell a download that stopped from a file of another kind.
TEST(DamagedFile, SaysWhereAFileIsCutShort) {
  std::string weights = "1";
  for (int i = 1; i < 300; ++i) weights += ", 1";
  const std::string bytes = Bytes(TextModel("m (float[300] x) => (float[300] y) <float[300] W = {" +
                                            weights + "}> { y = Mul(x, W) }"));
  size_t begin = 0;  // of the graph, a field with a length of two bytes
  while (begin < bytes.size() && bytes[begin] != '\x3a') ++begin;
  const size_t end = begin + 3 + (bytes[begin + 1] & 0x7f) + (bytes[begin + 2] << 7);
  for (size_t size : {begin + 3, begin + 40, end - 1}) {
    const absl::Status status = ParseModel(bytes.substr(0, size), kPath).status();
    EXPECT_EQ(status.message(),
              absl::StrCat("'damaged.onnx' is cut short: its graph, from byte ", begin,
                           " on, ends at byte ", end, ", but the file has ", size,
                           " bytes; fetch or copy it again"));
  }
  for (const char* other : {":this is text", "\x08\x08hello", "PK\x03\x04", "\x08\x08\x3a"}) {
    const absl::Status status = ParseModel(other, kPath).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr("is not an ONNX model")) << other;
  }
  const char* pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
  EXPECT_THAT(std::string(ParseModel(pointer, kPath).status().message()),
              HasSubstr("`git lfs pull` fetches the file"));
}

TEST(DamagedFile, SingleBitFlips) {
  constexpr size_t kFlips = 2000;
  const std::string bytes = SmallTrainingModel();
  Guard guard;
  for (size_t i = 0; i < kFlips; ++i) {
    // Evenly spread, so that the same bits are tried everywhere.
    const size_t bit = i * (bytes.size() * 8) / kFlips;
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    guard.Trying(absl::StrCat("bit ", bit));
    ExpectOkOrNamed(AttemptBytes(flipped, kPath), absl::StrCat("bit ", bit));
  }
}

TEST(DamagedFile, RandomBytes) {
  Guard guard;
  uint64_t state = 1;
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(1 + i % 97, '\0');
    for (char& c : bytes) {
      state = state * 6364136223846793005 + 1442695040888963407;
      c = static_cast<char>(state >> 56);
    }
    guard.Trying(absl::StrCat("random bytes ", i));
    EXPECT_FALSE(AttemptBytes(bytes, kPath).ok()) << i;
  }
}

// --- depth

// y = If(c, If(c, ... Identity(x))), `depth` levels.
Model NestedIf(int depth) {
  Model model = TextModel("m (bool c, float[2] x) => (float[2] y) { y = Identity(x) }");
  onnx::GraphProto* graph = model.proto().mutable_graph();
  for (int i = 0; i < depth; ++i) {
    onnx::NodeProto* node = graph->mutable_node(0);
    node->set_op_type("If");
    node->set_input(0, "c");
    for (const char* branch : {"else_branch", "then_branch"}) {
      onnx::AttributeProto* attribute = node->add_attribute();
      attribute->set_name(branch);
      attribute->set_type(onnx::AttributeProto::GRAPH);
      graph = attribute->mutable_g();
      const std::string out = absl::StrCat(branch[0] == 't' ? "t" : "e", i);
      graph->set_name(out);
      onnx::NodeProto* inner = graph->add_node();
      inner->set_op_type("Identity");
      inner->add_input("x");
      inner->add_output(out);
      graph->add_output()->set_name(out);
    }
  }
  return model;
}

TEST(TooDeep, NestedBranches) {
  Guard guard;
  for (int depth : {1, 16, 31, 40, 100, 200, 2000}) {
    const Model model = NestedIf(depth);
    guard.Trying(absl::StrCat("If in If, ", depth, " deep"));
    const absl::Status status = Attempt(model);
    // The parser's limit of 100 messages is three for each level.
    if (depth > 32) {
      EXPECT_THAT(std::string(status.message()), HasSubstr("'hostile.onnx' is not an ONNX model"));
    }
    ExpectOkOrNamed(status, absl::StrCat(depth));
  }
}

std::string Field(int number, const std::string& bytes) {
  std::string out;
  auto varint = [&](uint64_t v) {
    for (; v >= 0x80; v >>= 7) out.push_back(static_cast<char>(v | 0x80));
    out.push_back(static_cast<char>(v));
  };
  varint(static_cast<uint64_t>(number) << 3 | 2);
  varint(bytes.size());
  return out + bytes;
}

std::string Times(int count, const std::string& bytes) {
  std::string out;
  out.reserve(count * bytes.size());
  for (int i = 0; i < count; ++i) out += bytes;
  return out;
}

TEST(TooDeep, GroupsAndTypes) {
  Guard guard;
  guard.Trying("a million nested groups");
  EXPECT_FALSE(AttemptBytes(std::string(1000000, '\x0b'), kPath).ok());
  std::string type;
  for (int i = 0; i < 2000; ++i) type = Field(4, Field(1, type));  // sequence of sequences of ...
  guard.Trying("a sequence of sequences");
  EXPECT_FALSE(AttemptBytes(Field(7, Field(11, Field(2, type))), kPath).ok());
}

// --- amplification

// Bytes that parse to a model around one graph.
std::string AroundGraph(const std::string& graph) {
  return std::string("\x08\x08", 2) + Field(7, graph) + Field(8, std::string("\x10\x12", 2));
}

struct Amplified {
  const char* name;
  std::string bytes;
};

// Two bytes each become objects of hundreds of bytes.
TEST(Amplification, SmallPartsInGreatNumbers) {
  constexpr int kMillion = 1000000;
  const std::string empty_node = Field(1, ""), empty_value = Field(11, "");
  const Amplified rows[] = {
      {"nearly a million empty nodes", AroundGraph(Times(kMillion - 10, empty_node))},
      {"a million empty nodes", AroundGraph(Times(kMillion, empty_node))},
      {"a group before five million nodes",
       std::string("\x0b\x0c", 2) + AroundGraph(Times(5 * kMillion, empty_node))},
      {"a million empty inputs", AroundGraph(Times(kMillion, empty_value))},
      {"five million empty nodes", AroundGraph(Times(5 * kMillion, empty_node))},
      {"five million attributes", AroundGraph(Field(1, Times(5 * kMillion, Field(5, ""))))},
      {"five million strings", AroundGraph(Field(1, Field(5, Times(5 * kMillion, Field(9, "")))))},
      {"five million strings of a tensor",
       AroundGraph(Field(5, Times(5 * kMillion, Field(6, ""))))},
      {"five million dimensions",
       AroundGraph(Field(11, Field(2, Field(1, Field(2, Times(5 * kMillion, Field(1, "")))))))},
      {"five million metadata", Times(5 * kMillion, Field(14, ""))},
      {"five million functions", AroundGraph("") + Times(5 * kMillion, Field(25, ""))},
      {"five million unknown groups", AroundGraph("") + Times(5 * kMillion, "\x7b\x7c")},
      {"five million unknown groups in an entry",
       AroundGraph("") + Field(14, Times(5 * kMillion, "\x7b\x7c"))},
      {"five million unknown numbers",
       AroundGraph("") + Times(5 * kMillion, std::string("\x78\x00", 2))},
      {"five million unknown numbers of a dimension",
       AroundGraph(
           Field(11, Field(2, Field(1, Field(2, Field(1, Times(5 * kMillion,
                                                               std::string("\x78\x00", 2))))))))},
      {"five million bindings", AroundGraph("") + Field(20, Times(5 * kMillion, Field(4, "")))},
  };
  for (const Amplified& row : rows) {
    Guard guard;
    guard.Trying(row.name);
    const absl::Status status = AttemptBytes(row.bytes, kPath);
    EXPECT_FALSE(status.ok()) << row.name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(kPath)) << row.name;
    EXPECT_LT(guard.GrownBytes(), size_t{768} << 20) << row.name;
  }
}

// Time must not grow with the square of anything in the file.
TEST(Amplification, NothingQuadratic) {
  constexpr int kMany = 50000;
  std::string captures = "c = Constant <value = bool {1}> () ", reads, branches, outputs = "y";
  for (int i = 0; i < kMany; ++i) {
    absl::StrAppend(&captures, "v", i, " = Identity(x) ");
    absl::StrAppend(&reads, i == 0 ? "" : ", ", "v", i);
    absl::StrAppend(&outputs, ", v", i);
  }
  for (int i = 0; i < 2000; ++i) {
    absl::StrAppend(&branches, "b", i, " = If (c) <then_branch = g () => (t", i, ") { t", i,
                    " = Identity(x) }, "
                    "else_branch = h () => (e",
                    i, ") { e", i, " = Identity(x) }> ");
  }
  const Amplified rows[] = {
      {"a branch that reads 50000 values",
       absl::StrCat("m (float x) => (y) { ", captures,
                    "y = Relux(x) z = If (c) <then_branch = g () => (t) { t = Sum(", reads,
                    ") }, else_branch = h () => (e) { e = Sum(", reads, ") }> }")},
      {"2000 branches beside 50000 values",
       absl::StrCat("m (float x) => (y) { ", captures, branches, "y = Relux(x) }")},
      {"50000 outputs",
       absl::StrCat("m (float x) => (", outputs, ") { ", captures, "y = Relux(x) }")},
  };
  for (const Amplified& row : rows) {
    const Model model = TextModel(row.bytes);
    Guard guard;
    guard.Trying(row.name);
    EXPECT_THAT(std::string(Attempt(model).message()), HasSubstr("Relux")) << row.name;
  }
}

}  // namespace onward::hostile_bytes_test
