// SPDX-License-Identifier: Apache-2.0
// Preparations as JSON (preparation.h).
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/json.h"
#include "core/base/status.h"
#include "data/preparation.h"

namespace onward {
namespace {

constexpr int kVersion = 1;
constexpr double kMostSeconds = 3e11;  // year 9999
constexpr double kMostSize = 1 << 20;
constexpr double kLongestText = 1 << 24;

template <typename T>
using Meant = std::pair<const char*, T>;  // a word and what it means

constexpr Meant<ColumnKind> kKinds[] = {
    {"number", ColumnKind::kNumber}, {"text", ColumnKind::kText}, {"date", ColumnKind::kDate}};
constexpr Meant<TextForm> kForms[] = {{"onehot", TextForm::kOneHot}, {"codes", TextForm::kCodes}};
constexpr Meant<LabelTask> kTasks[] = {{"classes", LabelTask::kClasses},
                                       {"number", LabelTask::kNumber}};
constexpr Meant<TokenKind> kTokens[] = {{"bytes", TokenKind::kBytes},
                                        {"chars", TokenKind::kCharacters},
                                        {"wordpiece", TokenKind::kWordPieces}};

constexpr Meant<RawTable> kRaws[] = {
    {"no", RawTable::kNone}, {"columns", RawTable::kColumns}, {"matrix", RawTable::kMatrix}};
constexpr Meant<DateOrder> kOrders[] = {{"dmy", DateOrder::kDayFirst},
                                        {"mdy", DateOrder::kMonthFirst}};
constexpr Meant<Fit> kFits[] = {
    {"stretch", Fit::kStretch}, {"crop", Fit::kCrop}, {"pad", Fit::kPad}};

template <typename T, size_t n>
const char* WordOf(const Meant<T> (&words)[n], T value) {
  for (const auto& [word, meaning] : words) {
    if (meaning == value) return word;
  }
  return "";
}

// --- Writing

void Write(const std::vector<std::string>& strings, JsonWriter* w) {
  w->BeginArray();
  for (const std::string& s : strings) w->Bytes(s);
  w->EndArray();
}

void WriteScale(const std::vector<Standard>& scale, JsonWriter* w) {
  if (std::none_of(scale.begin(), scale.end(), [](const Standard& s) { return s.changes(); })) {
    return;
  }
  w->Key("mean").BeginArray();
  for (const Standard& s : scale) w->Value(s.mean);
  w->EndArray().Key("deviation").BeginArray();
  for (const Standard& s : scale) w->Value(s.deviation);
  w->EndArray();
}

void WriteColumn(const ColumnPreparation& c, JsonWriter* w) {
  w->BeginObject();
  if (c.place < 0) {
    w->Key("name").Bytes(c.name);
  } else {
    w->Field("place", c.place);
  }
  if (c.kind != ColumnKind::kNumber) w->Field("kind", WordOf(kKinds, c.kind));
  if (c.fill) w->Field("fill", *c.fill);
  WriteScale(c.scale, w);
  if (c.times) w->Field("times", true);
  if (c.kind == ColumnKind::kText) {
    w->Field("form", WordOf(kForms, c.form)).Key("categories");
    Write(c.categories, w);
    if (c.other) w->Field("other", true);
    if (c.fill_text) w->Key("fill_text").Bytes(*c.fill_text);
  }
  w->EndObject();
}

void WriteTable(const TablePreparation& t, JsonWriter* w) {
  w->Key("table").BeginObject().Key("columns").BeginArray();
  for (const ColumnPreparation& c : t.columns) WriteColumn(c, w);
  w->EndArray().Key("label").Bytes(t.label).Field("task", WordOf(kTasks, t.task));
  if (t.target.changes()) WriteScale({t.target}, w);
  if (!t.has_names()) w->Field("place", t.label_place).Field("file_columns", t.file_columns);
  if (t.dates != DateOrder::kUnknown) w->Field("dates", WordOf(kOrders, t.dates));
  if (t.decimal_comma) w->Field("decimal_comma", true);
  if (t.raw != RawTable::kNone) w->Field("raw", WordOf(kRaws, t.raw));
  w->EndObject();
}

void WritePictures(const PicturePreparation& p, JsonWriter* w) {
  w->Key("pictures")
      .BeginObject()
      .Field("height", p.height)
      .Field("width", p.width)
      .Field("channels", p.channels)
      .Field("fit", WordOf(kFits, p.fit))
      .Field("scale", p.scale)
      .Field("shift", p.shift)
      .Key("mean")
      .Values(p.mean)
      .Key("deviation")
      .Values(p.deviation)
      .EndObject();
}

void WriteTokens(const TextPreparation& t, JsonWriter* w) {
  w->Key("text").BeginObject().Field("tokens", WordOf(kTokens, t.tokens)).Field("length", t.length);
  if (t.tokens != TokenKind::kBytes) {
    w->Key("vocabulary");
    Write(t.vocabulary, w);
  }
  if (t.lower_case) w->Field("lower_case", true);
  if (!t.column.empty()) w->Key("column").Bytes(t.column);
  w->EndObject();
}

// --- Reading

absl::Status WrongKey(absl::string_view key, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat("'", key, "': expected ", expected));
}

// The members of an object, each of the right kind and in range.
class PreparationReader {
 public:
  explicit PreparationReader(const Json& json) : json_(json) {}

