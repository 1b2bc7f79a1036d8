// SPDX-License-Identifier: Apache-2.0
// Large tensors beside the message, and in files beside the model: nothing is lost on
// the way, a save that is cut short changes nothing, and no file outlives its use.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/onnx_io/hold.h"
#include "core/onnx_io/proto.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::weights_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

namespace fs = std::filesystem;

constexpr int kMany = 3000;  // floats of a large tensor
constexpr WriteOptions kBeside = {.external_data = true};

std::string Raw(int floats, float first) {
  std::string bytes(floats * sizeof(float), '\0');
  for (int i = 0; i < floats; ++i) {
    const float value = first + static_cast<float>(i);
    std::memcpy(bytes.data() + i * sizeof(float), &value, sizeof(float));
  }
  return bytes;
}

void Fill(onnx::TensorProto* t, int floats, float first) {
  t->set_data_type(onnx::TensorProto::FLOAT);
  t->clear_float_data();
  t->clear_dims();
  t->add_dims(floats);
  t->set_raw_data(Raw(floats, first));
}

// A large tensor in every place that may hold one, among other fields of all kinds.
onnx::ModelProto EveryPlace() {
  Model model = TextModel(
      R"(m (float[3000] x, bool c) => (float[3000] y) <float[2] W = {0, 0}, float[2] small = {1, 2}> {
           k = Constant <value = float[2] {0, 0}> ()
           h = Add(x, k)
           b = If (c) <then_branch = t () => (float[3000] p) { p = Constant <value = float[2] {0, 0}> () },
                       else_branch = e () => (float[3000] q) { q = Identity(h) }>
           f = local.Shift(b)
           y = Mul(f, W)
         }
         <domain: "local", opset_import: ["" : 18]> Shift (a) => (r) {
           o = Constant <value = float[2] {0, 0}> ()
           r = Add(a, o)
         })",
      {{"a () => (float[3000] n) <float[2] S = {0, 0}> { n = Add(W, S) }",
        {{"W", "n"}},
        "i () => (float[3000] w) { w = Constant <value = float[2] {0, 0}> () }",
        {{"W", "w"}}}});
  onnx::ModelProto& proto = model.proto();
  const auto value = [](onnx::NodeProto* node) { return node->mutable_attribute(0)->mutable_t(); };
  onnx::GraphProto* graph = proto.mutable_graph();
  onnx::TrainingInfoProto* info = proto.mutable_training_info(0);
  float first = 0;
  for (onnx::TensorProto* t :
       {graph->mutable_initializer(0), value(graph->mutable_node(0)),
        value(graph->mutable_node(2)->mutable_attribute(0)->mutable_g()->mutable_node(0)),
        value(proto.mutable_functions(0)->mutable_node(0)),
        info->mutable_algorithm()->mutable_initializer(0),
        value(info->mutable_initialization()->mutable_node(0))}) {
    Fill(t, kMany, first += 10000);
  }
  // Fields before and behind the values, one that says what is so anyway, one that nobody knows.
  onnx::TensorProto* w = graph->mutable_initializer(0);
  w->set_doc_string("about W");
  w->set_data_location(onnx::TensorProto::DEFAULT);
  auto* metadata = w->add_metadata_props();
  metadata->set_key("key");
  metadata->set_value("value");
  EXPECT_TRUE(w->MergeFromString(std::string("\xf8\x07\x05", 3)));
  return proto;
}

// The bytes of every tensor of a model, in the order of its message.
std::vector<std::string> Values(const Model& model) {
  std::vector<std::string> values;
  const ExternalData external(model.folder(), &model.weights());
  ForEachTensor(model.proto(), [&](const onnx::TensorProto& t) {
    const auto tensor = TensorFromProto(t, &external);
    EXPECT_TRUE(tensor.ok()) << tensor.status();
    if (tensor.ok()) values.emplace_back(static_cast<const char*>(tensor->raw()), tensor->bytes());
    return true;
  });
  return values;
}

// W = first, first + 1, ...
Model Counting(float first, int floats = kMany) {
  Model model = TextModel("m (float[1] x) => (float[1] y) { y = Identity(x) }");
  onnx::TensorProto* t = model.proto().mutable_graph()->add_initializer();
  Fill(t, floats, first);
  t->set_name("W");
  return Reread(model);
}

float FirstOf(const Model& model) {
  const auto graph = InferenceGraph(model);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? graph->initializers.at("W").data<float>()[0] : -1;
}

class WeightsTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return scratch_.Path(name); }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& e : fs::directory_iterator(scratch_.folder()))
      names.push_back(e.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  // The one file of weights beside m.onnx.
  std::string DataFile() const {
    for (const std::string& name : Files()) {
      if (name.rfind("m.onnx.data-", 0) == 0) return name;
    }
    return "";
  }
  Scratch scratch_;
};

// What is taken out of the bytes is put back where it was.
TEST_F(WeightsTest, OneFileIsByteForByteWhatItWas) {
  const onnx::ModelProto proto = EveryPlace();
  const std::string bytes = proto.SerializeAsString();
  const std::string path = scratch_.Write("m.onnx", bytes);
  const auto parsed = ParseModel(bytes, path), read = ReadModel(path);
  for (const auto* model : {&parsed, &read}) {
    ASSERT_TRUE(model->ok()) << model->status();
    EXPECT_LT((*model)->proto().ByteSizeLong(), size_t{4096});  // no weights in the message
    EXPECT_EQ(SerializeModel(**model).value(), bytes);
    ASSERT_TRUE(WriteModel(**model, Path("copy.onnx")).ok());
    EXPECT_EQ(scratch_.Read("copy.onnx"), bytes);
  }
}

TEST_F(WeightsTest, BesideTheModelAndBack) {
  const std::string bytes = EveryPlace().SerializeAsString();
  const Model model = ParseModel(bytes, "m.onnx").value();
  ASSERT_TRUE(WriteModel(model, Path("m.onnx"), kBeside).ok());
  EXPECT_THAT(Files(), ElementsAre("m.onnx", MatchesRegex("m\\.onnx\\.data-[0-9a-f]{8}")));
  onnx::ModelProto written;
  ASSERT_TRUE(written.ParseFromString(scratch_.Read("m.onnx")));
  int moved = 0;
  ForEachTensor(written, [&](const onnx::TensorProto& t) {
    if (t.data_location() != onnx::TensorProto::EXTERNAL) return true;
    ++moved;
    EXPECT_FALSE(t.has_raw_data());
    EXPECT_EQ(t.external_data(0).value(), DataFile());
    int64_t offset = -1;
    EXPECT_TRUE(absl::SimpleAtoi(t.external_data(1).value(), &offset));
    EXPECT_EQ(offset % 4096, 0);
    EXPECT_EQ(t.external_data(2).value(), absl::StrCat(kMany * sizeof(float)));
    return true;
  });
  EXPECT_EQ(moved, 6);
  const Model read = ReadModel(Path("m.onnx")).value();
  EXPECT_EQ(Values(read), Values(model));
  // And all in one file again, which takes the other's place.
  ASSERT_TRUE(WriteModel(read, Path("m.onnx")).ok());
  EXPECT_THAT(Files(), ElementsAre("m.onnx"));
  EXPECT_EQ(Values(ReadModel(Path("m.onnx")).value()), Values(model));
}

TEST_F(WeightsTest, SmallModelsHaveNothingToMoveOut) {
  ASSERT_TRUE(WriteModel(Counting(1, 4), Path("m.onnx"), kBeside).ok());
  EXPECT_THAT(Files(), ElementsAre("m.onnx"));
}

TEST_F(WeightsTest, ValuesInTypedFieldsMoveOutToo) {
  Model model = TextModel("m (float[1] x) => (float[1] y) { y = Identity(x) }");
  onnx::TensorProto* t = model.proto().mutable_graph()->add_initializer();
  t->set_name("W");
  t->set_data_type(onnx::TensorProto::FLOAT);
  t->add_dims(kMany);
  for (int i = 0; i < kMany; ++i) t->add_float_data(static_cast<float>(5 + i));
  ASSERT_TRUE(WriteModel(model, Path("m.onnx"), kBeside).ok());
  EXPECT_LT(scratch_.Read("m.onnx").size(), 1000u);
  EXPECT_EQ(Values(ReadModel(Path("m.onnx")).value()), Values(Counting(5)));
}

