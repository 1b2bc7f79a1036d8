// SPDX-License-Identifier: Apache-2.0
// Runtime calls about capture and graphs.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <memory>
#include <set>

#include "tests/cuda_emu/state.h"
#include "tests/cuda_emu/stream.h"

using namespace onward::cuda_emu;

struct CUgraphExec_st {
  std::shared_ptr<const CUgraph_st> graph;  // work that was launched keeps what it was made of
  Accesses accesses;                        // of all nodes
};

namespace {

template <class T>
std::set<T*>& Alive() {
  static auto* objects = new std::set<T*>;
  return *objects;
}

template <class T>
T* Keep(T* object) {
  Alive<T>().insert(object);
  ++GetState().counters.live_objects;
  return object;
}

template <class T>
cudaError_t Destroy(T* object) {
  Entry entry;
  if (Alive<T>().erase(object) == 0) return Record(cudaErrorInvalidValue);
  --GetState().counters.live_objects;
  delete object;
  return Record(cudaSuccess);
}

// Whether all that `frontier` names comes before or is in `end`.
bool Precedes(const CUgraph_st& graph, const std::vector<size_t>& frontier,
              const std::vector<size_t>& end) {
  std::set<size_t> reached;
  std::vector<size_t> open = end;
  while (!open.empty()) {
    const size_t node = open.back();
    open.pop_back();
    if (!reached.insert(node).second) continue;
    open.insert(open.end(), graph.nodes[node].after.begin(), graph.nodes[node].after.end());
  }
  return std::all_of(frontier.begin(), frontier.end(),
                     [&](size_t node) { return reached.contains(node); });
}

Accesses AccessesOf(const CUgraph_st& graph) {
  std::vector<Access> all;
  for (const GraphNode& node : graph.nodes) {
    if (node.accesses != nullptr) {
      all.insert(all.end(), node.accesses->begin(), node.accesses->end());
    }
  }
  return Touching(std::move(all));
}

void RunNode(const GraphNode& node) {
  if (Sticky(node.device) != cudaSuccess) return;
  const int device = CurrentDevice();
  SetCurrentDevice(node.device);
  node.run();
  SetCurrentDevice(device);
}

// In the order of capture, or with a seed in any order that the edges allow.
void RunGraph(const CUgraph_st& graph) {
  ++GetState().counters.graph_launches;
  std::vector<size_t> missing(graph.nodes.size()), ready;
  std::vector<std::vector<size_t>> next(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const std::set<size_t> before(graph.nodes[i].after.begin(), graph.nodes[i].after.end());
    missing[i] = before.size();
    for (const size_t earlier : before) next[earlier].push_back(i);
    if (before.empty()) ready.push_back(i);
  }
  while (!ready.empty()) {
    const auto chosen = GetState().shuffles()
                            ? ready.begin() + static_cast<int64_t>(GetState().Below(ready.size()))
                            : std::min_element(ready.begin(), ready.end());
    const size_t node = *chosen;
    ready.erase(chosen);
    RunNode(graph.nodes[node]);
    for (const size_t later : next[node]) {
      if (--missing[later] == 0) ready.push_back(later);
    }
  }
}

}  // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  Entry entry;
  if (const cudaError_t sticky = Record(cudaSuccess)) return sticky;
  if (stream == nullptr || stream == cudaStreamLegacy) {
    return Record(cudaErrorStreamCaptureUnsupported);
  }
  CUstream_st* resolved = Resolve(stream);
  if (resolved == nullptr) return Record(cudaErrorInvalidResourceHandle);
  if (resolved->capture != nullptr) return Record(cudaErrorIllegalState);
  resolved->capture = std::make_shared<CUstream_st::Capture>();
  resolved->capture->origin = resolved;
  resolved->capture->mode = mode;
  resolved->capture->thread = std::this_thread::get_id();
  resolved->frontier.clear();
  return Record(cudaSuccess);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  Entry entry;
  CUstream_st* resolved = Resolve(stream);
  if (resolved == nullptr) return Record(cudaErrorInvalidResourceHandle);
  if (resolved->capture == nullptr) return Record(cudaErrorIllegalState);
  const std::shared_ptr<CUstream_st::Capture> capture = resolved->capture;
  if (capture->origin != resolved) return Record(cudaErrorStreamCaptureUnmatched);
  bool joined = true;
  for (CUstream_st* member : StreamsOf(capture)) {
    joined &= Precedes(capture->graph, member->frontier, resolved->frontier);
  }
  for (CUstream_st* member : StreamsOf(capture)) {
    member->capture = nullptr;
    if (member != resolved) member->frontier.clear();
  }
  resolved->frontier.clear();
  capture->ended = true;
  *graph = nullptr;
  if (capture->broken) return Record(cudaErrorStreamCaptureInvalidated);
  if (!joined) return Record(cudaErrorStreamCaptureUnjoined);
  *graph = Keep(new CUgraph_st(capture->graph));
  return Record(cudaSuccess);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  Entry entry;
  const CUstream_st* resolved = Resolve(stream);
  if (resolved == nullptr) return Record(cudaErrorInvalidResourceHandle);
  *status = resolved->capture == nullptr ? cudaStreamCaptureStatusNone
            : resolved->capture->broken  ? cudaStreamCaptureStatusInvalidated
                                         : cudaStreamCaptureStatusActive;
  return Record(cudaSuccess);
}

