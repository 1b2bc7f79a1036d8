// SPDX-License-Identifier: Apache-2.0
// Models whose weights lie beside them, as a user meets them; one of 3 GiB among them.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/onnx_io/model.h"
#include "core/onnx_io/proto.h"
#include "data/arrays/npy.h"
#include "tests/support/classified.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::large_model_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

namespace fs = std::filesystem;

constexpr int64_t kMiB = int64_t{1} << 20;

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& e : fs::directory_iterator(folder))
    names.push_back(e.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

const char kDataOf[] = ".data-[0-9a-f]{8}";

// --- three GiB

constexpr int64_t kWidth = 8192, kRows = 57344, kTrained = 4096;
constexpr int64_t kBytes = 4 * kWidth * (kRows + 4 * kWidth + 2 * kTrained);
static_assert(kBytes == 3072 * kMiB);

int64_t AvailableMemory() {
  std::ifstream info("/proc/meminfo");
  for (std::string line; std::getline(info, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    int64_t kib = 0;
    if (words[0] == "MemAvailable:" && absl::SimpleAtoi(words[1], &kib)) return kib << 10;
  }
  return 0;
}

int64_t FreeDisk(const std::string& folder) {
  struct statvfs info;
  return statvfs(folder.c_str(), &info) == 0
             ? static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize)
             : 0;
}

struct Measurement {
  int exit_code = -1;
  int64_t peak_bytes = 0;
  double seconds = 0;
};

// As RunOnward, but it tells the most memory that the process had.
Measurement Measured(const std::vector<std::string>& words) {
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    std::string program = BuiltProgram();
    std::vector<char*> argv = {program.data()};
    for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
    argv.push_back(nullptr);
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  Measurement run;
  int status = 0;
  rusage usage = {};
  wait4(child, &status, 0, &usage);
  if (WIFEXITED(status)) run.exit_code = WEXITSTATUS(status);
  run.peak_bytes = static_cast<int64_t>(usage.ru_maxrss) << 10;
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return run;
}

// A table and four products that stay as they are, a table that is trained and, in the
// training graph, its momentum. All zero but for a few elements, and on disk but holes.
class ThreeGiB : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const int64_t disk = FreeDisk(scratch_.folder()); disk < 2 * kBytes) {
      GTEST_SKIP() << "SKIPPED: 6 GiB of disk needed in case it knows no holes, " << disk / kMiB
                   << " MiB are free in " << scratch_.folder();
    }
    if (const int64_t memory = AvailableMemory(); memory < 2 * kBytes) {
      GTEST_SKIP() << "SKIPPED: 6 GiB of memory needed, " << memory / kMiB << " MiB are free";
    }
    Model model = TextModel(
        R"(m (int64[2] ids, float[2, 8192] x) => (float[2, 8192] y) {
             e = Gather(E, ids)
             s = Add(x, e)
             h1 = MatMul(s, W1)
             h2 = MatMul(h1, W2)
             h3 = MatMul(h2, W3)
             h4 = MatMul(h3, W4)
             t = Gather(T, ids)
             y = Add(h4, t)
           })",
        {{R"(a () => (float loss, float[4096, 8192] T_new, float[4096, 8192] M_new)
             <float decay = {0.5}, float rate = {0.1}> {
               p = Mul(x, y)
               loss = ReduceSum <keepdims = 0> (p)
               g = ai.onnx.preview.training.Gradient <xs = ["T"], y = "loss"> (T)
               m = Mul(decay, M)
               M_new = Add(m, g)
               d = Mul(rate, M_new)
               T_new = Sub(T, d)
             })",
          {{"T", "T_new"}, {"M", "M_new"}}}});
    onnx::GraphProto* graph = model.proto().mutable_graph();
    onnx::GraphProto* algorithm = model.proto().mutable_training_info(0)->mutable_algorithm();
    AddWeight("E", kRows, graph);
    for (const char* name : {"W1", "W2", "W3", "W4"}) AddWeight(name, kWidth, graph);
    AddWeight("T", kTrained, graph);
    AddWeight("M", kTrained, algorithm);
    scratch_.Write("m.onnx", Bytes(model));
    WriteSparse();
    Tensor x(DType::kFloat, {2, kWidth});
    std::fill_n(x.data<float>(), kWidth, 1.f);
    std::fill_n(x.data<float>() + kWidth, kWidth, 2.f);
    ASSERT_TRUE(WriteNpy(Path("x.npy"), x).ok());
    ASSERT_TRUE(WriteNpy(Path("ids.npy"), Int64s({3, 4000})).ok());
  }

  void AddWeight(const char* name, int64_t rows, onnx::GraphProto* graph) {
    onnx::TensorProto* t = graph->add_initializer();
    t->set_name(name);
    t->set_data_type(onnx::TensorProto::FLOAT);
    t->add_dims(rows);
    t->add_dims(kWidth);
    t->set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : {std::pair("location", std::string("weights.bin")),
                                     std::pair("offset", absl::StrCat(size_)),
                                     std::pair("length", absl::StrCat(4 * rows * kWidth))}) {
      auto* entry = t->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    size_ += 4 * rows * kWidth;
  }
  // The last element of E is 7, the last of W4 is 9.
  void WriteSparse() {
    const FileDescriptor file(open(Path("weights.bin").c_str(), O_CREAT | O_RDWR, 0600));
    ASSERT_EQ(ftruncate(file.get(), size_), 0);
    const float seven = 7, nine = 9;
    const off_t e_end = 4 * kRows * kWidth, w_end = e_end + 16 * kWidth * kWidth;
    ASSERT_EQ(pwrite(file.get(), &seven, 4, e_end - 4), 4);
    ASSERT_EQ(pwrite(file.get(), &nine, 4, w_end - 4), 4);
  }
  void Step(const std::string& from, const std::string& to) {
    const Measurement run =
        Measured({"step", Path(from), "--input", "ids=" + Path("ids.npy"), "--input",
                  "x=" + Path("x.npy"), "-o", Path(to), "--overwrite"});
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_LT(run.peak_bytes, kBytes / 10 * 13) << from << " -> " << to;
    std::cerr << "  " << from << " -> " << to << ": " << run.peak_bytes / kMiB << " MiB, "
              << run.seconds << " s\n";
  }
  // x is 1 in the first example and 2 in the second, and so is the gradient.
  void ExpectTrained(const std::string& name, float moved) {
    const Model model = ReadModel(Path(name)).value();
    const Graph graph = InferenceGraph(model).value();
    const auto at = [&](const char* weight, int64_t row, int64_t column) {
      return graph.initializers.at(weight).data<float>()[row * kWidth + column];
    };
    EXPECT_FLOAT_EQ(at("T", 3, 0), -moved);
    EXPECT_FLOAT_EQ(at("T", 4000, kWidth - 1), -2 * moved);
    EXPECT_EQ(at("T", 5, 0), 0);
    EXPECT_EQ(at("E", kRows - 1, kWidth - 1), 7);
    EXPECT_EQ(at("W4", kWidth - 1, kWidth - 1), 9);
  }
  std::string Path(const std::string& name) const { return scratch_.Path(name); }

  Scratch scratch_;
  int64_t size_ = 0;
};