  bool Has(const char* key) const { return json_.Find(key) != nullptr; }
  bool Truth(const char* key) const { return Has(key) && json_.Find(key)->truth(); }
  absl::StatusOr<std::string> Text(const char* key) const {
    const Json* v = json_.Find(key);
    if (v == nullptr || !v->is(Json::Kind::kString)) return WrongKey(key, "a string");
    return v->text();
  }
  absl::StatusOr<double> Number(const char* key, double low, double high) const {
    const Json* v = json_.Find(key);
    if (v == nullptr || !v->is(Json::Kind::kNumber) || v->number() < low || v->number() > high) {
      return WrongKey(key, absl::StrCat("a number from ", low, " to ", high));
    }
    return v->number();
  }
  absl::StatusOr<int64_t> Count(const char* key, double low, double high) const {
    ONWARD_ASSIGN_OR_RETURN(const double v, Number(key, low, high));
    if (v != std::floor(v)) return WrongKey(key, "a whole number");
    return static_cast<int64_t>(v);
  }
  absl::StatusOr<std::vector<double>> Numbers(const char* key) const {
    std::vector<double> numbers;
    const Json* v = json_.Find(key);
    if (v == nullptr || !v->is(Json::Kind::kArray)) return WrongKey(key, "a list of numbers");
    for (const Json& item : v->items()) {
      if (!item.is(Json::Kind::kNumber)) return WrongKey(key, "a list of numbers");
      numbers.push_back(item.number());
    }
    return numbers;
  }
  // All of them different.
  absl::StatusOr<std::vector<std::string>> Names(const char* key) const {
    std::vector<std::string> names;
    const Json* v = json_.Find(key);
    if (v == nullptr || !v->is(Json::Kind::kArray)) return WrongKey(key, "a list of names");
    for (const Json& item : v->items()) {
      if (!item.is(Json::Kind::kString)) return WrongKey(key, "a list of names");
      names.push_back(item.text());
    }
    if (std::set<std::string>(names.begin(), names.end()).size() != names.size()) {
      return WrongKey(key, "different names");
    }
    return names;
  }
  template <typename T, size_t n>
  absl::StatusOr<T> Word(const char* key, const Meant<T> (&words)[n]) const {
    ONWARD_ASSIGN_OR_RETURN(const std::string given, Text(key));
    std::vector<std::string> known;
    for (const auto& [word, meaning] : words) {
      if (given == word) return meaning;
      known.push_back(word);
    }
    return WrongKey(key, absl::StrJoin(known, " or "));
  }
  // mean and deviation, `count` of each.
  absl::StatusOr<std::vector<Standard>> Scale(size_t count) const {
    std::vector<Standard> scale(count);
    if (!Has("mean")) return scale;
    ONWARD_ASSIGN_OR_RETURN(const std::vector<double> mean, Numbers("mean"));
    ONWARD_ASSIGN_OR_RETURN(const std::vector<double> deviation, Numbers("deviation"));
    if (mean.size() != count || deviation.size() != count) {
      return WrongKey("mean", absl::StrCat("as many numbers as 'deviation' has, ", count));
    }
    for (size_t i = 0; i < count; ++i) {
      if (!(static_cast<float>(deviation[i]) > 0)) return WrongKey("deviation", "numbers above 0");
      scale[i] = {mean[i], deviation[i]};
    }
    return scale;
  }