// Zeros take no room, wherever they are.
TEST_F(WeightsTest, HolesForZeros) {
  constexpr int kFloats = 3 << 20;
  Model model = TextModel("m (float[1] x) => (float[1] y) { y = Identity(x) }");
  Tensor values = Tensor::Zeros(DType::kFloat, Shape{kFloats});
  values.data<float>()[kFloats / 2] = 5;
  TensorToProto(values, "W", model.proto().mutable_graph()->add_initializer(), &model.weights());
  ASSERT_TRUE(WriteModel(model, Path("m.onnx"), kBeside).ok());
  EXPECT_EQ(fs::file_size(Path(DataFile())), kFloats * sizeof(float));
  const Graph graph = InferenceGraph(ReadModel(Path("m.onnx")).value()).value();
  EXPECT_TRUE(Identical(graph.initializers.at("W"), values));
}

// A model that was read has its weights, whatever happens to its files.
TEST_F(WeightsTest, OverItselfAgainAndAgain) {
  ASSERT_TRUE(WriteModel(Counting(1), Path("m.onnx"), kBeside).ok());
  const Model first = ReadModel(Path("m.onnx")).value();
  const std::string data = DataFile();
  for (const float value : {2.f, 3.f}) {
    ASSERT_TRUE(WriteModel(Counting(value), Path("m.onnx"), kBeside).ok());
    EXPECT_THAT(Files(), ElementsAre("m.onnx", MatchesRegex("m\\.onnx\\.data-[0-9a-f]{8}")));
    EXPECT_NE(DataFile(), data);
    EXPECT_EQ(FirstOf(ReadModel(Path("m.onnx")).value()), value);
    EXPECT_EQ(FirstOf(first), 1);
  }
  ASSERT_TRUE(WriteModel(first, Path("m.onnx"), kBeside).ok());
  EXPECT_EQ(FirstOf(ReadModel(Path("m.onnx")).value()), 1);
  EXPECT_EQ(Files().size(), 2u);
}

TEST_F(WeightsTest, WhatOtherModelsNameStays) {
  ASSERT_TRUE(WriteModel(Counting(1), Path("m.onnx"), kBeside).ok());
  fs::rename(Path("m.onnx"), Path("best.onnx.1"));
  scratch_.Write("m.onnx.data", "somebody's");
  scratch_.Write("other.onnx.data-00000000", "another model's");
  scratch_.Write("broken.onnx", std::string(5000, '\0'));
  for (const float value : {2.f, 3.f}) {
    ASSERT_TRUE(WriteModel(Counting(value), Path("m.onnx"), kBeside).ok());
  }
  EXPECT_EQ(FirstOf(ReadModel(Path("best.onnx.1")).value()), 1);
  EXPECT_EQ(FirstOf(ReadModel(Path("m.onnx")).value()), 3);
  EXPECT_EQ(Files().size(), 7u);  // four above, the model, two generations of its weights
}

TEST_F(WeightsTest, LeftoversGoUnlessSomebodyWritesThem) {
  ASSERT_TRUE(WriteModel(Counting(1), Path("m.onnx"), kBeside).ok());
  scratch_.Write("m.onnx.data-0123abcd", "of a save that was killed");
  const std::string busy = scratch_.Write("m.onnx.data-4567abcd", "of a save that is going on");
  EXPECT_EQ(FirstOf(ReadModel(Path("m.onnx")).value()), 1);
  const FileDescriptor writer(open(busy.c_str(), O_RDWR));
  ASSERT_EQ(flock(writer.get(), LOCK_EX), 0);
  ASSERT_TRUE(WriteModel(Counting(2), Path("m.onnx"), kBeside).ok());
  EXPECT_FALSE(fs::exists(Path("m.onnx.data-0123abcd")));
  EXPECT_TRUE(fs::exists(busy));
  EXPECT_EQ(Files().size(), 3u);
}

