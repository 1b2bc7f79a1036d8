// SPDX-License-Identifier: Apache-2.0
// Gradients of normalizations and softmaxes. Where the shape of a parameter is
// broadcast from the right its gradient is left unsummed: the engine sums it.
#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "autograd/functions.h"
#include "autograd/rule.h"
#include "autograd/shape_expr.h"
#include "core/base/shape.h"

namespace onward {
namespace {

// False, with an error kept, where x has fewer axes.
bool MayHaveRank(const Vjp& v, int least) {
  if (v.x().rank() < 0 || v.x().rank() >= least) return true;
  FailAt(v.b(), v.node(), absl::StrCat("X has ", v.x().rank(), " axes, expected at least ", least));
  return false;
}

// running = m*input + (1-m)*statistic of the batch, n elements per channel, for mean
// and var;  dinput = m*drunning,
// dx = (1-m)/n * drunning of mean, (1-m)/n * 2*(x - mean) * drunning of var
void AddRunningStatistics(const Vjp& v, Grads* grads) {
  const Channelled form(v.x(0), v.x(1));
  const int rank = form.rank();
  const std::vector<int64_t> axes = AxesBut(rank, 1);
  const Expr x = form.Of(Widened(v.x(0)));
  auto channels = [&](const Expr& p) {
    return rank == 1 ? CastLike(p, x) : AlongAxis(CastLike(p, x), 1, rank);
  };
  const double momentum = v.attr_float("momentum", 0.9f);
  for (const int output : {1, 2}) {
    if (!v.has_dy(output)) continue;
    const Expr d = v.dy(output);
    (*grads)[2 + output] = d * momentum;
    if (!v.needs(0)) continue;
    const Expr mean = ReduceMean(x, axes);
    const Expr n = CastLike(SizeOf(x), x) / CastLike(SizeOf(mean), x);
    Expr dx = channels(d) * (1 - momentum) / n;
    dx = output == 1 ? Expand(dx, ShapeOf(x)) : dx * (x - mean) * 2.0;
    dx = CastLike(form.Back(dx), v.x(0));
    (*grads)[0] = (*grads)[0].has_value() ? *(*grads)[0] + dx : dx;
  }
}

// y = normal * scale + B with batch statistics (training), all by one function
Grads BatchNormalizationTrainingVjp(const Vjp& v) {
  Grads grads(5);
  if (v.has_dy(0)) {
    std::vector<Expr> d = v.b().Ops("BatchNormalizationGrad", {v.dy(), v.x(0), v.x(1)}, 3,
                                    Pick(v.node(), {"epsilon"}), kOnwardDomain);
    std::copy(d.begin(), d.end(), grads.begin());
  }
  AddRunningStatistics(v, &grads);
  return grads;
}

// y = (x - mean) * r * scale + B, r = 1 / sqrt(var + epsilon), parameters per channel;
// dx = dy*scale*r, dscale = r * sum(dy*(x-mean)), dB = sum(dy),
// dmean = -scale*r * sum(dy), dvar = -scale*r^3/2 * sum(dy*(x-mean))
Grads BatchNormalizationInferenceVjp(const Vjp& v) {
  const Channelled form(v.x(0), v.x(1));
  const int rank = form.rank();
  const std::vector<int64_t> axes = AxesBut(rank, 1);
  auto channels = [rank](const Expr& p) { return rank == 1 ? p : AlongAxis(p, 1, rank); };
  auto sum = [&](const Expr& e) { return ReduceSum(e, axes, rank == 1); };
  const Expr x = form.Of(Widened(v.x(0))), dy = form.Of(CastLike(v.dy(), x));
  const Expr scale = CastLike(v.x(1), x), mean = CastLike(v.x(3), x), var = CastLike(v.x(4), x);
  Expr r = 1 / Sqrt(var + static_cast<double>(v.attr_float("epsilon", 1e-5f)));
  Expr slope = scale * r;
  Grads grads(5);
  grads[0] = form.Back(dy * channels(slope));
  if (v.needs(2) || v.needs(3)) {
    Expr db = sum(dy);
    grads[2] = db;
    if (v.needs(3)) grads[3] = -(slope * db);
  }
  if (v.needs(1) || v.needs(4)) {
    Expr moment = sum(dy * (x - channels(mean)));
    grads[1] = r * moment;
    if (v.needs(4)) grads[4] = slope * r * r * moment * -0.5;
  }
  return grads;
}

Grads BatchNormalizationVjp(const Vjp& v) {
  if (!MayHaveRank(v, 1)) return {};
  if (v.attr("training_mode", 0) != 0) return BatchNormalizationTrainingVjp(v);
  return BatchNormalizationInferenceVjp(v);
}

// The axes from `axis` to the last one; counted from the end, or when the graph runs, if the
// rank is not known.
Expr AxesFrom(const Vjp& v) {
  constexpr int64_t kDeepest = -64;
  GraphBuilder& b = v.b();
  const int64_t axis = v.attr("axis", -1);
  const int rank = v.x().rank();
  if (rank < 0 && axis < 0 && axis >= kDeepest) return b.Ints(AxesRange(axis, 0));
  if (rank < 0 && axis >= 0) {
    return b.Op("Range", {b.Int(axis), SizeOf(ShapeOf(v.x())), b.Int(1)});
  }
  absl::StatusOr<int> first = NormalizeAxis(axis, rank);
  if (first.ok()) return b.Ints(AxesRange(*first, rank));
  return FailAt(b, v.node(), "axis is out of range");
}

// Whether scale certainly has the shape of the last axes of x. A dimension that
// is known and not 1 has to be x's, which it broadcasts to.
bool ScaleIsWhole(const Expr& x, const Expr& scale, int64_t axis) {
  const ValueType &tx = x.type(), &ts = scale.type();
  const absl::StatusOr<int> first = NormalizeAxis(axis, tx.rank());
  if (!first.ok() || !ts.has_rank) return false;
  const size_t axes = tx.dims.size() - *first;
  if (ts.dims.size() != axes) return false;
  for (size_t i = 0; i < axes; ++i) {
    const Dim &ds = ts.dims[i], &dx = tx.dims[tx.dims.size() - axes + i];
    const bool same = ds == dx && (ds.known() || !ds.symbol.empty());
    if (!same && !(ds.known() && ds.value != 1)) return false;
  }
  return true;
}

// y = normal * scale + B over the axes from `axis` on, mean and rstd as outputs 1 and 2;
// dx = NormalizeGrad(dy*scale) + dmean / n - drstd * rstd^2 * normal / n,
// dscale = dy * normal, dB = dy
Grads LayerNormalizationVjp(const Vjp& v) {
  const bool bias = v.has_x(2) && v.needs(2);
  if (!v.has_dy(1) && !v.has_dy(2) && ScaleIsWhole(v.x(0), v.x(1), v.attr("axis", -1))) {
    std::vector<Expr> d =
        v.b().Ops("LayerNormalizationGrad", {v.dy(), v.x(0), v.x(1)}, bias ? 3 : 2,
                  Pick(v.node(), {"axis", "epsilon"}), kOnwardDomain);
    Grads grads = {d[0], d[1]};
    if (bias) grads.push_back(d[2]);
    return grads;
  }
  const Expr x = Widened(v.x(0)), axes = AxesFrom(v);
  const Normalized n = Normalize(x, axes, v.attr_float("epsilon", 1e-5f));
  Grads grads(v.inputs());
  Expr dx;
  if (v.has_dy(0)) {
    Expr dy = CastLike(v.dy(), x);
    dx = NormalizeGrad(n, dy * CastLike(v.x(1), x), axes);
    grads[1] = dy * n.normal;
    if (bias) grads[2] = dy;
  }
  if (v.has_dy(1) || v.has_dy(2)) {
    Expr spread;
    if (v.has_dy(1)) spread = CastLike(v.dy(1), x);
    if (v.has_dy(2)) {
      Expr by_rstd = CastLike(v.dy(2), x) * n.rstd * n.rstd * n.normal;
      spread = spread.defined() ? spread - by_rstd : -by_rstd;
    }
    if (!v.has_dy(2)) spread = ExpandLike(spread, x);  // the mean's, one number for all
    Expr count = CastLike(SizeOf(x), x) / CastLike(SizeOf(n.rstd), x);
    dx = dx.defined() ? dx + spread / count : spread / count;
  }
  grads[0] = dx;
  return grads;
}

// y = normal * scale + B over the spatial axes, parameters per channel
Grads InstanceNormalizationVjp(const Vjp& v) {
  if (!MayHaveRank(v, 3)) return {};
  const Channelled form(v.x(0));
  const int rank = form.rank();
  const Expr x = form.Of(Widened(v.x(0))), dy = form.Of(CastLike(v.dy(), x));
  const std::vector<int64_t> spatial = AxesRange(2, rank), others = AxesBut(rank, 1);
  const Normalized n = Normalize(x, spatial, v.attr_float("epsilon", 1e-5f));
  Expr scale = AlongAxis(CastLike(v.x(1), x), 1, rank);
  return {form.Back(NormalizeGrad(n, dy * scale, spatial)), ReduceSum(dy * n.normal, others, false),
          ReduceSum(dy, others, false)};
}

// y = normal * scale + B, normal over each group of channels with its spatial
// axes: InstanceNormalization of x as [N, groups, rest]. Up to opset 20 scale
// and B have one entry per group, since then one per channel.
Grads GroupNormalizationVjp(const Vjp& v) {
  if (!MayHaveRank(v, 2)) return {};
  const Channelled form(v.x(0));
  const int64_t groups = v.attr("num_groups", 1);
  const int opset = v.b().graph().opset();
  const bool per_group = opset > 0 && opset < 21;
  const Expr x = form.Of(Widened(v.x(0))), scale = CastLike(v.x(1), x);
  const Expr dy = form.Of(CastLike(v.dy(), x));
  auto grouped = [&](const Expr& e) { return Reshape(e, {0, groups, -1}); };
  const Normalized n = Normalize(grouped(x), {2}, v.attr_float("epsilon", 1e-5f));
  if (per_group) {
    Expr g = grouped(dy);
    return {ReshapeLike(NormalizeGrad(n, g * AlongAxis(scale, 1, 3), {2}), v.x()),
            ReduceSum(g * n.normal, {0, 2}, false), ReduceSum(g, {0, 2}, false)};
  }
  const int rank = form.rank();
  const std::vector<int64_t> others = AxesBut(rank, 1);
  Expr dx = NormalizeGrad(n, grouped(dy * AlongAxis(scale, 1, rank)), {2});
  return {ReshapeLike(dx, v.x()), ReduceSum(dy * ReshapeLike(n.normal, x), others, false),
          ReduceSum(dy, others, false)};
}

// y = normal * scale, normal = x * r, r = 1 / sqrt(mean(x^2) + epsilon);
// dx = r * (g - normal * mean(g * normal)), g = dy * scale;  dscale = dy * normal
Grads RMSNormalizationVjp(const Vjp& v) {
  const Expr x = Widened(v.x(0)), dy = CastLike(v.dy(), x);
  const Expr square = x * x, axes = AxesFrom(v);
  Expr r = 1 / Sqrt(MeanOver(square, axes) + static_cast<double>(v.attr_float("epsilon", 1e-5f)));
  Expr normal = x * r, g = dy * CastLike(v.x(1), x);
  return {r * (g - normal * MeanOver(g * normal, axes)), dy * normal};
}

// y = x / n, n = sum|x| or sqrt(sum x^2), and 0 where n is 0;
// dx = (dy - s * sum(y*dy)) / n, s = sign(x) or y
Grads LpNormalizationVjp(const Vjp& v) {
  const std::vector<int64_t> axes = {v.attr("axis", -1)};
  const bool first = v.attr("p", 2) == 1;
  Expr n = first ? ReduceSum(Abs(v.x()), axes) : Sqrt(ReduceSum(v.x() * v.x(), axes));
  Expr zero = v.b().Scalar(0, v.x()), one = v.b().Scalar(1, v.x());
  Expr none = Equal(n, zero);
  Expr s = first ? Sign(v.x()) : v.y();
  Expr dx = (v.dy() - s * ReduceSum(v.y() * v.dy(), axes)) / Where(none, one, n);
  return {Where(none, zero, dx)};
}

// Sum of x over `before` channels, the channel itself and `after` channels.
Expr ChannelWindowSum(const Expr& x, int64_t before, int64_t after) {
  const int64_t size = before + 1 + after;
  Expr planes = Unsqueeze(Reshape(x, {0, 0, -1}), {1});  // [N, 1, C, rest]
  Expr mean = x.builder().Op("AveragePool", {planes},
                             {{"kernel_shape", std::vector<int64_t>{size, 1}},
                              {"pads", std::vector<int64_t>{before, 0, after, 0}},
                              {"count_include_pad", 1}});
  return ReshapeLike(mean * static_cast<double>(size), x);
}

// y = x * s^-beta, s = bias + alpha/size * (sum of x^2 over the channels around);
// dx = dy * s^-beta - 2*alpha*beta/size * x * (sum of dy*x*s^(-beta-1) around),
// the second sum over the channels whose window has this one
Grads LRNVjp(const Vjp& v) {
  const int64_t size = v.attr("size", 1);
  if (size < 1 || size > INT32_MAX) {
    FailAt(v.b(), v.node(), "size must be positive");
    return {};
  }
  const int64_t before = (size - 1) / 2, after = size - 1 - before;
  const double alpha = v.attr_float("alpha", 1e-4f), beta = v.attr_float("beta", 0.75f);
  const Expr x = v.x();
  Expr s = ChannelWindowSum(x * x, before, after) * (alpha / static_cast<double>(size)) +
           static_cast<double>(v.attr_float("bias", 1.0f));
  Expr direct = v.dy() * Pow(s, -beta);
  Expr around = ChannelWindowSum(direct * x / s, after, before);
  return {direct - x * around * (2 * alpha * beta / static_cast<double>(size))};
}

// Whether a Where reads the value, cast or not.
bool IsChosenFrom(const Graph& graph, const std::string& value) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    if (node.Is("Where")) return node.inputs[1] == value || node.inputs[2] == value;
    return node.Is("Cast") && node.inputs[0] == value && IsChosenFrom(graph, node.outputs[0]);
  });
}

