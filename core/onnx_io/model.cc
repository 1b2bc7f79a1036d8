// SPDX-License-Identifier: Apache-2.0
#include "core/onnx_io/model.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <new>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/inline.h"
#include "core/onnx_io/hold.h"
#include "core/onnx_io/model_bytes.h"
#include "core/onnx_io/proto.h"
#include "core/onnx_io/runtime_operators.h"
#include "core/onnx_io/wire_scan.h"
#include "onnx/onnx_pb.h"

namespace onward {
namespace {

std::string FirstBytesHint(absl::string_view bytes) {
  if (absl::StartsWith(bytes, "\x1f\x8b")) return " (it looks like gzip: decompress it first)";
  if (absl::StartsWith(bytes, "PK"))
    return " (it looks like a zip archive, perhaps a PyTorch checkpoint)";
  if (bytes.size() > 8 && bytes[8] == '{') return " (it looks like safetensors)";
  if (absl::StartsWith(bytes, "\x89HDF")) return " (it looks like HDF5/Keras)";
  if (absl::StartsWith(bytes, "version https://git-lfs")) {
    return " (it is a pointer of Git LFS: `git lfs pull` fetches the file)";
  }
  if (absl::StartsWith(bytes, "<") || absl::StartsWith(bytes, "{")) return " (it looks like text)";
  return "";
}

// What is wrong with bytes that do not parse; to be asked before a parser has used them up.
std::string WhyNoModel(absl::string_view bytes) {
  const std::string hint = FirstBytesHint(bytes);
  const std::optional<CutField> cut = hint.empty() ? FieldCutShort(bytes) : std::nullopt;
  if (!cut) return absl::StrCat(" is not an ONNX model", hint);
  return absl::StrCat(" is cut short: its ", cut->name, ", from byte ", cut->begin,
                      " on, ends at byte ", cut->end, ", but the file has ", bytes.size(),
                      " bytes; fetch or copy it again");
}

absl::Status CheckVersions(const onnx::ModelProto& proto) {
  if (proto.ir_version() < kOldestIrVersion || proto.ir_version() > kNewestIrVersion) {
    return absl::InvalidArgumentError(absl::StrCat(
        "IR version ", proto.ir_version(), " is not supported; this reads IR ", kOldestIrVersion,
        " to ", kNewestIrVersion,
        proto.ir_version() < kOldestIrVersion ? " (convert the file with an older onnx first)"
                                              : " (written by a newer onnx)"));
  }
  if (proto.opset_import_size() == 0) {
    return absl::InvalidArgumentError("the model imports no operator set (opset_import is empty)");
  }
  for (const auto& o : proto.opset_import()) {
    const bool standard = o.domain().empty() || o.domain() == "ai.onnx";
    if (standard && (o.version() < 1 || o.version() > kCanonicalOpset)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "opset ", o.version(), " is not supported; this reads opsets 1 to ", kCanonicalOpset));
    }
  }
  return absl::OkStatus();
}

// Takes the values of large tensors out of the bytes: what is left for protobuf is small.
absl::StatusOr<std::vector<Splice>> TakeWeights(ModelBytes* bytes, Weights* weights) {
  bool reserved = false;
  auto splices = ScanModel(bytes, [&](const WireField& field, std::vector<Splice>* edits) {
    const size_t size = field.end - field.payload;
    if (field.number == kExternalData) {
      const absl::string_view entry(bytes->Load(field.payload, field.end) + field.payload, size);
      reserved |= absl::StrContains(entry, kHeldKey);
    }
    if (field.number != kRawData || size < kHeldBytes) return;
    Weights::Bytes held = Weights::New(size);
    bytes->CopyTo(field.payload, size, held.data);
    bytes->Skip(field.end);
    onnx::TensorProto stand_in;
    SetHeld(weights->Add(std::move(held)), &stand_in);
    edits->push_back({field.begin, field.end, stand_in.SerializeAsString()});
  });
  if (splices.ok() && reserved) {
    return absl::InvalidArgumentError(
        absl::StrCat("external data has the key '", kHeldKey, "', which no file may have"));
  }
  return splices;
}

constexpr uint64_t kTrainingInfo = 20;

