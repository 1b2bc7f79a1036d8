// SPDX-License-Identifier: Apache-2.0
// Every flag does something: a row for each, run with the flag and without it, and something that
// shows the difference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <filesystem>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/onnx_io/model.h"
#include "core/onnx_io/value_file.h"
#include "data/arrays/npy.h"
#include "tests/cli/flag_rows.h"
#include "tests/support/classified.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

FlagRows AllRows() {
  FlagRows rows = TrainFlagRows();
  for (FlagRows& some : std::vector<FlagRows>{FileFlagRows(), RunFlagRows()}) {
    for (FlagRow& row : some) rows.push_back(std::move(row));
  }
  return rows;
}

class EveryFlag : public ::testing::TestWithParam<FlagRow> {
 protected:
  // Once with the flag, once without, each in a folder of its own.
  std::string Seen(bool with) {
    const FlagRow& row = GetParam();
    const Scratch scratch;
    Prepare(scratch);
    if (!row.before.empty()) {
      const CommandResult before = Run(scratch, row.before);
      EXPECT_EQ(before.exit_code, 0) << before.errors;
    }
    const CommandResult r =
        Run(scratch, absl::StrCat(row.command, " ", row.base, with ? " " + row.given : ""));
    EXPECT_NE(r.exit_code, -1);
    errors_ = r.errors;
    if (row.seen == "EXIT") return absl::StrCat(r.exit_code);
    if (row.seen == "MODEL") return ModelText(scratch.Path("o.onnx"));
    if (row.seen == "FOLDER") return Names(scratch.folder());
    return absl::StrReplaceAll(row.seen == "OUT"   ? r.output
                               : row.seen == "ERR" ? r.errors
                                                   : scratch.Read(row.seen),
                               {{scratch.folder(), "@"}});
  }
  static CommandResult Run(const Scratch& scratch, const std::string& line) {
    // What has no place of its own lands there.
    return RunOnward("cd " + scratch.folder() + " && " + BuiltProgram(),
                     absl::StrReplaceAll(line, {{"@", scratch.folder() + "/"}, {"?", "\\?"}}));
  }
  static std::string ModelText(const std::string& path) {
    auto model = ReadModel(path);
    if (!model.ok()) return "";
    // What only repeats the flags.
    for (const char* key : {"train_flags", "precision", "ema", "clip", "groups", "accumulate"})
      model->SetMetadata(absl::StrCat("onward.", key), "");
    return Bytes(*model);
  }
  static std::string Names(const std::string& folder) {
    std::set<std::string> names;
    for (const auto& e : fs::directory_iterator(folder)) names.insert(e.path().filename().string());
    return absl::StrJoin(names, " ");
  }

  static void Prepare(const Scratch& scratch) {
    PrepareModels(scratch);
    PrepareData(scratch);
    WriteCase(scratch, "cases/one", "g (float[1] x) => (float[1] y) { y = Abs(x) }",
              {Floats({-1}), Floats({1.05f})});
    if (GetParam().base.rfind("@conv_cases", 0) == 0) PrepareConvCase(scratch);
  }

