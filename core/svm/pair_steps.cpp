#include "svm/pair_steps.hpp"

#include <cstring>
#include <limits>

// Vectors pass between functions that are always inlined: no calling convention is at stake.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace margrove {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

typedef double Doubles __attribute__((vector_size(kVector * sizeof(double))));
typedef float Floats __attribute__((vector_size(kVector * sizeof(float))));
typedef std::int64_t Places __attribute__((vector_size(kVector * sizeof(std::int64_t))));
typedef std::int32_t ShortPlaces __attribute__((vector_size(kVector * sizeof(std::int32_t))));

template <class V, class T>
MARGROVE_INLINE V load(const T* from) {
  V values;
  std::memcpy(&values, from, sizeof values);
  return values;
}
template <class V, class T>
MARGROVE_INLINE void store(T* to, const V& values) {
  std::memcpy(to, &values, sizeof values);
}
MARGROVE_INLINE Doubles kernel_values(const float* row) { return __builtin_convertvector(load<Floats>(row), Doubles); }
MARGROVE_INLINE Doubles kernel_values(const double* row) { return load<Doubles>(row); }
MARGROVE_INLINE Floats short_values(const float* row, double unit) {
  return load<Floats>(row) * static_cast<float>(unit);
}
MARGROVE_INLINE Floats short_values(const double* row, double unit) {
  return __builtin_convertvector(load<Doubles>(row) * unit, Floats);
}

// The best lane; of equals the first member, so that the answer does not depend on the width of vectors.
MARGROVE_INLINE Found best_lane(const Doubles& best, const Places& where) {
  Found found{where[0], best[0]};
  for (int l = 1; l < kVector; ++l)
    if (best[l] > found.value || (best[l] == found.value && where[l] < found.at)) found = {where[l], best[l]};
  return found;
}

template <class T>
MARGROVE_INLINE Found worst_up_body(const WorkingBlock<T>& block) {
  Doubles best = Doubles{} - kInfinity;
  Places where = {}, place = {0, 1, 2, 3, 4, 5, 6, 7};
  for (std::int64_t t = 0; t < block.size; t += kVector, place += kVector) {
    const Doubles up = load<Doubles>(block.up + t);
    const Places is_more = up > best;
    best = is_more ? up : best;
    where = is_more ? place : where;
  }
  return best_lane(best, where);
}

template <class T>
MARGROVE_INLINE Found worst_low_body(const WorkingBlock<T>& block) {
  Doubles best = Doubles{} - kInfinity;
  Places where = {}, place = {0, 1, 2, 3, 4, 5, 6, 7};
  for (std::int64_t t = 0; t < block.size; t += kVector, place += kVector) {
    const Doubles low = -load<Doubles>(block.low + t);
    const Places is_more = low > best;
    best = is_more ? low : best;
    where = is_more ? place : where;
  }
  const Found found = best_lane(best, where);
  return {found.at, -found.value};
}

template <class T>
MARGROVE_INLINE Found best_partner_body(const WorkingBlock<T>& block, std::int64_t i, double v_i) {
  const T* row = block.kernel + i * block.stride;
  const float own = block.diagonal[i];
  Doubles least[2] = {Doubles{} + kInfinity, Doubles{} + kInfinity};
  Floats best[2] = {};
  ShortPlaces where[2] = {ShortPlaces{} - 1, ShortPlaces{} - 1}, place = {0, 1, 2, 3, 4, 5, 6, 7};
  for (std::int64_t t = 0; t < block.size; t += 2 * kVector)
    for (int chain = 0; chain < 2; ++chain, place += kVector) {
      const std::int64_t at = t + chain * kVector;
      const Doubles low = load<Doubles>(block.low + at);
      least[chain] = low < least[chain] ? low : least[chain];
      const Floats fall = __builtin_convertvector((v_i - low) * block.fall_unit, Floats);  // -inf outside I_low
      Floats curve = own + load<Floats>(block.diagonal + at) - 2 * short_values(row + at, block.unit);
      curve = curve > 1e-12f ? curve : Floats{} + 1e-12f;
      const Floats score = fall > 0 ? fall * fall / curve : Floats{};
      const ShortPlaces is_more = score > best[chain];
      best[chain] = is_more ? score : best[chain];
      where[chain] = is_more ? place : where[chain];
    }
  Found found{-1, kInfinity};
  float top = 0;
  for (int chain = 0; chain < 2; ++chain)
    for (int l = 0; l < kVector; ++l) {
      const float score = best[chain][l];
      const std::int64_t at = where[chain][l];
      if (at >= 0 && (score > top || (score == top && at < found.at))) found.at = at, top = score;
      found.value = least[chain][l] < found.value ? least[chain][l] : found.value;
    }
  return found;
}