// Fills nothing but the number: the emulator's nodes have no handles.
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  Entry entry;
  if (!Alive<CUgraph_st>().contains(graph) || nodes != nullptr) {
    return Record(cudaErrorInvalidValue);
  }
  *count = graph->nodes.size();
  return Record(cudaSuccess);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long) {
  Entry entry;
  if (const cudaError_t sticky = Record(cudaSuccess)) return sticky;
  if (ShallFail(kOnwardEmuObject)) return Record(cudaErrorMemoryAllocation);
  if (exec == nullptr || !Alive<CUgraph_st>().contains(graph)) return Record(cudaErrorInvalidValue);
  *exec = Keep(new CUgraphExec_st{std::make_shared<CUgraph_st>(*graph), AccessesOf(*graph)});
  return Record(cudaSuccess);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(exec, graph, flags);
}

// The same edges between as many nodes count as the same graph; what they do is replaced.
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* info) {
  Entry entry;
  if (!Alive<CUgraphExec_st>().contains(exec) || !Alive<CUgraph_st>().contains(graph)) {
    return Record(cudaErrorInvalidValue);
  }
  const auto& before = exec->graph->nodes;
  const auto& after = graph->nodes;
  const bool same =
      std::equal(before.begin(), before.end(), after.begin(), after.end(),
                 [](const GraphNode& a, const GraphNode& b) { return a.after == b.after; });
  *info = {};
  info->result = same ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged;
  if (!same) return Record(cudaErrorGraphExecUpdateFailure);
  exec->graph = std::make_shared<CUgraph_st>(*graph);
  exec->accesses = AccessesOf(*graph);
  return Record(cudaSuccess);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t) {
  Entry entry;
  return Record(Alive<CUgraphExec_st>().contains(exec) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  Entry entry;
  if (const cudaError_t sticky = Record(cudaSuccess)) return sticky;
  if (ShallFail(kOnwardEmuLaunch)) return Record(cudaErrorLaunchOutOfResources);
  CUstream_st* resolved = Resolve(stream);
  if (resolved == nullptr) return Record(cudaErrorInvalidResourceHandle);
  if (!Alive<CUgraphExec_st>().contains(exec)) return Record(cudaErrorInvalidValue);
  return Record(Enqueue(
      resolved, [graph = exec->graph] { RunGraph(*graph); }, exec->accesses));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return Destroy(graph); }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { return Destroy(exec); }

}  // extern "C"
