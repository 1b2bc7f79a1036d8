// SPDX-License-Identifier: Apache-2.0
// Kernels that draw random numbers.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/small_float.h"
#include "core/ops/cpu/register.h"
#include "core/ops/movement/movement.h"
#include "core/ops/random/random_draws.h"
#include "core/tensor/dispatch.h"

namespace onward {

namespace {

absl::Status NoKernelFor(const Node& node, DType dtype) {
  return NodeUnimplemented(node, absl::StrCat("no kernel for ", std::string(DTypeName(dtype))));
}

// The value of Dropout's ratio; 0.5 where the input is omitted.
absl::StatusOr<double> ReadRatio(const Node& node, const Tensor* ratio) {
  if (ratio == nullptr) return 0.5;
  const absl::StatusOr<std::vector<double>> values = ToDoubles(*ratio);
  if (!values.ok()) return AtNode(node, values.status());
  if (values->size() != 1 || !((*values)[0] >= 0.0 && (*values)[0] < 1.0)) {
    return NodeError(
        node,
        absl::StrCat("ratio must be one number in [0, 1), got shape ", ratio->shape().ToString(),
                     values->empty() ? "" : absl::StrCat(" with ", (*values)[0])));
  }
  return (*values)[0];
}

// True unless training_mode is given and true.
bool IsInference(const Tensor* training_mode) {
  return training_mode == nullptr || training_mode->elements() == 0 ||
         !*training_mode->data<bool>();
}

// mask = u >= ratio, y = x * mask / (1 - ratio). y may be x; y or mask may be
// null.
template <typename T>
void Drop(const RandomSource& source, RandomState state, double ratio, int64_t n, const T* x, T* y,
          bool* mask) {
  using C = ComputeType<T>;
  const double scale = C(1) / (C(1) - static_cast<C>(ratio));
  source.ForDraws(state, n, [&](int64_t begin, int64_t end, const double* u) {
    const int64_t size = end - begin;
    if (mask != nullptr) {
      for (int64_t i = 0; i < size; ++i) mask[begin + i] = u[i] >= ratio;
    }
    if (y == nullptr) return;
    C factor[RandomSource::kChunk];
    for (int64_t i = 0; i < size; ++i) factor[i] = static_cast<C>(u[i] >= ratio ? scale : 0.0);
    for (int64_t i = 0; i < size; ++i) y[begin + i] = T(static_cast<C>(x[begin + i]) * factor[i]);
  });
}

// The same of float8, in float; what is too large for the type becomes its largest number, as
// Cast has it by default.
void DropFloat8(const RandomSource& source, RandomState state, double ratio, const Tensor& x,
                Tensor* y, bool* mask) {
  const SmallValues& values = SmallValuesOf(x.dtype());
  const float scale = 1.0f / (1.0f - static_cast<float>(ratio));
  source.ForDraws(state, x.elements(), [&](int64_t begin, int64_t end, const double* u) {
    const int64_t size = end - begin;
    if (mask != nullptr) {
      for (int64_t i = 0; i < size; ++i) mask[begin + i] = u[i] >= ratio;
    }
    if (y == nullptr) return;
    const uint8_t* codes = x.data<uint8_t>() + begin;
    float kept[RandomSource::kChunk];
    for (int64_t i = 0; i < size; ++i) {
      kept[i] = values[codes[i]] * (u[i] >= ratio ? scale : 0.0f);
    }
    EncodeSmallFloats(x.dtype(), kept, size, {}, y->data<uint8_t>() + begin);
  });
}

// Dropout that passes its input on: a view if nobody asks for the mask.
absl::StatusOr<Kernel> PassOn(const KernelRequest& request) {
  const Layout layout = request.inputs[0].layout;
  const OutputSlot slot(request, 0);
  ONWARD_RETURN_IF_ERROR(slot.Accepts(request.in(0)));
  Kernel kernel;
  kernel.input_layouts = {layout};
  kernel.output_layouts = {layout};
  kernel.infallible = slot.planned();
  kernel.run = [slot, layout](const KernelCall& call) -> absl::Status {
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, call.inputs[0]->shape()));
    if (layout == nullptr) {
      CopyAll(*output, *call.inputs[0]);
    } else if (output->raw() != call.inputs[0]->raw()) {
      std::memcpy(output->raw(), call.inputs[0]->raw(), layout->bytes());
    }
    return absl::OkStatus();
  };
  SetView(request, kernel);
  return kernel;
}

