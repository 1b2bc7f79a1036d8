// SPDX-License-Identifier: Apache-2.0
#include "trainer/prepare/raw_export.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/infer.h"
#include "core/graph/rename.h"
#include "core/graph/verify.h"
#include "trainer/prepare/stored.h"
#include "training_info/export.h"
#include "training_info/lower.h"

namespace onward {
namespace {

bool IsTable(RawForm form) { return form == RawForm::kColumns || form == RawForm::kMatrix; }

Dim BatchOf(const ValueType& type) { return type.rank() > 0 ? type.dims[0] : Dim{-1, "N"}; }

class RawBuilder {
 public:
  RawBuilder(Graph graph, const Environment& environment, const RawOptions& options)
      : graph_(std::move(graph)), environment_(environment), options_(options) {}

  absl::Status Prepend(const Preparation& preparation) {
    if (!options_.form) return absl::OkStatus();
    if (preparation.text) {
      return absl::InvalidArgumentError(
          "--raw: the model was trained on text, and no operator of the standard cuts text into "
          "these tokens; `onward predict` does it");
    }
    if (IsTable(*options_.form) != preparation.table.has_value() ||
        (!IsTable(*options_.form) && !preparation.pictures)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--raw: the model was trained on ",
                       preparation.table ? "a table: columns or matrix"
                       : preparation.pictures
                           ? "pictures: nchw or nhwc"
                           : "data of which its file says nothing; train it with this version "
                             "of onward"));
    }
    if (preparation.table && preparation.table->raw != RawTable::kNone) {
      return absl::InvalidArgumentError("--raw: the model takes raw rows already");
    }
    return preparation.table ? PrependTable(*preparation.table)
                             : PrependPictures(*preparation.pictures);
  }

  // Standardised numbers as the data had them.
  absl::Status RestoreTarget(const Standard& target) {
    if (!options_.form || !target.changes()) return absl::OkStatus();
    const std::string inner = SetAside(options_.output);
    GraphBuilder b(&graph_, &environment_.operators(), "target");
    const Expr y = b.Value(inner);
    b.Named(y * target.deviation + target.mean, options_.output);
    return b.status();
  }

  absl::Status AddNames() {
    if (!options_.names) return absl::OkStatus();
    const std::vector<std::string>& names = options_.classes;
    if (names.empty()) {
      return absl::InvalidArgumentError(
          "--names: the file does not say what its classes are called; train on labels that are "
          "names");
    }
    GraphBuilder b(&graph_, &environment_.operators(), "class");
    const Expr scores = b.Value(options_.output);
    Expr best;
    if (scores.rank() == 1 || scores.dim(1) == 1 || options_.scoring.binary) {
      const double half = options_.scoring.kind == ScoreKind::kProbabilities ? 0.5 : 0;
      best = Cast(Greater(Reshape(scores, {-1}), b.Scalar(half, scores)), DType::kInt64);
    } else {
      best = b.Op("ArgMax", {scores},
                  {{"axis", options_.scoring.classes_last ? -1 : 1}, {"keepdims", 0}});
    }
    Tensor words(DType::kString, {static_cast<int64_t>(names.size())});
    std::copy(names.begin(), names.end(), words.data<std::string>());
    const std::string list = b.UniqueName("class_names");
    graph_.types[list] = ValueType::Of(words.dtype(), words.shape());
    graph_.initializers[list] = std::move(words);
    b.Output(b.Named(Gather(b.Value(list), best), b.UniqueName("label")));
    return b.status();
  }

  absl::StatusOr<Graph> Finish() {
    ONWARD_RETURN_IF_ERROR(SortNodes(&graph_));
    return std::move(graph_);
  }

 private:
  // The input that takes a field of prepared data: by name, or the only one.
  absl::StatusOr<NamedType> TakeInput(const std::string& field) {
    const std::vector<NamedType> fed = graph_.FeedInputs();
    for (const NamedType& input : fed) {
      if (input.name != field && fed.size() != 1) continue;
      std::erase_if(graph_.inputs, [&](const NamedType& i) { return i.name == input.name; });
      return input;
    }
    return absl::InvalidArgumentError(absl::StrCat("--raw: no input of the model is called '",
                                                   field, "', which its prepared data is"));
  }

