// SPDX-License-Identifier: Apache-2.0
// Adding operators: a plugin is a shared library with one function,
//
//   extern "C" const onward::Plugin* onward_plugin() {
//     static const onward::Plugin plugin = {onward::kPluginAbi, Register};
//     return &plugin;
//   }
//
// that hands its operators to a Registry. `onward --plugin libmine.so` loads it, and so does
// EnvironmentOptions::plugins. This header and those it includes are all it needs: it links
// nothing of Onward, and what it calls there it reaches through the objects it is given.
//
// What a plugin throws becomes an error with its name. A plugin that was loaded stays until the
// process ends.
//
// Threads: Register runs on one thread. Rules and kernels may run on several threads at once.
#ifndef ONWARD_PLUGIN_H_
#define ONWARD_PLUGIN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "onward/element_type.h"
#include "onward/status.h"

namespace onward::api {

// Which interface the plugin was compiled for: only a library of the same minor version, with
// the same C++ library, takes it.
#if defined(_LIBCPP_VERSION)
inline constexpr char kPluginAbi[] = "onward-plugin 0.1 libc++";
#elif defined(_GLIBCXX_USE_CXX11_ABI) && _GLIBCXX_USE_CXX11_ABI == 0
inline constexpr char kPluginAbi[] = "onward-plugin 0.1 old-strings";
#else
inline constexpr char kPluginAbi[] = "onward-plugin 0.1";
#endif

// --- What is known of a call before it runs ---

// The type of an input or output.
struct TensorType {
  ElementType element_type = ElementType::kUndefined;  // undefined: not known, or omitted
  bool has_shape = false;                              // false: not even the number of axes is
  // Negative: a size that is not known; below -1, equal numbers are equal sizes.
  std::vector<int64_t> shape;
};

// One node that calls the operator.
class Call {
 public:
  // "node 'a' (Mine)", for messages.
  virtual std::string node() const = 0;
  virtual int inputs() const = 0;
  virtual int outputs() const = 0;
  // False: the node leaves it out.
  virtual bool has_input(int i) const = 0;
  virtual bool has_output(int i) const = 0;
  virtual TensorType input(int i) const = 0;
  // Known where a kernel is made.
  virtual TensorType output(int i) const = 0;
  // The elements of an int64 input, where it is a small constant; else false.
  virtual bool constant(int i, std::vector<int64_t>* values) const = 0;

  // Attributes; `otherwise` where the node has none of the name and kind.
  virtual int64_t Int(const std::string& name, int64_t otherwise) const = 0;
  virtual double Float(const std::string& name, double otherwise) const = 0;
  virtual std::string String(const std::string& name, const std::string& otherwise) const = 0;
  virtual std::vector<int64_t> Ints(const std::string& name) const = 0;

 protected:
  ~Call() = default;
};

// The types of the outputs from those of the inputs, one for each output of the node. Parts of
// the inputs' types may be unknown, and so may parts of the result.
using TypeRule = std::function<Result<std::vector<TensorType>>(const Call& call)>;

// --- Kernels ---

// A tensor while a kernel runs: dense, row-major.
struct TensorView {
  ElementType element_type = ElementType::kUndefined;  // undefined: omitted
  int rank = 0;
  const int64_t* dims = nullptr;
  void* bytes = nullptr;  // of an input: to be read only

  int64_t elements() const {
    int64_t n = element_type == ElementType::kUndefined ? 0 : 1;
    for (int i = 0; i < rank; ++i) n *= dims[i];
    return n;
  }
  // Null where the elements are of another type.
  template <typename T>
  T* data() const {
    return element_type == ElementTypeOf<T>::value ? static_cast<T*>(bytes) : nullptr;
  }
};

// One run of a call.
class KernelCall {
 public:
  virtual TensorView input(int i) const = 0;
  // Memory to write all elements to. Undefined where the type rule left the shape open: then
  // MakeOutput comes first.
  virtual TensorView output(int i) const = 0;
  virtual Result<TensorView> MakeOutput(int i, const std::vector<int64_t>& shape) = 0;

 protected:
  ~KernelCall() = default;
};

using Kernel = std::function<Status(KernelCall& call)>;
// Checks the call once, when a model is compiled for certain types, and returns what then
// runs. kUnimplemented means "not for these types": the body is tried instead.
using KernelMaker = std::function<Result<Kernel>(const Call& call)>;

// --- Gradients ---

using AttributeValue = std::variant<int64_t, double, std::string, std::vector<int64_t>>;
using AttributeMap = std::map<std::string, AttributeValue>;

// What expressions write to. Values are numbers; -1 stands for none.
class GraphWriter {
 public:
  virtual std::vector<int> Emit(const std::string& op, const std::vector<int>& inputs, int outputs,
                                const AttributeMap& attributes, const std::string& domain) = 0;
  // A number of the type of another value.
  virtual int Number(double value, int like) = 0;
  // A list of integers, as axes are given.
  virtual int Ints(const std::vector<int64_t>& values) = 0;
  virtual TensorType type(int value) const = 0;

