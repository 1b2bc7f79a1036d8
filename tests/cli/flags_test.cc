// SPDX-License-Identifier: Apache-2.0
// Every flag of `train` and `eval` does something: a row for each, run with the flag and without
// it, and something that shows the difference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <ostream>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/onnx_io/model.h"
#include "data/arrays/npy.h"
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

// '@' in texts is the test's folder. What is seen: the exit code (EXIT), standard output (OUT) or
// error (ERR), the model that is written without what it says of its flags (MODEL), or a file's
// text; files that are absent are "".
struct Row {
  std::string command;  // "train", "eval"
  std::string flag;     // as it is declared
  std::string base;     // the other arguments
  std::string given;    // the flag, with its value
  std::string seen;
  std::string with = "";  // what is in it with the flag, and not without
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.command << " " << row.flag; }

const char kTrain[] = "@m.onnx --data csv:@d.csv?label=label --batch 16 --json";
const char kOut[] = " -o @o.onnx";
const char kEval[] = " --eval csv:@d.csv?label=label";
const char kTwo[] = "@two.onnx --data csv:@d.csv?label=label --batch 16 --epochs 2 --quiet";
const char kNumbers[] = "@line.onnx --data npy:@x.npy,@z.npy --json";

std::vector<Row> TrainRows() {
  const std::string train = kTrain, out = kOut, all = train + out, eval = all + kEval;
  const std::string two = absl::StrCat(kTwo, kOut);
  return {
      {"train", "data", "@m.onnx --batch 16 -o @o.onnx", "--data csv:@d.csv?label=label", "EXIT",
       "0"},
      {"train", "output", train, "-o @o.onnx", "EXIT", "0"},
      {"train", "eval", all, kEval, "OUT", "eval_accuracy"},
      {"train", "epochs", all, "--epochs 3", "OUT", "\"steps\":12,"},
      {"train", "steps", all, "--steps 3", "OUT", "\"steps\":3,"},
      {"train", "batch", "@m.onnx --data csv:@d.csv?label=label --json -o @o.onnx", "--batch 10",
       "OUT", "\"steps\":5,"},
      {"train", "drop-last", all, "--drop-last", "OUT", "\"steps\":3,"},
      {"train", "seed", all, "--seed 3", "MODEL"},
      {"train", "lr", all, "--lr 0.5", "MODEL"},
      {"train", "resume", all + " --steps 9", "--resume", "EXIT", "0"},
      {"train", "overwrite", all, "--overwrite", "EXIT", "0"},
      {"train", "dry-run", train, "--dry-run", "OUT", "memory_bytes"},
      {"train", "find-lr", train, "--find-lr", "OUT", "suggested_lr"},
      {"train", "save-config", all, "--save-config @c.toml", "c.toml", "batch = 16"},
      {"train", "external-data", "@conv.onnx --data npy:@p.npy,@q.npy -o @o.onnx",
       "--external-data", "FOLDER", "o.onnx.data-"},
      {"train", "initialize", all, "--initialize", "MODEL"},
      {"train", "no-shuffle", all, "--no-shuffle", "MODEL"},
      {"train", "save-every", all + " --keep 9", "--save-every 3", "FOLDER", "o.step-3.onnx"},
      {"train", "keep", all, "--keep 1", "FOLDER", "o.step-4.onnx"},
      {"train", "eval-every", eval + " --log @l", "--eval-every 2", "l",
       "\"step\":2,\"eval_loss\""},
      {"train", "metric", eval + " --best @b.onnx", "--metric accuracy", "b.onnx", "accuracy 1"},
      {"train", "best", eval, "--best @b.onnx", "FOLDER", "b.onnx"},
      {"train", "patience", eval + " --epochs 9 --lr 0", "--patience 1", "OUT", "\"steps\":8,"},
      {"train", "time-limit", all + " --epochs 9", "--time-limit 0.0001s", "OUT", "\"steps\":1,"},
      {"train", "on-nan", "@m.onnx --data npy:@nan.npy,@b.npy --batch 1 -o @o.onnx",
       "--on-nan skip", "EXIT", "0"},
      {"train", "report", all, "--report @r.html", "r.html", "<svg"},
      // A run that fails before its first save leaves the page that was there to be watched.
      {"train", "watch",
       "@line.onnx --data npy:@x.npy,@z.npy --eval npy:@x.npy,@z.npy --batch 4 -o @m.onnx "
       "--overwrite --optimizer sgd:lr=1e30 --report @r.html",
       "--watch", "r.html", "Failed at step"},
      {"train", "tensorboard", all + " --steps 1", "--tensorboard @tb", "FOLDER", "tb"},
      {"train", "log", all, "--log @l", "l", "\"step\":4"},
      {"train", "quiet", all, "--quiet", "ERR"},
      {"train", "json", "@m.onnx --data csv:@d.csv?label=label --batch 16 -o @o.onnx", "--json",
       "OUT", "{\"output\":"},
      // What makes a model trainable.
      {"train", "loss", two, "--loss cross_entropy:label_smoothing=0.3", "MODEL"},
      {"train", "train", two, "--train v", "MODEL"},
      {"train", "freeze", two, "--freeze v", "MODEL"},
      {"train", "train-output", two, "--train-output z", "MODEL"},
      {"train", "optimizer", two, "--optimizer sgd:lr=0.1", "MODEL"},
      {"train", "schedule", two, "--schedule cosine", "MODEL", "cosine:total=8"},
      {"train", "group", two, "--group v:lr=10x", "MODEL"},
      {"train", "no-decay", two + " --lr 1", "--no-decay v", "MODEL"},
      {"train", "lora", two, "--lora v:rank=1", "MODEL"},
      {"train", "precision", two, "--precision bfloat16", "MODEL"},
      {"train", "accumulate", two, "--accumulate 2", "MODEL"},
      {"train", "ema", eval, "--ema 0.9", "OUT", "ema_eval_accuracy"},
      {"train", "init", two + " --initialize", "--init constant:val=0.5", "MODEL"},
      {"train", "freeze-statistics", two, "--freeze-statistics", "MODEL"},
      {"train", "clip-norm", two + " --optimizer sgd", "--clip-norm 0.001", "MODEL"},
      {"train", "clip-value", two + " --optimizer sgd", "--clip-value 0.001", "MODEL"},
      {"train", "clip-adaptive", two + " --optimizer sgd", "--clip-adaptive 0.001", "MODEL"},
      {"train", "head", "@m.onnx --data csv:@three.csv?label=label --batch 16 -o @o.onnx",
       "--head 3", "EXIT", "0"},
      {"train", "gradient", two, "--gradient expanded", "MODEL"},
      {"train", "label", two, "--label kind", "MODEL", "kind"},
      // How it is computed.
      {"train", "threads", "@m.onnx --data csv:@d.csv?label=label -o @o.onnx", "--threads 3", "ERR",
       "threads     3"},
      {"train", "exact-conv", "@conv.onnx --data npy:@p.npy,@q.npy --batch 4 -o @o.onnx",
       "--exact-conv", "MODEL"},
      {"train", "memory-limit", all, "--memory-limit 1", "EXIT", "2"},
      {"train", "device", all, "--device cuda:99", "EXIT", "2"},
      {"train", "require-device", all, "--require-device", "EXIT", "2"},
      {"train", "allow-nondeterministic", all, "--allow-nondeterministic", "EXIT", "2"},
      {"train", "allow-tf32", all, "--allow-tf32", "EXIT", "2"},
      {"train", "plugin", all, "--plugin @none.so", "EXIT", "2"},
  };
}

