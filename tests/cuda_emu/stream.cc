// SPDX-License-Identifier: Apache-2.0
// The order of queued work.
#include "tests/cuda_emu/stream.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tests/cuda_emu/memory.h"
#include "tests/cuda_emu/state.h"

namespace onward::cuda_emu {
namespace {

std::vector<std::unique_ptr<CUstream_st>>& Streams() {
  static auto* streams = new std::vector<std::unique_ptr<CUstream_st>>;
  return *streams;
}

CUstream_st* DefaultStream(int device) {
  static auto* defaults = new std::map<int, CUstream_st*>;
  CUstream_st*& stream = (*defaults)[device];
  if (stream == nullptr) stream = NewStream(device, true);
  return stream;
}

// The task at the head of the stream, once all it waits for is done.
void RunHead(CUstream_st* stream) {
  const TaskPtr task = stream->queue.front();
  stream->queue.pop_front();
  if (Sticky(task->device) == cudaSuccess && task->run) {
    const int device = CurrentDevice();
    SetCurrentDevice(task->device);
    task->run();
    SetCurrentDevice(device);
  }
  task->done = true;
  task->run = nullptr;
  task->after.clear();
}

const TaskPtr* Unfinished(const std::vector<TaskPtr>& tasks) {
  const auto found =
      std::find_if(tasks.begin(), tasks.end(), [](const TaskPtr& task) { return !task->done; });
  return found == tasks.end() ? nullptr : &*found;
}

// On a GPU other streams go on meanwhile; with a seed they do, at random.
void MaybeRunOthers() {
  State& state = GetState();
  if (!state.shuffles()) return;
  while (state.Coin()) {
    std::vector<CUstream_st*> able;
    for (const auto& stream : Streams()) {
      if (!stream->queue.empty() && Unfinished(stream->queue.front()->after) == nullptr) {
        able.push_back(stream.get());
      }
    }
    if (able.empty()) return;
    RunHead(able[state.Below(able.size())]);
  }
}

// Whether calls that are unsafe anywhere are forbidden to this thread.
bool Forbids(const CUstream_st::Capture& capture) {
  if (capture.mode == cudaStreamCaptureModeThreadLocal) {
    return capture.thread == std::this_thread::get_id();
  }
  return capture.mode == cudaStreamCaptureModeGlobal;
}

cudaError_t Capture(CUstream_st* stream, std::function<void()> run, Accesses accesses) {
  CUgraph_st& graph = stream->capture->graph;
  graph.nodes.push_back({std::move(run), stream->frontier, stream->device, std::move(accesses)});
  stream->frontier = {graph.nodes.size() - 1};
  return cudaSuccess;
}

}  // namespace

CUstream_st* NewStream(int device, bool blocking) {
  auto stream = std::make_unique<CUstream_st>();
  stream->device = device;
  stream->blocking = blocking;
  stream->number = NewOrderedStream();
  Streams().push_back(std::move(stream));
  return Streams().back().get();
}

void DeleteStream(CUstream_st* stream) {
  auto& streams = Streams();
  streams.erase(std::find_if(streams.begin(), streams.end(),
                             [stream](const auto& held) { return held.get() == stream; }));
}

CUstream_st* Resolve(cudaStream_t stream) {
  if (stream == nullptr || stream == cudaStreamLegacy) return DefaultStream(CurrentDevice());
  for (const auto& held : Streams()) {
    if (held.get() == stream) return stream;
  }
  return nullptr;
}

std::vector<CUstream_st*> StreamsOf(const std::shared_ptr<CUstream_st::Capture>& capture) {
  std::vector<CUstream_st*> members = {capture->origin};
  for (const auto& stream : Streams()) {
    if (stream->capture == capture && stream.get() != capture->origin) {
      members.push_back(stream.get());
    }
  }
  return members;
}

cudaError_t Enqueue(CUstream_st* stream, std::function<void()> run, Accesses accesses) {
  if (stream->capture != nullptr) return Capture(stream, std::move(run), std::move(accesses));
  auto task = std::make_shared<Task>();
  task->run = std::move(run);
  task->stream = stream;
  task->device = stream->device;
  // The default stream waits for the streams that block, and they for it.
  CUstream_st* legacy = DefaultStream(stream->device);
  for (const auto& other : Streams()) {
    if (other.get() == stream || other->device != stream->device) continue;
    const bool ordered =
        stream == legacy ? other->blocking : stream->blocking && other.get() == legacy;
    if (!ordered) continue;
    if (other->capture != nullptr) {
      other->capture->broken = true;
      return cudaErrorStreamCaptureImplicit;
    }
    if (other->last != nullptr && !other->last->done) task->after.push_back(other->last);
    Join(&stream->clock, other->clock);
  }
  QueueInOrder(stream->number, &stream->clock, accesses);
  task->clock = stream->clock;
  stream->queue.push_back(task);
  stream->last = task;
  return cudaSuccess;
}

void Finish(const TaskPtr& target) {
  std::vector<TaskPtr> wanted = {target};
  while (!wanted.empty()) {
    const TaskPtr task = wanted.back();
    if (task->done) {
      wanted.pop_back();
      continue;
    }
    const TaskPtr head = task->stream->queue.front();
    if (const TaskPtr* first = Unfinished(head->after)) {
      wanted.push_back(*first);
    } else {
      RunHead(task->stream);
      MaybeRunOthers();
    }
  }
}

void FinishStream(CUstream_st* stream) {
  ++GetState().counters.waits;
  while (!stream->queue.empty()) Finish(stream->queue.back());
  HostWaitedFor(stream->clock);
}

void FinishDevice(int device) {
  ++GetState().counters.waits;
  std::vector<TaskPtr> tasks;
  for (const auto& stream : Streams()) {
    if (stream->device == device && !stream->queue.empty()) tasks.push_back(stream->queue.back());
  }
  if (GetState().shuffles()) std::shuffle(tasks.begin(), tasks.end(), GetState().random);
  for (const TaskPtr& task : tasks) Finish(task);
  for (const auto& stream : Streams()) {
    if (stream->device == device) HostWaitedFor(stream->clock);
  }
}

void Advance(CUstream_st* stream) {
  if (stream->queue.empty()) return;
  Finish(stream->queue.front());
}

void DropQueuedWork() {
  for (const auto& stream : Streams()) {
    for (const TaskPtr& task : stream->queue) task->done = true;
    stream->queue.clear();
    stream->capture = nullptr;
    stream->frontier.clear();
  }
  ForgetAllAccesses();
}

cudaError_t RefuseWhileCapturing(CUstream_st* stream) {
  bool refused = false;
  for (const auto& held : Streams()) {
    if (held->capture == nullptr || (stream != nullptr && stream != held.get())) continue;
    if (stream == nullptr && !Forbids(*held->capture)) continue;
    held->capture->broken = true;
    refused = true;
  }
  return refused ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

}  // namespace onward::cuda_emu