  static void PrepareModels(const Scratch& scratch) {
    const auto write = [&](const char* name, const std::string& text) {
      ASSERT_TRUE(WriteModel(TextModel(text), scratch.Path(name)).ok());
    };
    write("m.onnx", LinearClassifier(2, 2));
    write("line.onnx",
          "g (float[N, 2] x) => (float[N, 1] y) <float[2, 1] w = {1, 1}> { y = MatMul(x, w) }");
    write("fixed.onnx",
          "g (float[1, 2] x) => (float[1, 2] y) <float[2, 2] w = {1, 0.5, -1, 2}> { y = MatMul(x, "
          "w) }");
    write("open.onnx",
          "g (float[N, T, 2] x) => (float[N, T, 2] y) <float[2, 2] w = {1, 0.5, -1, 2}> { y = "
          "MatMul(x, w) }");
    write("unsorted.onnx", absl::StrCat("g (float[N, 2] x) => (float[N, 2] y) <float[16, 16] w = {",
                                        absl::StrJoin(std::vector<int>(256, 1), ", "),
                                        "}> { y = Relu(h) h = Neg(x) }"));
    write("zip.onnx",
          "<ir_version: 8, opset_import: [\"\" : 18, \"ai.onnx.ml\" : 3]> g (float[N, 2] x) => "
          "(seq(map(int64, float)) y) { s = Softmax(x) y = ai.onnx.ml.ZipMap <classlabels_int64s = "
          "[0, 1]> (s) }");
    write("other.onnx",
          "g (float[N, 2] x) => (float[N, 2] y, float[N, 2] z) <float[2, 2] w = {1, 0.5, -1, 2}, "
          "float[2, 2] v = {1, 2, 2, 1.1}> { h = MatMul(x, w) y = MatMul(h, v) z = Tanh(y) }");
    write("two.onnx",
          "g (float[N, 2] x) => (float[N, 2] y, float[N, 2] z) <float[2, 2] w = {1, 0.5, -1, 2}, "
          "float[2] s = {1, 1}, float[2] b = {0, 0}, float[2] mean = {0, 0}, float[2] var = {1, 1},"
          "float[2, 2] v = {1, 2, 2, 1}> { h = MatMul(x, w)"
          "  n = BatchNormalization(h, s, b, mean, var) y = MatMul(n, v) z = Tanh(y) }");
    std::vector<double> weights;
    for (int i = 0; i < 16 * 16 * 9; ++i) weights.push_back(0.01 * (i * 7 % 23 - 11));
    write("conv.onnx",
          absl::StrCat("g (float[N, 16, 24, 24] x) => (float[N, 16] y) <float[16, 16, 3, 3] w = {",
                       absl::StrJoin(weights, ", "),
                       "}> { c = Conv <pads = [1, 1, 1, 1]> (x, w) p = GlobalAveragePool(c) y = "
                       "Flatten(p) }"));
  }

  static void PrepareData(const Scratch& scratch) {
    const auto write = [&](const char* name, const Tensor& tensor) {
      ASSERT_TRUE(WriteNpy(scratch.Path(name), tensor).ok());
    };
    scratch.Write("d.csv", ClassifiedCsv({"a", "b"}, 50));
    Tensor nan = Tensor::Zeros(DType::kFloat, {3, 2});
    nan.data<float>()[2] = std::nanf("");
    write("nan.npy", nan);
    write("b.npy", Int64s({0, 1, 0}));
    std::string three = "x0,x1,label\n";
    for (int i = 0; i < 48; ++i) {
      absl::StrAppend(&three, i % 3, ",", i % 5, ",", std::string(1, "abc"[i % 3]), "\n");
    }
    scratch.Write("three.csv", three);
    Tensor x(DType::kFloat, {20, 2}), z(DType::kFloat, {20, 1}), l(DType::kInt64, {20});
    for (int i = 0; i < 20; ++i) {
      x.data<float>()[2 * i] = static_cast<float>(i);
      x.data<float>()[2 * i + 1] = z.data<float>()[i] = 1;
      l.data<int64_t>()[i] = i % 2;
    }
    Tensor p(DType::kFloat, {8, 16, 24, 24}), q(DType::kInt64, {8});
    for (int64_t i = 0; i < p.elements(); ++i) {
      p.data<float>()[i] = static_cast<float>(i * 31 % 97) * 0.013f;
    }
    for (int i = 0; i < 8; ++i) q.data<int64_t>()[i] = i;
    write("x.npy", x);
    write("z.npy", z);
    write("l.npy", l);
    write("p.npy", p);
    write("q.npy", q);
  }

  // A case of `score`: a model, its input and its output.
  static void WriteCase(const Scratch& scratch, const std::string& name, const std::string& model,
                        const std::vector<Tensor>& in_and_out) {
    scratch.Write(name + "/model.onnx", Bytes(TextModel(model)));
    for (size_t i = 0; i < 2; ++i) {
      const std::string file = name + "/test_data_set_0/" + (i == 0 ? "input_0.pb" : "output_0.pb");
      const Tensor& t = in_and_out[i];
      scratch.Write(file, "");
      ASSERT_TRUE(
          WriteValueFile(t, ValueType::Of(t.dtype(), t.shape()), "v", scratch.Path(file)).ok());
    }
  }
  // What is expected is what --exact-conv gives.
  static void PrepareConvCase(const Scratch& scratch) {
    ASSERT_EQ(Run(scratch, "run @conv.onnx -i x=@p.npy --exact-conv --output-dir @exact").exit_code,
              0);
    const auto x = ReadNpy(scratch.Path("p.npy")), y = ReadNpy(scratch.Path("exact/y.npy"));
    ASSERT_TRUE(x.ok() && y.ok());
    WriteCase(scratch, "conv_cases/one", LinearClassifier(2, 2), {*x, *y});
    fs::copy_file(scratch.Path("conv.onnx"), scratch.Path("conv_cases/one/model.onnx"),
                  fs::copy_options::overwrite_existing);
  }

