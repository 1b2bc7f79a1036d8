// SPDX-License-Identifier: Apache-2.0
#include "data/spec_kinds.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "data/dataset.h"
#include "data/pictures/augment.h"

namespace onward {
namespace {

struct OptionHelp {
  const char* name;
  const char* form;
  const char* what;
};

constexpr OptionHelp kEverywhere[] = {
    {"limit", "limit=N", "use N examples"},
    {"offset", "offset=N", "leave out the first N"},
    {"shuffle", "shuffle=SEED", "put the examples into a random order first"},
    {"scale", "scale=1/255", "multiply inputs (the default for image data)"},
    {"shift", "shift=-0.5", "then add"},
    {"mean", "mean=0.5,0.4,0.4", "then subtract; one number, or one per channel"},
    {"std", "std=0.2,0.2,0.2", "then divide; one number, or one per channel"},
    {"shape", "shape=1x28x28", "shape of an example"},
    {"layout", "layout=nhwc", "channels last (the default is nchw)"},
    {"task", "task=regression", "how to read labels: classes or regression"},
    {"split", "split=0.8", "this share (of each class) for --data, the rest for --eval"},
    {"split_seed", "split_seed=1", "another choice of that share"},
    {"fold", "fold=1/5", "all but the first of 5 parts (of each class), that one for --eval"},
    {"part", "part=rest", "train or rest: the part of split= or fold= that is meant"},
    {"balance", "balance=1", "training takes all classes equally often"},
};

constexpr OptionHelp kPictures[] = {
    {"size", "size=HxW", "resize every picture"},
    {"fit", "fit=crop", "where sides differ: stretch (the default), crop the middle, pad"},
    {"channels", "channels=1", "1 for grey, 3 for colour"},
    {"normalise", "normalise=imagenet", "mean and std of imagenet, cifar10, mnist, or half"},
    {"augment", "augment=flip,crop:4", "random variations in training:"},
    {"mixup", "mixup=0.2", "training mixes pairs of examples, weights from Beta(A, A)"},
    {"cutmix", "cutmix=1", "training puts a part of one picture into another"},
};

constexpr OptionHelp kSomewhere[] = {
    {"split", "split=test", "train or test half (mnist, digits, fashion, npz)"},
    {"label", "label=NAME", "the label's column (csv, images), array (npz) or key (jsonl, tar)"},
    {"broken", "broken=skip", "look for broken pictures first; skip or refuse (images, tar)"},
};

constexpr OptionHelp kTables[] = {
    {"drop", "drop=A,B", "columns to leave out"},
    {"keep", "keep=A,B", "columns to take although they look like identifiers"},
    {"missing", "missing=median", "fill empty fields: mean, median or a number; refuse, skip rows"},
    {"standardise", "standardise=1", "(x - mean) / deviation: 1, 0, inputs or target"},
    {"text", "text=codes", "columns of names: onehot (the default), or codes for embeddings"},
    {"text_columns", "text_columns=A,B", "columns whose numbers are names"},
    {"max_categories", "max_categories=100", "names of a column; rarer ones are 'other'"},
    {"rare", "rare=5", "names seen less often are 'other', and so are unknown ones"},
    {"header", "header=0", "whether the first row of a csv file has names (found out)"},
    {"dates", "dates=dmy", "dmy or mdy: how 1/2/2024 is meant (found out where the file tells)"},
    {"decimal", "decimal=comma", "comma or point, between other separators (found out; csv)"},
};

constexpr OptionHelp kTexts[] = {
    {"tokens", "tokens=chars", "bytes (the default), chars or wordpiece"},
    {"vocab", "vocab=vocab.txt", "the word pieces, one per line"},
    {"length", "length=128", "tokens of an example, at most"},
    {"stride", "stride=64", "tokens from one example to the next (text)"},
    {"lines", "lines=1", "an example for each line, padded to the longest (text)"},
    {"column", "column=NAME", "the column that holds text (csv, jsonl)"},
};

}  // namespace

const std::vector<DataKind>& DataKinds() {
  static const auto& kinds = *new std::vector<DataKind>{
      {"idx", "idx:IMAGES,LABELS", "MNIST's file format, plain or .gz", {}},
      {"mnist", "mnist:DIR", "a folder with the four usual IDX files, plain or .gz", {"split"}},
      {"csv",
       "csv:FILE?label=COLUMN",
       "a table, plain or .gz; COLUMN is a name or a number (-1: last)",
       {"label", "drop", "keep", "missing", "standardise", "text", "text_columns", "max_categories",
        "rare", "header", "dates", "decimal", "tokens", "vocab", "length", "column"}},
      {"jsonl",
       "jsonl:FILE?label=KEY",
       "a table of JSON objects, one per line, plain or .gz",
       {"label", "drop", "keep", "missing", "standardise", "text", "text_columns", "max_categories",
        "rare", "dates", "tokens", "vocab", "length", "column"}},
      {"text",
       "text:FILE?length=N",
       "a text for language models: tokens and the ones that follow them",
       {"tokens", "vocab", "length", "stride", "lines"}},
      {"npz", "npz:FILE", "NumPy arrays named like the model's inputs", {"label", "split"}},
      {"npy", "npy:X.npy,Y.npy", "two NumPy arrays: inputs and labels", {}},
      {"images",
       "images:DIR",
       "a folder per class of pictures (PNG, JPEG, WebP, TIFF, BMP, ...)",
       {"label", "broken"}},
      {"images",
       "images:FILE.jpg",
       "one picture, without a label, for predict",
       {"label", "broken"}},
      {"images", "images:LIST.csv", "a table of picture files and labels", {"label", "broken"}},
      {"tar",
       "tar:SHARDS",
       "WebDataset archives (',' or '*'): KEY.jpg with KEY.cls or KEY.json",
       {"label", "broken"}},
      {"cifar", "cifar:FILE,...", "CIFAR-10 binary files, plain or .gz", {}},
      {"digits", "digits", "MNIST, ready after set-up", {"split"}, false},
      {"fashion", "fashion", "Fashion-MNIST, ready after set-up", {"split"}, false},
  };
  return kinds;
}

std::set<std::string> OptionsOf(const DataKind& kind) {
  std::set<std::string> known(kind.options.begin(), kind.options.end());
  for (const OptionHelp& o : kEverywhere) known.insert(o.name);
  for (const OptionHelp& o : kPictures) known.insert(o.name);
  return known;
}

std::string DataSpecHelp() {
  std::string out = "a data set in one of these forms\n";
  const auto line = [&](const auto& entry) {
    absl::StrAppendFormat(&out, "  %-23s %s\n", entry.form, entry.what);
  };
  for (const DataKind& k : DataKinds()) line(k);
  absl::StrAppend(&out, "Options follow a '?' and are joined by '&':\n");
  for (const OptionHelp& o : kEverywhere) line(o);
  for (const OptionHelp& o : kSomewhere) line(o);
  absl::StrAppend(&out, "For tables (csv, jsonl):\n");
  for (const OptionHelp& o : kTables) line(o);
  absl::StrAppend(&out, "For text (text, or a column of csv and jsonl):\n");
  for (const OptionHelp& o : kTexts) line(o);
  absl::StrAppend(&out, "For pictures of every kind:\n");
  for (const OptionHelp& o : kPictures) {
    line(o);
    if (absl::string_view(o.name) != "augment") continue;
    for (const AugmentHelp& step : AugmentationHelp()) {
      absl::StrAppendFormat(&out, "    %-21s %s\n", step.form, step.what);
    }
  }
  return out;
}

absl::Status WrongOption(absl::string_view name, absl::string_view value,
                         absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("data option ", name, "=", value, ": expected ", expected));
}

}  // namespace onward