// "1.3 times its size of memory" for load, step and save, also of what was saved, also over
// itself.
TEST_F(ThreeGiB, StepsSavesAndResumes) {
  Step("m.onnx", "out.onnx");
  ExpectTrained("out.onnx", 0.1f);
  Step("out.onnx", "out.onnx");
  ExpectTrained("out.onnx", 0.1f + 0.15f);
  EXPECT_THAT(
      FilesIn(scratch_.folder()),
      ElementsAre("ids.npy", "m.onnx", "out.onnx",
                  MatchesRegex(absl::StrCat("out\\.onnx\\", kDataOf)), "weights.bin", "x.npy"));
}

// --- on request

class ExternalDataFlag : public ::testing::Test {
 protected:
  void SetUp() override {
    const Graph graph = InferenceGraph(TextModel(LinearClassifier(40, 40))).value();
    ASSERT_TRUE(WriteModel(ModelFromGraph(graph, 8, "test"), Path("m.onnx")).ok());
    Tensor x = Tensor::Zeros(DType::kFloat, {64, 40}), y = Tensor::Zeros(DType::kInt64, {64});
    for (int i = 0; i < 64; ++i) {
      x.data<float>()[i * 40 + i % 40] = 1;
      y.data<int64_t>()[i] = i % 40;
    }
    ASSERT_TRUE(WriteNpy(Path("x.npy"), x).ok());
    ASSERT_TRUE(WriteNpy(Path("y.npy"), y).ok());
    data_ = " --batch 16 --quiet --data npy:" + Path("x.npy") + "," + Path("y.npy");
  }
  std::string Path(const std::string& name) const { return scratch_.Path(name); }
  void Onward(const std::string& line) {
    const CommandResult r = RunOnward(BuiltProgram(), line);
    EXPECT_EQ(r.exit_code, 0) << line << "\n" << r.errors;
  }
  int DataFiles(const std::string& model) const {
    int count = 0;
    for (const std::string& name : FilesIn(scratch_.folder()))
      count += name.rfind(model + ".data-", 0) == 0;
    return count;
  }
  // Weights beside it, and the same model as `other`.
  void ExpectBeside(const std::string& name, const std::string& other) {
    EXPECT_EQ(DataFiles(name), 1) << name;
    EXPECT_THAT(scratch_.Read(name), HasSubstr(name + ".data-"));
    const Model beside = ReadModel(Path(name)).value(), one = ReadModel(Path(other)).value();
    EXPECT_EQ(Bytes(beside), Bytes(one)) << name;
  }
  Scratch scratch_;
  std::string data_;
};

