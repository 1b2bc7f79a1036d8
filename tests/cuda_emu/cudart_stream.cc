// SPDX-License-Identifier: Apache-2.0
// Runtime calls about streams and events.
#include <cuda_runtime_api.h>

#include <chrono>
#include <set>

#include "tests/cuda_emu/memory.h"
#include "tests/cuda_emu/state.h"
#include "tests/cuda_emu/stream.h"

using namespace onward::cuda_emu;

namespace {

std::set<CUevent_st*>& Events() {
  static auto* events = new std::set<CUevent_st*>;
  return *events;
}

bool IsEvent(cudaEvent_t event) { return Events().contains(event); }

double Milliseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  Entry entry;
  if (const cudaError_t sticky = Record(cudaSuccess)) return sticky;
  if (ShallFail(kOnwardEmuObject)) return Record(cudaErrorMemoryAllocation);
  if (stream == nullptr || flags > cudaStreamNonBlocking) return Record(cudaErrorInvalidValue);
  Resolve(nullptr);  // the default stream exists before any other
  *stream = NewStream(CurrentDevice(), flags == cudaStreamDefault);
  ++GetState().counters.live_objects;
  return Record(cudaSuccess);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}

// CUDA lets queued work go on after this; nothing could tell whether it ran, so it runs here.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  Entry entry;
  if (stream == nullptr || Resolve(stream) == nullptr)
    return Record(cudaErrorInvalidResourceHandle);
  while (!stream->queue.empty()) Finish(stream->queue.back());
  DeleteStream(stream);
  --GetState().counters.live_objects;
  return Record(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  Entry entry;
  CUstream_st* resolved = Resolve(stream);
  if (resolved == nullptr) return Record(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = RefuseWhileCapturing(resolved)) return Record(error);
  FinishStream(resolved);
  return Record(cudaSuccess);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  Entry entry;
  CUstream_st* resolved = Resolve(stream);
  if (resolved == nullptr) return Record(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = RefuseWhileCapturing(resolved)) return Record(error);
  if (resolved->queue.empty()) {
    HostWaitedFor(resolved->clock);
    return Record(cudaSuccess);
  }
  Advance(resolved);
  return Record(cudaErrorNotReady);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  Entry entry;
  if (const cudaError_t sticky = Record(cudaSuccess)) return sticky;
  CUstream_st* resolved = Resolve(stream);
  if (resolved == nullptr || !IsEvent(event)) return Record(cudaErrorInvalidResourceHandle);
  if (event->capture != nullptr) {  // the stream joins that capture
    if (event->capture->ended) return Record(cudaErrorCapturedEvent);
    if (resolved->capture != nullptr && resolved->capture != event->capture) {
      return Record(cudaErrorStreamCaptureIsolation);
    }
    resolved->capture = event->capture;
    resolved->frontier.insert(resolved->frontier.end(), event->frontier.begin(),
                              event->frontier.end());
    return Record(cudaSuccess);
  }
  if (resolved->capture != nullptr) {
    if (event->task != nullptr) {
      resolved->capture->broken = true;
      return Record(cudaErrorStreamCaptureIsolation);
    }
    return Record(cudaSuccess);
  }
  const TaskPtr task = event->task;
  if (task != nullptr) Join(&resolved->clock, task->clock);
  if (task == nullptr || task->done) return Record(cudaSuccess);
  if (const cudaError_t error = Enqueue(resolved, [] {})) return Record(error);
  if (task->stream != resolved) resolved->last->after.push_back(task);
  return Record(cudaSuccess);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  Entry entry;
  if (const cudaError_t sticky = Record(cudaSuccess)) return sticky;
  CUstream_st* resolved = Resolve(stream);
  if (resolved == nullptr) return Record(cudaErrorInvalidResourceHandle);
  if (function == nullptr) return Record(cudaErrorInvalidValue);
  return Record(Enqueue(resolved, [function, data] {
    CloseMemory();
    function(data);
  }));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  Entry entry;
  if (const cudaError_t sticky = Record(cudaSuccess)) return sticky;
  if (ShallFail(kOnwardEmuObject)) return Record(cudaErrorMemoryAllocation);
  if (event == nullptr) return Record(cudaErrorInvalidValue);
  *event = new CUevent_st;
  (*event)->device = CurrentDevice();
  (*event)->timed = (flags & cudaEventDisableTiming) == 0;
  Events().insert(*event);
  ++GetState().counters.live_objects;
  return Record(cudaSuccess);
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  Entry entry;
  if (!IsEvent(event)) return Record(cudaErrorInvalidResourceHandle);
  Events().erase(event);
  delete event;
  --GetState().counters.live_objects;
  return Record(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  Entry entry;
  if (const cudaError_t sticky = Record(cudaSuccess)) return sticky;
  CUstream_st* resolved = Resolve(stream);
  if (resolved == nullptr || !IsEvent(event) || event->device != resolved->device) {
    return Record(cudaErrorInvalidResourceHandle);
  }
  event->capture = resolved->capture;
  event->frontier = resolved->frontier;
  if (resolved->capture != nullptr) return Record(cudaSuccess);
  auto time = std::make_shared<double>(0);
  event->time = time;
  if (const cudaError_t error = Enqueue(resolved, [time] { *time = Milliseconds(); })) {
    return Record(error);
  }
  event->task = resolved->last;
  return Record(cudaSuccess);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  Entry entry;
  if (!IsEvent(event)) return Record(cudaErrorInvalidResourceHandle);
  if (event->capture != nullptr) return Record(cudaErrorCapturedEvent);
  ++GetState().counters.waits;
  if (event->task == nullptr) return Record(cudaSuccess);
  Finish(event->task);
  HostWaitedFor(event->task->clock);
  return Record(cudaSuccess);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  Entry entry;
  if (!IsEvent(event)) return Record(cudaErrorInvalidResourceHandle);
  if (event->capture != nullptr) return Record(cudaErrorCapturedEvent);
  if (event->task == nullptr) return Record(cudaSuccess);
  if (event->task->done) {
    HostWaitedFor(event->task->clock);
    return Record(cudaSuccess);
  }
  Advance(event->task->stream);
  return Record(cudaErrorNotReady);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  Entry entry;
  if (!IsEvent(start) || !IsEvent(end) || !start->timed || !end->timed || start->task == nullptr ||
      end->task == nullptr) {
    return Record(cudaErrorInvalidResourceHandle);
  }
  if (!start->task->done || !end->task->done) return Record(cudaErrorNotReady);
  *milliseconds = static_cast<float>(*end->time - *start->time);
  return Record(cudaSuccess);
}

}  // extern "C"
