// SPDX-License-Identifier: Apache-2.0
// Tensor data outside the model file: nothing but regular, unlinked files below
// the model's folder is read, and never more than they hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "core/onnx_io/proto.h"
#include "tests/support/attempt.h"
#include "tests/support/guard.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::external_data_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

using Keys = std::vector<std::pair<std::string, std::string>>;

void SetExternal(onnx::TensorProto* t, const std::vector<int64_t>& dims, const Keys& keys) {
  t->set_data_type(onnx::TensorProto::FLOAT);
  t->clear_float_data();
  t->clear_dims();
  for (int64_t d : dims) t->add_dims(d);
  t->set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] : keys) {
    auto* entry = t->add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
}

constexpr char kModel[] = "m (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { y = Mul(x, W) }";

// A folder with a model in models/ and, beside it, what external data may name:
//   secret (outside), data (8 bytes), link and out (symbolic), hard, folder, fifo.
class ExternalDataTest : public ::testing::Test {
 protected:
  void SetUp() override {
    scratch_.Write("secret", "12345678");
    scratch_.Write("outside/data", "12345678");
    scratch_.Write("models/data", "12345678");
    scratch_.Write("models/sub/data", "12345678");
    scratch_.Write("models/once", "12345678");
    fs::create_symlink("../secret", In("link"));
    fs::create_symlink("data", In("inside_link"));
    fs::create_directory_symlink("../outside", In("out"));
    fs::create_symlink("loop", In("loop"));
    fs::create_hard_link(In("once"), In("hard"));
    fs::create_directory(In("folder"));
    ASSERT_EQ(mkfifo(In("fifo").c_str(), 0600), 0);
  }
  std::string In(const std::string& name) const { return scratch_.Path("models/" + name); }

  absl::Status Try(const std::vector<int64_t>& dims, const Keys& keys) {
    Model model = TextModel(kModel);
    SetExternal(model.proto().mutable_graph()->mutable_initializer(0), dims, keys);
    model.set_path(In("hostile.onnx"));
    Guard guard;
    guard.Trying(keys.empty() ? "no keys" : keys[0].second);
    absl::Status status = Attempt(model);
    EXPECT_LT(guard.GrownBytes(), size_t{256} << 20);
    return status;
  }

  void ExpectRefusal(const Keys& keys, const std::string& says,
                     const std::vector<int64_t>& dims = {2}) {
    const absl::Status status = Try(dims, keys);
    EXPECT_FALSE(status.ok()) << (keys.empty() ? "" : keys[0].second);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("hostile.onnx"), HasSubstr("tensor 'W'"), HasSubstr(says)));
  }

  Scratch scratch_;
};

TEST_F(ExternalDataTest, ReadsWhatIsThere) {
  EXPECT_TRUE(Try({2}, {{"location", "data"}}).ok());
  EXPECT_TRUE(Try({2}, {{"location", "sub/data"}, {"offset", "0"}, {"length", "8"}}).ok());
}

// A result must not speak of files that lie beside what it was made from.
TEST_F(ExternalDataTest, WritingTakesItAlong) {
  Model model = TextModel(
      R"(m (float[2] x, bool c) => (float[2] y) <float[2] W = {0, 0}> {
           k = Constant <value = float[2] {0, 0}> ()
           h = Add(x, k)
           b = If (c) <then_branch = t () => (float[2] p) { p = Constant <value = float[2] {0, 0}> () },
                       else_branch = e () => (float[2] q) { q = Identity(h) }>
           f = local.Shift(b)
           y = Mul(f, W)
         }
         <domain: "local", opset_import: ["" : 18]> Shift (a) => (r) {
           o = Constant <value = float[2] {0, 0}> ()
           r = Add(a, o)
         })",
      {{"a () => (float[2] n) <float[2] S = {0, 0}> { n = Add(W, S) }",
        {{"W", "n"}},
        "i () => (float[2] w) { w = Constant <value = float[2] {0, 0}> () }",
        {{"W", "w"}}}});
  onnx::ModelProto& proto = model.proto();
  const auto value = [](onnx::NodeProto* node) { return node->mutable_attribute(0)->mutable_t(); };
  onnx::GraphProto* graph = proto.mutable_graph();
  onnx::TrainingInfoProto* info = proto.mutable_training_info(0);
  const std::vector<onnx::TensorProto*> tensors = {
      graph->mutable_initializer(0),
      value(graph->mutable_node(0)),
      value(graph->mutable_node(2)->mutable_attribute(0)->mutable_g()->mutable_node(0)),
      value(proto.mutable_functions(0)->mutable_node(0)),
      info->mutable_algorithm()->mutable_initializer(0),
      value(info->mutable_initialization()->mutable_node(0))};
  for (onnx::TensorProto* t : tensors) SetExternal(t, {2}, {{"location", "data"}});
  model.set_path(In("model.onnx"));

  fs::create_directory(scratch_.Path("elsewhere"));
  const std::string path = scratch_.Path("elsewhere/model.onnx");
  ASSERT_TRUE(WriteModel(model, path).ok());
  fs::remove(In("data"));
  auto read = ReadModel(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(Bytes(*read).find("location"), std::string::npos);
  EXPECT_EQ(read->proto().graph().initializer(0).raw_data(), "12345678");
  EXPECT_EQ(read->proto().training_info(0).algorithm().initializer(0).raw_data(), "12345678");
  // The model in memory still reads what its own file names; that is gone now.
  const absl::Status status = WriteModel(model, path);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("model.onnx"), HasSubstr("tensor")));
  EXPECT_TRUE(ReadModel(path).ok());
}