TEST_F(ExternalDataFlag, OnEveryCommandThatWritesModels) {
  struct Row {
    std::string name, line;
  };
  const std::string steps = data_ + " --steps 3";
  const Row rows[] = {
      {"t", "make-trainable " + Path("m.onnx") + " --loss cross_entropy --optimizer adamw"},
      {"r", "train " + Path("t.onnx") + steps},
      {"e", "export " + Path("r.onnx")},
      {"l", "export " + Path("r.onnx") + " --like " + Path("m.onnx")},
      {"p", "export " + Path("r.onnx") + " --portable-step"},
      {"g", "gradient " + Path("m.onnx") + " --of y --wrt x"},
  };
  for (const Row& row : rows) {
    Onward(row.line + " -o " + Path(row.name + ".onnx"));
    EXPECT_EQ(DataFiles(row.name + ".onnx"), 0);
    Onward(row.line + " --external-data -o " + Path(row.name + "_x.onnx"));
    ExpectBeside(row.name + "_x.onnx", row.name + ".onnx");
  }
  // What has its weights beside it is as good as what has them inside.
  Onward("train " + Path("t_x.onnx") + steps + " -o " + Path("r2.onnx"));
  EXPECT_EQ(scratch_.Read("r2.onnx"), scratch_.Read("r.onnx"));
  Onward("export " + Path("r_x.onnx") + " -o " + Path("e2.onnx"));
  EXPECT_EQ(scratch_.Read("e2.onnx"), scratch_.Read("e.onnx"));
}

// Saving every step over the file that the weights are mapped from.
TEST_F(ExternalDataFlag, ResumesOverItself) {
  Onward("train " + Path("m.onnx") + data_ + " --steps 6 -o " + Path("whole.onnx"));
  const std::string flags = data_ + " --save-every 1 --external-data -o " + Path("out.onnx");
  Onward("train " + Path("m.onnx") + " --steps 2" + flags);
  Onward("train " + Path("m.onnx") + " --resume --steps 4" + flags);
  Onward("train " + Path("m.onnx") + " --resume --steps 6" + flags);
  ExpectBeside("out.onnx", "whole.onnx");
  // And back into one file, which leaves nothing beside it.
  Onward("train " + Path("m.onnx") + data_ + " --resume --steps 7 -o " + Path("out.onnx"));
  EXPECT_EQ(DataFiles("out.onnx"), 0);
}

TEST_F(ExternalDataFlag, StepsOverItself) {
  Onward("make-trainable " + Path("m.onnx") + " --loss cross_entropy --optimizer sgd -o " +
         Path("t.onnx"));
  Tensor x = Tensor::Zeros(DType::kFloat, {2, 40});
  x.data<float>()[0] = 1;
  ASSERT_TRUE(WriteNpy(Path("x2.npy"), x).ok());
  ASSERT_TRUE(WriteNpy(Path("y2.npy"), Int64s({1, 2})).ok());
  const std::string feeds =
      " --input x=" + Path("x2.npy") + " --input label=" + Path("y2.npy") + " -o ";
  Onward("step " + Path("t.onnx") + " -n 2" + feeds + Path("two.onnx"));
  Onward("step " + Path("t.onnx") + " --external-data" + feeds + Path("s.onnx"));
  Onward("step " + Path("s.onnx") + " --external-data --overwrite" + feeds + Path("s.onnx"));
  ExpectBeside("s.onnx", "two.onnx");
}

}  // namespace onward::large_model_test
