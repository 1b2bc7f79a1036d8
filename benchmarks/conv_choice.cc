// SPDX-License-Identifier: Apache-2.0
// conv_choice [SECONDS]: is the convolution kernel that the fixed rules choose the
// fastest one? For the shapes of common image models and for each pass it times
// every kernel that can serve, weights coming from and going to their plain form,
// and prints a line per shape and pass:
//
//   milliseconds of each | the one the kernel table chooses | its time / best time
//
// The rules are WinogradPays and DirectPays; this table is what they are made from.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/device/plan/window.h"
#include "core/ops/conv/conv.h"
#include "core/ops/conv/conv_direct.h"
#include "core/ops/conv/winograd.h"
#include "environment/environment.h"

namespace onward {
namespace {

struct ConvShape {
  int64_t batch, in_channels, out_channels, groups, size, kernel, stride;
};

const std::vector<ConvShape>& Shapes() {
  static const auto* shapes = new std::vector<ConvShape>{
      // A small CNN and the first layers of larger ones.
      {64, 1, 32, 1, 28, 3, 1},
      {64, 1, 32, 1, 28, 5, 1},
      {64, 32, 64, 1, 14, 3, 1},
      {32, 3, 64, 1, 32, 3, 1},
      {8, 3, 64, 1, 224, 7, 2},
      {16, 3, 32, 1, 96, 3, 2},
      // ResNet-18 at 32x32 and at 224x224.
      {32, 64, 64, 1, 32, 3, 1},
      {32, 64, 128, 1, 32, 3, 2},
      {32, 64, 128, 1, 32, 1, 2},
      {32, 128, 128, 1, 16, 3, 1},
      {32, 256, 256, 1, 8, 3, 1},
      {32, 512, 512, 1, 4, 3, 1},
      {8, 64, 64, 1, 56, 3, 1},
      {8, 128, 128, 1, 28, 3, 1},
      {8, 256, 256, 1, 14, 3, 1},
      {8, 512, 512, 1, 7, 3, 1},
      {1, 64, 64, 1, 56, 3, 1},
      {1, 512, 512, 1, 7, 3, 1},
      // MobileNetV2 at 96x96.
      {16, 32, 16, 1, 48, 1, 1},
      {16, 16, 96, 1, 48, 1, 1},
      {16, 144, 32, 1, 12, 1, 1},
      {16, 32, 192, 1, 12, 1, 1},
      {16, 384, 64, 1, 6, 1, 1},
      {16, 960, 160, 1, 3, 1, 1},
      {16, 320, 1280, 1, 3, 1, 1},
      {16, 32, 32, 32, 48, 3, 1},
      {16, 96, 96, 96, 48, 3, 2},
      {16, 192, 192, 192, 12, 3, 1},
      {16, 960, 960, 960, 3, 3, 1},
      {16, 240, 240, 240, 14, 5, 1},
  };
  return *shapes;
}

struct Candidate {
  std::string name;
  KernelFactory factory;
};

// One pass over one shape as the kernel table sees it.
struct Pass {
  std::string name;
  Node node;
  std::vector<ValueSpec> inputs, outputs;
  int weights_in = -1, weights_out = -1;  // which input or output the weights are
  std::vector<Candidate> candidates;
};

std::vector<Pass> PassesOf(const ConvShape& s) {
  const int64_t pad = s.kernel / 2, out = (s.size + 2 * pad - s.kernel) / s.stride + 1;
  const auto value = [](Shape shape) {
    return ValueSpec{DType::kFloat, std::move(shape), nullptr, nullptr};
  };
  const ValueSpec x = value({s.batch, s.in_channels, s.size, s.size});
  const ValueSpec w = value({s.out_channels, s.in_channels / s.groups, s.kernel, s.kernel});
  const ValueSpec y = value({s.batch, s.out_channels, out, out});
  Node node;
  node.attributes = {{"group", s.groups},
                     {"kernel_shape", std::vector<int64_t>{s.kernel, s.kernel}},
                     {"strides", std::vector<int64_t>{s.stride, s.stride}},
                     {"pads", std::vector<int64_t>{pad, pad, pad, pad}}};
  const auto call = [&](const char* op, const char* domain) {
    Node n = node;
    n.op_type = op;
    n.domain = domain;
    n.outputs = {op};
    return n;
  };
  const auto winograd = [](const KernelRequest& r) { return AnyWinogradConv(r, {}); };
  const auto winograd_input = [](const KernelRequest& r) { return AnyWinogradConvInputGrad(r); };
  const auto winograd_weights = [](const KernelRequest& r) { return AnyWinogradConvWeightGrad(r); };
  const auto direct = [](const KernelRequest& r) { return AnyDirectConv(r); };
  const auto direct_input = [](const KernelRequest& r) { return AnyDirectConvInputGrad(r); };
  return {
      {"forward",
       call("Conv", ""),
       {x, w},
       {y},
       1,
       -1,
       {{"winograd", winograd}, {"direct", direct}, {"onednn", MakeDnnlConv}}},
      {"input grad",
       call("ConvInputGrad", "ai.onward"),
       {y, w, x},
       {x},
       1,
       -1,
       {{"winograd", winograd_input}, {"direct", direct_input}, {"onednn", MakeDnnlConvInputGrad}}},
      {"weight grad",
       call("ConvWeightGrad", "ai.onward"),
       {y, x, w},
       {w},
       -1,
       0,
       {{"winograd", winograd_weights},
        {"direct", AnyDirectConvWeightGrad},
        {"few channels", MakeSmallConvWeightGrad},
        {"onednn", MakeDnnlConvWeightGrad}}}};
}

Tensor Filled(const ValueSpec& spec, const Layout& layout) {
  const size_t bytes = layout != nullptr ? layout->bytes() : TensorBytes(spec.dtype, *spec.shape);
  auto storage = std::make_shared<Tensor>(DType::kFloat, Shape{static_cast<int64_t>(bytes / 4)});
  for (int64_t i = 0; i < storage->elements(); ++i) {
    storage->data<float>()[i] = static_cast<float>(i % 17) * 0.01f;
  }
  void* data = storage->raw();
  return Tensor(DType::kFloat, *spec.shape, data, std::move(storage));
}

// Milliseconds of the fastest of the runs that fit into the time.
double Time(double seconds, const std::function<void()>& run) {
  using Clock = std::chrono::steady_clock;
  double best = std::numeric_limits<double>::infinity();
  const auto start = Clock::now();
  for (int i = 0; i < 3 || std::chrono::duration<double>(Clock::now() - start).count() < seconds;
       ++i) {
    const auto begin = Clock::now();
    run();
    best = std::min(best, std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  return best;
}

double TimeKernel(const Kernel& kernel, std::vector<Tensor> inputs, std::vector<Tensor> outputs,
                  double seconds) {
  std::vector<const Tensor*> in;
  std::vector<Tensor*> out;
  for (const Tensor& t : inputs) in.push_back(&t);
  for (Tensor& t : outputs) out.push_back(&t);
  const Tensor workspace(DType::kUint8, Shape{static_cast<int64_t>(kernel.workspace_bytes) + 64});
  const auto address = reinterpret_cast<uintptr_t>(workspace.raw());
  void* aligned = reinterpret_cast<void*>((address + 63) / 64 * 64);
  return Time(seconds, [&] { kernel.run({in, out, aligned, {}}).IgnoreError(); });
}

double TimeReorder(const ValueSpec& spec, const Layout& from, const Layout& to, double seconds) {
  if (SameLayout(from, to)) return 0;
  const auto kernel = DefaultEnvironment().cpu().MakeReorder(spec.dtype, *spec.shape, from, to);
  if (!kernel.ok()) return std::numeric_limits<double>::infinity();
  return TimeKernel(*kernel, {Filled(spec, from)}, {Filled(spec, to)}, seconds);
}

double TimeCandidate(const Pass& pass, const Kernel& kernel, double seconds) {
  const auto layout = [](const std::vector<Layout>& layouts, size_t i) {
    return i < layouts.size() ? layouts[i] : nullptr;
  };
  double ms = 0;
  std::vector<Tensor> in, out;
  for (size_t i = 0; i < pass.inputs.size(); ++i) {
    const Layout wanted = layout(kernel.input_layouts, i);
    in.push_back(Filled(pass.inputs[i], wanted));
    if (static_cast<int>(i) == pass.weights_in) {
      ms += TimeReorder(pass.inputs[i], nullptr, wanted, seconds);
    }
  }
  for (size_t i = 0; i < pass.outputs.size(); ++i) {
    const Layout given = layout(kernel.output_layouts, i);
    out.push_back(Filled(pass.outputs[i], given));
    if (static_cast<int>(i) == pass.weights_out) {
      ms += TimeReorder(pass.outputs[i], given, nullptr, seconds);
    }
  }
  return ms + TimeKernel(kernel, std::move(in), std::move(out), seconds);
}

// The provider of the first table entry that serves.
std::string Chosen(const KernelRequest& request) {
  const auto* entries =
      DefaultEnvironment().cpu().kernels().Find(request.node.op_type, request.node.domain);
  for (const KernelTable::Entry& entry : *entries) {
    if (entry.factory(request).ok()) return entry.provider;
  }
  return "none";
}

void Print(const ConvShape& s, const Pass& pass, double seconds) {
  const std::map<std::string, int> opsets = {{"", 28}, {"ai.onward", 1}};
  const KernelRequest request{pass.node, pass.inputs, pass.outputs, opsets};
  const std::string chosen = Chosen(request);
  double best = std::numeric_limits<double>::infinity(), taken = best;
  std::string times;
  for (const Candidate& candidate : pass.candidates) {
    const auto kernel = candidate.factory(request);
    if (!kernel.ok()) continue;
    const double ms = TimeCandidate(pass, *kernel, seconds);
    best = std::min(best, ms);
    if (candidate.name == chosen) taken = ms;
    absl::StrAppendFormat(&times, "%s %.3f  ", candidate.name, ms);
  }
  std::cout << absl::StrFormat("%3dx%-4d -> %-4d %3dx%-3d k%d s%d g%-4d %-12s| %-52s| %-9s %5.2f\n",
                               s.batch, s.in_channels, s.out_channels, s.size, s.size, s.kernel,
                               s.stride, s.groups, pass.name, times, chosen, taken / best)
            << std::flush;
}

int Main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0.1;
  std::cout << "threads: " << Threads() << "; milliseconds, best of " << seconds << " s each\n";
  for (const ConvShape& shape : Shapes()) {
    for (const Pass& pass : PassesOf(shape)) Print(shape, pass, seconds);
  }
  return 0;
}

}  // namespace
}  // namespace onward

int main(int argc, char** argv) { return onward::Main(argc, argv); }
