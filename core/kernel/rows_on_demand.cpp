// Rows that are made when they are first asked for: whoever takes a row makes it, others wait for it.
#include <thread>

#include "kernel/gram.hpp"

namespace margrove {

template <class T>
RowsOnDemand<T>::RowsOnDemand(std::int64_t n, T* room, Make make)
    : n_(n),
      room_(room),
      make_(std::move(make)),
      row_(new std::atomic<const T*>[n]()),
      is_taken_(new std::atomic<bool>[n]()) {}

template <class T>
const T* RowsOnDemand<T>::made(std::int64_t i) {
  std::atomic<const T*>& mine = row_[i];
  if (is_taken_[i].exchange(true)) {  // another thread is at it
    const T* row = nullptr;
    while (!(row = mine.load(std::memory_order_acquire))) std::this_thread::yield();
    return row;
  }
  T* out = room_ + next_.fetch_add(1) * n_;
  make_(i, out);
  mine.store(out, std::memory_order_release);
  return out;
}

template class RowsOnDemand<float>;
template class RowsOnDemand<double>;

}  // namespace margrove