TEST_F(ExternalDataTest, WritingSparesWhatTheModelReads) {
  Model model = TextModel(kModel);
  SetExternal(model.proto().mutable_graph()->mutable_initializer(0), {2}, {{"location", "data"}});
  model.set_path(In("model.onnx"));
  const absl::Status status = WriteModel(model, In("sub/../data"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("it holds weights of"));
  EXPECT_EQ(scratch_.Read("models/data"), "12345678");
}

TEST_F(ExternalDataTest, NothingOutsideTheFolder) {
  for (const char* location :
       {"../secret", "sub/../../secret", "..", "a/b/../../../secret", "sub\\..\\..\\secret"}) {
    ExpectRefusal({{"location", location}}, "leaves the model's folder");
  }
  for (const char* location :
       {"/etc/hostname", "//etc/hostname", "\\etc\\hostname", "C:\\secret"}) {
    ExpectRefusal({{"location", location}}, "absolute");
  }
  ExpectRefusal({{"location", scratch_.Path("models/data")}}, "absolute");
}

TEST_F(ExternalDataTest, NoLinks) {
  for (const char* location : {"link", "inside_link", "out/data", "loop"}) {
    ExpectRefusal({{"location", location}}, "links are not followed");
  }
  for (const char* location : {"hard", "once"})
    ExpectRefusal({{"location", location}}, "hard links");
}

TEST_F(ExternalDataTest, OnlyRegularFiles) {
  ExpectRefusal({{"location", "missing"}}, "No such file");
  ExpectRefusal({{"location", "missing/data"}}, "No such file");
  ExpectRefusal({{"location", "data/data"}}, "Not a directory");
  ExpectRefusal({{"location", "folder"}}, "not a regular file");
  ExpectRefusal({{"location", "fifo"}}, "not a regular file");
  ExpectRefusal({{"location", ""}}, "no file is named");
  ExpectRefusal({{"location", "."}}, "no file is named");
  ExpectRefusal({}, "no file is named");
  ExpectRefusal({{"location", std::string("data\0x", 6)}}, "NUL");
  ExpectRefusal({{"location", std::string(100000, 'a')}}, "too long");
}

TEST_F(ExternalDataTest, OffsetAndLength) {
  for (const char* number : {"-1", "-9223372036854775808", "abc", "0x10", " 8", "8 ", "1e3", "+1",
                             "", "99999999999999999999"}) {
    ExpectRefusal({{"location", "data"}, {"offset", number}}, "is not a number");
    ExpectRefusal({{"location", "data"}, {"length", number}}, "is not a number");
  }
  for (const char* offset : {"1", "8", "9", "9223372036854775807", "9999999999999999999"}) {
    ExpectRefusal({{"location", "data"}, {"offset", offset}}, "but the file has 8 bytes");
  }
  for (const char* length : {"0", "4", "12", "1099511627776", "9999999999999999999"}) {
    ExpectRefusal({{"location", "data"}, {"length", length}},
                  "does not match the tensor's 8 bytes");
  }
  ExpectRefusal({{"location", "data"}, {"length", "8"}}, "but the file has 8 bytes", {3});
  ExpectRefusal({{"location", "data"}, {"length", "8"}}, "does not match the tensor's 4 bytes",
                {1});
  ExpectRefusal({{"location", "data"}, {"location", "sub/data"}}, "given twice");
  ExpectRefusal({{"location", "data"}, {"offset", "0"}, {"offset", "0"}}, "given twice");
}

TEST_F(ExternalDataTest, ManyKeys) {
  Keys keys = {{"location", "missing"}};
  for (int i = 0; i < 200000; ++i) keys.emplace_back(absl::StrCat("key", i), "");
  ExpectRefusal(keys, "external data");
}

// Shapes that the file cannot fill are refused before memory is asked for.
TEST_F(ExternalDataTest, HugeShapes) {
  ExpectRefusal({{"location", "data"}}, "but the file has 8 bytes", {int64_t{1} << 31});
  ExpectRefusal({{"location", "data"}}, "but the file has 8 bytes", {int64_t{1} << 40});
  ExpectRefusal({{"location", "data"}, {"length", "8"}}, "but the file has 8 bytes",
                {int64_t{1} << 46});
  ExpectRefusal({{"location", "data"}}, "too many elements", {int64_t{1} << 40, int64_t{1} << 40});
}

// A file of holes costs the disk nothing.
TEST_F(ExternalDataTest, MoreThanTheMemory) {
  const std::string holes = scratch_.Write("models/holes", "");
  if (truncate(holes.c_str(), off_t{1} << 42) != 0)
    GTEST_SKIP() << "the file system has no files of holes";
  ExpectRefusal({{"location", "holes"}}, "memory", {int64_t{1} << 40});
  // Here the limit of the guard is what the machine has.
  ExpectRefusal({{"location", "holes"}}, "memory", {int64_t{1} << 30});
}

// Every place that may hold a tensor goes through the same door.
TEST_F(ExternalDataTest, EveryPlace) {
  const Keys escape = {{"location", "../secret"}};
  Model sparse = TextModel(kModel);
  auto* s = sparse.proto().mutable_graph()->add_sparse_initializer();
  s->add_dims(2);
  TensorToProto(Int64s({0, 1}), "", s->mutable_indices());
  s->mutable_values()->set_name("S");
  SetExternal(s->mutable_values(), {2}, escape);

  Model attribute = TextModel("m () => (float[2] y) { y = Constant <value = float[2] {1, 2}> () }");
  SetExternal(attribute.proto().mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_t(),
              {2}, escape);

  Model branch = TextModel(
      "m (bool c) => (y) { y = If (c) <then_branch = g () => (t) { t = Constant <value = float[2] "
      "{1, 2}> () }, "
      "else_branch = h () => (e) { e = Constant <value = float[2] {1, 2}> () }> }");
  SetExternal(branch.proto()
                  .mutable_graph()
                  ->mutable_node(0)
                  ->mutable_attribute(1)
                  ->mutable_g()
                  ->mutable_node(0)
                  ->mutable_attribute(0)
                  ->mutable_t(),
              {2}, escape);

  Model function = TextModel(
      "m () => (float[2] y) { y = local.f() }\n"
      "<domain: \"local\", opset_import: [\"\" : 18]> f () => (b) { b = Constant <value = float[2] "
      "{1, 2}> () }");
  SetExternal(
      function.proto().mutable_functions(0)->mutable_node(0)->mutable_attribute(0)->mutable_t(),
      {2}, escape);

  const EntryText entry = {"a () => (float[2] n) <float[2] S = {0, 0}> { n = Add(S, x) }",
                           {{"S", "n"}},
                           "i () => (float[2] w) <float[2] w = {0, 0}> {}",
                           {{"W", "w"}}};
  Model algorithm = TextModel(kModel, {entry});
  SetExternal(
      algorithm.proto().mutable_training_info(0)->mutable_algorithm()->mutable_initializer(0), {2},
      escape);
  Model initialization = TextModel(kModel, {entry});
  SetExternal(initialization.proto()
                  .mutable_training_info(0)
                  ->mutable_initialization()
                  ->mutable_initializer(0),
              {2}, escape);

  for (Model* model : {&sparse, &attribute, &branch, &function, &algorithm, &initialization}) {
    model->set_path(In("hostile.onnx"));
    const absl::Status status = Attempt(*model);
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr("leaves the model's folder"));
  }
}

}  // namespace onward::external_data_test