int InChild(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Killed at any moment, model and weights are a pair that was written.
TEST_F(WeightsTest, KilledWhileSaving) {
  constexpr int kFloats = 1 << 18;
  const Model one = Counting(1, kFloats), other = Counting(2, kFloats);
  ASSERT_TRUE(WriteModel(one, Path("m.onnx"), kBeside).ok());
  for (int attempt = 0; attempt < 20; ++attempt) {
    const pid_t child = fork();
    if (child == 0) {
      for (int i = 0;; ++i) {
        if (!WriteModel(i % 2 == 0 ? other : one, Path("m.onnx"), kBeside).ok()) _exit(1);
      }
    }
    usleep(5000 + 1700 * attempt);
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    const auto read = ReadModel(Path("m.onnx"));
    ASSERT_TRUE(read.ok()) << read.status();
    const std::vector<std::string> values = Values(*read);
    EXPECT_TRUE(values == Values(one) || values == Values(other)) << attempt;
  }
  ASSERT_TRUE(WriteModel(one, Path("m.onnx"), kBeside).ok());
  EXPECT_EQ(Files().size(), 2u);
}

// Whoever reads while another saves gets a pair, too.
TEST_F(WeightsTest, ReadWhileSomebodySaves) {
  const Model one = Counting(1), other = Counting(2);
  ASSERT_TRUE(WriteModel(one, Path("m.onnx"), kBeside).ok());
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0;; ++i) {
      if (!WriteModel(i % 2 == 0 ? other : one, Path("m.onnx"), kBeside).ok()) _exit(1);
    }
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  int reads = 0;
  for (bool fine = true; fine && std::chrono::steady_clock::now() < end; ++reads) {
    const auto read = ReadModel(Path("m.onnx"));
    fine = read.ok() && InferenceGraph(*read).ok();
    EXPECT_TRUE(fine) << "read " << reads;
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_GT(reads, 10);
}

TEST_F(WeightsTest, CutShortIsNoticedBeforeItIsSaved) {
  ASSERT_TRUE(WriteModel(Counting(1), Path("m.onnx"), kBeside).ok());
  const Model model = ReadModel(Path("m.onnx")).value();
  fs::resize_file(Path(DataFile()), 100);
  const absl::Status status = WriteModel(model, Path("copy.onnx"));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(Path("m.onnx")));
  EXPECT_FALSE(fs::exists(Path("copy.onnx")));
  // And when it is read, by its length.
  EXPECT_THAT(std::string(InferenceGraph(ReadModel(Path("m.onnx")).value()).status().message()),
              HasSubstr("but the file has 100 bytes"));
}

TEST_F(WeightsTest, NoSpaceLeft) {
  ASSERT_TRUE(WriteModel(Counting(1), Path("m.onnx"), kBeside).ok());
  const std::vector<std::string> before = Files();
  const Model large = Counting(2, 1 << 18);
  const int code = InChild([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {1 << 16, 1 << 16};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
    const absl::Status status = WriteModel(large, Path("m.onnx"), kBeside);
    return status.code() == absl::StatusCode::kResourceExhausted ? 0 : 1;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(Files(), before);
  EXPECT_EQ(FirstOf(ReadModel(Path("m.onnx")).value()), 1);
}

// Weights lie beside the file that a link leads to, and are found by both ways.
TEST_F(WeightsTest, ThroughALink) {
  fs::create_directory(Path("disk"));
  fs::create_symlink("disk/real.onnx", Path("m.onnx"));
  ASSERT_TRUE(WriteModel(Counting(4), Path("m.onnx"), kBeside).ok());
  EXPECT_TRUE(fs::is_symlink(Path("m.onnx")));
  EXPECT_EQ(Files().size(), 2u);
  EXPECT_EQ(FirstOf(ReadModel(Path("m.onnx")).value()), 4);
  EXPECT_EQ(FirstOf(ReadModel(Path("disk/real.onnx")).value()), 4);
}

// Names that a location may not have.
TEST_F(WeightsTest, OddNames) {
  for (const std::string& name :
       {std::string("C:m.onnx"), std::string("a\\..\\m.onnx"), std::string("two\nlines.onnx"),
        std::string(255, 'n'), std::string("no_ending")}) {
    const std::string path = Path(name);
    for (const float value : {1.f, 2.f}) {
      ASSERT_TRUE(WriteModel(Counting(value), path, kBeside).ok()) << name;
      EXPECT_EQ(FirstOf(ReadModel(path).value()), value) << name;
      EXPECT_EQ(Files().size(), 2u) << name;
    }
    for (const std::string& file : Files()) fs::remove(Path(file));
  }
}

// Where the offset does not suit kernels, or each value has to be looked at, it is copied.
TEST_F(WeightsTest, UnalignedAndBool) {
  scratch_.Write("data", std::string(3, 'x') + Raw(kMany, 7) + std::string(kMany, '\2'));
  Model model = TextModel("m (float[1] x) => (float[1] y) { y = Identity(x) }");
  const auto add = [&](const char* name, int type, int64_t offset) {
    onnx::TensorProto* t = model.proto().mutable_graph()->add_initializer();
    t->set_name(name);
    t->set_data_type(type);
    t->add_dims(kMany);
    t->set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] :
         {std::pair("location", std::string("data")), std::pair("offset", absl::StrCat(offset))}) {
      auto* entry = t->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
  };
  add("W", onnx::TensorProto::FLOAT, 3);
  add("B", onnx::TensorProto::BOOL, 3 + kMany * sizeof(float));
  scratch_.Write("m.onnx", Bytes(model));
  const Graph graph = InferenceGraph(ReadModel(Path("m.onnx")).value()).value();
  const Tensor& w = graph.initializers.at("W");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(w.raw()) % 16, 0u);
  EXPECT_EQ(w.data<float>()[1], 8);
  EXPECT_EQ(graph.initializers.at("B").data<uint8_t>()[kMany - 1], 1);
}

