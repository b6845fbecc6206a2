// The one place that knows about threads. Work is cut into pieces whose borders do not depend on the number
// of threads, so results do not either.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#ifdef _OPENMP
#include <omp.h>

#include "index.hpp"
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

// Which of the threads of a parallel_for this is, from 0.
inline int thread_number() {
#ifdef _OPENMP
  return omp_get_thread_num();
#else
  return 0;
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

// Each worker on a thread of its own: it takes the next of `size` jobs when it is idle and goes on with it until it is
// done or the time is over, and so on. True when no job is left and none is under way.
//   is_idle(worker), take(worker, job), advance(worker) -> whether its job is done
template <class Worker, class IsIdle, class Take, class Advance>
bool take_turns(std::vector<std::unique_ptr<Worker>>& workers, std::atomic<std::size_t>& next, std::size_t size,
                std::chrono::steady_clock::time_point until, IsIdle is_idle, Take take, Advance advance) {
  std::atomic<bool> is_unfinished{false};
  parallel_for(length(workers), static_cast<int>(workers.size()), [&](std::int64_t w) {
    Worker& worker = *workers[w];
    while (true) {
      if (is_idle(worker)) {
        if (std::chrono::steady_clock::now() >= until) break;
        const std::size_t job = next.fetch_add(1);
        if (job >= size) return;
        take(worker, job);
      }
      if (!advance(worker)) break;
    }
    is_unfinished = true;
  });
  return !is_unfinished;
}

// body(piece) for those of `pieces` from `next` on, each begun before the time is over. True when all are done; else
// the next call goes on.
template <class Body>
bool go_on(std::atomic<std::int64_t>& next, std::int64_t pieces, int threads,
           std::chrono::steady_clock::time_point until, Body body) {
  parallel_for(std::clamp<std::int64_t>(threads, 1, std::max<std::int64_t>(pieces, 1)), threads, [&](std::int64_t) {
    while (next < pieces && std::chrono::steady_clock::now() < until) {
      const std::int64_t piece = next.fetch_add(1);
      if (piece < pieces) body(piece);
    }
  });
  return next >= pieces;
}

inline std::chrono::steady_clock::time_point in_seconds(double seconds) {
  using Clock = std::chrono::steady_clock;
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace margrove
