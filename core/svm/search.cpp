#include "svm/search.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

#include "index.hpp"
#include "kernel/fast_exp.hpp"
#include "parallel.hpp"
#include "simd.hpp"
#include "svm/path_solver.hpp"

namespace margrove {
namespace {

// Variables: folds of a machine up to this size are solved one after another, on one copy of its kernel.
// Chosen, not measured: 4 MiB in float.
constexpr std::int64_t kJoint = 1024;
// Of the machines of such folds: enough that no worker waits for long. Chosen, not measured.
constexpr std::size_t kPieces = 16;
constexpr std::int64_t kProducts = -1;  // in place of a kernel's number: the matrix of inner products
// Kernel values computed between two looks at the clock: about a millisecond with few columns. Chosen, not measured.
constexpr std::int64_t kBatchCells = 1 << 20;
constexpr std::int64_t kColumns = 8;     // values of C multiplied out together: 8 vectors of sums, in registers
constexpr std::int64_t kHeldLanes = 16;  // rows held out: to so many they are padded, a cache line of floats

// out[c, h] = sum over r of weight[r, c] row_r[h] for kColumns values of c and h < count; rows of out are padded.
template <class T>
MARGROVE_INLINE void multiply_out_body(const T* const* rows, const T* weight, std::int64_t n_rows, std::int64_t count,
                                       T* out, std::int64_t stride) {
  constexpr std::int64_t kLine = kCacheLine / sizeof(T);
  using Values = Simd<T, kLine>;
  for (std::int64_t h = 0; h < count; h += kLine) {
    const std::size_t bytes = sizeof(T) * static_cast<std::size_t>(std::min(kLine, count - h));
    Values sum[kColumns] = {};
    for (std::int64_t r = 0; r < n_rows; ++r) {
      Values row = {};
      if (bytes == sizeof row)
        std::memcpy(&row, rows[r] + h, sizeof row);
      else
        std::memcpy(&row, rows[r] + h, bytes);  // the last ones
      prefetch(rows[r] + h + 4 * kLine);        // the next columns of so many rows no hardware foresees
      for (std::int64_t c = 0; c < kColumns; ++c) sum[c] += weight[r * kColumns + c] * row;
    }
    for (std::int64_t c = 0; c < kColumns; ++c) store(out + c * stride + h, sum[c]);
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
    const T own = mine;                                                                                 \
    _Pragma("omp simd") for (std::int64_t j = 0; j < count; ++j) {                                      \
      const T exponent = gamma * (2 * products[j] - (own + static_cast<T>(squared[j])));                \
      out[j] = exp_of_negative(exponent < 0 ? exponent : T(0));                                         \
    }                                                                                                   \
  }
MARGROVE_FINISH_DISTANCES(float)
MARGROVE_FINISH_DISTANCES(double)
#undef MARGROVE_FINISH_DISTANCES

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
    const std::size_t needed = gram_->size() * held_out.size();
    if (needed > room_) values_ = large_memory<T>(room_ = needed);
    n_copied_ = 0;
    rows_.assign(gram_->size(), nullptr);
  }
  const T* row(std::int64_t i) {
    const T* given = gram_->ready(i);
    if (runs_.size() <= 1) return given + (held_out_->empty() ? 0 : held_out_->front());
    const T*& known = rows_[i];
    if (known) return known;
    T* out = values_.get() + n_copied_++ * static_cast<std::int64_t>(held_out_->size());
    for (const auto& [from, to] : runs_) std::copy_n(given + (*held_out_)[from], to - from, out + from);
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
  const Job* job = nullptr;
  std::shared_ptr<Matrix> matrix;  // kept from job to job: the next one is likely to be of the same kernel
  bool is_built = false;           // what the job needs of it
  std::size_t machine = 0, unit = 0, C = 0;
  bool is_machine_open = false, is_unit_open = false;
  Tile<T> all;  // the machine's kernel values with all its rows, for a job of several units
  PathSolver<T> solver;
  HeldOut<T> held;
  std::vector<T> beta;  // (variables, C) of the present machine
  std::vector<const T*> rows;
  std::vector<T> weight, out;

  // The present machine's values on the rows held out, for each C.
  void multiply_out(const std::vector<std::int64_t>& point, std::size_t n_C, std::int64_t count, std::size_t machines,
                    UnitResult& result) {
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
      out.resize(kColumns * stride);
      multiply_all_out(rows.data(), weight.data(), length(rows), count, out.data(), stride);
      for (std::size_t c = 0; c < columns; ++c) {
        const std::size_t at = (first + c) * machines + machine;
        const double offset = result.cells[at].offset;
        const T* from = out.data() + c * stride;
        double* to = result.values.data() + at * count;
        for (std::int64_t h = 0; h < count; ++h) to[h] = static_cast<double>(from[h]) + offset;
      }
    }
  }
};

template <class T>
Search<T>::Search(Source source, std::vector<double> gammas, std::int64_t n, std::vector<DualVariables> machines,
                  std::vector<Fold> folds, DualSettings settings, std::int64_t max_steps)
    : source_(std::move(source)),
      gammas_(std::move(gammas)),
      n_(n),
      machines_(std::move(machines)),
      folds_(std::move(folds)),
      settings_(settings),
      max_steps_(max_steps) {
  if (!gammas_.empty()) products_ = std::make_shared<Matrix>(this, kProducts);
}

template <class T>
Search<T>::~Search() = default;

template <class T>
void Search<T>::add(SearchUnit unit) {
  if (length(matrices_) <= unit.kernel) matrices_.resize(static_cast<std::size_t>(unit.kernel) + 1);
  units_.push_back(std::move(unit));
}

template <class T>
UnitResult Search<T>::take(std::int64_t unit) {
  return std::move(results_[unit]);
}

template <class T>
LargeMemory<T> Search<T>::memory() {
  const std::lock_guard<std::mutex> held(matrices_lock_);
  if (spare_.empty()) return large_memory<T>(n_ * n_);
  LargeMemory<T> values = std::move(spare_.back());
  spare_.pop_back();
  return values;
}

template <class T>
std::shared_ptr<typename Search<T>::Matrix> Search<T>::matrix_of(std::int64_t kernel) {
  const std::lock_guard<std::mutex> held(matrices_lock_);
  std::weak_ptr<Matrix>& known = matrices_[kernel];
  std::shared_ptr<Matrix> matrix = known.lock();
  if (!matrix) known = matrix = std::make_shared<Matrix>(this, kernel);
  return matrix;
}

// A Gaussian kernel of the products: cheap, and few variables may move, so that a row is made when it is asked for.
template <class T>
std::shared_ptr<const Gram<T>> Search<T>::gaussian(const Matrix& matrix) {
  const T gamma = gammas_[matrix.kernel];
  const auto make = [products = products_->whole, gamma](std::int64_t i, T* out) {
    const std::vector<double>& squared = products->diagonal();
    finish_distances(products->ready(i), squared.data(), squared[i], gamma, products->size(), out);
  };
  return gram_on_demand(std::make_shared<RowsOnDemand<T>>(n_, matrix.values.get(), make), std::vector<double>(n_, 1.0));
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

// Units whose machines are small are done together, if all but the fold is the same, a piece of the machines at a time:
// each machine's kernel values are copied once for all of them.
template <class T>
void Search<T>::cut_into_jobs() {
  const auto is_together = [](const Fold& fold) {
    Runs runs;
    find_runs(fold.held_out, runs);
    return runs.size() <= 1;
  };
  const bool is_joint = std::all_of(machines_.begin(), machines_.end(),
                                    [](const DualVariables& variables) { return length(variables.y) <= kJoint; }) &&
                        std::all_of(folds_.begin(), folds_.end(), is_together);
  const std::size_t machines = machines_.size();
  const std::size_t piece = std::max<std::size_t>(1, is_joint ? (machines + kPieces - 1) / kPieces : machines);
  results_.resize(units_.size());
  has_ended_ = std::make_unique<std::atomic<bool>[]>(units_.size());
  for (std::size_t first = 0, last = 0; first < units_.size(); first = last) {
    const SearchUnit& unit = units_[first];
    const auto is_like_it = [&](const SearchUnit& other) {
      return other.kernel == unit.kernel && other.shift == unit.shift && other.C == unit.C;
    };
    for (last = first + 1; is_joint && last < units_.size() && is_like_it(units_[last]);) ++last;
    auto left = std::make_shared<std::atomic<std::size_t>>((machines + piece - 1) / piece);
    for (std::size_t from = 0; from < machines; from += piece)
      jobs_.push_back({first, last, from, std::min(machines, from + piece), left});
  }
}

// A unit's result has its room when the first of its jobs begins.
template <class T>
void Search<T>::open_results(const Job& job) {
  const std::lock_guard<std::mutex> held(results_lock_);
  for (std::size_t u = job.first_unit; u < job.last_unit; ++u) {
    const std::size_t cells = units_[u].C.size() * machines_.size();
    if (results_[u].cells.size() == cells) continue;
    results_[u].values.assign(cells * folds_[units_[u].fold].held_out.size(), 0.0);
    results_[u].cells.assign(cells, {});
  }
}

// A worker's job, until it ends; false when the time is over.
template <class T>
bool Search<T>::advance(Worker& worker, Clock::time_point until) {
  const Job& job = *worker.job;
  const bool is_joint = job.last_unit - job.first_unit > 1;
  const std::int64_t kernel = units_[job.first_unit].kernel;
  if (!worker.matrix || worker.matrix->kernel != kernel) {
    worker.matrix.reset();
    worker.matrix = matrix_of(kernel);
  }
  if (!worker.is_built) {
    if (!build(*worker.matrix, until)) return false;
    open_results(job);
    worker.machine = job.first_machine;
    worker.is_built = true;
  }
  const std::shared_ptr<const Gram<T>>& gram = worker.matrix->whole;
  for (; worker.machine < job.last_machine; ++worker.machine) {
    const DualVariables& variables = machines_[worker.machine];
    if (!worker.is_machine_open) {
      if (is_joint) worker.all.open(gram, variables.point);
      worker.unit = job.first_unit;
      worker.is_machine_open = true;
    }
    for (; worker.unit < job.last_unit; ++worker.unit) {
      const SearchUnit& unit = units_[worker.unit];
      const Fold& fold = folds_[unit.fold];
      UnitResult& result = results_[worker.unit];
      const std::size_t n_C = unit.C.size();
      PathSolver<T>& solver = worker.solver;
      if (!worker.is_unit_open) {
        if (Clock::now() >= until) return false;
        solver.open(gram, is_joint ? &worker.all : nullptr, variables, fold.weight, unit.shift, settings_);
        if (is_joint || worker.machine == job.first_machine) worker.held.open(gram, fold.held_out);
        worker.beta.assign(solver.dual().y.size() * n_C, T{0});
        worker.C = 0;
        worker.is_unit_open = true;
      }
      for (; worker.C < n_C; ++worker.C) {
        if (!solver.run(unit.C[worker.C], max_steps_, until)) return false;
        const Dual& dual = solver.dual();
        for (std::size_t t = 0; t < dual.y.size(); ++t)
          worker.beta[t * n_C + worker.C] = static_cast<T>(dual.y[t] * dual.alpha[t]);
        result.cells[worker.C * machines_.size() + worker.machine] = solver.cell();
        solved_.fetch_add(1);
      }
      worker.multiply_out(solver.dual().point, n_C, length(fold.held_out), machines_.size(), result);
      worker.is_unit_open = false;
    }
    worker.is_machine_open = false;
  }
  if (job.left->fetch_sub(1) == 1)
    for (std::size_t u = job.first_unit; u < job.last_unit; ++u) has_ended_[u].store(true);
  worker.is_built = false;
  worker.job = nullptr;
  return true;
}

template <class T>
bool Search<T>::run(double seconds) {
  if (workers_.empty()) {
    cut_into_jobs();
    const std::int64_t side_by_side = std::clamp<std::int64_t>(std::ssize(jobs_), 1, settings_.threads);
    for (std::int64_t w = 0; w < side_by_side; ++w) workers_.push_back(std::make_unique<Worker>());
    inner_threads_ = std::max<int>(1, settings_.threads / static_cast<int>(side_by_side));
  }
  const auto until = in_seconds(seconds);
  return take_turns(
      workers_, next_job_, jobs_.size(), until, [](const Worker& worker) { return !worker.job; },
      [&](Worker& worker, std::size_t job) { worker.job = &jobs_[job]; },
      [&](Worker& worker) { return advance(worker, until); });
}

template class Search<float>;
template class Search<double>;

}  // namespace margrove
