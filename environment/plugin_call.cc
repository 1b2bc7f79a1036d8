// SPDX-License-Identifier: Apache-2.0
#include "environment/plugin_call.h"

#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "environment/node_call.h"

namespace onward {
namespace {

std::string At(const std::string& plugin, const char* what, const Node& node) {
  return absl::StrCat(plugin, ", ", what, " of ", node.Describe());
}

CallFacts FactsOf(absl::Span<const InputFact> inputs, TypeTranslator* types) {
  CallFacts facts;
  for (const InputFact& input : inputs) {
    facts.inputs.push_back(types->ToPlugin(input.type == nullptr ? ValueType() : *input.type));
    facts.constants.push_back(input.constant);
  }
  return facts;
}

ValueType TypeOf(const ValueSpec& spec) {
  if (!spec.present()) return {};
  return spec.shape.has_value() ? ValueType::Of(spec.dtype, *spec.shape)
                                : ValueType::Unranked(spec.dtype);
}

// One run of a prepared kernel.
class RunningCall final : public api::KernelCall {
 public:
  // `types`: of the outputs.
  RunningCall(const onward::KernelCall& call, const std::vector<DType>& types)
      : call_(call), types_(types) {}

  api::TensorView input(int i) const override {
    const bool given = i >= 0 && i < static_cast<int>(call_.inputs.size());
    return given ? View(call_.inputs[i]) : api::TensorView();
  }
  api::TensorView output(int i) const override { return View(Output(i)); }
  api::Result<api::TensorView> MakeOutput(int i, const std::vector<int64_t>& shape) override {
    Tensor* out = Output(i);
    if (out == nullptr) {
      return api::Status(api::StatusCode::kInvalidArgument, "MakeOutput of no output");
    }
    const absl::StatusOr<int64_t> elements = CheckedElements(shape);
    if (!elements.ok()) {
      return api::Status(api::StatusCode::kInvalidArgument,
                         std::string(elements.status().message()));
    }
    const Shape wanted{absl::MakeConstSpan(shape)};
    if (out->defined()) {
      if (out->shape() == wanted) return View(out);
      return api::Status(
          api::StatusCode::kInvalidArgument,
          absl::StrCat("output ", i, " has the shape ", out->shape().ToString(),
                       ", which the type rule gave; MakeOutput asks for ", wanted.ToString()));
    }
    *out = Tensor(types_[i], wanted);
    return View(out);
  }

 private:
  static api::TensorView View(const Tensor* tensor) {
    if (tensor == nullptr || !tensor->defined()) return {};
    const absl::Span<const int64_t> dims = tensor->shape().dims();
    return {static_cast<api::ElementType>(tensor->dtype()), static_cast<int>(dims.size()),
            dims.data(), const_cast<void*>(static_cast<const void*>(tensor->raw()))};
  }
  Tensor* Output(int i) const {
    return i >= 0 && i < static_cast<int>(call_.outputs.size()) ? call_.outputs[i] : nullptr;
  }

  const onward::KernelCall& call_;
  const std::vector<DType>& types_;
};

absl::Status CheckOutputsMade(const KernelCall& call) {
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (call.outputs[i] != nullptr && !call.outputs[i]->defined()) {
      return absl::InvalidArgumentError(
          absl::StrCat("output ", i, " was not made; its shape was left to MakeOutput"));
    }
  }
  return absl::OkStatus();
}

// Values by number, in the order in which the plugin came by them.
class Writer final : public api::GraphWriter {
 public:
  explicit Writer(GraphBuilder& builder) : builder_(builder) {}

  int Keep(Expr value) {
    values_.push_back(std::move(value));
    return static_cast<int>(values_.size()) - 1;
  }
  bool Has(int value) const { return value >= 0 && value < static_cast<int>(values_.size()); }
  const Expr& Get(int value) const { return values_[value]; }

  std::vector<int> Emit(const std::string& op, const std::vector<int>& inputs, int outputs,
                        const api::AttributeMap& attributes, const std::string& domain) override {
    std::vector<Expr> arguments;
    for (const int value : inputs) {
      if (value >= 0 && !Has(value)) return {Foreign()};
      arguments.push_back(value < 0 ? Expr() : Get(value));
    }
    if (outputs < 1 || outputs > kMostOutputs) return {Foreign()};
    Attributes converted;
    for (const auto& [name, value] : attributes) {
      converted.emplace(name, std::visit([](const auto& v) { return Attribute(v); }, value));
    }
    std::vector<int> made;
    for (Expr& e : builder_.Ops(op, std::move(arguments), outputs, std::move(converted), domain)) {
      made.push_back(Keep(std::move(e)));
    }
    return made;
  }
  int Number(double value, int like) override {
    return Has(like) ? Keep(builder_.Scalar(value, Get(like))) : Foreign();
  }
  int Ints(const std::vector<int64_t>& values) override { return Keep(builder_.Ints(values)); }
  api::TensorType type(int value) const override {
    return Has(value) && Get(value).defined() ? TypeTranslator().ToPlugin(Get(value).type())
                                              : api::TensorType();
  }

 private:
  static constexpr int kMostOutputs = 1000;

  int Foreign() {
    return Keep(builder_.Fail(
        absl::InvalidArgumentError("the rule names values that are not of this graph")));
  }

  GraphBuilder& builder_;
  std::vector<Expr> values_;
};

class GradientOf final : public NodeCall<api::GradientCall> {
 public:
  GradientOf(const Vjp& v, CallFacts facts, Writer* writer)
      : NodeCall(v.node(), std::move(facts)), v_(v), writer_(*writer) {}

