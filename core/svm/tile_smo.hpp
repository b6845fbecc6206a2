// SMO for a machine whose kernel values all lie in one tile: nothing to choose, to compute or to hand over.
//
// The values are copied out of a larger kernel matrix, row by row as they are needed. Steps are made with v in the
// kernel's own type, about its middle, where the differences are that matter; then v follows α in double, and the solve
// ends on that.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kernel/gram.hpp"
#include "large_memory.hpp"
#include "svm/block_smo.hpp"
#include "svm/dual.hpp"
#include "svm/pair_steps.hpp"

namespace margrove {

// A machine in the middle of a solve: what it asks, and v of its present α.
struct DualState {
  Dual dual;
  std::vector<double> v;

  Extremes extremes() const { return extremes_of(dual, v); }
};

// Places [from, to) of a list whose numbers follow one another: what they stand for is copied in one piece.
using Runs = std::vector<std::pair<std::int64_t, std::int64_t>>;
template <class Numbers>
void find_runs(const Numbers& numbers, Runs& runs) {
  runs.clear();
  for (std::size_t from = 0, to = 0; from < numbers.size(); from = to) {
    for (to = from + 1; to < numbers.size() && numbers[to] == numbers[to - 1] + 1;) ++to;
    runs.push_back({static_cast<std::int64_t>(from), static_cast<std::int64_t>(to)});
  }
}

// The kernel values of a machine's variables with each other, a row when it is first asked for: many variables never
// move. Opened again and again: its memory stays.
template <class T>
class Tile final : public RowMaker<T> {
 public:
  // Of some points; `gram` must have its rows ready.
  void open(std::shared_ptr<const Gram<T>> gram, const std::vector<std::int64_t>& points);
  // Of some of the variables of another tile.
  void open(Tile& whole, const std::vector<std::int32_t>& chosen);

  std::int64_t size() const { return size_; }
  std::int64_t width() const { return width_; }  // padded
  const T* row(std::int64_t i) override {
    const T* known = rows_[i];
    return known ? known : made(i);
  }
  void make_all_rows();                                             // for several readers at once
  const T* const* rows() const { return rows_.data(); }             // (width) null where none is made yet
  double largest() const { return largest_; }                       // |K(x, x)|
  const std::vector<double>& own() const { return own_; }           // (width) K(x, x)
  const std::vector<float>& diagonal() const { return diagonal_; }  // (width) in units of the largest

 private:
  void resize();
  const T* made(std::int64_t i);

  std::shared_ptr<const Gram<T>> gram_;  // where the values come from,
  Tile* whole_ = nullptr;                // or this
  std::vector<std::int32_t> index_;      // (size) places there
  Runs runs_;
  bool is_scattered_ = false;
  std::int64_t size_ = 0, width_ = 0, stride_ = 0, n_made_ = 0;
  LargeMemory<T> values_;  // rows in the order in which they were made
  std::size_t room_ = 0;
  std::vector<const T*> rows_;
  std::vector<double> own_;
  std::vector<float> diagonal_;
  double largest_ = 0;
};

// In a long solve most variables come to lie where they can no longer be part of a violating pair: it goes on over the
// others, in a smaller tile, and all are looked at again when that is done.
template <class T>
class TileSmo {
 public:
  // Looks at the tile from here on.
  void open(Tile<T>& tile);

  // A new solve to `tol`; then so many steps of it. `running` if they were not enough.
  void begin(double tol);
  BlockEnding advance(DualState& state, std::int64_t most_steps);
  std::int64_t steps() const { return steps_; }  // of this solve
  double violation() const { return violation_; }

  // α_t becomes 0, whatever it costs: what it carried goes to the variables that take it most cheaply.
  void push_out(DualState& state, std::int64_t t);

  // sums += K change
  void add_products(const std::vector<double>& change, std::vector<double>& sums);

 private:
  std::int64_t make_steps(Tile<T>& tile, DualState& state, double tolerance, std::int64_t most_steps);
  bool choose_active(const DualState& state, const Extremes& extremes);
  void follow(DualState& state);  // v follows α from `before_`

  Tile<T>* tile_ = nullptr;
  std::vector<T> up_, low_;
  double tol_ = 0, inner_tol_ = 0, watched_ = 0, violation_ = 0;
  std::int64_t steps_ = 0;
  std::vector<double> before_, change_, sums_, changes_;
  std::vector<const T*> rows_;
  std::vector<std::int32_t> active_;
  Tile<T> part_;
  DualState part_state_;
};

}  // namespace margrove
