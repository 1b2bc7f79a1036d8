// SPDX-License-Identifier: Apache-2.0
// Where and how commands compute.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/cli/flag_rows.h"

namespace onward {
namespace {

// A command on a model, '#', that classifies rows of two, and where its numbers are seen.
struct Base {
  std::string command, base, seen;
  std::string before = "";
};

std::vector<Base> Bases() {
  const std::string data = kRowData, x = " -i x=@x.npy";
  return {
      {"train", absl::StrCat("@# ", data, " --batch 16 --optimizer sgd:lr=0.1 --quiet -o @o.onnx"),
       "MODEL"},
      {"eval", absl::StrCat("@# ", data, " --json"), "OUT"},
      {"run", "@# --output-dir @out" + x, "out/y.npy"},
      {"score", "@#_cases --json", "EXIT"},
      {"step", "@t.onnx -i label=@l.npy -o @o.onnx" + x, "MODEL",
       "make-trainable @# --optimizer sgd:lr=0.1 -o @t.onnx"},
      {"predict", absl::StrCat("@# ", data, " --probabilities -o @p.csv"), "p.csv"},
      {"doctor", absl::StrCat("@# ", data, " --json --steps 3"), "OUT"},
      {"compare", "@# @out" + x, "OUT", "run @# --output-dir @out" + x},
      {"bench", "@# --batch 20 --seconds 0 --json", "EXIT"},
      {"inspect", "@#", "OUT"},
  };
}

FlagRow Row(const Base& base, const std::string& model, FlagRow row) {
  row.command = base.command;
  row.base = absl::StrReplaceAll(absl::StrCat(base.base, row.base), {{"#", model}});
  row.before = absl::StrReplaceAll(base.before.empty() ? "" : absl::StrCat(base.before, row.before),
                                   {{"#", model}});
  return row;
}

FlagRows DeviceRows(const Base& base) {
  const std::string on_device = " --device cuda-emu";
  const bool inspects = base.command == "inspect", scores = base.command == "score";
  // What a case cannot do is told of the case.
  const std::string told = inspects || scores ? "OUT" : "ERR";
  // Nothing but the time is measured, or nothing computed.
  const bool same = inspects || base.command == "bench";
  const std::string exact = scores ? " --rtol 0 --atol 0" : "";
  const std::string close = scores ? " --rtol 1e-5 --atol 1e-5" : "";
  FlagRows rows = {
      Row(base, "lacks.onnx",
          {.flag = "require-device",
           .base = on_device,
           .given = "--require-device",
           .seen = told,
           .with = "cannot run on cuda:0"}),
      Row(base, "order.onnx",
          {.flag = "allow-nondeterministic",
           .base = on_device + exact,
           .given = "--allow-nondeterministic",
           .seen = base.seen,
           .same = same}),
      Row(base, "plain.onnx",
          {.flag = "allow-tf32",
           .base = on_device + close,
           .given = "--allow-tf32",
           .seen = base.seen,
           .same = same}),
  };
  rows.push_back(inspects ? Row(base, "plain.onnx",
                                {.flag = "device",
                                 .given = "--device cpu",
                                 .seen = "OUT",
                                 .with = "devices of inference: 1 on cpu"})
                          : Row(base, "lacks.onnx",
                                {.flag = "device",
                                 .given = "--device cuda-emu",
                                 .seen = "ERR",
                                 .with = "cuda:0 has no kernel: Det 1"}));
  return rows;
}

FlagRows ComputeRows(const Base& base) {
  return {
      Row(base, "many.onnx",
          {.flag = "threads", .given = "--threads 7", .seen = "TEAMS", .with = "team of 7"}),
      Row(base, "plain.onnx",
          {.flag = "memory-limit",
           .given = "--memory-limit 1",
           .seen = base.command == "score" ? "OUT" : "ERR",
           .with = "fit into memory (1 byte allowed)"}),
  };
}

}  // namespace

FlagRows ComputeFlagRows() {
  FlagRows rows;
  for (const Base& base : Bases()) {
    for (FlagRow& row : DeviceRows(base)) rows.push_back(std::move(row));
    // Without the plugin nobody knows the operator.
    rows.push_back(Row(base, "plug.onnx",
                       {.flag = "plugin",
                        .given = "--plugin %squared",
                        .seen = base.command == "inspect" ? "OUT" : "EXIT",
                        .before = " --plugin %squared"}));
    if (base.command == "inspect") continue;
    for (FlagRow& row : ComputeRows(base)) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace onward