  api::Expr x(int i) const override { return {&writer_, writer_.Keep(v_.x(i))}; }
  api::Expr y(int i) const override { return {&writer_, writer_.Keep(v_.y(i))}; }
  api::Expr dy(int i) const override { return {&writer_, writer_.Keep(v_.dy(i))}; }
  bool needs(int i) const override { return i >= 0 && v_.needs(i); }
  api::GraphWriter& writer() const override { return writer_; }

 private:
  const Vjp& v_;
  Writer& writer_;
};

absl::Status TakeGradients(const std::vector<api::Expr>& given, const Vjp& v, const Writer& writer,
                           Grads* grads) {
  if (static_cast<int>(given.size()) > v.inputs()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "gives ", given.size(), " gradients, but the node has ", v.inputs(), " inputs"));
  }
  for (const api::Expr& e : given) {
    if (e.defined() && (e.writer() != &writer || !writer.Has(e.value()))) {
      return absl::InvalidArgumentError("gives a value that is not of this graph");
    }
    grads->push_back(e.defined() ? std::optional<Expr>(writer.Get(e.value())) : std::nullopt);
  }
  return absl::OkStatus();
}

CallFacts FactsOf(const Vjp& v) {
  CallFacts facts;
  TypeTranslator types;
  for (int i = 0; i < v.inputs(); ++i) {
    const bool given = v.has_x(i);
    facts.inputs.push_back(types.ToPlugin(given ? v.x(i).type() : ValueType()));
    facts.constants.push_back(given ? v.b().ConstantOf(v.node().inputs[i]) : nullptr);
  }
  for (size_t i = 0; i < v.node().outputs.size(); ++i) {
    const bool given = v.node().HasOutput(static_cast<int>(i));
    facts.outputs.push_back(types.ToPlugin(given ? v.y(static_cast<int>(i)).type() : ValueType()));
  }
  return facts;
}

}  // namespace

absl::Status FromPlugin(const api::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const int code = static_cast<int>(status.code());
  // "Not found" is how the compiler says that there is no kernel at all.
  const bool known = code > 0 && code <= static_cast<int>(absl::StatusCode::kDataLoss) &&
                     status.code() != api::StatusCode::kNotFound;
  return absl::Status(
      known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kInvalidArgument,
      status.message().empty() ? "failed and does not say why" : status.message());
}

FunctionDef::Types TypesOfPlugin(std::string plugin, api::TypeRule rule) {
  return [plugin = std::move(plugin), rule = std::move(rule)](
             const Node& node, absl::Span<const InputFact> inputs, const OperatorSet&,
             const std::map<std::string, int>&) -> absl::StatusOr<std::vector<ValueType>> {
    std::vector<ValueType> types;
    ONWARD_RETURN_IF_ERROR(CallPlugin(At(plugin, "the type rule", node), [&]() -> absl::Status {
      TypeTranslator translator;
      const NodeCall<api::Call> call(node, FactsOf(inputs, &translator));
      const api::Result<std::vector<api::TensorType>> given = rule(call);
      if (!given.ok()) return FromPlugin(given.status());
      if (given->size() != node.outputs.size()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "gives ", given->size(), " types, but the node has ", node.outputs.size(), " outputs"));
      }
      for (const api::TensorType& type : *given) {
        ONWARD_ASSIGN_OR_RETURN(types.emplace_back(), translator.FromPlugin(type));
      }
      return absl::OkStatus();
    }));
    return types;
  };
}

KernelFactory KernelOfPlugin(std::string plugin, int since, api::KernelMaker maker) {
  return [plugin = std::move(plugin), since,
          maker = std::move(maker)](const KernelRequest& r) -> absl::StatusOr<Kernel> {
    auto version = r.opsets.find(r.node.domain);
    if (version != r.opsets.end() && version->second < since) {
      return NodeUnimplemented(r.node, absl::StrCat("a kernel from version ", since, " on"));
    }
    TypeTranslator translator;
    CallFacts facts;
    std::vector<DType> types;
    for (const ValueSpec& spec : r.inputs) {
      facts.inputs.push_back(translator.ToPlugin(TypeOf(spec)));
      facts.constants.push_back(spec.constant);
    }
    for (const ValueSpec& spec : r.outputs) {
      facts.outputs.push_back(translator.ToPlugin(TypeOf(spec)));
      types.push_back(spec.dtype);
    }
    api::Kernel run;
    const std::string context = At(plugin, "the kernel", r.node);
    ONWARD_RETURN_IF_ERROR(CallPlugin(context, [&]() -> absl::Status {
      api::Result<api::Kernel> made = maker(NodeCall<api::Call>(r.node, std::move(facts)));
      if (!made.ok()) return FromPlugin(made.status());
      run = *std::move(made);
      return run ? absl::OkStatus() : absl::InvalidArgumentError("the maker gives no function");
    }));
    Kernel kernel;
    kernel.run = [context, run = std::move(run),
                  types = std::move(types)](const KernelCall& call) -> absl::Status {
      return CallPlugin(context, [&]() -> absl::Status {
        RunningCall running(call, types);
        ONWARD_RETURN_IF_ERROR(FromPlugin(run(running)));
        return CheckOutputsMade(call);
      });
    };
    return kernel;
  };
}

Rule GradientOfPlugin(std::string plugin, api::GradientRule rule) {
  return [plugin = std::move(plugin), rule = std::move(rule)](const Vjp& v) {
    Grads grads;
    Writer writer(v.b());
    const absl::Status status =
        CallPlugin(At(plugin, "the gradient rule", v.node()), [&]() -> absl::Status {
          const GradientOf call(v, FactsOf(v), &writer);
          return TakeGradients(rule(call), v, writer, &grads);
        });
    if (!status.ok()) {
      v.b().Fail(status);
      grads.clear();
    }
    return grads;
  };
}

}  // namespace onward