  // `value` in the place of the input that was taken away: in its shape and type.
  void Replace(const NamedType& input, Expr value, GraphBuilder& b) {
    const ValueType& type = input.type;
    if (type.rank() >= 0 && type.rank() != value.rank()) {
      std::vector<int64_t> shape = {-1};
      for (int i = 1; i < type.rank(); ++i) shape.push_back(type.dims[i].value);
      if (std::count(shape.begin(), shape.end(), -1) > 1) {
        b.Fail(absl::InvalidArgumentError(
            absl::StrCat("--raw: input '", input.name, "' of type ", type.ToString(),
                         " does not say in which shape it takes its data")));
        return;
      }
      value = Reshape(value, std::move(shape));
    }
    if (type.dtype != DType::kUndefined && type.dtype != value.dtype()) {
      value = Cast(value, type.dtype);
    }
    b.Named(value, input.name);
  }

  absl::Status PrependTable(const TablePreparation& table) {
    NamedType x, codes;
    if (table.numbers() > 0) {
      ONWARD_ASSIGN_OR_RETURN(x, TakeInput("x"));
    }
    if (table.codes() > 0) {
      ONWARD_ASSIGN_OR_RETURN(codes, TakeInput("codes"));
    }
    // What is left of its inputs keeps its name, and so does every other value.
    ONWARD_RETURN_IF_ERROR(KeepNames(table, &x, &codes));
    const bool all_numbers =
        std::all_of(table.columns.begin(), table.columns.end(),
                    [](const ColumnPreparation& c) { return c.kind == ColumnKind::kNumber; });
    GraphBuilder b(&graph_, &environment_.operators(), "raw");
    const Dim batch = BatchOf(table.numbers() > 0 ? x.type : codes.type);
    const std::string matrix = all_numbers ? FreeName(x.name) : kRawNumbers;
    const PreparedColumns prepared = BuildColumns(table, *options_.form, batch, matrix, b);
    if (prepared.x.defined()) Replace(x, prepared.x, b);
    if (prepared.codes.defined()) Replace(codes, prepared.codes, b);
    return b.status();
  }

  // Columns may be called like values of the model, which then get other names.
  absl::Status KeepNames(const TablePreparation& table, NamedType* x, NamedType* codes) {
    std::set<std::string> taken = {kRawNumbers, x->name};
    for (const ColumnPreparation& c : table.columns) taken.insert(c.input_name());
    for (const NamedType& out : graph_.outputs) {
      if (out.name != x->name && taken.contains(out.name)) {
        return absl::InvalidArgumentError(
            absl::StrCat("--raw: a column is called like the output '", out.name,
                         "'; rename the column, or the output"));
      }
    }
    Renaming renaming;
    GraphBuilder names(&graph_, nullptr, "");
    const auto rename = [&](const std::string& value) {
      if (taken.contains(value) && !value.empty()) {
        renaming.emplace(value, names.UniqueName(absl::StrCat(value, "_prepared")));
      }
    };
    for (const auto& [name, tensor] : graph_.initializers) rename(name);
    for (const Node& node : graph_.nodes) {
      for (const std::string& out : node.outputs) rename(out);
    }
    rename(x->name);
    rename(codes->name);
    RenameEverywhere(renaming, &graph_);
    x->name = Renamed(renaming, x->name);
    codes->name = Renamed(renaming, codes->name);
    return absl::OkStatus();
  }

  // The name that a value had before KeepNames.
  static std::string FreeName(const std::string& name) {
    const size_t at = name.rfind("_prepared");
    return at == std::string::npos ? name : name.substr(0, at);
  }

