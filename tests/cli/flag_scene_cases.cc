// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/onnx_io/model.h"
#include "core/onnx_io/value_file.h"
#include "data/arrays/npy.h"
#include "tests/cli/flag_scene.h"
#include "tests/support/classified.h"
#include "tests/support/paths.h"
#include "tests/support/text_model.h"

namespace onward {
namespace {

namespace fs = std::filesystem;

std::string ModelText(const std::string& path) {
  auto model = ReadModel(path);
  if (!model.ok()) return "";
  // What only repeats the flags.
  for (const char* key : {"train_flags", "precision", "ema", "clip", "groups", "accumulate", "run"})
    model->SetMetadata(absl::StrCat("onward.", key), "");
  return Bytes(*model);
}

std::string FileNames(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& e : fs::directory_iterator(folder)) names.insert(e.path().filename().string());
  return absl::StrJoin(names, " ");
}

// Two entries, each of which counts for itself.
Model TwoEntries() {
  const auto entry = [](const std::string& name) {
    return EntryText{.algorithm = absl::StrCat("a () => (float ", name, "_new) <float ", name,
                                               " = {0}, float one = {1}> { ", name, "_new = Add(",
                                               name, ", one) }"),
                     .update = {{name, name + "_new"}}};
  };
  return TextModel("g (float[N, 2] x) => (float[N, 2] y) { y = Abs(x) }",
                   {entry("first"), entry("second")});
}

}  // namespace

FlagScene::FlagScene(const FlagRow& row, bool with)
    : lines_(absl::StrCat(row.before, "\n", row.command, " ", row.base, with ? " " : "",
                          with ? row.given : "")),
      tells_teams_(row.seen == "TEAMS") {
  WriteModels();
  WriteDeviceModels();
  WriteData();
  WriteArrays();
  WriteCases();
  for (absl::string_view line : absl::StrSplit(row.before, '\n', absl::SkipEmpty())) {
    const CommandResult before = Run(std::string(line));
    EXPECT_EQ(before.exit_code, 0) << line << "\n" << before.errors;
  }
  result_ = Run(lines_.substr(lines_.rfind('\n') + 1), row.until);
  EXPECT_TRUE(result_.exit_code != -1 || !row.until.empty()) << result_.errors;
}

std::string FlagScene::Seen(const std::string& what) const {
  if (what == "EXIT") return absl::StrCat(result_.exit_code);
  if (what == "MODEL") return ModelText(scratch_.Path("o.onnx"));
  if (what == "FOLDER") return FileNames(scratch_.folder());
  return absl::StrReplaceAll(what == "OUT"                      ? result_.output
                             : what == "ERR" || what == "TEAMS" ? result_.errors
                                                                : scratch_.Read(what),
                             {{scratch_.folder(), "@"}});
}

CommandResult FlagScene::Run(const std::string& line, const std::string& until) const {
  const std::string arguments =
      absl::StrReplaceAll(line, {{"@", scratch_.folder() + "/"},
                                 {"?", "\\?"},
                                 {"%squared", BuiltExamples() + "/libsquared_relu.so"}});
  // What has no place of its own lands in the folder. The emulated device adds in another order
  // where it may.
  const std::string program = absl::StrCat(
      "cd ", scratch_.folder(), " && ONWARD_EMU_SEED=7 ",
      tells_teams_ ? "OMP_DISPLAY_AFFINITY=true OMP_AFFINITY_FORMAT='team of %N' " : "");
  return until.empty()
             ? RunOnward(program + BuiltProgram(), arguments)
             : RunOnwardUntil(program + "exec " + BuiltProgram(), arguments, scratch_.Path(until));
}

bool FlagScene::Names(const std::string& file) const {
  return absl::StrContains(lines_, absl::StrCat("@", file));
}

void FlagScene::WriteModelIfNamed(const std::string& name, const std::string& text) const {
  if (!Names(name)) return;
  ASSERT_TRUE(WriteModel(TextModel(text), scratch_.Path(name)).ok());
}

