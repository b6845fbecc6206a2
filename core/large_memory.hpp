// Memory for large matrices that are filled whole: on pages of 2 MiB where the system grants them. First use of many
// small pages costs more, and rows that are far apart find no room in the table of them.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#elif defined(_WIN32)
#include <malloc.h>
#endif

namespace margrove {

// `unit` divides `bytes`.
inline void* aligned_memory(std::size_t unit, std::size_t bytes) {
#if defined(_WIN32)  // whose C library cannot free what std::aligned_alloc would return, and so has none
  return _aligned_malloc(bytes, unit);
#else
  return std::aligned_alloc(unit, bytes);
#endif
}

struct Freed {
  void operator()(void* memory) const {
#if defined(_WIN32)
    _aligned_free(memory);
#else
    std::free(memory);
#endif
  }
};

template <class T>
using LargeMemory = std::unique_ptr<T[], Freed>;

// Room for `count` numbers, not set to anything, on a cache line.
template <class T>
LargeMemory<T> large_memory(std::size_t count) {
  constexpr std::size_t kLine = 64, kPage = std::size_t{1} << 21;  // bytes: a cache line, a large page
  const std::size_t bytes = count * sizeof(T), unit = bytes < kPage ? kLine : kPage;
  const std::size_t rounded = (bytes / unit + 1) * unit;
  void* memory = aligned_memory(unit, rounded);
  if (!memory) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (unit == kPage) madvise(memory, rounded, MADV_HUGEPAGE);  // a wish: what it answers does not matter
#endif
  return LargeMemory<T>(static_cast<T*>(memory));
}

}  // namespace margrove
