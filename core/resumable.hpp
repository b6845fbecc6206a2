// A long piece of work written from top to bottom that can be left and gone on with: a coroutine. It pauses where it
// says `co_await clock.pause()` and the time is over.
//
//   Resumable work = solve();          // has not begun
//   while (!work.resume()) ...;        // true once it has come to its end
//
// A piece of work waits for another by  `while (!part.resume()) co_await std::suspend_always{};`.
#pragma once

#include <chrono>
#include <coroutine>
#include <exception>
#include <utility>

namespace margrove {

class Resumable {
 public:
  struct promise_type {
    std::exception_ptr failure;
    Resumable get_return_object() { return Resumable(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { failure = std::current_exception(); }
  };
  using Handle = std::coroutine_handle<promise_type>;

  Resumable() = default;
  explicit Resumable(Handle handle) : handle_(handle) {}
  Resumable(Resumable&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Resumable& operator=(Resumable&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Resumable() {
    if (handle_) handle_.destroy();
  }

  // Goes on until the next pause; true at the end. What the work throws is thrown here.
  bool resume() {
    if (!handle_.done()) handle_.resume();
    if (handle_.promise().failure) std::rethrow_exception(handle_.promise().failure);
    return handle_.done();
  }

 private:
  Handle handle_ = nullptr;
};

// When the slice of time ends.
class SliceClock {
 public:
  void set(std::chrono::steady_clock::time_point until) { until_ = until; }
  std::chrono::steady_clock::time_point until() const { return until_; }
  auto pause() const {
    struct Awaiter : std::suspend_always {
      bool is_early;
      bool await_ready() const noexcept { return is_early; }
    };
    return Awaiter{{}, std::chrono::steady_clock::now() < until_};
  }

 private:
  std::chrono::steady_clock::time_point until_;
};

}  // namespace margrove