// Leaves training_info out of the bytes; false if there is none.
bool DropTraining(absl::string_view all, std::vector<Splice>* splices) {
  const std::vector<Splice> fields = FieldsOfModel(all, kTrainingInfo);
  for (const Splice& field : fields) {
    std::erase_if(*splices,
                  [&](const Splice& s) { return s.begin >= field.begin && s.end <= field.end; });
    splices->push_back(field);
  }
  std::stable_sort(splices->begin(), splices->end(),
                   [](const Splice& a, const Splice& b) { return a.begin < b.begin; });
  return !fields.empty();
}

enum class Training { kRead, kLeaveOut };

absl::StatusOr<Model> ParseFrom(ModelBytes* bytes, const std::string& path, Training training) {
  const std::string where = absl::StrCat("'", path, "'");
  Model model;
  model.set_path(path);
  auto splices = TakeWeights(bytes, &model.weights());
  if (!splices.ok()) return Annotate(splices.status(), where);
  const char* all = bytes->Load(0, bytes->size());
  if (!bytes->ok()) return absl::DataLossError(where + " could not be read completely");
  const absl::string_view file(all, bytes->size());
  const std::string hint = FirstBytesHint(file), why = WhyNoModel(file);
  if (training == Training::kLeaveOut) {
    model.set_training_damaged(DropTraining(file, &*splices));
  }
  SplicedStream stream(bytes, *splices);
  if (!model.proto().ParseFromZeroCopyStream(&stream)) {
    return absl::InvalidArgumentError(where + why);
  }
  if (!model.proto().has_graph() && model.proto().training_info_size() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, " is not an ONNX model: it has no graph", hint));
  }
  ONWARD_RETURN_IF_ERROR(Annotate(CheckVersions(model.proto()), where));
  return model;
}

}  // namespace

struct Model::Contents {
  onnx::ModelProto proto;
  Weights weights;
};

Model::Model() : contents_(std::make_shared<Contents>()) {}
Model::Model(const Model&) = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(const Model&) = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Model::Contents& Model::Own() {
  if (contents_.use_count() > 1) contents_ = std::make_shared<Contents>(*contents_);
  return *contents_;
}

const onnx::ModelProto& Model::proto() const { return contents_->proto; }
const Weights& Model::weights() const { return contents_->weights; }
onnx::ModelProto& Model::proto() { return Own().proto; }
Weights& Model::weights() { return Own().weights; }

std::string Model::folder() const { return std::filesystem::path(path_).parent_path().string(); }
int Model::ir_version() const { return static_cast<int>(contents_->proto.ir_version()); }
void Model::set_ir_version(int version) { proto().set_ir_version(version); }
bool Model::has_training() const { return contents_->proto.training_info_size() > 0; }

std::map<std::string, int> Model::opsets() const {
  std::map<std::string, int> result;
  for (const auto& o : contents_->proto.opset_import()) {
    // onnx.proto: of several versions of a domain, nodes bind against the highest.
    int& version = result[o.domain() == "ai.onnx" ? "" : o.domain()];
    version = std::max(version, static_cast<int>(o.version()));
  }
  return result;
}

std::string Model::Metadata(const std::string& key) const {
  for (const auto& p : contents_->proto.metadata_props()) {
    if (p.key() == key) return p.value();
  }
  return "";
}

void Model::SetMetadata(const std::string& key, const std::string& value) {
  if (value.empty()) {
    auto* properties = proto().mutable_metadata_props();
    properties->erase(std::remove_if(properties->begin(), properties->end(),
                                     [&](const auto& p) { return p.key() == key; }),
                      properties->end());
    return;
  }
  for (auto& p : *proto().mutable_metadata_props()) {
    if (p.key() == key) {
      p.set_value(value);
      return;
    }
  }
  auto* p = proto().add_metadata_props();
  p->set_key(key);
  p->set_value(value);
}

// What is wrong with training_info is no reason to refuse the rest. `open` gives the bytes anew:
// a parser uses them up.
static absl::StatusOr<Model> ParseEitherWay(const std::function<absl::StatusOr<ModelBytes>()>& open,
                                            ModelBytes* bytes, const std::string& path) {
  absl::StatusOr<Model> model = ParseFrom(bytes, path, Training::kRead);
  if (model.status().code() != absl::StatusCode::kInvalidArgument) return model;
  ONWARD_ASSIGN_OR_RETURN(ModelBytes again, open());
  absl::StatusOr<Model> without = ParseFrom(&again, path, Training::kLeaveOut);
  return without.ok() && without->training_damaged() ? without : model;
}