 private:
  const Json& json_;
};

absl::Status ReadText(const PreparationReader& r, ColumnPreparation* c) {
  ONWARD_ASSIGN_OR_RETURN(c->form, r.Word("form", kForms));
  ONWARD_ASSIGN_OR_RETURN(c->categories, r.Names("categories"));
  c->other = r.Truth("other");
  if (c->width() == 0) return WrongKey("categories", "a name");
  if (!r.Has("fill_text")) return absl::OkStatus();
  ONWARD_ASSIGN_OR_RETURN(c->fill_text, r.Text("fill_text"));
  if (std::find(c->categories.begin(), c->categories.end(), *c->fill_text) == c->categories.end()) {
    return WrongKey("fill_text", "one of 'categories'");
  }
  return absl::OkStatus();
}

absl::StatusOr<ColumnPreparation> ReadColumn(const Json& json) {
  const PreparationReader r(json);
  ColumnPreparation c;
  if (r.Has("name")) {
    ONWARD_ASSIGN_OR_RETURN(c.name, r.Text("name"));
  } else {
    ONWARD_ASSIGN_OR_RETURN(c.place, r.Count("place", 0, std::numeric_limits<int>::max()));
  }
  if (r.Has("kind")) {
    ONWARD_ASSIGN_OR_RETURN(c.kind, r.Word("kind", kKinds));
  }
  if (c.kind == ColumnKind::kText) {
    ONWARD_RETURN_IF_ERROR(ReadText(r, &c));
    return c;
  }
  c.times = r.Truth("times");
  const double largest =
      c.kind == ColumnKind::kDate ? kMostSeconds : std::numeric_limits<float>::max();
  if (r.Has("fill")) {
    ONWARD_ASSIGN_OR_RETURN(c.fill, r.Number("fill", -largest, largest));
  }
  ONWARD_ASSIGN_OR_RETURN(c.scale, r.Scale(static_cast<size_t>(c.width())));
  return c;
}

absl::StatusOr<TablePreparation> ReadTable(const Json& json) {
  const PreparationReader r(json);
  TablePreparation t;
  const Json* columns = json.Find("columns");
  if (columns == nullptr || !columns->is(Json::Kind::kArray)) return WrongKey("columns", "a list");
  if (r.Has("file_columns")) {
    const double most = std::numeric_limits<int>::max();
    ONWARD_ASSIGN_OR_RETURN(t.file_columns, r.Count("file_columns", 1, most));
    ONWARD_ASSIGN_OR_RETURN(t.label_place, r.Count("place", -1, most));
  }
  std::set<std::pair<std::string, int64_t>> seen;
  for (const Json& column : columns->items()) {
    auto c = ReadColumn(column);
    if (!c.ok()) return Annotate(c.status(), absl::StrCat("column ", t.columns.size()));
    const bool placed = t.has_names() ? c->place < 0 : c->place >= 0 && c->place < t.file_columns;
    if (!placed || !seen.insert({c->name, c->place}).second) {
      return WrongKey("columns", "names, or places below 'file_columns', each once");
    }
    t.columns.push_back(*std::move(c));
  }
  ONWARD_ASSIGN_OR_RETURN(t.label, r.Text("label"));
  ONWARD_ASSIGN_OR_RETURN(t.task, r.Word("task", kTasks));
  ONWARD_ASSIGN_OR_RETURN(const std::vector<Standard> target, r.Scale(1));
  t.target = target[0];
  if (r.Has("dates")) {
    ONWARD_ASSIGN_OR_RETURN(t.dates, r.Word("dates", kOrders));
  }
  t.decimal_comma = r.Truth("decimal_comma");
  if (r.Has("raw")) {
    ONWARD_ASSIGN_OR_RETURN(t.raw, r.Word("raw", kRaws));
  }
  return t;
}

absl::StatusOr<PicturePreparation> ReadPictures(const Json& json) {
  const PreparationReader r(json);
  PicturePreparation p;
  const double largest = std::numeric_limits<float>::max();
  ONWARD_ASSIGN_OR_RETURN(p.height, r.Count("height", 1, kMostSize));
  ONWARD_ASSIGN_OR_RETURN(p.width, r.Count("width", 1, kMostSize));
  ONWARD_ASSIGN_OR_RETURN(p.channels, r.Count("channels", 1, kMostSize));
  ONWARD_ASSIGN_OR_RETURN(p.fit, r.Word("fit", kFits));
  ONWARD_ASSIGN_OR_RETURN(p.scale, r.Number("scale", -largest, largest));
  ONWARD_ASSIGN_OR_RETURN(p.shift, r.Number("shift", -largest, largest));
  ONWARD_ASSIGN_OR_RETURN(p.mean, r.Numbers("mean"));
  ONWARD_ASSIGN_OR_RETURN(p.deviation, r.Numbers("deviation"));
  for (const auto* list : {&p.mean, &p.deviation}) {
    if (list->size() > 1 && static_cast<int64_t>(list->size()) != p.channels) {
      return WrongKey("mean", "one number, or one per channel");
    }
  }
  for (double d : p.deviation) {
    if (!(d > 0)) return WrongKey("deviation", "numbers above 0");
  }
  return p;
}

absl::StatusOr<TextPreparation> ReadTokens(const Json& json) {
  const PreparationReader r(json);
  TextPreparation t;
  ONWARD_ASSIGN_OR_RETURN(t.tokens, r.Word("tokens", kTokens));
  ONWARD_ASSIGN_OR_RETURN(t.length, r.Count("length", 1, kLongestText));
  if (t.tokens != TokenKind::kBytes) {
    ONWARD_ASSIGN_OR_RETURN(t.vocabulary, r.Names("vocabulary"));
    if (t.vocabulary.empty()) return WrongKey("vocabulary", "a token");
  }
  t.lower_case = r.Truth("lower_case");
  if (r.Has("column")) {
    ONWARD_ASSIGN_OR_RETURN(t.column, r.Text("column"));
  }
  return t;
}

}  // namespace

