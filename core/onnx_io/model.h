// SPDX-License-Identifier: Apache-2.0
// A model file in memory. The protobuf message stays as it was read, because
// export edits it and nothing else; Graphs are made from it on demand.
#ifndef ONWARD_CORE_ONNX_IO_MODEL_H_
#define ONWARD_CORE_ONNX_IO_MODEL_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/graph/verify.h"

namespace onnx {
class ModelProto;
class GraphProto;
}  // namespace onnx

namespace onward {

inline constexpr int kOldestIrVersion = 3;
inline constexpr int kNewestIrVersion = 14;

// Copies share their contents until one of them is changed, and so do the
// tensors of graphs that are read from it: a large model is in memory once.
class Model {
 public:
  Model();
  Model(const Model&);
  Model(Model&&) noexcept;
  Model& operator=(const Model&);
  Model& operator=(Model&&) noexcept;
  ~Model();

  const onnx::ModelProto& proto() const { return *proto_; }
  // To change it: afterwards this model shares with nobody.
  onnx::ModelProto& proto();
  // What keeps the bytes of its tensors alive.
  std::shared_ptr<void> owner() const { return proto_; }
  // Where the file is ("" if it never was one); external data lies beside it.
  const std::string& path() const { return path_; }
  void set_path(std::string path) { path_ = std::move(path); }
  std::string folder() const;

  int ir_version() const;
  void set_ir_version(int version);
  std::map<std::string, int> opsets() const;
  bool has_training() const;
  // Free-form metadata (ModelProto.metadata_props).
  std::string Metadata(const std::string& key) const;                  // "" if absent
  void SetMetadata(const std::string& key, const std::string& value);  // "" removes it

 private:
  std::shared_ptr<onnx::ModelProto> proto_;
  std::string path_;
};

// Parses a file: regular file, at most 2 GiB, sane counts, supported versions.
absl::StatusOr<Model> ReadModel(const std::string& path);
absl::StatusOr<Model> ParseModel(const std::string& bytes, const std::string& path);

// The inference graph at the model's own opset, functions kept in
// Graph.functions, external data loaded, nodes sorted. Not yet checked.
absl::StatusOr<Graph> InferenceGraph(const Model& model);
// One of the model's other graphs (training_info), read the same way.
absl::StatusOr<Graph> OtherGraph(const Model& model, const onnx::GraphProto& proto);

// Every broken rule: names, unknown operators, wrong attributes or counts.
// `graph` has its functions inlined.
std::vector<Finding> CheckGraph(const Graph& graph);

// The same graph in the operator forms of opset `target`. Names stay.
absl::StatusOr<Graph> RaiseOpset(const Graph& graph, int target);

// InferenceGraph -> functions inlined -> checked -> raised to kCanonicalOpset.
absl::StatusOr<Graph> CanonicalGraph(const Model& model);
// The last three steps of it.
absl::StatusOr<Graph> Canonicalize(const Graph& graph);

// A new model holding `graph` (its functions included).
Model ModelFromGraph(const Graph& graph, int ir_version, const std::string& producer);

// Data that lies beside the file the model was read from is written into the new one.
// Writes whole or not at all (see atomic_file.h).
absl::Status WriteModel(const Model& model, const std::string& path);

}  // namespace onward

#endif  // ONWARD_CORE_ONNX_IO_MODEL_H_
