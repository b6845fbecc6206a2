// The one place that knows about threads. Work is cut into pieces whose borders do not depend on the number
// of threads, so results do not either.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "index.hpp"

namespace margrove {

using Work = std::function<void()>;  // which throws nothing

// Which of the threads of a parallel_for this is, from 0.
int thread_number();

// Does the work here and, at the same time, on up to `threads` - 1 threads of a pool (parallel.cpp), or on none if they
// are busy; here alone within such work. Returns when every thread that has begun it has ended it.
void run_on_threads(int threads, const Work& work);

// body(piece) for piece = 0 .. pieces-1, each once, on at most `threads` threads. The last exception thrown waits for
// the other pieces and is thrown again behind them.
template <class Body>
void parallel_for(std::int64_t pieces, int threads, Body&& body) {
  if (threads <= 1 || pieces <= 1) {
    for (std::int64_t piece = 0; piece < pieces; ++piece) body(piece);
    return;
  }
  std::atomic<std::int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  run_on_threads(static_cast<int>(std::min<std::int64_t>(threads, pieces)), [&] {
    for (std::int64_t piece; (piece = next.fetch_add(1)) < pieces;) {
      try {
        body(piece);
      } catch (...) {
        std::lock_guard lock(mutex);
        failure = std::current_exception();
      }
    }
  });
  if (failure) std::rethrow_exception(failure);
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
