// Kernel rows that were computed and may be wanted again; the least recently used goes first.
//
// Memory that was never touched is expensive: on a first fit a page costs more than recomputing what goes onto it,
// where points have few columns. So the store begins small and grows only when a row comes back that it had given up;
// one that serves several machines has all its room from the beginning, since most rows come back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace margrove {

// One piece of memory, touched from its beginning on, and handed from problem to problem.
class Arena {
 public:
  explicit Arena(std::int64_t bytes)
      : bytes_(std::max<std::int64_t>(bytes, 0)), memory_(new std::byte[bytes_ + kAlign]) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.get());
    start_ = memory_.get() + (kAlign - address % kAlign) % kAlign;
  }
  std::byte* data() { return start_; }
  std::int64_t size() const { return bytes_; }
  std::int64_t touched() const { return touched_; }
  void note_touched(std::int64_t bytes) { touched_ = std::max(touched_, bytes); }

 private:
  static constexpr std::size_t kAlign = 64;  // bytes: a cache line
  std::int64_t bytes_, touched_ = 0;
  std::unique_ptr<std::byte[]> memory_;
  std::byte* start_;
};

template <class T>
class RowStore {
 public:
  // Rows of n values. `is_dear`: a row costs more to compute than to keep, or is sure to be wanted again, so that every
  // one is kept while there is room.
  RowStore(std::shared_ptr<Arena> arena, std::int64_t n, bool is_dear)
      : arena_(std::move(arena)),
        stride_((n + kPad - 1) / kPad * kPad),
        capacity_(std::min(n, arena_->size() / bytes_per_row())),
        room_(is_dear ? capacity_ : std::min(capacity_, std::max(kStart, arena_->touched()) / bytes_per_row())),
        slot_of_(n, -1),
        was_made_(n, 0),
        row_in_(capacity_, -1),
        older_(capacity_, -1),
        newer_(capacity_, -1) {
    room_ = std::clamp<std::int64_t>(room_, std::min<std::int64_t>(capacity_, kLeastRows), capacity_);
  }
  static std::int64_t bytes_for(std::int64_t n, std::int64_t rows) {
    return (n + kPad - 1) / kPad * kPad * static_cast<std::int64_t>(sizeof(T)) * rows;
  }
  static constexpr std::int64_t kLeastRows = 256;  // rows: a batch of BlockSmo must fit

  // Rows that may be made before the first of them is given up.
  std::int64_t capacity() const { return capacity_; }

  // The row, if it is kept; it counts as used.
  const T* find(std::int64_t i) {
    const std::int64_t slot = slot_of_[i];
    if (slot < 0) return nullptr;
    unlink(slot);
    make_newest(slot);
    return at(slot);
  }
  const T* peek(std::int64_t i) const {
    const std::int64_t slot = slot_of_[i];
    return slot < 0 ? nullptr : at(slot);
  }
  // Room for a row that is not kept; the caller fills it.
  T* make(std::int64_t i) {
    if (was_made_[i]) room_ = std::min(capacity_, room_ + kGrowth);
    was_made_[i] = 1;
    std::int64_t slot;
    if (filled_ < room_) {
      slot = filled_++;
      arena_->note_touched(filled_ * bytes_per_row());
    } else {
      slot = oldest_;
      slot_of_[row_in_[slot]] = -1;
      unlink(slot);
    }
    row_in_[slot] = i;
    slot_of_[i] = slot;
    make_newest(slot);
    return at(slot);
  }

 private:
  static constexpr std::int64_t kPad = 16;  // values: a cache line of floats, on which rows begin
  // Bytes of rows kept before any is asked for again. Chosen, not measured: first use of so much takes some 30 ms.
  static constexpr std::int64_t kStart = 64 << 20;
  // Rows of room more, for each that is computed again. Chosen, not measured.
  static constexpr std::int64_t kGrowth = 2;
  std::int64_t bytes_per_row() const { return stride_ * static_cast<std::int64_t>(sizeof(T)); }
  T* at(std::int64_t slot) const { return reinterpret_cast<T*>(arena_->data()) + slot * stride_; }

  void unlink(std::int64_t slot) {
    const std::int64_t before = older_[slot], after = newer_[slot];
    (before < 0 ? oldest_ : newer_[before]) = after;
    (after < 0 ? newest_ : older_[after]) = before;
  }
  void make_newest(std::int64_t slot) {
    older_[slot] = newest_;
    newer_[slot] = -1;
    (newest_ < 0 ? oldest_ : newer_[newest_]) = slot;
    newest_ = slot;
  }

  std::shared_ptr<Arena> arena_;
  std::int64_t stride_, capacity_, room_, filled_ = 0, oldest_ = -1, newest_ = -1;
  std::vector<std::int64_t> slot_of_;
  std::vector<char> was_made_;
  std::vector<std::int64_t> row_in_, older_, newer_;
};

}  // namespace margrove