std::vector<Row> EvalRows() {
  const std::string classes = "@two.onnx --data csv:@d.csv?label=label --json";
  return {
      {"eval", "data", "@m.onnx", "--data csv:@d.csv?label=label", "EXIT", "0"},
      {"eval", "loss", classes, "--loss cross_entropy:label_smoothing=0.3", "OUT"},
      {"eval", "train-output", classes, "--train-output z", "OUT"},
      {"eval", "batch", absl::StrCat(kNumbers, " --loss mse:reduction=sum"), "--batch 5", "OUT"},
      {"eval", "at-least", classes, "--at-least 0.99", "EXIT", "1"},
      {"eval", "at-most", kNumbers, "--at-most 0.001", "EXIT", "1"},
      {"eval", "json", "@m.onnx --data csv:@d.csv?label=label", "--json", "OUT", "{\"model\":"},
      {"eval", "threads", classes, "--threads 0", "ERR", "an integer in [1, 1024]"},
      {"eval", "exact-conv", "@conv.onnx --data npy:@p.npy,@q.npy --json", "--exact-conv", "OUT"},
      {"eval", "memory-limit", classes, "--memory-limit 1", "EXIT", "2"},
      {"eval", "device", classes, "--device cuda:99", "EXIT", "2"},
      {"eval", "require-device", classes, "--require-device", "EXIT", "2"},
      {"eval", "ema", classes, "--ema", "ERR", "holds no averages"},
      {"eval", "allow-nondeterministic", classes, "--allow-nondeterministic", "EXIT", "2"},
      {"eval", "allow-tf32", classes, "--allow-tf32", "EXIT", "2"},
      {"eval", "plugin", classes, "--plugin @none.so", "EXIT", "2"},
  };
}

std::vector<Row> AllRows() {
  std::vector<Row> rows = TrainRows();
  for (Row& row : EvalRows()) rows.push_back(std::move(row));
  return rows;
}

