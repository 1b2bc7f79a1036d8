// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "tests/cli/flag_rows.h"

namespace onward {
namespace {

FlagRows ReadingRows() {
  return {
      {"inspect", "loss", "@two.onnx", "--loss mse", "OUT", "of 'loss'"},
      {"inspect", "train", "@two.onnx", "--train v", "OUT", "1 of 1 weights"},
      {"inspect", "freeze", "@two.onnx", "--freeze v", "OUT", "of 'loss'"},
      {"inspect", "train-output", "@two.onnx", "--train-output z", "OUT"},
      {"inspect", "json", "@two.onnx", "--json", "OUT", "{\"model\":"},
      {"inspect", "batch", "@four.onnx --device cpu", "--batch 4", "OUT", "; 0 copies"},
      {"check", "fix", "@unsorted.onnx -o @o.onnx", "--fix", "EXIT", "0"},
      {"check", "output", "@unsorted.onnx --fix", "-o @o.onnx", "EXIT", "0"},
      {"check", "overwrite", "@unsorted.onnx --fix -o @unsorted.onnx", "--overwrite", "EXIT", "0"},
      {"check", "external-data", "@unsorted.onnx --fix -o @o.onnx", "--external-data", "FOLDER",
       "o.onnx.data-"},
      {"check", "json", "@unsorted.onnx", "--json", "OUT", "{\"rule\":"},
      {"check", "plugin", "@plug.onnx", "--plugin %squared", "EXIT", "0"},
  };
}

FlagRows MakingRows() {
  const std::string make = "@two.onnx -o @o.onnx", data = kRowData, mlp = "mlp " + data;
  FlagRows rows = {
      {"make-trainable", "output", "@two.onnx", "-o @o.onnx", "EXIT", "0"},
      {"make-trainable", "overwrite", "@two.onnx -o @two.onnx", "--overwrite", "EXIT", "0"},
      {"make-trainable", "external-data", "@conv.onnx -o @o.onnx", "--external-data", "FOLDER",
       "o.onnx.data-"},
      {"make-trainable", "seed", make + " --head 3", "--seed 3", "MODEL"},
      {"make-trainable", "free-batch", "@fixed.onnx -o @o.onnx", "--free-batch", "MODEL"},
      {"make-trainable", "json", make, "--json", "OUT", "{"},
      {"make-trainable", "plugin", "@plug.onnx -o @o.onnx", "--plugin %squared", "EXIT", "0"},
      {"new", "data", "mlp -o @o.onnx", data, "EXIT", "0"},
      {"new", "output", mlp, "-o @o.onnx", "EXIT", "0"},
      {"new", "overwrite", mlp + " -o @m.onnx", "--overwrite", "EXIT", "0"},
      {"new", "external-data", mlp + " -o @o.onnx", "--external-data", "FOLDER", "o.onnx.data-"},
      {"new", "seed", mlp + " -o @o.onnx", "--seed 3", "MODEL"},
      // New models are made of standard operators.
      {.command = "new",
       .flag = "plugin",
       .base = mlp + " -o @o.onnx",
       .given = "--plugin %squared",
       .seen = "MODEL",
       .same = true},
  };
  for (const FlagValue& f : AuthorFlagValues()) {
    rows.push_back({"make-trainable", f.flag, make, f.given, "MODEL"});
  }
  return rows;
}

FlagRows ExportRows() {
  const std::string out = "@t.onnx -o @o.onnx", make = kRowMake, lora = make + " --lora v:rank=1";
  const std::string table = absl::StrCat("train mlp ", kRowData, " -o @t.onnx");
  return {
      {"export", "output", "@t.onnx", "-o @o.onnx", "EXIT", "0", make},
      {"export", "overwrite", "@t.onnx -o @t.onnx", "--overwrite", "EXIT", "0", make},
      {"export", "external-data", "@c.onnx -o @o.onnx", "--external-data", "FOLDER", "o.onnx.data-",
       kRowMakeConv},
      {"export", "like", out, "--like @two.onnx", "MODEL", "", make},
      {"export", "merge", out, "--merge none", "MODEL", "", lora},
      {"export", "adapters", out, "--adapters @a.onnx", "FOLDER", "a.onnx", lora},
      {"export", "apply", "@two.onnx -o @o.onnx", "--apply @a.onnx", "MODEL", "",
       absl::StrCat("train @two.onnx --lora v:rank=1 --lr 0.1 --quiet -o @t.onnx ", kRowData,
                    "\nexport @t.onnx --adapters @a.onnx -o @merged.onnx")},
      {"export", "raw", out, "--raw columns", "MODEL", "IsNaN", table},
      {"export", "names", out, "--names", "MODEL", "", table},
      {"export", "ema", out, "--ema", "MODEL", "",
       absl::StrCat("train @two.onnx --ema 0.9 ", kRowData, " -o @t.onnx")},
      {"export", "portable-step", out, "--portable-step", "MODEL", "", make},
      {"export", "entry", out + " --portable-step", "--entry 1", "ERR", "training_info[1]", make},
      {"export", "plugin", out + " --portable-step", "--plugin %squared", "EXIT", "0",
       "make-trainable @plug.onnx --plugin %squared -o @t.onnx"},
  };
}

FlagRows GradientRows() {
  const std::string to = " -o @o.onnx", all = "@two.onnx --of y --wrt x" + to;
  return {
      {"gradient", "of", "@two.onnx --wrt x" + to, "--of y", "EXIT", "0"},
      {"gradient", "wrt", "@two.onnx --of y" + to, "--wrt x", "EXIT", "0"},
      {"gradient", "order", "@two.onnx --of z --wrt x" + to, "--order 2", "MODEL"},
      {"gradient", "seed", all, "--seed y=start", "MODEL", "start"},
      {"gradient", "stop", all, "--stop n", "MODEL"},
      {"gradient", "hessian-vector", all, "--hessian-vector", "MODEL", "x__hvp"},
      {"gradient", "output", "@two.onnx --of y --wrt x", "-o @o.onnx", "EXIT", "0"},
      {"gradient", "overwrite", "@two.onnx --of y --wrt x -o @two.onnx", "--overwrite", "EXIT",
       "0"},
      {"gradient", "external-data", "@conv.onnx --of y --wrt w" + to, "--external-data", "FOLDER",
       "o.onnx.data-"},
      {"gradient", "plugin", "@plug.onnx --of y --wrt x" + to, "--plugin %squared", "EXIT", "0"},
  };
}

FlagRows TextRows() {
  const std::string log = absl::StrCat("train @m.onnx ", kRowData, " --log @log -o @o.onnx");
  FlagRows rows = {
      {"report", "output", "@log", "-o @r.html", "FOLDER", "r.html", log},
      // Of a run that has not ended.
      {"report", "watch", "@log -o @r.html", "--watch", "r.html", "http-equiv=\"refresh\"",
       log + " --quiet && sed -i '$d' @log", "r.html"},
      {"report", "json", "@log", "--json", "OUT", "{\"title\":", log},
      {"ops", "plugin", "", "--plugin %squared", "OUT", "SquaredRelu"},
      {"man", "into", "", "--into @man", "FOLDER", "man"},
  };
  for (const char* table : {"ops", "losses", "optimizers", "schedules", "initializers"}) {
    rows.push_back({table, "json", "", "--json", "OUT", "{"});
    rows.push_back({table, "markdown", "", "--markdown", "OUT", "|---|"});
  }
  return rows;
}

}  // namespace

std::vector<FlagValue> AuthorFlagValues() {
  return {{"loss", "--loss cross_entropy:label_smoothing=0.3"},
          {"train", "--train v"},
          {"freeze", "--freeze v"},
          {"train-output", "--train-output z"},
          {"optimizer", "--optimizer sgd:lr=0.1"},
          {"schedule", "--schedule exponential:gamma=0.9"},
          {"group", "--group v:lr=10x"},
          {"no-decay", "--no-decay v"},
          {"lora", "--lora v:rank=1"},
          {"init", "--init constant:val=0.5"},
          {"freeze-statistics", "--freeze-statistics"},
          {"accumulate", "--accumulate 2"},
          {"ema", "--ema 0.9"},
          {"precision", "--precision bfloat16"},
          {"clip-norm", "--clip-norm 0.001"},
          {"clip-value", "--clip-value 0.001"},
          {"clip-adaptive", "--clip-adaptive 0.001"},
          {"head", "--head 3"},
          {"gradient", "--gradient expanded"},
          {"label", "--label kind"}};
}

FlagRows FileFlagRows() {
  FlagRows rows;
  for (FlagRows& some : std::vector<FlagRows>{ReadingRows(), MakingRows(), ExportRows(),
                                              GradientRows(), TextRows()}) {
    for (FlagRow& row : some) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace onward
