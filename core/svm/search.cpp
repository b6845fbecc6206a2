#include "svm/search.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

#include "kernel/fast_exp.hpp"
#include "parallel.hpp"
#include "svm/pair_steps.hpp"
#include "svm/tile_smo.hpp"

#pragma GCC diagnostic ignored "-Wpsabi"

namespace margrove {
namespace {

constexpr std::int64_t kTile = 4096;  // variables of a machine that is solved in one tile
constexpr std::int64_t kManySteps =
    512;  // variables: beyond, the products that a start on the bounds takes are dearer than steps
constexpr double kRounding = 1e-10;
constexpr std::int64_t kProducts = -1;         // the matrix that is no kernel's own
constexpr std::int64_t kTileSteps = 20000;     // between two looks at the clock
constexpr std::int64_t kBatchCells = 1 << 20;  // kernel values computed between two looks at the clock
constexpr std::int64_t kColumns = 8;           // values of C that are multiplied out together
constexpr std::int64_t kHeldLanes = 16;        // rows held out, likewise

// out[c, h] = sum over r of weight[r, c] row_r[h] for kColumns values of c and h < count; rows of out are padded.
template <class T>
MARGROVE_INLINE void multiply_out_body(const T* const* rows, const T* weight, std::int64_t n_rows, std::int64_t count,
                                       T* out, std::int64_t stride) {
  constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
  typedef T Values __attribute__((vector_size(64)));
  for (std::int64_t h = 0; h < count; h += kLine) {
    const std::size_t bytes = sizeof(T) * static_cast<std::size_t>(std::min(kLine, count - h));
    Values sum[kColumns] = {};
    for (std::int64_t r = 0; r < n_rows; ++r) {
      Values row = {};
      if (bytes == sizeof row)
        std::memcpy(&row, rows[r] + h, sizeof row);
      else
        std::memcpy(&row, rows[r] + h, bytes);      // the last ones
      __builtin_prefetch(rows[r] + h + 4 * kLine);  // the next columns of so many rows no hardware foresees
      for (std::int64_t c = 0; c < kColumns; ++c) sum[c] += weight[r * kColumns + c] * row;
    }
    for (std::int64_t c = 0; c < kColumns; ++c) std::memcpy(out + c * stride + h, &sum[c], sizeof sum[c]);
  }
}
#define MARGROVE_MULTIPLY_OUT(T)                                                                    \
  MARGROVE_CLONES void multiply_all_out(const T* const* rows, const T* weight, std::int64_t n_rows, \
                                        std::int64_t count, T* out, std::int64_t stride) {          \
    multiply_out_body(rows, weight, n_rows, count, out, stride);                                    \
  }
MARGROVE_MULTIPLY_OUT(float)
MARGROVE_MULTIPLY_OUT(double)
#undef MARGROVE_MULTIPLY_OUT

// out_j = exp(-gamma |x - z_j|²) from inner products and squared norms.
#define MARGROVE_FINISH_DISTANCES(T)                                                                    \
  MARGROVE_CLONES void finish_distances(const T* products, const double* squared, double mine, T gamma, \
                                        std::int64_t count, T* out) {                                   \
    const T own = static_cast<T>(mine);                                                                 \
    _Pragma("omp simd") for (std::int64_t j = 0; j < count; ++j) {                                      \
      const T exponent = gamma * (2 * products[j] - (own + static_cast<T>(squared[j])));                \
      out[j] = exp_of_negative(exponent < 0 ? exponent : T(0));                                         \
    }                                                                                                   \
  }
MARGROVE_FINISH_DISTANCES(float)
MARGROVE_FINISH_DISTANCES(double)
#undef MARGROVE_FINISH_DISTANCES

// One machine on one fold's rows under one kernel, along C. It is opened again and again: its memory stays.
template <class T>
class LadderSolver {
 public:
  using Clock = typename BlockSmo<T>::Clock;