template <class T>
MARGROVE_INLINE Found move_pair_body(const WorkingBlock<T>& block, std::int64_t i, std::int64_t j, double step) {
  const T *row_i = block.kernel + i * block.stride, *row_j = block.kernel + j * block.stride;
  // Two chains: one would wait for its own comparisons.
  Doubles best[2] = {Doubles{} - kInfinity, Doubles{} - kInfinity};
  Places where[2] = {}, place = {0, 1, 2, 3, 4, 5, 6, 7};
  for (std::int64_t t = 0; t < block.size; t += 2 * kVector)
    for (int chain = 0; chain < 2; ++chain, place += kVector) {
      const std::int64_t at = t + chain * kVector;
      const Doubles fall = step * (kernel_values(row_i + at) - kernel_values(row_j + at));
      const Doubles up = load<Doubles>(block.up + at) - fall;
      store(block.up + at, up);
      store(block.low + at, load<Doubles>(block.low + at) - fall);
      const Places is_more = up > best[chain];
      best[chain] = is_more ? up : best[chain];
      where[chain] = is_more ? place : where[chain];
    }
  const Found even = best_lane(best[0], where[0]), odd = best_lane(best[1], where[1]);
  return odd.value > even.value || (odd.value == even.value && odd.at < even.at) ? odd : even;
}

template <class T>
MARGROVE_INLINE void add_rows_body(const T* const* rows, const double* change, std::int64_t count, std::int64_t from,
                                   std::int64_t to, double* sums) {
  std::int64_t r = 0;
  for (; r + 4 <= count; r += 4) {
    const T *a = rows[r], *b = rows[r + 1], *c = rows[r + 2], *d = rows[r + 3];
    const double ca = change[r], cb = change[r + 1], cc = change[r + 2], cd = change[r + 3];
#pragma omp simd
    for (std::int64_t t = from; t < to; ++t)
      sums[t] += (ca * static_cast<double>(a[t]) + cb * static_cast<double>(b[t])) +
                 (cc * static_cast<double>(c[t]) + cd * static_cast<double>(d[t]));
  }
  for (; r < count; ++r) {
    const T* a = rows[r];
    const double ca = change[r];
#pragma omp simd
    for (std::int64_t t = from; t < to; ++t) sums[t] += ca * static_cast<double>(a[t]);
  }
}

template <class T>
MARGROVE_INLINE void gather_row_body(const T* row, const std::int32_t* index, std::int64_t count, T* out) {
#pragma omp simd
  for (std::int64_t k = 0; k < count; ++k) out[k] = row[index[k]];
}

#define MARGROVE_PAIR_STEPS(T)                                                                                        \
  MARGROVE_CLONES Found worst_up_of(const WorkingBlock<T>& block) { return worst_up_body(block); }                    \
  MARGROVE_CLONES Found worst_low_of(const WorkingBlock<T>& block) { return worst_low_body(block); }                  \
  MARGROVE_CLONES Found best_partner_of(const WorkingBlock<T>& block, std::int64_t i, double v_i) {                   \
    return best_partner_body(block, i, v_i);                                                                          \
  }                                                                                                                   \
  MARGROVE_CLONES Found move_pair_of(const WorkingBlock<T>& block, std::int64_t i, std::int64_t j, double step) {     \
    return move_pair_body(block, i, j, step);                                                                         \
  }                                                                                                                   \
  MARGROVE_CLONES void add_rows_of(const T* const* rows, const double* change, std::int64_t count, std::int64_t from, \
                                   std::int64_t to, double* sums) {                                                   \
    add_rows_body(rows, change, count, from, to, sums);                                                               \
  }                                                                                                                   \
  MARGROVE_CLONES void gather_row_of(const T* row, const std::int32_t* index, std::int64_t count, T* out) {           \
    gather_row_body(row, index, count, out);                                                                          \
  }
MARGROVE_PAIR_STEPS(float)
MARGROVE_PAIR_STEPS(double)
#undef MARGROVE_PAIR_STEPS

}  // namespace

template <class T>
Found worst_up(const WorkingBlock<T>& block) {
  return worst_up_of(block);
}
template <class T>
Found worst_low(const WorkingBlock<T>& block) {
  return worst_low_of(block);
}
template <class T>
Found best_partner(const WorkingBlock<T>& block, std::int64_t i, double v_i) {
  return best_partner_of(block, i, v_i);
}
template <class T>
Found move_pair(const WorkingBlock<T>& block, std::int64_t i, std::int64_t j, double step) {
  return move_pair_of(block, i, j, step);
}
template <class T>
void add_rows(const T* const* rows, const double* change, std::int64_t count, std::int64_t from, std::int64_t to,
              double* sums) {
  add_rows_of(rows, change, count, from, to, sums);
}

template <class T>
void gather_row(const T* row, const std::int32_t* index, std::int64_t count, T* out) {
  gather_row_of(row, index, count, out);
}

#define MARGROVE_INSTANCES(T)                                                           \
  template void gather_row(const T*, const std::int32_t*, std::int64_t, T*);            \
  template Found worst_up(const WorkingBlock<T>&);                                      \
  template Found worst_low(const WorkingBlock<T>&);                                     \
  template Found best_partner(const WorkingBlock<T>&, std::int64_t, double);            \
  template Found move_pair(const WorkingBlock<T>&, std::int64_t, std::int64_t, double); \
  template void add_rows(const T* const*, const double*, std::int64_t, std::int64_t, std::int64_t, double*);
MARGROVE_INSTANCES(float)
MARGROVE_INSTANCES(double)
#undef MARGROVE_INSTANCES

}  // namespace margrove