absl::StatusOr<Kernel> MakeDropout(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1, 0));
  const Node& node = request.node;
  if (request.HasInput(2) && request.inputs[2].dtype != DType::kBool) {
    return NodeError(node, "training_mode must be bool");
  }
  const std::vector<const Tensor*> constants = Constants(request);
  bool passes = AllConstant(request, {2}) && IsInference(InputAt(constants, 2));
  if (!passes && AllConstant(request, {1})) {
    ONWARD_ASSIGN_OR_RETURN(const double ratio, ReadRatio(node, InputAt(constants, 1)));
    passes = ratio == 0.0;
  }
  if (passes && request.HasOutput(0) && !request.HasOutput(1)) return PassOn(request);
  const DType dtype = request.inputs[0].dtype;
  if (!IsFloating(dtype) && !IsFloat8(dtype)) return NoKernelFor(node, dtype);
  const Shape shape = request.in(0);
  const OutputSlot data_slot(request, 0), mask_slot(request, 1);
  ONWARD_RETURN_IF_ERROR(data_slot.Accepts(shape));
  ONWARD_RETURN_IF_ERROR(mask_slot.Accepts(shape));
  Kernel kernel;
  kernel.in_place = {{0, 0}};
  kernel.run = [=, source = RandomSource(node),
                where = KeepNode(node)](const KernelCall& call) -> absl::Status {
    const Tensor& x = *call.inputs[0];
    Tensor* y = nullptr;
    Tensor* mask = nullptr;
    double ratio = 0.0;
    if (!IsInference(InputAt(call.inputs, 2))) {
      ONWARD_ASSIGN_OR_RETURN(ratio, ReadRatio(*where, InputAt(call.inputs, 1)));
    }
    if (data_slot.wanted()) {
      ONWARD_ASSIGN_OR_RETURN(y, data_slot.Get(call, shape));
    }
    if (mask_slot.wanted()) {
      ONWARD_ASSIGN_OR_RETURN(mask, mask_slot.Get(call, shape));
    }
    if (ratio == 0.0) {
      if (y != nullptr) CopyAll(*y, x);
      if (mask != nullptr) std::fill_n(mask->data<bool>(), mask->elements(), true);
      return absl::OkStatus();
    }
    bool* flags = mask != nullptr ? mask->data<bool>() : nullptr;
    if (IsFloat8(dtype)) {
      DropFloat8(source, call.random, ratio, x, y, flags);
      return absl::OkStatus();
    }
    DispatchFloating(dtype, [&]<typename T>() {
      Drop(source, call.random, ratio, x.elements(), x.data<T>(), y ? y->data<T>() : nullptr,
           flags);
    });
    return absl::OkStatus();
  };
  return kernel;
}

// A kernel that fills its output of the given shape by fill(output, state).
template <typename Fill>
absl::StatusOr<Kernel> FillKernel(const KernelRequest& request, const Shape& shape, Fill fill) {
  const OutputSlot slot(request, 0);
  ONWARD_RETURN_IF_ERROR(slot.Accepts(shape));
  Kernel kernel;
  kernel.run = [slot, shape, fill](const KernelCall& call) -> absl::Status {
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, shape));
    fill(*output, call.random);
    return absl::OkStatus();
  };
  if (request.HasInput(0)) kernel.input_layouts = {request.inputs[0].layout};
  return kernel;
}

absl::StatusOr<Kernel> Uniform(const KernelRequest& request, const Shape& shape) {
  const double low = request.node.Float("low", 0.0f), high = request.node.Float("high", 1.0f);
  const RandomSource source(request.node);
  auto fill = [low, high, source](Tensor& out, RandomState state) {
    DispatchFloating(out.dtype(), [&]<typename T>() {
      T* y = out.data<T>();
      source.ForDraws(state, out.elements(), [&](int64_t begin, int64_t end, const double* u) {
        for (int64_t i = begin; i < end; ++i) {
          y[i] = FromDouble<T>(low + (high - low) * u[i - begin]);
        }
      });
    });
  };
  return FillKernel(request, shape, fill);
}

absl::StatusOr<Kernel> Normal(const KernelRequest& request, const Shape& shape) {
  const double mean = request.node.Float("mean", 0.0f), scale = request.node.Float("scale", 1.0f);
  const RandomSource source(request.node);
  auto fill = [mean, scale, source](Tensor& out, RandomState state) {
    DispatchFloating(out.dtype(), [&]<typename T>() {
      T* y = out.data<T>();
      source.ForDraws(state, out.elements(), [&](int64_t begin, int64_t end, const double* u) {
        double normal[RandomSource::kChunk];
        BoxMuller(u, end - begin, normal);
        for (int64_t i = begin; i < end; ++i) {
          y[i] = FromDouble<T>(mean + scale * normal[i - begin]);
        }
      });
    });
  };
  return FillKernel(request, shape, fill);
}

// The shape attribute, or the shape of input 0 for the ...Like operators.
absl::StatusOr<Shape> RandomShape(const KernelRequest& request, bool like) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, like ? 1 : 0));
  if (!IsFloating(request.outputs[0].dtype)) {
    return NoKernelFor(request.node, request.outputs[0].dtype);
  }
  if (like) return request.in(0);
  const std::vector<int64_t> dims = request.node.Ints("shape");
  const absl::StatusOr<int64_t> elements = CheckedElements(dims);
  if (!elements.ok()) return AtNode(request.node, elements.status());
  return Shape(dims);
}

absl::StatusOr<Kernel> MakeRandomUniform(const KernelRequest& request) {
  ONWARD_ASSIGN_OR_RETURN(const Shape shape, RandomShape(request, false));
  return Uniform(request, shape);
}

absl::StatusOr<Kernel> MakeRandomUniformLike(const KernelRequest& request) {
  ONWARD_ASSIGN_OR_RETURN(const Shape shape, RandomShape(request, true));
  return Uniform(request, shape);
}