void FlagScene::WriteModels() const {
  WriteModelIfNamed("m.onnx", LinearClassifier(2, 2));
  WriteModelIfNamed(
      "line.onnx",
      "g (float[N, 2] x) => (float[N, 1] y) <float[2, 1] w = {1, 1}> { y = MatMul(x, w) }");
  WriteModelIfNamed(
      "fixed.onnx",
      "g (float[1, 2] x) => (float[1, 2] y) <float[2, 2] w = {1, 0.5, -1, 2}> { y = MatMul(x, w) "
      "}");
  WriteModelIfNamed(
      "open.onnx",
      "g (float[N, T, 2] x) => (float[N, T, 2] y) <float[2, 2] w = {1, 0.5, -1, 2}> { y = "
      "MatMul(x, w) }");
  // Made for four examples, without saying so.
  WriteModelIfNamed(
      "four.onnx",
      "g (float[N, 2] x) => (float[2, 4] y) <int64[2] s = {2, 4}> { y = Reshape(x, s) }");
  WriteModelIfNamed(
      "unsorted.onnx",
      absl::StrCat("g (float[N, 2] x) => (float[N, 2] y) <float[16, 16] w = {",
                   absl::StrJoin(std::vector<int>(256, 1), ", "), "}> { y = Relu(h) h = Neg(x) }"));
  WriteModelIfNamed(
      "zip.onnx",
      "<ir_version: 8, opset_import: [\"\" : 18, \"ai.onnx.ml\" : 3]> g (float[N, 2] x) => "
      "(seq(map(int64, float)) y) { s = Softmax(x) y = ai.onnx.ml.ZipMap <classlabels_int64s = "
      "[0, 1]> (s) }");
  WriteModelIfNamed(
      "other.onnx",
      "g (float[N, 2] x) => (float[N, 2] y, float[N, 2] z) <float[2, 2] w = {1, 0.5, -1, 2}, "
      "float[2, 2] v = {1, 2, 2, 1.1}> { h = MatMul(x, w) y = MatMul(h, v) z = Tanh(y) }");
  WriteModelIfNamed(
      "two.onnx",
      "g (float[N, 2] x) => (float[N, 2] y, float[N, 2] z) <float[2, 2] w = {1, 0.5, -1, 2}, "
      "float[2] s = {1, 1}, float[2] b = {0, 0}, float[2] mean = {0, 0}, float[2] var = {1, 1},"
      "float[2, 2] v = {1, 2, 2, 1}> { h = MatMul(x, w)"
      "  n = BatchNormalization(h, s, b, mean, var) y = MatMul(n, v) z = Tanh(y) }");
  if (Names("entries.onnx")) {
    ASSERT_TRUE(WriteModel(TwoEntries(), scratch_.Path("entries.onnx")).ok());
  }
  if (!Names("conv")) return;
  std::vector<double> weights;
  for (int i = 0; i < 16 * 16 * 9; ++i) weights.push_back(0.01 * (i * 7 % 23 - 11));
  ASSERT_TRUE(
      WriteModel(TextModel(absl::StrCat(
                     "g (float[N, 16, 24, 24] x) => (float[N, 16] y) <float[16, 16, 3, 3] w = {",
                     absl::StrJoin(weights, ", "),
                     "}> { c = Conv <pads = [1, 1, 1, 1]> (x, w) p = GlobalAveragePool(c) y = "
                     "Flatten(p) }")),
                 scratch_.Path("conv.onnx"))
          .ok());
}

// Classifiers of rows of two that show how they are computed.
void FlagScene::WriteDeviceModels() const {
  const auto write = [&](const char* name, const std::string& nodes, const char* constants = "") {
    WriteModelIfNamed(
        name, absl::StrCat("<ir_version: 8, opset_import: [\"\" : 18, \"com.example\" : 1]> "
                           "g (float[N, 2] x) => (float[N, 2] y) <float[2, 2] w = {0.1234567, "
                           "0.7654321, -0.3456789, 0.2345671}",
                           constants, "> { h = MatMul(x, w) ", nodes, " }"));
  };
  write("plain.onnx", "y = Identity(h)");
  write("plug.onnx", "y = com.example.SquaredRelu(h)");
  // Nothing learns through the determinant, which no device but the CPU knows.
  write("lacks.onnx",
        "t = Transpose(x) c = MatMul(t, x) d = Det(c) e = Mul(d, little) y = Add(h, e)",
        ", float little = {1e-9}");
  // What is left of a sum when the same is taken away tells in which order it was made.
  write(
      "order.onnx",
      "a = Mul(x, far) b = Sin(a) c = Mul(b, large) z = Mul(x, none) i = Cast <to = 7> (z) s = "
      "ScatterElements <axis = 0, reduction = \"add\"> (start, i, c) t = ReduceSum(c, rows) r = "
      "Sub(s, t) y = Add(h, r)",
      ", float far = {1234.5}, float large = {1000000}, float none = {0}, float[1, 2] start = {0, "
      "0}, int64[1] rows = {0}");
  // So many numbers that several threads share them.
  write("many.onnx",
        "m = ReduceMean <keepdims = 0> (x) q = Expand(m, size) r = Exp(q) u = ReduceMean <keepdims "
        "= 0> (r) e = Mul(u, little) y = Add(h, e)",
        ", float little = {1e-9}, int64[1] size = {400000}");
}

