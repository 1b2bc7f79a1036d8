// SPDX-License-Identifier: Apache-2.0
// Streams as queues of work that runs only when something waits for it, so that whoever reads too
// early reads old values. Captured work is collected in a graph instead.
#pragma once

#include <cuda_runtime_api.h>

#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "tests/cuda_emu/stream_order.h"

namespace onward::cuda_emu {

struct Task {
  std::function<void()> run;
  std::vector<std::shared_ptr<Task>> after;  // of other streams; its own stream's order is implied
  CUstream_st* stream = nullptr;
  int device = 0;
  bool done = false;
  Clock clock;  // what is done once this is
};
using TaskPtr = std::shared_ptr<Task>;

// One step of a captured graph; `after` are indices of earlier ones.
struct GraphNode {
  std::function<void()> run;
  std::vector<size_t> after;
  int device = 0;
  Accesses accesses;  // may be null
};

}  // namespace onward::cuda_emu

struct CUgraph_st {
  std::vector<onward::cuda_emu::GraphNode> nodes;
};

struct CUstream_st {
  int device = 0;
  bool blocking = true;  // ordered with the default stream
  uint64_t number = 0;   // for the clocks
  onward::cuda_emu::Clock clock;
  std::deque<onward::cuda_emu::TaskPtr> queue;
  onward::cuda_emu::TaskPtr last;  // the latest task ever queued here

  struct Capture {
    CUgraph_st graph;
    CUstream_st* origin = nullptr;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    std::thread::id thread;
    bool broken = false;
    bool ended = false;
  };
  std::shared_ptr<Capture> capture;
  std::vector<size_t> frontier;  // nodes that the next captured one comes after
};

struct CUevent_st {
  int device = 0;
  bool timed = true;
  onward::cuda_emu::TaskPtr task;  // the latest record; null: never recorded
  std::shared_ptr<double> time;    // set when that task runs
  std::shared_ptr<CUstream_st::Capture> capture;
  std::vector<size_t> frontier;
};

namespace onward::cuda_emu {

// The stream, or the default one of the current device; null if it was never made or is destroyed.
CUstream_st* Resolve(cudaStream_t stream);
CUstream_st* NewStream(int device, bool blocking);
void DeleteStream(CUstream_st* stream);

// Every stream that takes part in the capture, the origin first.
std::vector<CUstream_st*> StreamsOf(const std::shared_ptr<CUstream_st::Capture>& capture);

// Queues work on the stream (or captures it).
cudaError_t Enqueue(CUstream_st* stream, std::function<void()> run, Accesses accesses = nullptr);

// Run what the task, the stream, the device needs; the time limit is the program's own.
void Finish(const TaskPtr& task);
void FinishStream(CUstream_st* stream);
void FinishDevice(int device);
// Runs one task of the stream if it has one: somebody who polls sees progress, but late.
void Advance(CUstream_st* stream);
void DropQueuedWork();

// An error if the call is not allowed because the stream (or, where null, any stream of this
// process) is being captured; the capture is broken then.
cudaError_t RefuseWhileCapturing(CUstream_st* stream);

}  // namespace onward::cuda_emu