absl::StatusOr<Kernel> MakeRandomNormal(const KernelRequest& request) {
  ONWARD_ASSIGN_OR_RETURN(const Shape shape, RandomShape(request, false));
  return Normal(request, shape);
}

absl::StatusOr<Kernel> MakeRandomNormalLike(const KernelRequest& request) {
  ONWARD_ASSIGN_OR_RETURN(const Shape shape, RandomShape(request, true));
  return Normal(request, shape);
}

absl::StatusOr<Kernel> MakeBernoulli(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  const DType from = request.inputs[0].dtype, to = request.outputs[0].dtype;
  if (!IsFloating(from)) return NoKernelFor(request.node, from);
  if (!DispatchNumeric(to, []<typename T>() {})) return NoKernelFor(request.node, to);
  const Shape shape = request.in(0);
  const OutputSlot slot(request, 0);
  ONWARD_RETURN_IF_ERROR(slot.Accepts(shape));
  Kernel kernel;
  kernel.run = [slot, shape,
                source = RandomSource(request.node)](const KernelCall& call) -> absl::Status {
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, shape));
    DispatchFloating(call.inputs[0]->dtype(), [&]<typename P>() {
      const P* p = call.inputs[0]->data<P>();
      DispatchNumeric(output->dtype(), [&]<typename T>() {
        T* y = output->data<T>();
        source.ForDraws(
            call.random, shape.elements(), [&](int64_t begin, int64_t end, const double* u) {
              for (int64_t i = begin; i < end; ++i) {
                y[i] = FromDouble<T>(u[i - begin] < static_cast<double>(p[i]) ? 1.0 : 0.0);
              }
            });
      });
    });
    return absl::OkStatus();
  };
  return kernel;
}

// Sums of exp(logits - largest) up to each class; fails without a usable class.
absl::Status SumChances(const Node& node, absl::Span<const double> logits,
                        std::vector<double>& sums) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (size_t i = 0; i < logits.size(); ++i) sums[i] = sum += std::exp(logits[i] - largest);
  if (std::isfinite(sum)) return absl::OkStatus();
  return NodeError(node, "the log-probabilities of a row are not finite numbers");
}

absl::StatusOr<Kernel> MakeMultinomial(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  const DType to = request.outputs[0].dtype;
  if (to != DType::kInt32 && to != DType::kInt64) return NoKernelFor(request.node, to);
  const Shape in = request.in(0);
  const int64_t samples = request.node.Int("sample_size", 1);
  if (in.rank() != 2 || in[1] == 0 || samples < 0 || !IsFloating(request.inputs[0].dtype)) {
    return NodeError(request.node,
                     absl::StrCat("needs [batch, classes] of floats and sample_size ",
                                  "of at least 0, got ", in.ToString(), " and ", samples));
  }
  const OutputSlot slot(request, 0);
  ONWARD_RETURN_IF_ERROR(slot.Accepts(Shape{in[0], samples}));
  Kernel kernel;
  kernel.run = [=, source = RandomSource(request.node),
                node = KeepNode(request.node)](const KernelCall& call) -> absl::Status {
    ONWARD_ASSIGN_OR_RETURN(const std::vector<double> logits, ToDoubles(*call.inputs[0]));
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, Shape{in[0], samples}));
    std::vector<double> draws(output->elements());
    source.ForDraws(call.random, output->elements(),
                    [&](int64_t begin, int64_t end, const double* u) {
                      std::copy(u, u + (end - begin), draws.begin() + begin);
                    });
    std::vector<double> sums(in[1]);
    for (int64_t row = 0; row < in[0]; ++row) {
      ONWARD_RETURN_IF_ERROR(
          SumChances(*node, absl::MakeConstSpan(logits).subspan(row * in[1], in[1]), sums));
      for (int64_t i = row * samples; i < (row + 1) * samples; ++i) {
        const auto it = std::upper_bound(sums.begin(), sums.end() - 1, draws[i] * sums.back());
        if (to == DType::kInt32) {
          output->data<int32_t>()[i] = static_cast<int32_t>(it - sums.begin());
        } else {
          output->data<int64_t>()[i] = it - sums.begin();
        }
      }
    }
    return absl::OkStatus();
  };
  return kernel;
}

}  // namespace

void RegisterRandomKernels(KernelTable& table) {
  const std::string floating = "float, double, float16, bfloat16";
  table.Add("Dropout", {"reference", 12, MakeDropout, floating + ", float8"});
  table.Add("RandomUniform", {"reference", 1, MakeRandomUniform, floating});
  table.Add("RandomUniformLike", {"reference", 1, MakeRandomUniformLike, floating});
  table.Add("RandomNormal", {"reference", 1, MakeRandomNormal, floating});
  table.Add("RandomNormalLike", {"reference", 1, MakeRandomNormalLike, floating});
  table.Add("Bernoulli", {"reference", 15, MakeBernoulli, floating});
  table.Add("Multinomial", {"reference", 7, MakeMultinomial, floating});
}

}  // namespace onward