// y = softmax(x);  dx = y*dy - y * sum(y*dy)
// A row of -inf alone is NaN: attention that may look at nothing, for which a Where puts zeros
// behind the softmax. No gradient arrives there, and none is to be made of zero times NaN.
Grads SoftmaxVjp(const Vjp& v) {
  Expr y = v.y();
  if (IsChosenFrom(v.b().graph(), y.name())) {
    y = Where(v.b().Op("IsNaN", {y}), v.b().Scalar(0, y), y);
  }
  return {v.b().Op("SoftmaxGrad", {v.dy(), y}, Pick(v.node(), {"axis"}), kOnwardDomain)};
}

// y = logsoftmax(x);  dx = dy - exp(y) * sum(dy)
Grads LogSoftmaxVjp(const Vjp& v) {
  return {v.b().Op("LogSoftmaxGrad", {v.dy(), v.y()}, Pick(v.node(), {"axis"}), kOnwardDomain)};
}

}  // namespace

void RegisterNormRules(RuleTable& table) {
  table.Add("BatchNormalization", BatchNormalizationVjp);
  table.Add("LayerNormalization", LayerNormalizationVjp);
  table.Add("InstanceNormalization", InstanceNormalizationVjp);
  table.Add("GroupNormalization", GroupNormalizationVjp);
  table.Add("RMSNormalization", RMSNormalizationVjp);
  table.Add("LpNormalization", LpNormalizationVjp);
  table.Add("LRN", LRNVjp);
  table.Add("Softmax", SoftmaxVjp);
  table.Add("LogSoftmax", LogSoftmaxVjp);
  table.AddZero("Hardmax");
}

}  // namespace onward
