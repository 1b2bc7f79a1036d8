// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "absl/strings/str_cat.h"
#include "tests/cli/flag_rows.h"

namespace onward {
namespace {

const char kRun[] = "@two.onnx -i x=@x.npy";
const char kStep[] = "@t.onnx -i x=@x.npy -i label=@l.npy";
const char kStepConv[] = "@c.onnx -i x=@p.npy -i label=@q.npy -o @o.onnx";

std::string Predict() { return absl::StrCat("@two.onnx ", kRowData, " -o @p.csv"); }
std::string Doctor() { return absl::StrCat("@two.onnx ", kRowData, " --json --steps 3"); }

FlagRow Same(std::string command, std::string flag, std::string base, std::string given,
             std::string seen) {
  return {.command = std::move(command),
          .flag = std::move(flag),
          .base = std::move(base),
          .given = std::move(given),
          .seen = std::move(seen),
          .same = true};
}

FlagRows RunRows() {
  return {
      {"run", "input", "@two.onnx", "-i x=@x.npy", "EXIT", "0"},
      {"run", "output-dir", kRun, "--output-dir @out", "FOLDER", "out"},
      {"run", "only", kRun, "--only z", "OUT"},
      {"run", "no-zipmap", "@zip.onnx -i x=@x.npy", "--no-zipmap", "OUT", "y: float[20, 2]"},
      {"run", "json", kRun, "--json", "OUT", "{\"output\":"},
      {"run", "exact-conv", "@conv.onnx -i x=@p.npy --output-dir @out", "--exact-conv",
       "out/y.npy"},
      {"score", "rtol", "@cases", "--rtol 0.1", "EXIT", "0"},
      {"score", "atol", "@cases", "--atol 0.1", "EXIT", "0"},
      {"score", "json", "@cases", "--json", "OUT", "{\"case\":"},
      {"score", "exact-conv", "@conv_cases --rtol 0 --atol 0", "--exact-conv", "EXIT", "0"},
      {"compare", "input", "@two.onnx @other.onnx", "-i x=@x.npy", "OUT"},
      {"compare", "values", "@two.onnx @other.onnx", "--values all", "OUT"},
      {"compare", "rtol", "@two.onnx @other.onnx -i x=@x.npy", "--rtol 1", "EXIT", "0"},
      {"compare", "atol", "@two.onnx @other.onnx -i x=@x.npy", "--atol 100", "EXIT", "0"},
      {"compare", "json", "@two.onnx @other.onnx", "--json", "OUT", "{"},
      {"compare", "exact-conv", "@conv.onnx @out --rtol 0 --atol 0 -i x=@p.npy", "--exact-conv",
       "EXIT", "0", "run @conv.onnx -i x=@p.npy --exact-conv --output-dir @out"},
  };
}

FlagRows StepRows() {
  const std::string step = kStep, make = kRowMake;
  return {
      {"step", "input", "@t.onnx -i label=@l.npy", "-i x=@x.npy", "EXIT", "0", make},
      {"step", "n", step + " -o @o.onnx", "-n 3", "MODEL", "", make},
      {"step", "entry", "@entries.onnx -i x=@x.npy -o @o.onnx", "--entry 1", "MODEL"},
      {"step", "initialize", step + " -o @o.onnx", "--initialize", "MODEL", "", make},
      {"step", "output", step, "-o @o.onnx", "FOLDER", " o.onnx", make},
      {"step", "overwrite", step + " -o @t.onnx", "--overwrite", "EXIT", "0", make},
      {"step", "external-data", kStepConv, "--external-data", "FOLDER", "o.onnx.data-",
       kRowMakeConv},
      {"step", "output-dir", step, "--output-dir @out", "FOLDER", "out", make},
      {"step", "only", step, "--only loss", "OUT", "", make},
      {"step", "json", step, "--json", "OUT", "{\"output\":", make},
      {"step", "exact-conv", kStepConv, "--exact-conv", "MODEL", "", kRowMakeConv},
  };
}

FlagRows PredictRows() {
  const std::string plain = absl::StrCat("@two.onnx ", kRowData);
  return {
      {"predict", "data", "@two.onnx -o @p.csv", kRowData, "EXIT", "0"},
      {"predict", "output", plain, "-o @p.csv", "FOLDER", "p.csv"},
      {"predict", "top", Predict(), "--top 2", "p.csv"},
      {"predict", "probabilities", Predict(), "--probabilities", "p.csv"},
      {"predict", "train-output", Predict(), "--train-output z", "p.csv"},
      // Of fewer examples at once the values fit.
      {"predict", "batch", Predict() + " --memory-limit 600", "--batch 1", "EXIT", "0"},
      {"predict", "json", plain, "--json", "OUT", "{"},
      {"predict", "exact-conv", "@conv.onnx --data npy:@p.npy,@q.npy --probabilities -o @p.csv",
       "--exact-conv", "p.csv"},
  };
}

FlagRows DoctorRows() {
  const std::string plain = absl::StrCat("@two.onnx ", kRowData);
  return {
      {"doctor", "data", "@two.onnx --steps 3", kRowData, "EXIT", "1"},
      {"doctor", "batch", Doctor(), "--batch 10", "OUT"},
      {"doctor", "steps", plain + " --json", "--steps 5", "OUT"},
      {"doctor", "seed", Doctor() + " --batch 8", "--seed 3", "OUT"},
      {"doctor", "lr", Doctor(), "--lr 0.5", "OUT", "\"one_batch_rate\":0.5"},
      {"doctor", "initialize", Doctor(), "--initialize", "OUT"},
      {"doctor", "quiet", plain, "--quiet", "ERR"},
      {"doctor", "json", plain, "--json", "OUT", "{\"one_batch_rate\":"},
      {"doctor", "exact-conv", "@conv.onnx --data npy:@p.npy,@q.npy --batch 4 --steps 3 --json",
       "--exact-conv", "OUT"},
      {"doctor", "init", Doctor() + " --initialize", "--init constant:val=0.5", "OUT"},
      // The forms differ by rounding, which grows with the steps.
      {"doctor", "gradient", plain + " --json --steps 40", "--gradient expanded", "OUT"},
      // Rates are tried constant, averages and names change nothing of what is learned.
      Same("doctor", "schedule", Doctor(), "--schedule exponential:gamma=0.9", "OUT"),
      Same("doctor", "ema", Doctor(), "--ema 0.9", "OUT"),
      Same("doctor", "label", Doctor(), "--label kind", "OUT"),
  };
}

FlagRows BenchRows() {
  return {
      {"bench", "mode", "@two.onnx --seconds 0 --json", "--mode infer", "OUT",
       "\"mode\":\"infer\""},
      {"bench", "seconds", "@two.onnx --json", "--seconds 0", "OUT", "\"n\":5,"},
      {"bench", "batch", "@two.onnx --seconds 0 --plan", "--batch 7", "ERR"},
      {"bench", "size", "@open.onnx --seconds 0 --mode infer", "--size T=3", "EXIT", "0"},
      {"bench", "profile", "@two.onnx --seconds 0.1", "--profile", "ERR", "MatMul"},
      {"bench", "trace", "@two.onnx --seconds 0.1 --profile", "--trace @trace.json", "FOLDER",
       " trace.json"},
      {"bench", "plan", "@two.onnx --seconds 0", "--plan", "ERR", "MatMul"},
      {"bench", "json", "@two.onnx --seconds 0", "--json", "OUT", "{\"model\":"},
      {"bench", "exact-conv", "@conv.onnx --batch 8 --seconds 0 --plan", "--exact-conv", "ERR"},
      // Which weights a step begins with makes no difference to its time.
      Same("bench", "init", "@two.onnx --seconds 0 --plan", "--init constant:val=0.5", "ERR"),
  };
}

}  // namespace

FlagRows RunFlagRows() {
  FlagRows rows;
  std::map<std::pair<std::string, std::string>, bool> own;
  for (FlagRows& some :
       std::vector<FlagRows>{RunRows(), StepRows(), PredictRows(), DoctorRows(), BenchRows()}) {
    for (FlagRow& row : some) {
      own[{row.command, row.flag}] = true;
      rows.push_back(std::move(row));
    }
  }
  for (const FlagValue& f : AuthorFlagValues()) {
    if (!own[{"doctor", f.flag}]) rows.push_back({"doctor", f.flag, Doctor(), f.given, "OUT"});
    if (own[{"bench", f.flag}]) continue;
    rows.push_back({"bench", f.flag, "@two.onnx --seconds 0 --plan --batch 4", f.given, "ERR"});
  }
  return rows;
}

}  // namespace onward