 protected:
  ~GraphWriter() = default;
};

// A value of the graph that is being written.
class Expr {
 public:
  Expr() = default;  // none
  Expr(GraphWriter* writer, int value) : writer_(writer), value_(value) {}
  bool defined() const { return writer_ != nullptr && value_ >= 0; }
  GraphWriter* writer() const { return writer_; }
  int value() const { return value_; }
  TensorType type() const { return writer_->type(value_); }

 private:
  GraphWriter* writer_ = nullptr;
  int value_ = -1;
};

// A node of the graph. At least one input is defined.
inline std::vector<Expr> Ops(const std::string& op, const std::vector<Expr>& inputs, int outputs,
                             const AttributeMap& attributes = {}, const std::string& domain = "") {
  GraphWriter* writer = nullptr;
  std::vector<int> values;
  for (const Expr& input : inputs) {
    if (writer == nullptr) writer = input.writer();
    values.push_back(input.value());
  }
  std::vector<Expr> results(static_cast<size_t>(outputs));
  if (writer == nullptr) return results;
  const std::vector<int> made = writer->Emit(op, values, outputs, attributes, domain);
  for (size_t i = 0; i < made.size() && i < results.size(); ++i) results[i] = {writer, made[i]};
  return results;
}
inline Expr Op(const std::string& op, const std::vector<Expr>& inputs,
               const AttributeMap& attributes = {}, const std::string& domain = "") {
  return Ops(op, inputs, 1, attributes, domain)[0];
}
// Numbers beside an expression have its type.
inline Expr Number(double value, const Expr& like) {
  if (!like.defined()) return {};
  return {like.writer(), like.writer()->Number(value, like.value())};
}

inline Expr operator+(const Expr& a, const Expr& b) { return Op("Add", {a, b}); }
inline Expr operator-(const Expr& a, const Expr& b) { return Op("Sub", {a, b}); }
inline Expr operator*(const Expr& a, const Expr& b) { return Op("Mul", {a, b}); }
inline Expr operator/(const Expr& a, const Expr& b) { return Op("Div", {a, b}); }
inline Expr operator+(const Expr& a, double b) { return a + Number(b, a); }
inline Expr operator-(const Expr& a, double b) { return a - Number(b, a); }
inline Expr operator*(const Expr& a, double b) { return a * Number(b, a); }
inline Expr operator/(const Expr& a, double b) { return a / Number(b, a); }
inline Expr operator+(double a, const Expr& b) { return Number(a, b) + b; }
inline Expr operator-(double a, const Expr& b) { return Number(a, b) - b; }
inline Expr operator*(double a, const Expr& b) { return Number(a, b) * b; }
inline Expr operator/(double a, const Expr& b) { return Number(a, b) / b; }
inline Expr operator-(const Expr& a) { return Op("Neg", {a}); }

// The call whose gradient is asked for.
class GradientCall : public Call {
 public:
  virtual Expr x(int i = 0) const = 0;   // input i
  virtual Expr y(int i = 0) const = 0;   // output i
  virtual Expr dy(int i = 0) const = 0;  // the gradient that arrives there; zeros where none does
  // Whether the gradient of input i is wanted: to be asked where work is costly.
  virtual bool needs(int i) const = 0;
  virtual GraphWriter& writer() const = 0;

 protected:
  ~GradientCall() = default;
};

// One gradient for each input; Expr() where none flows, and for the rest where there are fewer.
// It reads like its formula: broadcasting, accumulation and element types are seen to.
// To be written in operator forms that are the same from opset 18 to 28.
using GradientRule = std::function<std::vector<Expr>(const GradientCall& v)>;

// --- Registration ---

// Each of the last four may be empty. An operator needs a kernel or a body; one of its own with
// a kernel and no body needs a type rule. One that the standard defines takes a kernel and a
// gradient only; Onward's own kernel, where there is one, is tried first.
struct OperatorDef {
  std::string domain;  // "com.example"; "" is the standard's
  std::string name;
  int since = 1;          // the lowest version of the domain that has it
  TypeRule types;         // without: the types that the body's operators give
  KernelMaker kernel;     // without: the body runs
  std::string body;       // an ONNX function in text form, in opset 18 or below
  GradientRule gradient;  // without: the body is differentiated
};

class Registry {
 public:
  virtual Status Add(const OperatorDef& def) = 0;

 protected:
  ~Registry() = default;
};

struct Plugin {
  const char* abi;                   // kPluginAbi
  Status (*Register)(Registry& to);  // an error refuses the plugin
};

}  // namespace onward::api

// What the shared library has to define.
extern "C" __attribute__((visibility("default"))) const onward::api::Plugin* onward_plugin();

#endif  // ONWARD_PLUGIN_H_