  absl::Status PrependPictures(const PicturePreparation& p) {
    const std::vector<NamedType> fed = graph_.FeedInputs();
    if (fed.size() != 1) {
      return absl::InvalidArgumentError(absl::StrCat("--raw: the model takes ", fed.size(),
                                                     " inputs, expected one for pictures"));
    }
    const NamedType input = fed[0];
    const bool last = *options_.form == RawForm::kNhwc;
    const bool wants_last = input.type.rank() == 4 && input.type.dims[1].value != p.channels &&
                            input.type.dims[3].value == p.channels;
    std::erase_if(graph_.inputs, [&](const NamedType& i) { return i.name == input.name; });
    GraphBuilder b(&graph_, &environment_.operators(), "raw");
    const std::string inner = b.UniqueName(absl::StrCat(input.name, "_prepared"));
    RenameEverywhere({{input.name, inner}}, &graph_);
    ValueType type = ValueType::Unranked(DType::kUint8);
    type.has_rank = true;
    const Dim c{p.channels, ""}, h{p.height, ""}, w{p.width, ""};
    const Dim batch = BatchOf(input.type);
    type.dims = last ? std::vector<Dim>{batch, h, w, c} : std::vector<Dim>{batch, c, h, w};
    Expr x = Cast(b.Input(input.name, type), DType::kFloat);
    if (last && !wants_last) x = Transpose(x, {0, 3, 1, 2});
    if (!last && wants_last) x = Transpose(x, {0, 2, 3, 1});
    Replace({inner, input.type}, Scaled(x, p, wants_last, b), b);
    return b.status();
  }

  // (byte * scale + shift - mean) / deviation as one product and one sum per channel.
  static Expr Scaled(const Expr& x, const PicturePreparation& p, bool channels_last,
                     GraphBuilder& b) {
    const size_t given = std::max<size_t>({p.mean.size(), p.deviation.size(), 1});
    const auto pick = [](const std::vector<double>& list, size_t i, double otherwise) {
      return list.empty() ? otherwise : list.size() == 1 ? list[0] : list[i];
    };
    const int64_t count = static_cast<int64_t>(given);
    const Shape shape = channels_last || given == 1 ? Shape{count} : Shape{count, 1, 1};
    Tensor factor(DType::kFloat, shape), offset(DType::kFloat, shape);
    for (size_t i = 0; i < given; ++i) {
      const double divide = pick(p.deviation, i, 1);
      factor.data<float>()[i] = static_cast<float>(p.scale / divide);
      offset.data<float>()[i] = static_cast<float>((p.shift - pick(p.mean, i, 0)) / divide);
    }
    return x * b.Constant(factor) + b.Constant(offset);
  }

  // Gives what makes a value another name, so that something else may take its own.
  std::string SetAside(const std::string& value) {
    const std::vector<NamedType> outputs = graph_.outputs;
    GraphBuilder b(&graph_, nullptr, "");
    const std::string inner = b.UniqueName(absl::StrCat(value, "_standardised"));
    RenameEverywhere({{value, inner}}, &graph_);
    graph_.outputs = outputs;
    for (const NamedType& out : outputs) {
      if (out.name == value) graph_.types[inner] = out.type;
    }
    return inner;
  }

  Graph graph_;
  const Environment& environment_;
  const RawOptions& options_;
};

// What is left to do before such a model.
Preparation AfterExport(Preparation preparation, RawForm form) {
  if (preparation.table) {
    preparation.table->raw = form == RawForm::kMatrix ? RawTable::kMatrix : RawTable::kColumns;
    preparation.table->target = {};
  }
  if (preparation.pictures) {
    preparation.pictures->scale = 1;
    preparation.pictures->shift = 0;
    preparation.pictures->mean.clear();
    preparation.pictures->deviation.clear();
  }
  return preparation;
}

}  // namespace

absl::StatusOr<Model> WithRawInputs(const Model& plain, const Preparation& preparation,
                                    const RawOptions& options, const Environment& environment) {
  ONWARD_ASSIGN_OR_RETURN(Graph graph, InferenceGraph(plain));
  ONWARD_ASSIGN_OR_RETURN(graph, WritableGraph(graph, environment));
  ONWARD_RETURN_IF_ERROR(InferTypes(&graph, environment.operators()));
  RawBuilder builder(std::move(graph), environment, options);
  ONWARD_RETURN_IF_ERROR(builder.Prepend(preparation));
  ONWARD_RETURN_IF_ERROR(builder.AddNames());
  if (preparation.table) {
    ONWARD_RETURN_IF_ERROR(builder.RestoreTarget(preparation.table->target));
  }
  ONWARD_ASSIGN_OR_RETURN(graph, builder.Finish());
  Model model = RebuildLike(plain, graph, std::max(plain.ir_version(), kWrittenIr));
  if (options.form) StorePreparation(AfterExport(preparation, *options.form), &model);
  return model;
}

}  // namespace onward
