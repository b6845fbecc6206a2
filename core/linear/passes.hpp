// What the perceptrons over rows share: the memory of w, the record of a machine's passes, and the turns that machines
// take.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <new>
#include <vector>

#include "index.hpp"
#include "linear/order.hpp"
#include "parallel.hpp"

namespace margrove {

// Between two looks at the clock a machine does about this many multiplications: some 20 microseconds.
constexpr std::int64_t kWorkBetweenLooks = 1 << 17;

// Multiplications of a turn, before another machine has its own: 32 looks, below a millisecond.
constexpr std::int64_t kWorkOfATurn = 1 << 22;

// Rows between two looks at the clock.
inline std::int64_t stretch_rows(std::int64_t d) { return std::max<std::int64_t>(1, kWorkBetweenLooks / (d + 16)); }

// Starts on a cache line: a wide load that crosses lines cannot be served from a store still under way.
template <class T>
struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{64})); }
  void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t{64}); }
  bool operator==(const LineAllocator&) const = default;
};
using AlignedVector = std::vector<double, LineAllocator<double>>;

struct PassRecord {
  PassRecord(std::int64_t n, std::uint64_t seed) : order(n, seed) {}

  VisitOrder order;
  std::int64_t position = 0;  // in the pass under way
  std::int64_t passes = 0;    // whole passes made
  std::int64_t mistakes = 0;
  std::int64_t pass_mistakes = 0;                  // in the pass under way, or in the last one when it is over
  std::int64_t best_pass = INT64_MAX, waited = 0;  // the fewest mistakes of a pass, and the passes since
  bool separated = false, stalled = false;

  void begin_pass(bool shuffle) {
    pass_mistakes = 0;
    if (shuffle) order.shuffle();
  }

  // Gives up after `patience` passes whose mistakes have not fallen by more than `least_fall`; never if it is 0.
  void end_pass(bool has_separated, double least_fall, std::int64_t patience) {
    position = 0;
    ++passes;
    separated = has_separated;
    if (separated || patience <= 0) return;
    const bool fell = static_cast<double>(pass_mistakes) < static_cast<double>(best_pass) - least_fall;
    if (fell) best_pass = pass_mistakes;
    waited = fell ? 0 : waited + 1;
    stalled = waited >= patience;
  }
};

// run_machine(k, max_passes, until) for every machine k, again and again until is_done(machine) holds for all or
// `seconds` are over. Machines take turns, so that one that never ends does not use up the time of the others. A turn
// is one pass, or as many as do the work of kWorkOfATurn. Each machine works alone, so threads change no result.
template <class Machine, class RunMachine, class IsDone>
void run_in_turns(const std::vector<Machine>& machines, std::int64_t n, std::int64_t d, std::int64_t max_passes,
                  double seconds, int threads, RunMachine run_machine, IsDone is_done) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  const std::int64_t turn = std::max<std::int64_t>(1, kWorkOfATurn / std::max<std::int64_t>(1, n * (d + 16)));
  do {
    parallel_for(length(machines), threads,
                 [&](std::int64_t k) { run_machine(k, std::min(max_passes, machines[k].passes + turn), until); });
  } while (!std::all_of(machines.begin(), machines.end(), is_done) && Clock::now() < until);
}

}  // namespace margrove