// As onnx writes them where asked to: a file for each tensor, more than a process may open.
TEST_F(WeightsTest, AFileForEachTensor) {
  constexpr int kFiles = 1500;
  Model model = TextModel("m (float[1] x) => (float[1] y) { y = Identity(x) }");
  for (int i = 0; i < kFiles; ++i) {
    onnx::TensorProto* t = model.proto().mutable_graph()->add_initializer();
    Fill(t, 300, static_cast<float>(i));
    t->set_name(absl::StrCat("W", i));
    t->set_data_location(onnx::TensorProto::EXTERNAL);
    scratch_.Write(t->name(), t->raw_data());
    t->clear_raw_data();
    auto* entry = t->add_external_data();
    entry->set_key("location");
    entry->set_value(t->name());
  }
  scratch_.Write("m.onnx", Bytes(model));
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit usual = {1024, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
  const auto read = ReadModel(Path("m.onnx"));
  setrlimit(RLIMIT_NOFILE, &before);
  const Graph graph = InferenceGraph(read.value()).value();
  for (int i : {0, 300, kFiles - 1}) {
    EXPECT_EQ(graph.initializers.at(absl::StrCat("W", i)).data<float>()[1], i + 1);
  }
}

TEST_F(WeightsTest, TheKeyOfHeldWeightsIsNoFiles) {
  onnx::ModelProto proto = EveryPlace();
  auto* entry = proto.mutable_graph()->mutable_initializer(1)->add_external_data();
  entry->set_key(kHeldKey);
  entry->set_value("0");
  const auto model = ParseModel(proto.SerializeAsString(), "hostile.onnx");
  EXPECT_THAT(std::string(model.status().message()),
              AllOf(HasSubstr("hostile.onnx"), HasSubstr(kHeldKey)));
}

// Taken out of the message, wrong values are still wrong.
TEST_F(WeightsTest, WrongValues) {
  struct Row {
    const char* says;
    std::function<void(onnx::TensorProto*)> spoil;
  };
  const Row rows[] = {
      {"needs 11996", [](auto* t) { t->set_dims(0, kMany - 1); }},
      {"more than one place", [](auto* t) { t->add_float_data(1); }},
      {"more than one place", [](auto* t) { t->set_data_location(onnx::TensorProto::EXTERNAL); }},
      {"more than one place",
       [](auto* t) {
         auto* entry = t->add_external_data();
         entry->set_key("location");
         entry->set_value("data");
       }},
      {"strings cannot be in raw_data",
       [](auto* t) { t->set_data_type(onnx::TensorProto::STRING); }},
      {"unknown element type", [](auto* t) { t->set_data_type(99); }},
  };
  for (const Row& row : rows) {
    onnx::ModelProto proto = EveryPlace();
    row.spoil(proto.mutable_graph()->mutable_initializer(0));
    const auto model = ParseModel(proto.SerializeAsString(), "hostile.onnx");
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_THAT(std::string(InferenceGraph(*model).status().message()),
                AllOf(HasSubstr("hostile.onnx"), HasSubstr("tensor 'W'"), HasSubstr(row.says)));
  }
}

// The message of a model past 2 GiB in one file says what to do.
TEST_F(WeightsTest, OneFileOfMoreThanTwoGiB) {
  const std::string path = scratch_.Write("m.onnx", Bytes(Counting(1)));
  if (truncate(path.c_str(), off_t{1} << 31) != 0) GTEST_SKIP() << "no files of holes here";
  EXPECT_THAT(std::string(ReadModel(path).status().message()),
              AllOf(HasSubstr(path), HasSubstr("at most 2 GiB"), HasSubstr("external data")));
}

}  // namespace onward::weights_test
