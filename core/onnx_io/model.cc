// SPDX-License-Identifier: Apache-2.0
#include "core/onnx_io/model.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/inline.h"
#include "core/onnx_io/file_bytes.h"
#include "core/onnx_io/proto.h"
#include "core/onnx_io/wire_scan.h"
#include "onnx/onnx_pb.h"

namespace onward {
namespace {

constexpr int64_t kMaxFileBytes = (int64_t{1} << 31) - 1;

std::string FirstBytesHint(absl::string_view bytes) {
  if (absl::StartsWith(bytes, "\x1f\x8b")) return " (it looks like gzip: decompress it first)";
  if (absl::StartsWith(bytes, "PK"))
    return " (it looks like a zip archive, perhaps a PyTorch checkpoint)";
  if (bytes.size() > 8 && bytes[8] == '{') return " (it looks like safetensors)";
  if (absl::StartsWith(bytes, "\x89HDF")) return " (it looks like HDF5/Keras)";
  if (absl::StartsWith(bytes, "<") || absl::StartsWith(bytes, "{")) return " (it looks like text)";
  return "";
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
  std::map<std::string, int64_t> seen;
  for (const auto& o : proto.opset_import()) {
    const std::string domain = o.domain() == "ai.onnx" ? "" : o.domain();
    auto [it, inserted] = seen.emplace(domain, o.version());
    if (!inserted && it->second != o.version()) {
      return absl::InvalidArgumentError(absl::StrCat("operator set '", domain,
                                                     "' is imported with versions ", it->second,
                                                     " and ", o.version()));
    }
    if (domain.empty() && (o.version() < 1 || o.version() > kCanonicalOpset)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "opset ", o.version(), " is not supported; this reads opsets 1 to ", kCanonicalOpset));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Model> ParseFrom(absl::string_view bytes, const std::string& path,
                                google::protobuf::io::ZeroCopyInputStream* stream) {
  ONWARD_RETURN_IF_ERROR(Annotate(ScanModelBytes(bytes), absl::StrCat("'", path, "'")));
  const std::string hint = FirstBytesHint(bytes);
  Model model;
  model.set_path(path);
  if (!model.proto().ParseFromZeroCopyStream(stream)) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not an ONNX model", hint));
  }
  if (!model.proto().has_graph() && model.proto().training_info_size() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' is not an ONNX model: it has no graph", hint));
  }
  ONWARD_RETURN_IF_ERROR(Annotate(CheckVersions(model.proto()), absl::StrCat("'", path, "'")));
  return model;
}

}  // namespace

Model::Model() : proto_(std::make_shared<onnx::ModelProto>()) {}
Model::Model(const Model&) = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(const Model&) = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

onnx::ModelProto& Model::proto() {
  if (proto_.use_count() > 1) proto_ = std::make_shared<onnx::ModelProto>(*proto_);
  return *proto_;
}

std::string Model::folder() const { return std::filesystem::path(path_).parent_path().string(); }
int Model::ir_version() const { return static_cast<int>(proto_->ir_version()); }
void Model::set_ir_version(int version) { proto().set_ir_version(version); }
bool Model::has_training() const { return proto_->training_info_size() > 0; }

std::map<std::string, int> Model::opsets() const {
  std::map<std::string, int> result;
  for (const auto& o : proto_->opset_import()) {
    result[o.domain() == "ai.onnx" ? "" : o.domain()] = static_cast<int>(o.version());
  }
  return result;
}

std::string Model::Metadata(const std::string& key) const {
  for (const auto& p : proto_->metadata_props()) {
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

absl::StatusOr<Model> ReadModel(const std::string& path) {
  ONWARD_ASSIGN_OR_RETURN(ModelFileBytes bytes, ModelFileBytes::Read(path, kMaxFileBytes));
  ReleasingStream stream(&bytes);
  return ParseFrom(bytes.view(), path, &stream);
}

absl::StatusOr<Model> ParseModel(const std::string& bytes, const std::string& path) {
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  return ParseFrom(bytes, path, &stream);
}

absl::StatusOr<Graph> OtherGraph(const Model& model, const onnx::GraphProto& proto) {
  const ExternalData external(model.folder(), model.owner());
  ONWARD_ASSIGN_OR_RETURN(Graph graph, GraphFromProto(proto, &external));
  graph.opsets = model.opsets();
  for (const auto& f : model.proto().functions()) {
    ONWARD_ASSIGN_OR_RETURN(Function function, FunctionFromProto(f, &external));
    const FunctionKey key{f.domain(), f.name(), f.overload()};
    if (!graph.functions.emplace(key, std::make_shared<Function>(std::move(function))).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("function ", f.domain(), ".", f.name(), " is defined twice"));
    }
  }
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

Model ModelFromGraph(const Graph& graph, int ir_version, const std::string& producer) {
  Model model;
  onnx::ModelProto& proto = model.proto();
  proto.set_ir_version(ir_version);
  proto.set_producer_name(producer);
  for (const auto& [domain, version] : graph.opsets) {
    auto* o = proto.add_opset_import();
    o->set_domain(domain);
    o->set_version(version);
  }
  GraphToProto(graph, proto.mutable_graph());
  for (const auto& [key, function] : graph.functions)
    FunctionToProto(key, *function, proto.add_functions());
  return model;
}

}  // namespace onward
