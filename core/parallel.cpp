#include "parallel.hpp"

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#ifndef _WIN32
#include <unistd.h>
#endif

namespace margrove {
namespace {

thread_local int t_number = 0;
thread_local bool t_is_inside = false;  // work of a parallel_for

long this_process() {
#ifdef _WIN32
  return 0;  // it has no fork
#else
  return getpid();
#endif
}

constexpr int kMostThreads = 1024;

// Threads that sleep until there is work, and never end. A job waits in `open_` while it wants more of them.
class Pool {
 public:
  const long process = this_process();

  void run(int helpers, const Work& work) {
    Job job{work, helpers};
    {
      std::lock_guard lock(mutex_);
      open_.push_back(&job);
      wanted_ += helpers;
      start_threads();
    }
    for (int k = 0; k < helpers; ++k) wake_.notify_one();
    work();
    std::unique_lock lock(mutex_);
    if (std::erase(open_, &job)) wanted_ -= job.wanted - job.begun;  // whoever has not begun comes too late
    ended_.wait(lock, [&] { return job.running == 0; });
  }

 private:
  struct Job {
    const Work& work;
    const int wanted;
    int begun = 0, running = 0;
  };

  // With fewer threads than wanted the work is done too: the others do it.
  void start_threads() {
    try {
      for (; idle_ < wanted_ && n_threads_ < kMostThreads; ++n_threads_, ++idle_)
        std::thread([this] { serve(); }).detach();
    } catch (const std::system_error&) {
    }
  }

  void serve() {
    t_is_inside = true;
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return !open_.empty(); });
      Job& job = *open_.front();
      t_number = ++job.begun;
      ++job.running;
      --wanted_;
      --idle_;
      if (job.begun == job.wanted) open_.erase(open_.begin());
      lock.unlock();
      job.work();
      lock.lock();
      ++idle_;
      if (--job.running == 0) ended_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, ended_;
  std::vector<Job*> open_;
  int wanted_ = 0, idle_ = 0, n_threads_ = 0;
};

// The pool of this process: a forked child has the memory of its parent's threads, and none of them. Never destroyed,
// because its threads run until the process ends.
Pool& pool() {
  static std::atomic<Pool*> current{nullptr};
  Pool* found = current.load();
  while (!found || found->process != this_process()) {
    auto fresh = std::make_unique<Pool>();
    if (current.compare_exchange_strong(found, fresh.get())) return *fresh.release();
  }
  return *found;
}

}  // namespace

int thread_number() { return t_number; }

void run_on_threads(int threads, const Work& work) {
  const int number = std::exchange(t_number, 0);
  const bool is_inside = std::exchange(t_is_inside, true);
  if (is_inside) {
    work();
  } else {
    pool().run(threads - 1, work);
  }
  t_number = number;
  t_is_inside = is_inside;
}

}  // namespace margrove