std::string PreparationText(const Preparation& preparation) {
  if (preparation.empty()) return "";
  JsonWriter w;
  w.BeginObject().Field("version", kVersion);
  if (preparation.table) WriteTable(*preparation.table, &w);
  if (preparation.pictures) WritePictures(*preparation.pictures, &w);
  if (preparation.text) WriteTokens(*preparation.text, &w);
  return w.EndObject().text();
}

absl::StatusOr<Preparation> ParsePreparation(absl::string_view json) {
  Preparation preparation;
  if (json.empty()) return preparation;
  ONWARD_ASSIGN_OR_RETURN(const Json whole, ParseJson(json));
  ONWARD_ASSIGN_OR_RETURN(const int64_t version, PreparationReader(whole).Count("version", 1, 1e9));
  if (version > kVersion) {
    return absl::UnimplementedError(absl::StrCat(
        "is of version ", version, ", written by a newer program; this one reads ", kVersion));
  }
  if (const Json* table = whole.Find("table")) {
    ONWARD_ASSIGN_OR_RETURN(preparation.table, ReadTable(*table));
  }
  if (const Json* pictures = whole.Find("pictures")) {
    ONWARD_ASSIGN_OR_RETURN(preparation.pictures, ReadPictures(*pictures));
  }
  if (const Json* text = whole.Find("text")) {
    ONWARD_ASSIGN_OR_RETURN(preparation.text, ReadTokens(*text));
  }
  return preparation;
}

}  // namespace onward