  void open(const std::shared_ptr<const Gram<T>>& gram, const Ladder& ladder, const std::vector<double>& weight,
            double shift, const DualSettings& settings) {
    settings_ = settings;
    gram_ = gram;
    Dual& dual = state_.dual;
    for (auto* values : {&dual.p, &dual.upper, &dual.alpha, &weight_, &state_.v}) values->clear();
    dual.y.clear();
    dual.point.clear();
    for (std::size_t t = 0; t < ladder.y.size(); ++t) {
      const double mine = weight[static_cast<std::size_t>(ladder.point[t])];
      if (!(mine > 0)) continue;
      dual.y.push_back(ladder.y[t]);
      dual.p.push_back(ladder.p[t] + shift);
      dual.point.push_back(ladder.point[t]);
      weight_.push_back(mine);
      state_.v.push_back(-ladder.y[t] * dual.p.back());
    }
    for (auto* values : {&dual.upper, &dual.alpha, &upper_}) values->assign(weight_.size(), 0.0);
    C_ = 0;
    block_.reset();
    is_small_ = static_cast<std::int64_t>(weight_.size()) <= kTile;
    if (!is_small_) return;
    tile_.open(gram, dual);
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

 private:
  void begin(double C) {
    Dual& dual = state_.dual;
    const bool is_first = C_ == 0;
    const double ray = is_first ? 1.0 : ray_for(dual, state_.v, C / C_);
    for (std::size_t t = 0; t < weight_.size(); ++t) upper_[t] = C * weight_[t];
    on_ray(dual, state_.v, upper_, ray);
    dual.upper = upper_;
    if (is_first && static_cast<std::int64_t>(weight_.size()) <= kManySteps) start_on_bounds();
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
  double C_ = 0;
  SearchCell cell_;
  bool is_small_ = true;
  Tile<T> tile_;
  TileSmo<T> small_;
  std::unique_ptr<BlockSmo<T>> block_;
};

// Kernel values of any row with the rows held out: where they lie, if they lie together, or copied when they are first
// asked for.
template <class T>
class HeldOut {
 public:
  void open(std::shared_ptr<const Gram<T>> gram, const std::vector<std::int64_t>& held_out) {
    gram_ = std::move(gram);
    held_out_ = &held_out;
    find_runs(held_out, runs_);
    if (runs_.size() <= 1) return;
    const std::size_t needed = static_cast<std::size_t>(gram_->size()) * held_out.size();
    if (needed > room_) values_ = large_memory<T>(room_ = needed);
    n_copied_ = 0;
    rows_.assign(static_cast<std::size_t>(gram_->size()), nullptr);
  }
  const T* row(std::int64_t i) {
    const T* given = gram_->ready(i);
    if (runs_.size() <= 1) return given + (held_out_->empty() ? 0 : held_out_->front());
    const T*& known = rows_[static_cast<std::size_t>(i)];
    if (known) return known;
    T* out = values_.get() + n_copied_++ * static_cast<std::int64_t>(held_out_->size());
    for (const auto& [from, to] : runs_)
      std::copy_n(given + (*held_out_)[static_cast<std::size_t>(from)], to - from, out + from);
    return known = out;
  }

 private:
  std::shared_ptr<const Gram<T>> gram_;
  const std::vector<std::int64_t>* held_out_ = nullptr;
  Runs runs_;
  LargeMemory<T> values_;
  std::size_t room_ = 0;
  std::int64_t n_copied_ = 0;
  std::vector<const T*> rows_;
};

}  // namespace

template <class T>
struct Search<T>::Matrix {
  Search* home;
  std::int64_t kernel;
  std::shared_ptr<const Gram<T>> source, whole;  // how values are made, and where they lie once they are
  LargeMemory<T> values;
  std::once_flag is_begun, is_whole;
  std::atomic<std::int64_t> next{0}, done{0};
  std::int64_t batches = 0, rows_per_batch = 1;

  Matrix(Search* search, std::int64_t which) : home(search), kernel(which) {}
  ~Matrix() {
    const std::lock_guard<std::mutex> held(home->matrices_lock_);
    if (values) home->spare_.push_back(std::move(values));
  }
};

template <class T>
struct Search<T>::Worker {
  std::int64_t unit = -1;
  std::shared_ptr<Matrix> matrix;
  bool is_open = false;  // the unit's kernel is there, and its machines are begun
  std::size_t machine = 0, C = 0;
  bool is_machine_open = false;
  LadderSolver<T> solver;
  HeldOut<T> held;
  std::vector<T> beta;  // (variables, C) of the present machine
  std::vector<const T*> rows;
  std::vector<T> weight, out;
  UnitResult result;

  void open(const std::shared_ptr<const Gram<T>>& gram, const Fold& fold, std::size_t n_C, std::size_t machines) {
    const std::size_t count = fold.held_out.size();
    held.open(gram, fold.held_out);
    result.values.assign(n_C * machines * count, 0.0);
    result.cells.assign(n_C * machines, {});
    is_open = true;
  }

