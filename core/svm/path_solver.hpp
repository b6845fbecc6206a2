// One machine on one fold's rows under one kernel, along ascending C (search.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "index.hpp"
#include "svm/path_start.hpp"
#include "svm/search.hpp"
#include "svm/tile_smo.hpp"

namespace margrove {

// It is opened again and again: its memory stays.
template <class T>
class PathSolver {
 public:
  using Clock = typename BlockSmo<T>::Clock;

  // `all`: where given, the kernel values of `variables`.
  void open(const std::shared_ptr<const Gram<T>>& gram, Tile<T>* all, const DualVariables& variables,
            const std::vector<double>& weight, double shift, const DualSettings& settings) {
    settings_ = settings;
    gram_ = gram;
    Dual& dual = state_.dual;
    for (auto* values : {&dual.p, &dual.upper, &dual.alpha, &weight_, &state_.v}) values->clear();
    dual.y.clear();
    dual.point.clear();
    chosen_.clear();
    for (std::size_t t = 0; t < variables.y.size(); ++t) {
      const double mine = weight[variables.point[t]];
      if (!(mine > 0)) continue;
      dual.y.push_back(variables.y[t]);
      dual.p.push_back(variables.p[t] + shift);
      dual.point.push_back(variables.point[t]);
      chosen_.push_back(t);
      weight_.push_back(mine);
      state_.v.push_back(-variables.y[t] * dual.p.back());
    }
    for (auto* values : {&dual.upper, &dual.alpha, &upper_}) values->assign(weight_.size(), 0.0);
    C_ = 0;
    block_.reset();
    is_small_ = length(weight_) <= kTile;
    if (!is_small_) return;
    if (all)
      tile_.open(*all, chosen_);
    else
      tile_.open(gram, dual.point);
    small_.open(tile_);
  }

  // Solves for this C, which is larger than the last one; false when the time is over.
  bool run(double C, std::int64_t max_steps, Clock::time_point until) {
    const auto start = Clock::now();
    if (C != C_) begin(C);
    while (cell_.ending == BlockEnding::running && cell_.steps < max_steps && Clock::now() < until) {
      if (is_small_) {
        cell_.ending = small_.advance(state_, std::min(kTileSteps, max_steps - cell_.steps));
        cell_.steps = small_.steps();
        cell_.violation = small_.violation();
      } else {
        cell_.ending = block_->run(max_steps, until);
        cell_.steps = block_->steps();
        cell_.violation = block_->violation();
      }
    }
    cell_.seconds += std::chrono::duration<double>(Clock::now() - start).count();
    if (cell_.ending == BlockEnding::running && cell_.steps < max_steps) return false;
    if (!is_small_) state_.dual.alpha = block_->alpha(), state_.v = block_->v();
    cell_.offset = offset_of(state_.dual, state_.v);
    // Kernel values that overflow leave no violation to be seen, and no solution.
    const bool is_finite = std::isfinite(objective_of(state_.dual, state_.dual.alpha, state_.v)) &&
                           std::all_of(state_.v.begin(), state_.v.end(), [](double v) { return std::isfinite(v); });
    if (!is_finite) cell_.ending = BlockEnding::cornered;
    const std::vector<double>& alpha = state_.dual.alpha;
    cell_.support = std::count_if(alpha.begin(), alpha.end(), [](double a) { return a > 0; });
    return true;
  }

  const SearchCell& cell() const { return cell_; }
  const Dual& dual() const { return state_.dual; }

  // Variables of a machine that is solved in one tile. Chosen, not measured: 64 MiB in float.
  static constexpr std::int64_t kTile = 4096;

 private:
  // Variables: with more, the products that a start on the bounds needs cost more than the steps it saves. No
  // measurement recorded.
  static constexpr std::int64_t kManySteps = 512;
  static constexpr double kRounding = 1e-10;  // of a bound; the certificate's own tolerance (kAtUpper of dual.hpp)
  // Steps between two looks at the clock. Chosen, not measured: some 20 ms at 1 µs each.
  static constexpr std::int64_t kTileSteps = 20000;

  void begin(double C) {
    Dual& dual = state_.dual;
    const bool is_first = C_ == 0;
    const double ray = is_first ? 1.0 : ray_for(dual, state_.v, C / C_);
    for (std::size_t t = 0; t < weight_.size(); ++t) upper_[t] = C * weight_[t];
    on_ray(dual, state_.v, upper_, ray);
    dual.upper = upper_;
    if (is_first && length(weight_) <= kManySteps) start_on_bounds();
    if (is_small_) {
      small_.begin(settings_.tol);
    } else {
      if (block_)
        block_->resume(upper_, dual.alpha, state_.v, settings_.tol);
      else
        block_ = std::make_unique<BlockSmo<T>>(
            gram_, std::make_shared<RowStore<T>>(std::make_shared<Arena>(0), gram_->size(), false), dual, state_.v,
            settings_);
    }
    C_ = C;
    cell_ = {};
  }

  // Where slack is cheap nearly everything ends on its bound, and one pair at a time is a long way there. If the
  // objective falls all the way from 0 to a point where the lighter side is on its bounds, and of the other as many as
  // balance it, the solve begins there.
  void start_on_bounds() {
    Dual& dual = state_.dual;
    double mass[2] = {0, 0}, slope = 0, curve = 0;
    for (std::size_t t = 0; t < weight_.size(); ++t) mass[dual.y[t] > 0] += upper_[t];
    const double total = std::min(mass[0], mass[1]);
    double left[2] = {total, total};
    trial_.assign(weight_.size(), 0.0);
    beta_.resize(weight_.size());
    for (std::size_t t = 0; t < weight_.size(); ++t) {
      double& rest = left[dual.y[t] > 0];
      // What is at a bound but for rounding is put there: it would pin b.
      trial_[t] = rest > upper_[t] * (1 - kRounding) ? upper_[t] : rest > upper_[t] * kRounding ? rest : 0.0;
      rest -= trial_[t];
      beta_[t] = dual.y[t] * trial_[t];
      slope += dual.p[t] * trial_[t];
    }
    if (!(slope < 0)) return;
    sums_.assign(weight_.size(), 0.0);
    small_.add_products(beta_, sums_);
    for (std::size_t t = 0; t < weight_.size(); ++t) curve += beta_[t] * sums_[t];
    if (-slope < curve) return;
    dual.alpha = trial_;
    for (std::size_t t = 0; t < weight_.size(); ++t) state_.v[t] -= sums_[t];
  }

  DualSettings settings_;
  std::shared_ptr<const Gram<T>> gram_;
  DualState state_;
  std::vector<double> weight_, upper_, trial_, beta_, sums_;
  std::vector<std::int32_t> chosen_;  // indices of the machine's variables
  double C_ = 0;
  SearchCell cell_;
  bool is_small_ = true;
  Tile<T> tile_;
  TileSmo<T> small_;
  std::unique_ptr<BlockSmo<T>> block_;
};

}  // namespace margrove
