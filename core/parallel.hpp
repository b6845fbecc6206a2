// The one place that knows about threads. Work is cut into pieces whose borders do not depend on the number
// of threads, so results do not either.
#pragma once

#include <cstdint>
#include <exception>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace margrove {

// How many threads OpenMP would use: the cores, or fewer where OMP_NUM_THREADS or threadpoolctl says so.
inline int max_threads() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

// body(piece) for piece = 0 .. pieces-1, each once, on at most `threads` threads. An exception may not leave
// a parallel region, so the last one thrown waits and is thrown again behind it.
template <class Body>
void parallel_for(std::int64_t pieces, int threads, Body&& body) {
#ifdef _OPENMP
  if (threads > 1 && pieces > 1) {
    std::exception_ptr failure;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      try {
        body(piece);
      } catch (...) {
#pragma omp critical(margrove_failure)
        failure = std::current_exception();
      }
    }
    if (failure) std::rethrow_exception(failure);
    return;
  }
#else
  (void)threads;
#endif
  for (std::int64_t piece = 0; piece < pieces; ++piece) body(piece);
}

}  // namespace margrove