  std::string errors_;
};

TEST_P(EveryFlag, IsNoticed) {
  const std::string without = Seen(false), with = Seen(true);
  EXPECT_TRUE(with != without) << errors_;
  if (GetParam().with.empty()) {
    // That nothing is said at all shows enough.
    EXPECT_TRUE(with.empty() || without == Seen(false)) << "differs by itself";
    return;
  }
  EXPECT_THAT(with, HasSubstr(GetParam().with)) << errors_;
  EXPECT_THAT(without, Not(HasSubstr(GetParam().with)));
}

INSTANTIATE_TEST_SUITE_P(Rows, EveryFlag, ::testing::ValuesIn(AllRows()), [](const auto& info) {
  return absl::StrReplaceAll(absl::StrCat(info.param.command, "_", info.param.flag), {{"-", "_"}});
});

// The commands that --help lists.
std::set<std::string> ListedCommands() {
  std::set<std::string> names;
  std::istringstream lines(RunOnward(BuiltProgram(), "--help").output);
  for (std::string line; std::getline(lines, line);) {
    if (line.size() > 2 && line.compare(0, 2, "  ") == 0 && std::islower(line[2])) {
      names.insert(line.substr(2, line.find(' ', 2) - 2));
    }
  }
  return names;
}

// Its flags.
std::set<std::string> Listed(const std::string& command) {
  std::set<std::string> names;
  std::istringstream lines(RunOnward(BuiltProgram(), command + " --help").output);
  for (std::string line; std::getline(lines, line);) {
    // "  --name" or "  -n, --name".
    if (line.size() < 8) continue;
    const size_t at = line.compare(0, 4, "  --") == 0 ? 2 : line.compare(4, 4, ", --") == 0 ? 6 : 0;
    if (at > 0) names.insert(line.substr(at + 2, line.find(' ', at) - at - 2));
  }
  names.erase("help");
  return names;
}

TEST(EveryFlagOf, EveryCommandHasARow) {
  const std::set<std::string> commands = ListedCommands();
  EXPECT_GT(commands.size(), 20u);
  for (const std::string& command : commands) {
    std::set<std::string> rows;
    for (const FlagRow& row : AllRows()) {
      if (row.command == command) rows.insert(row.flag);
    }
    EXPECT_EQ(Listed(command), rows) << command;
  }
}

TEST(AtLeastAndAtMost, SayWhatIsMissing) {
  const Scratch scratch;
  ASSERT_TRUE(WriteModel(TextModel("g (float[N, 1] x) => (float[N, 1] y) <float[1, 1] w = {1}> { y "
                                   "= MatMul(x, w) }"),
                         scratch.Path("line.onnx"))
                  .ok());
  ASSERT_TRUE(WriteModel(TextModel(LinearClassifier(2, 2)), scratch.Path("m.onnx")).ok());
  scratch.Write("d.csv", ClassifiedCsv({"a", "b"}, 20));
  scratch.Write("r.csv", "x,y\n1,2.5\n2,3.5\n");
  const std::string numbers =
      "eval " + scratch.Path("line.onnx") + " --data 'csv:" + scratch.Path("r.csv") + "?label=y' ";
  const std::string classes =
      "eval " + scratch.Path("m.onnx") + " --data 'csv:" + scratch.Path("d.csv") + "?label=label' ";
  for (const auto& [line, code, message] : std::vector<std::tuple<std::string, int, std::string>>{
           {numbers + "--at-least 0.9", 2, "--at-most E asks for an RMSE"},
           {numbers + "--at-most 1", 1, "RMSE 1.5 is above --at-most 1"},
           {numbers + "--at-most 1.5", 0, ""},
           {classes + "--at-most 1", 2, "--at-least A asks for an accuracy"},
           {classes + "--at-least 0.75", 1, "accuracy 0.5000 is below --at-least 0.75"},
           {classes + "--at-least 0.5", 0, ""},
           {classes + "--train-output q", 2, "'q' is not an output of the model; there are: y"}}) {
    const CommandResult r = RunOnward(BuiltProgram(), line);
    EXPECT_EQ(r.exit_code, code) << line << r.errors;
    EXPECT_THAT(r.errors, HasSubstr(message)) << line;
  }
}

}  // namespace
}  // namespace onward