absl::StatusOr<Model> ReadModel(const std::string& path) {
  // Somebody may be saving: between a model and its data another pair may take their place.
  constexpr int kMostAttempts = 5;
  try {
    for (int attempt = 1;; ++attempt) {
      const auto open = [&] { return ModelBytes::Open(path, kMostModelBytes); };
      ONWARD_ASSIGN_OR_RETURN(ModelBytes bytes, open());
      ONWARD_ASSIGN_OR_RETURN(Model model, ParseEitherWay(open, &bytes, path));
      const bool held = HoldExternalData(&model).ok();
      if (held || attempt == kMostAttempts || !bytes.Replaced(path)) return model;
    }
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat("'", path, "': out of memory"));
  }
}

absl::StatusOr<Model> ParseModel(const std::string& bytes, const std::string& path) {
  try {
    const auto open = [&]() -> absl::StatusOr<ModelBytes> {
      return ModelBytes{absl::string_view(bytes)};
    };
    ModelBytes view{absl::string_view(bytes)};
    ONWARD_ASSIGN_OR_RETURN(Model model, ParseEitherWay(open, &view, path));
    HoldExternalData(&model).IgnoreError();  // see model.h
    return model;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat("'", path, "': out of memory"));
  }
}

absl::StatusOr<Graph> OtherGraph(const Model& model, const onnx::GraphProto& proto) {
  const ExternalData external(model.folder(), &model.weights());
  ONWARD_ASSIGN_OR_RETURN(Graph graph, GraphFromProto(proto, &external));
  graph.opsets = model.opsets();
  for (const auto& f : model.proto().functions()) {
    ONWARD_ASSIGN_OR_RETURN(Function function, FunctionFromProto(f, &external));
    // One with a cycle stays as it is: whoever calls it is told.
    if (Graph body = function.body; SortNodes(&body).ok()) function.body = std::move(body);
    const FunctionKey key{f.domain(), f.name(), f.overload()};
    if (!graph.functions.emplace(key, std::make_shared<Function>(std::move(function))).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("function ", f.domain(), ".", f.name(), " is defined twice"));
    }
  }
  AdoptRuntimeOperators(&graph);
  return graph;
}

absl::StatusOr<Graph> InferenceGraph(const Model& model) {
  auto graph = OtherGraph(model, model.proto().graph());
  if (!graph.ok()) return Annotate(graph.status(), absl::StrCat("'", model.path(), "'"));
  ONWARD_RETURN_IF_ERROR(Annotate(SortNodes(&*graph), absl::StrCat("'", model.path(), "'")));
  return graph;
}

absl::StatusOr<Graph> Canonicalize(const Graph& graph) {
  ONWARD_ASSIGN_OR_RETURN(Graph inlined, InlineFunctions(graph));
  ONWARD_RETURN_IF_ERROR(FindingsToStatus(CheckGraph(inlined)));
  return RaiseOpset(inlined, kCanonicalOpset);
}

absl::StatusOr<Graph> CanonicalGraph(const Model& model) {
  ONWARD_ASSIGN_OR_RETURN(Graph graph, InferenceGraph(model));
  auto canonical = Canonicalize(graph);
  if (!canonical.ok()) return Annotate(canonical.status(), absl::StrCat("'", model.path(), "'"));
  return canonical;
}

onnx::ModelProto GraphToModelProto(const Graph& graph, int ir_version, const std::string& producer,
                                   Weights* held) {
  onnx::ModelProto proto;
  proto.set_ir_version(ir_version);
  proto.set_producer_name(producer);
  for (const auto& [domain, version] : graph.opsets) {
    auto* o = proto.add_opset_import();
    o->set_domain(domain);
    o->set_version(version);
  }
  GraphToProto(graph, proto.mutable_graph(), held);
  for (const auto& [key, function] : graph.functions)
    FunctionToProto(key, *function, proto.add_functions(), held);
  return proto;
}

Model ModelFromGraph(const Graph& graph, int ir_version, const std::string& producer) {
  Model model;
  model.proto() = GraphToModelProto(graph, ir_version, producer, &model.weights());
  return model;
}

}  // namespace onward