  // The present machine's values on the rows held out, for each C.
  void multiply_out(const std::vector<std::int64_t>& point, std::size_t n_C, std::int64_t count, std::size_t machines) {
    for (std::size_t first = 0; first < n_C; first += kColumns) {
      const std::size_t columns = std::min<std::size_t>(kColumns, n_C - first);
      rows.clear();
      weight.clear();
      for (std::size_t t = 0; t < point.size(); ++t) {
        const T* mine = beta.data() + t * n_C + first;
        if (std::all_of(mine, mine + columns, [](T b) { return b == 0; })) continue;
        rows.push_back(held.row(point[t]));
        weight.insert(weight.end(), mine, mine + columns);
        weight.resize(rows.size() * kColumns, T{0});
      }
      const std::int64_t stride = (count + kHeldLanes - 1) / kHeldLanes * kHeldLanes;
      out.resize(static_cast<std::size_t>(kColumns * stride));
      multiply_all_out(rows.data(), weight.data(), static_cast<std::int64_t>(rows.size()), count, out.data(), stride);
      for (std::size_t c = 0; c < columns; ++c) {
        const std::size_t at = (first + c) * machines + machine;
        const double offset = result.cells[at].offset;
        const T* from = out.data() + static_cast<std::int64_t>(c) * stride;
        double* to = result.values.data() + at * static_cast<std::size_t>(count);
        for (std::int64_t h = 0; h < count; ++h) to[h] = static_cast<double>(from[h]) + offset;
      }
    }
  }
};

template <class T>
Search<T>::Search(Source source, std::vector<double> gammas, std::int64_t n, std::vector<Ladder> ladders,
                  std::vector<Fold> folds, DualSettings settings, std::int64_t max_steps)
    : source_(std::move(source)),
      gammas_(std::move(gammas)),
      n_(n),
      ladders_(std::move(ladders)),
      folds_(std::move(folds)),
      settings_(settings),
      max_steps_(max_steps) {
  if (!gammas_.empty()) products_ = std::make_shared<Matrix>(this, kProducts);
}

template <class T>
Search<T>::~Search() = default;

template <class T>
void Search<T>::add(SearchUnit unit) {
  if (static_cast<std::int64_t>(matrices_.size()) <= unit.kernel)
    matrices_.resize(static_cast<std::size_t>(unit.kernel) + 1);
  units_.push_back(std::move(unit));
}

template <class T>
UnitResult Search<T>::take(std::int64_t unit) {
  return std::move(results_[static_cast<std::size_t>(unit)]);
}

template <class T>
LargeMemory<T> Search<T>::memory() {
  const std::lock_guard<std::mutex> held(matrices_lock_);
  if (spare_.empty()) return large_memory<T>(static_cast<std::size_t>(n_ * n_));
  LargeMemory<T> values = std::move(spare_.back());
  spare_.pop_back();
  return values;
}

template <class T>
std::shared_ptr<typename Search<T>::Matrix> Search<T>::matrix_of(std::int64_t kernel) {
  const std::lock_guard<std::mutex> held(matrices_lock_);
  std::weak_ptr<Matrix>& known = matrices_[static_cast<std::size_t>(kernel)];
  std::shared_ptr<Matrix> matrix = known.lock();
  if (!matrix) known = matrix = std::make_shared<Matrix>(this, kernel);
  return matrix;
}

// A Gaussian kernel of the products: cheap, and few variables may move, so that a row is made when it is asked for.
template <class T>
std::shared_ptr<const Gram<T>> Search<T>::gaussian(const Matrix& matrix) {
  const auto gamma = static_cast<T>(gammas_[static_cast<std::size_t>(matrix.kernel)]);
  const auto make = [products = products_->whole, gamma](std::int64_t i, T* out) {
    const std::vector<double>& squared = products->diagonal();
    finish_distances(products->ready(i), squared.data(), squared[static_cast<std::size_t>(i)], gamma, products->size(),
                     out);
  };
  return gram_on_demand(std::make_shared<RowsOnDemand<T>>(n_, matrix.values.get(), make),
                        std::vector<double>(static_cast<std::size_t>(n_), 1.0));
}

// What a kernel's values come from: all of them, in batches of rows, and whoever needs them helps, or the means to make
// them. False when the time is over.
template <class T>
bool Search<T>::build(Matrix& matrix, Clock::time_point until) {
  const bool is_gaussian = products_ && matrix.kernel != kProducts;
  if (is_gaussian && !build(*products_, until)) return false;
  std::call_once(matrix.is_begun, [&] {
    if (!is_gaussian) matrix.source = source_(std::max<std::int64_t>(0, matrix.kernel), inner_threads_);
    if (matrix.source && matrix.source->ready(0)) {
      matrix.whole = matrix.source;
      return;
    }
    matrix.values = memory();
    if (is_gaussian) {
      matrix.whole = gaussian(matrix);
      return;
    }
    matrix.rows_per_batch = std::clamp<std::int64_t>(kBatchCells / n_, 1, 256);
    matrix.batches = (n_ + matrix.rows_per_batch - 1) / matrix.rows_per_batch;
  });
  for (std::int64_t batch; (batch = matrix.next.fetch_add(1)) < matrix.batches;) {
    const std::int64_t from = batch * matrix.rows_per_batch, to = std::min(n_, from + matrix.rows_per_batch);
    fill_rows(*matrix.source, from, to, matrix.values.get(), inner_threads_);
    matrix.done.fetch_add(1);
    if (Clock::now() >= until) return false;
  }
  while (matrix.done.load() < matrix.batches) {  // others are at the last of them
    if (Clock::now() >= until) return false;
    std::this_thread::yield();
  }
  std::call_once(matrix.is_whole, [&] {
    if (matrix.whole) return;
    matrix.whole = gram_given<T>({matrix.values.get(), n_, n_}, all_rows(n_));
    matrix.source.reset();
  });
  return true;
}

// A worker's unit, until it ends; false when the time is over.
template <class T>
bool Search<T>::advance(Worker& worker, Clock::time_point until) {
  const SearchUnit& unit = units_[static_cast<std::size_t>(worker.unit)];
  const Fold& fold = folds_[static_cast<std::size_t>(unit.fold)];
  const auto held_out = static_cast<std::int64_t>(fold.held_out.size());
  const std::size_t n_C = unit.C.size();
  if (!worker.matrix) worker.matrix = matrix_of(unit.kernel);
  if (!worker.is_open) {
    if (!build(*worker.matrix, until)) return false;
    worker.open(worker.matrix->whole, fold, n_C, ladders_.size());
  }
  for (; worker.machine < ladders_.size(); ++worker.machine) {
    LadderSolver<T>& solver = worker.solver;
    if (!worker.is_machine_open) {
      if (Clock::now() >= until) return false;
      solver.open(worker.matrix->whole, ladders_[worker.machine], fold.weight, unit.shift, settings_);
      worker.beta.assign(solver.dual().y.size() * n_C, T{0});
      worker.C = 0;
      worker.is_machine_open = true;
    }
    for (; worker.C < n_C; ++worker.C) {
      if (!solver.run(unit.C[worker.C], max_steps_, until)) return false;
      const Dual& dual = solver.dual();
      for (std::size_t t = 0; t < dual.y.size(); ++t)
        worker.beta[t * n_C + worker.C] = static_cast<T>(dual.y[t] * dual.alpha[t]);
      worker.result.cells[worker.C * ladders_.size() + worker.machine] = solver.cell();
      solved_.fetch_add(1);
    }
    worker.multiply_out(solver.dual().point, n_C, held_out, ladders_.size());
    worker.is_machine_open = false;
  }
  results_[static_cast<std::size_t>(worker.unit)] = std::move(worker.result);
  has_ended_[static_cast<std::size_t>(worker.unit)].store(true);
  worker.result = {};
  worker.matrix.reset();
  worker.is_open = false;
  worker.machine = 0;
  worker.unit = -1;
  return true;
}

template <class T>
bool Search<T>::run(double seconds) {
  if (workers_.empty()) {
    const std::int64_t side_by_side = std::clamp<std::int64_t>(size(), 1, settings_.threads);
    for (std::int64_t w = 0; w < side_by_side; ++w) workers_.push_back(std::make_unique<Worker>());
    inner_threads_ = std::max<int>(1, settings_.threads / static_cast<int>(side_by_side));
    results_.resize(units_.size());
    has_ended_ = std::make_unique<std::atomic<bool>[]>(units_.size());
  }
  const auto until = in_seconds(seconds);
  return take_turns(
      workers_, next_unit_, units_.size(), until, [](const Worker& worker) { return worker.unit < 0; },
      [](Worker& worker, std::size_t job) { worker.unit = static_cast<std::int64_t>(job); },
      [&](Worker& worker) { return advance(worker, until); });
}

template class Search<float>;
template class Search<double>;

}  // namespace margrove