void FlagScene::WriteData() const {
  if (Names("d.csv")) scratch_.Write("d.csv", ClassifiedCsv({"a", "b"}, 50));
  if (!Names("three.csv")) return;
  std::string three = "x0,x1,label\n";
  for (int i = 0; i < 48; ++i) {
    absl::StrAppend(&three, i % 3, ",", i % 5, ",", std::string(1, "abc"[i % 3]), "\n");
  }
  scratch_.Write("three.csv", three);
}

void FlagScene::WriteArray(const std::string& name, const Tensor& tensor) const {
  ASSERT_TRUE(WriteNpy(scratch_.Path(name), tensor).ok());
}

void FlagScene::WriteArrays() const {
  if (Names("nan.npy")) {
    Tensor nan = Tensor::Zeros(DType::kFloat, {3, 2});
    nan.data<float>()[2] = std::nanf("");
    WriteArray("nan.npy", nan);
    WriteArray("b.npy", Int64s({0, 1, 0}));
  }
  Tensor x(DType::kFloat, {20, 2}), z(DType::kFloat, {20, 1}), l(DType::kInt64, {20});
  for (int i = 0; i < 20; ++i) {
    x.data<float>()[2 * i] = static_cast<float>(i);
    x.data<float>()[2 * i + 1] = z.data<float>()[i] = 1;
    l.data<int64_t>()[i] = i % 2;
  }
  WriteArray("x.npy", x);
  WriteArray("z.npy", z);
  WriteArray("l.npy", l);
  if (!Names("p.npy") && !Names("conv_cases")) return;
  Tensor p(DType::kFloat, {8, 16, 24, 24}), q(DType::kInt64, {8});
  for (int64_t i = 0; i < p.elements(); ++i) {
    p.data<float>()[i] = static_cast<float>(i * 31 % 97) * 0.013f;
  }
  for (int i = 0; i < 8; ++i) q.data<int64_t>()[i] = i;
  WriteArray("p.npy", p);
  WriteArray("q.npy", q);
}

void FlagScene::WriteCase(const std::string& name, const std::string& model_bytes, const Tensor& in,
                          const Tensor& out) const {
  scratch_.Write(name + "/model.onnx", model_bytes);
  for (const bool is_input : {true, false}) {
    const std::string file = name + "/test_data_set_0/" + (is_input ? "input_0.pb" : "output_0.pb");
    const Tensor& t = is_input ? in : out;
    scratch_.Write(file, "");
    ASSERT_TRUE(
        WriteValueFile(t, ValueType::Of(t.dtype(), t.shape()), "v", scratch_.Path(file)).ok());
  }
}

void FlagScene::WriteOwnCase(const std::string& name, const std::string& model,
                             const std::string& input, const std::string& flags) const {
  const CommandResult r =
      Run(absl::StrCat("run @", model, " -i x=@", input, " --output-dir @made ", flags));
  ASSERT_EQ(r.exit_code, 0) << r.errors;
  const auto x = ReadNpy(scratch_.Path(input)), y = ReadNpy(scratch_.Path("made/y.npy"));
  ASSERT_TRUE(x.ok() && y.ok());
  WriteCase(name, scratch_.Read(model), *x, *y);
}

void FlagScene::WriteCases() const {
  if (Names("cases")) {
    WriteCase("cases/one", Bytes(TextModel("g (float[1] x) => (float[1] y) { y = Abs(x) }")),
              Floats({-1}), Floats({1.05f}));
  }
  if (Names("conv_cases")) WriteOwnCase("conv_cases/one", "conv.onnx", "p.npy", "--exact-conv");
  for (const std::string kind : {"plain", "plug", "lacks", "order", "many"}) {
    if (!Names(kind + ".onnx_cases")) continue;
    WriteOwnCase(kind + ".onnx_cases/one", kind + ".onnx", "x.npy",
                 kind == "order"  ? "--device cuda-emu"
                 : kind == "plug" ? "--plugin %squared"
                                  : "");
  }
}

}  // namespace onward