class EveryFlag : public ::testing::TestWithParam<Row> {
 protected:
  // Once with the flag, once without, each in a folder of its own.
  std::string Seen(bool with) {
    const Row& row = GetParam();
    const Scratch scratch;
    Prepare(scratch);
    if (row.flag == "resume" || row.flag == "overwrite") {
      EXPECT_EQ(Run(scratch, absl::StrCat("train ", kTrain, kOut)).exit_code, 0);
    }
    const CommandResult r =
        Run(scratch, absl::StrCat(row.command, " ", row.base, with ? " " + row.given : ""));
    EXPECT_NE(r.exit_code, -1);
    errors_ = r.errors;
    if (row.seen == "EXIT") return absl::StrCat(r.exit_code);
    if (row.seen == "OUT") return r.output;
    if (row.seen == "ERR") return absl::StrReplaceAll(r.errors, {{scratch.folder(), "@"}});
    if (row.seen == "MODEL") return ModelText(scratch.Path("o.onnx"));
    if (row.seen == "FOLDER") return Names(scratch.folder());
    return scratch.Read(row.seen);
  }
  static CommandResult Run(const Scratch& scratch, const std::string& line) {
    return RunOnward(BuiltProgram(),
                     absl::StrReplaceAll(line, {{"@", scratch.folder() + "/"}, {"?", "\\?"}}));
  }
  static std::string ModelText(const std::string& path) {
    auto model = ReadModel(path);
    if (!model.ok()) return "";
    model->SetMetadata("onward.train_flags", "");
    return Bytes(*model);
  }
  static std::string Names(const std::string& folder) {
    std::set<std::string> names;
    for (const auto& e : fs::directory_iterator(folder)) names.insert(e.path().filename().string());
    return absl::StrJoin(names, " ");
  }

  static void Prepare(const Scratch& scratch) {
    const auto write = [&](const char* name, const std::string& text) {
      ASSERT_TRUE(WriteModel(TextModel(text), scratch.Path(name)).ok());
    };
    write("m.onnx", LinearClassifier(2, 2));
    write("line.onnx",
          "g (float[N, 2] x) => (float[N, 1] y) <float[2, 1] w = {1, 1}> { y = MatMul(x, w) }");
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
    scratch.Write("d.csv", ClassifiedCsv({"a", "b"}, 50));
    Tensor nan = Tensor::Zeros(DType::kFloat, {3, 2});
    nan.data<float>()[2] = std::nanf("");
    ASSERT_TRUE(WriteNpy(scratch.Path("nan.npy"), nan).ok());
    ASSERT_TRUE(WriteNpy(scratch.Path("b.npy"), Int64s({0, 1, 0})).ok());
    std::string three = "x0,x1,label\n";
    for (int i = 0; i < 48; ++i) {
      absl::StrAppend(&three, i % 3, ",", i % 5, ",", std::string(1, "abc"[i % 3]), "\n");
    }
    scratch.Write("three.csv", three);
    Tensor x(DType::kFloat, {20, 2}), z(DType::kFloat, {20, 1});
    for (int i = 0; i < 20; ++i) {
      x.data<float>()[2 * i] = static_cast<float>(i);
      x.data<float>()[2 * i + 1] = z.data<float>()[i] = 1;
    }
    Tensor p(DType::kFloat, {8, 16, 24, 24}), q(DType::kInt64, {8});
    for (int64_t i = 0; i < p.elements(); ++i) {
      p.data<float>()[i] = static_cast<float>(i * 31 % 97) * 0.013f;
    }
    for (int i = 0; i < 8; ++i) q.data<int64_t>()[i] = i;
    ASSERT_TRUE(WriteNpy(scratch.Path("x.npy"), x).ok());
    ASSERT_TRUE(WriteNpy(scratch.Path("z.npy"), z).ok());
    ASSERT_TRUE(WriteNpy(scratch.Path("p.npy"), p).ok());
    ASSERT_TRUE(WriteNpy(scratch.Path("q.npy"), q).ok());
  }

  std::string errors_;
};

TEST_P(EveryFlag, IsNoticed) {
  const std::string without = Seen(false), with = Seen(true);
  EXPECT_TRUE(with != without) << errors_;
  if (GetParam().with.empty()) return;
  EXPECT_THAT(with, HasSubstr(GetParam().with)) << errors_;
  EXPECT_THAT(without, Not(HasSubstr(GetParam().with)));
}

INSTANTIATE_TEST_SUITE_P(Rows, EveryFlag, ::testing::ValuesIn(AllRows()), [](const auto& info) {
  return absl::StrReplaceAll(absl::StrCat(info.param.command, "_", info.param.flag), {{"-", "_"}});
});

// The flags that --help lists.
std::set<std::string> Listed(const std::string& command) {
  std::set<std::string> names;
  std::istringstream lines(RunOnward(BuiltProgram(), command + " --help").output);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.rfind("--", 6);
    if (line.compare(0, 2, "  ") != 0 || at == std::string::npos) continue;
    if (line.substr(0, at) != "  " && line.substr(0, at) != "  -o, ") continue;
    names.insert(line.substr(at + 2, line.find_first_of(" \n", at) - at - 2));
  }
  names.erase("help");
  return names;
}

TEST(EveryFlagOf, TrainAndEvalHasARow) {
  for (const char* command : {"train", "eval"}) {
    std::set<std::string> rows;
    for (const Row& row : AllRows()) {
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
