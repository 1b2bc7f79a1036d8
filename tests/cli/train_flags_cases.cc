// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "tests/cli/flag_rows.h"

namespace onward {
namespace {

const char kTrain[] = "@m.onnx --data csv:@d.csv?label=label --batch 16 --json";
const char kOut[] = " -o @o.onnx";
const char kEval[] = " --eval csv:@d.csv?label=label";
const char kTwo[] = "@two.onnx --data csv:@d.csv?label=label --batch 16 --epochs 2 --quiet";
const char kNumbers[] = "@line.onnx --data npy:@x.npy,@z.npy --json";

FlagRows TrainRows() {
  const std::string train = kTrain, out = kOut, all = train + out, eval = all + kEval;
  const std::string two = absl::StrCat(kTwo, kOut);
  return {
      {"train", "data", "@m.onnx --batch 16 -o @o.onnx", "--data csv:@d.csv?label=label", "EXIT",
       "0"},
      {"train", "output", train, "-o @o.onnx", "EXIT", "0"},
      {"train", "eval", all, kEval, "OUT", "eval_accuracy"},
      {"train", "folds", train, "--folds 3", "OUT", "\"folds\":3,"},
      {"train", "balance", all, "--balance sample", "MODEL", "onward.balance"},
      {"train", "epochs", all, "--epochs 3", "OUT", "\"steps\":12,"},
      {"train", "steps", all, "--steps 3", "OUT", "\"steps\":3,"},
      {"train", "batch", "@m.onnx --data csv:@d.csv?label=label --json -o @o.onnx", "--batch 10",
       "OUT", "\"steps\":5,"},
      {"train", "drop-last", all, "--drop-last", "OUT", "\"steps\":3,"},
      {"train", "seed", all, "--seed 3", "MODEL"},
      {"train", "lr", all, "--lr 0.5", "MODEL"},
      {"train", "resume", all + " --steps 9", "--resume", "EXIT", "0", "train " + all},
      {"train", "overwrite", all, "--overwrite", "EXIT", "0", "train " + all},
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
      {"train", "time-limit", all + " --epochs 9", "--time-limit 0.000001s", "OUT", "\"steps\":1,"},
      {"train", "on-nan", "@m.onnx --data npy:@nan.npy,@b.npy --batch 1 -o @o.onnx",
       "--on-nan skip", "EXIT", "0"},
      {"train", "report", all, "--report @r.html", "r.html", "<svg"},
      // The page is there while the run goes on.
      {"train", "watch", eval + " --epochs 100000000 --quiet --report @r.html", "--watch", "r.html",
       "http-equiv=\"refresh\"", "", "o.onnx"},
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
      {"train", "exact-conv", "@conv.onnx --data npy:@p.npy,@q.npy --batch 4 -o @o.onnx",
       "--exact-conv", "MODEL"},
  };
}

FlagRows EvalRows() {
  const std::string classes = "@two.onnx --data csv:@d.csv?label=label --json";
  return {
      {"eval", "data", "@m.onnx", "--data csv:@d.csv?label=label", "EXIT", "0"},
      {"eval", "loss", classes, "--loss cross_entropy:label_smoothing=0.3", "OUT"},
      {"eval", "train-output", classes, "--train-output z", "OUT"},
      {"eval", "batch", absl::StrCat(kNumbers, " --loss mse:reduction=sum"), "--batch 5", "OUT"},
      {"eval", "at-least", classes, "--at-least 0.99", "EXIT", "1"},
      {"eval", "at-most", kNumbers, "--at-most 0.001", "EXIT", "1"},
      {"eval", "json", "@m.onnx --data csv:@d.csv?label=label", "--json", "OUT", "{\"model\":"},
      {"eval", "exact-conv", "@conv.onnx --data npy:@p.npy,@q.npy --loss nll --json",
       "--exact-conv", "OUT"},
      {"eval", "ema", "@t.onnx --data csv:@d.csv?label=label --json", "--ema", "OUT", "",
       absl::StrCat("train @m.onnx --ema 0.9 --lr 0.1 --quiet -o @t.onnx ", kRowData)},
  };
}

}  // namespace

FlagRows TrainFlagRows() {
  FlagRows rows = TrainRows();
  for (FlagRow& row : EvalRows()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace onward
