#include "tree/lists.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "index.hpp"
#include "parallel.hpp"

namespace margrove::tree {

double Column::cell(std::int64_t i) const {
  if (!is_sparse(cells)) return number(i);
  const std::int32_t* at = std::lower_bound(row, row + stored, static_cast<std::int32_t>(i));
  return at != row + stored && *at == i ? number(at - row) : 0.0;
}
Tags tags_for(std::span<const std::int32_t> label, std::int64_t n, int n_classes) {
  Tags tags;
  if (label.empty()) return tags;
  const int bits = std::bit_width(static_cast<unsigned>(std::max(n_classes - 1, 1)));
  if (std::bit_width(static_cast<std::uint64_t>(n)) + bits <= 32) {
    tags.shift = bits;
    tags.mask = (1u << bits) - 1;
  } else {
    tags.label = label.data();
  }
  return tags;
}

Lists::Lists(std::span<const Column> columns, std::int64_t n, std::span<const std::int32_t> label, int n_classes,
             int n_bins, bool may_leave_out, bool may_flag, int threads)
    : columns_(columns),
      n_(n),
      label_(label),
      n_bins_(n_bins),
      may_leave_out_(may_leave_out),
      may_flag_(may_flag),
      threads_(threads),
      lists_(columns.size()),
      group_of_(columns.size(), -1),
      mode_value_(columns.size()),
      cuts_(columns.size()) {
  tags_ = tags_for(label, n, n_classes);
  // A word for each row has to replace at least one element of a list.
  std::int64_t stored = 0;
  for (const Column& column : columns) stored += column.stored;
  may_flag_sparse_ = may_flag && n_bins == 0 && stored >= n * length(columns) / FlagGroup::kFlags;
  for (const Column& column : columns)
    most_ += 2 * static_cast<std::size_t>(is_sparse(column.cells) ? column.stored : n);
}

// Room for a list of so many elements.
void Lists::make_room(std::size_t j, std::size_t size) {
  constexpr std::size_t kPiece = std::size_t{1} << 21;  // numbers, 8 MiB: four large pages
  const std::lock_guard lock(asking_);
  if (n_free_ < 2 * size) {
    n_free_ = std::max(2 * size, std::min(kPiece, most_));
    memory_.push_back(large_memory<std::uint32_t>(n_free_));
    free_ = memory_.back().get();
  }
  lists_[j].key = free_;
  lists_[j].tag = free_ + size;
  free_ += 2 * size;
  n_free_ -= 2 * size;
}

Lists::Lists(const Lists& sorted, std::span<const Column> columns, std::span<const std::int32_t> label, int n_classes,
             int threads)
    : columns_(columns),
      n_(sorted.n_),
      label_(label),
      n_bins_(sorted.n_bins_),
      may_leave_out_(sorted.may_leave_out_),
      is_sorted_(true),
      threads_(threads),
      tags_(tags_for(label, sorted.n_, n_classes)),
      lists_(sorted.lists_),
      group_of_(sorted.group_of_),
      mode_value_(sorted.mode_value_),
      cuts_(sorted.cuts_) {
  std::size_t total = 0;
  for (const List& list : lists_) total += 2 * static_cast<std::size_t>(list.size);
  memory_.push_back(large_memory<std::uint32_t>(total));
  std::uint32_t* next = memory_.back().get();
  for (List& list : lists_) {
    list.key = next;
    list.tag = next + list.size;
    next += 2 * static_cast<std::size_t>(list.size);
  }
  parallel_for(length(lists_), threads_, [&](std::int64_t r) {
    const std::size_t j = r;
    const List& from = sorted.lists_[j];
    std::copy_n(from.key, from.size, lists_[j].key);
    for (std::uint32_t i = 0; i < from.size; ++i) lists_[j].tag[i] = tag_of(from.tag[i]);
  });
}

bool Lists::can_serve(std::int64_t n, std::size_t columns, int n_bins, bool may_leave_out) const {
  return is_sorted_ && label_.empty() && n_ == n && columns_.size() == columns && n_bins_ == n_bins &&
         may_leave_out_ == may_leave_out;
}

// Columns fetched in one go.
std::size_t Lists::most_fetched() const {
  constexpr std::size_t kMostFetched = std::size_t{4} << 20;  // numbers, 16 MiB, unless a line of floats is more
  return std::max(SortSpace::kTogether, std::min(2 * SortSpace::kTogether, kMostFetched / n_));
}

bool Lists::sort(std::chrono::steady_clock::time_point until) {
  if (is_sorted_) return true;
  // Columns sorted in one go: as few as leave a group to each thread, but four lie side by side in a vector.
  const std::size_t share = (columns_.size() / static_cast<std::size_t>(threads_) + 3) / 4 * 4;
  const std::size_t size = std::clamp<std::size_t>(share, 4, may_flag_ ? FlagGroup::kFlags : most_fetched());
  if (!spaces_) spaces_ = std::make_unique<SortSpaces>(static_cast<std::size_t>(n_), threads_);
  is_sorted_ = go_on(next_, (columns_.size() + size - 1) / size, threads_, until, [&](std::int64_t g) {
    SortSpace& space = spaces_->own();
    const std::size_t first = g * size, last = std::min(first + size, columns_.size());
    std::vector<bool> is_two(last - first, false);
    if (may_flag_ && n_bins_ == 0) is_two = seem_two_valued(columns_.subspan(first, last - first), n_);
    for (std::size_t j = first, end; j < last;) {
      for (end = j; end < last && is_two[end - first] == is_two[j - first];) ++end;
      if (!is_two[j - first]) {
        sort_some(j, end, space);
      } else {
        end = std::min<std::size_t>(end, j + FlagGroup::kFlags);
        FlagGroup group;
        const std::size_t reached = flag_two_values(columns_.subspan(j, end - j), n_, j, group);
        if (j + reached < end) {  // again, without this column
          is_two[j + reached - first] = false;
          drop_short_runs(is_two);
          continue;
        }
        for (std::size_t k = j; k < end; ++k) lists_[k].mode = 0;  // of columns that turn out to be constant
        close(group);
      }
      j = end;
    }
  });
  if (is_sorted_) spaces_.reset();
  return is_sorted_;
}

void Lists::sort_some(std::size_t first, std::size_t last, SortSpace& space) {
  FlagGroup group;
  std::vector<ColumnBits> bits;
  std::size_t fetched = first, end = first;
  for (std::size_t j = first; j < last; ++j) {
    if (j == end) {
      fetched = j;
      end = std::min(j + most_fetched(), last);
      bits = space.fetch(columns_.subspan(j, end - j), n_);
    }
    if (is_sparse(columns_[j].cells) && flag_sparse(j, group)) continue;
    if (is_sparse(columns_[j].cells))
      close(group), sort_sparse(j, space);
    else if (columns_[j].cells == CellKind::code || !columns_[j].cuts.empty())
      sort_codes(j, space);
    else
      sort_numbers(j, bits[j - fetched], space, group);
  }
  close(group);
}

// Numbers, dense: keys are ranks, or bins.
void Lists::sort_numbers(std::size_t j, const ColumnBits& bits, SortSpace& space, FlagGroup& group) {
  const Column& column = columns_[j];
  List& list = lists_[j];
  const std::size_t n = n_;
  if (n_bins_ == 0 && space.few.find(bits.narrow)) {
    if (flag(j, space.few, group)) return;
    if (space.few.ordered_codes().size() > 1) close(group);
    return list_few(j, space.few);
  }
  close(group);
  const std::uint64_t* pairs = ranked_rows(bits, space);
  make_room(j, n);
  for (std::size_t i = 0; i < n; ++i) {
    list.key[i] = pairs[i] >> 32;
    list.tag[i] = tag_of(static_cast<std::uint32_t>(pairs[i]));
  }
  if (n_bins_ > 0) {
    Binning binning;
    for (std::size_t i = 0, begin = 0; i < n && list.key[i] != kMissing; ++i) {
      if (i + 1 < n && list.key[i + 1] == list.key[i]) continue;
      binning.add(tags_.row(list.tag[i]), i + 1 - begin);
      begin = i + 1;
    }
    binning.finish(column, n_bins_);
    for (std::size_t i = 0; i < n && list.key[i] != kMissing; ++i) list.key[i] = binning.bin(list.key[i]);
    cuts_[j] = binning.cuts();
  }
  settle(j, n);
}

// Adds a column to the group, or to another one if it has no room there. False if it needs a list.
bool Lists::flag(std::size_t j, const FewValues& few, FlagGroup& group) {
  if (!may_flag_ || few.missing() || few.n_ranks() < 2 || few.n_ranks() > FlagGroup::kFlags + 1) return false;
  const std::uint32_t n_tests = few.n_ranks() - 1;
  if (group.n_flags + n_tests > FlagGroup::kFlags) close(group);
  if (!group.word) group.make_words(n_);
  std::vector<std::uint64_t> flags(few.n_codes());
  std::vector<std::uint32_t> row(few.n_ranks());
  std::uint64_t own = 0;
  for (std::uint32_t rank = few.n_ranks(); rank-- > 0;) {
    if (rank < n_tests) own |= std::uint64_t{1} << FlagGroup::bit(group.n_flags + rank);
    flags[few.ordered_codes()[rank]] = own;
    row[rank] = few.a_row(rank);
  }
  for (std::int64_t i = 0; i < n_; ++i) group.word[i] |= flags[few.code(i)];
  group.add(static_cast<std::uint32_t>(j), std::move(row));
  return true;
}

// The same for a sparse column, whose stored numbers must be one and the same.
bool Lists::flag_sparse(std::size_t j, FlagGroup& group) {
  const Column& column = columns_[j];
  if (!may_flag_sparse_ || column.stored == 0 || column.stored == n_) return false;
  const double x = column.number(0);
  for (std::int64_t i = 0; i < column.stored; ++i)
    if (column.number(i) != x) return false;
  if (x == 0) return false;
  if (group.n_flags == FlagGroup::kFlags) close(group);
  if (!group.word) group.make_words(n_);
  const std::uint64_t own = std::uint64_t{1} << FlagGroup::bit(group.n_flags);
  std::int64_t zero = 0;  // a row of it: the first that is not stored
  while (zero < column.stored && column.row[zero] == zero) ++zero;
  const auto some = static_cast<std::uint32_t>(column.row[0]), other = static_cast<std::uint32_t>(zero);
  for (std::int64_t i = 0; i < column.stored; ++i) group.word[column.row[i]] |= own;
  if (x > 0) group.inverse |= own;
  group.add(static_cast<std::uint32_t>(j), x < 0 ? std::vector{some, other} : std::vector{other, some});
  return true;
}

void Lists::close(FlagGroup& group) {
  if (group.members.empty()) return;
  for (std::int64_t i = 0; i < n_ && group.inverse; ++i) group.word[i] ^= group.inverse;
  const std::lock_guard lock(asking_);
  for (const FlagGroup::Member& member : group.members)
    group_of_[member.column] = static_cast<std::int32_t>(groups_.size());
  groups_.push_back(std::move(group));
  group = {};
}

// A column of few values: rows are counted into place.
void Lists::list_few(std::size_t j, const FewValues& few) {
  List& list = lists_[j];
  const std::span<const std::uint16_t> codes = few.ordered_codes();
  const auto is_most = [&](std::size_t rank) { return may_leave_out_ && few.rows(rank) > n_ / 2; };
  std::vector<std::uint32_t> place(few.n_codes()), step(few.n_codes(), 1);
  std::size_t listed = 1;  // and one behind them: see below
  for (std::size_t rank = 0; rank < codes.size(); ++rank) listed += is_most(rank) ? 0 : few.rows(rank);
  make_room(j, listed);
  for (std::size_t rank = 0; rank < codes.size(); ++rank) {
    const std::uint32_t key = rank < few.n_ranks() ? static_cast<std::uint32_t>(rank) : kMissing;
    if (is_most(rank)) {
      list.mode = key;
      if (key != kMissing) mode_value_[j] = columns_[j].number(few.a_row(rank));
      continue;
    }
    place[codes[rank]] = list.size;
    std::fill_n(list.key + list.size, few.rows(rank), key);
    list.size += few.rows(rank);
  }
  // Rows of the mode are written too, behind the others and one over the other: no branch to guess.
  for (std::size_t rank = 0; rank < codes.size(); ++rank)
    if (is_most(rank)) place[codes[rank]] = list.size, step[codes[rank]] = 0;
  const auto put = [&, tag = list.tag, at = place.data(), by = step.data()](auto tag_of) {
    if (codes.size() == 2 && list.mode != kNoMode) {  // one place, which stays in a register
      const std::uint32_t rare = codes[list.mode == 0 ? 1 : 0];
      for (std::uint32_t i = 0, next = 0; i < n_; ++i) {
        tag[next] = tag_of(i);
        next += few.code(i) == rare;
      }
      return;
    }
    for (std::uint32_t i = 0; i < n_; ++i) {
      const std::uint32_t code = few.code(i);
      tag[at[code]] = tag_of(i);
      at[code] += by[code];
    }
  };
  if (label_.empty() || tags_.label)
    put([](std::uint32_t i) { return i; });
  else
    put([label = label_.data(), shift = tags_.shift](std::uint32_t i) {
      return i << shift | static_cast<std::uint32_t>(label[i]);
    });
}

// Codes and intervals: keys are known beforehand, rows are counted into place.
void Lists::sort_codes(std::size_t j, SortSpace& scratch) {
  const Column& column = columns_[j];
  List& list = lists_[j];
  const std::size_t n = n_;
  const auto n_keys =
      column.cells == CellKind::code ? static_cast<std::size_t>(column.n_codes) : column.cuts.size() + 1;
  const auto key_of = [&](std::size_t i) -> std::uint32_t {
    if (column.cells == CellKind::code) {
      const std::int32_t code =
          static_cast<const std::int32_t*>(column.data)[static_cast<std::int64_t>(i) * column.stride];
      return code < 0 ? kMissing : static_cast<std::uint32_t>(code);
    }
    const double x = column.number(i);
    if (std::isnan(x)) return kMissing;
    // An interval begins with its cut: c ≤ x.
    const auto at = std::upper_bound(column.cuts.begin(), column.cuts.end(), x);
    return static_cast<std::uint32_t>(at - column.cuts.begin());
  };
  make_room(j, n);
  std::vector<std::uint32_t> place(n_keys + 1);
  auto* key = reinterpret_cast<std::uint32_t*>(scratch.pairs.get());
  for (std::size_t i = 0; i < n; ++i) ++place[std::min<std::size_t>(key[i] = key_of(i), n_keys)];
  std::uint32_t next = 0;
  for (std::uint32_t& c : place) next += std::exchange(c, next);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t at = place[std::min<std::size_t>(key[i], n_keys)]++;
    list.key[at] = key[i];
    list.tag[at] = tag_of(static_cast<std::uint32_t>(i));
  }
  settle(j, n);
}

// Stored numbers of a sparse column; all other cells are zero, the mode.
void Lists::sort_sparse(std::size_t j, SortSpace& space) {
  const Column& column = columns_[j];
  List& list = lists_[j];
  const bool is_narrow = column.cells == CellKind::sparse32;
  std::uint64_t* order = space.pairs.get();  // bits << 32 | place of floats, the place alone of doubles
  std::size_t size = 0;
  for (std::int64_t i = 0; i < column.stored; ++i) {
    const double x = column.number(i);
    order[size] =
        (is_narrow ? std::uint64_t{ordered_bits(static_cast<float>(x))} << 32 : 0) | static_cast<std::uint64_t>(i);
    size += x != 0;
  }
  const auto place = [](std::uint64_t pair) { return static_cast<std::uint32_t>(pair); };
  if (is_narrow) {
    if (!std::is_sorted(order, order + size)) order = sort_pairs(order, space.other.get(), size);
  } else {
    const auto is_less = [&](std::uint64_t a, std::uint64_t b) {
      return ordered_bits(column.number(place(a))) < ordered_bits(column.number(place(b)));
    };
    if (!std::is_sorted(order, order + size, is_less)) std::stable_sort(order, order + size, is_less);
  }
  make_room(j, size);
  const bool has_zeros = size < static_cast<std::size_t>(n_);
  std::uint32_t key = 0;
  double before = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < size; ++i) {
    const double x = column.number(place(order[i]));
    if (has_zeros && before < 0 && !(x < 0)) {  // zero comes between
      if (i) ++key;
      list.mode = key;
    }
    if ((i || list.mode == key) && x != before) ++key;
    before = x;
    list.key[i] = std::isnan(x) ? kMissing : key;
    list.tag[i] = tag_of(column.row[place(order[i])]);
  }
  if (has_zeros && list.mode == kNoMode) list.mode = size == 0 ? 0 : ++key;
  list.size = static_cast<std::uint32_t>(size);
  mode_value_[j] = 0;
  if (n_bins_ > 0) bin_sparse(j, has_zeros ? n_ - static_cast<std::int64_t>(size) : 0);
}

void Lists::bin_sparse(std::size_t j, std::int64_t zeros) {
  List& list = lists_[j];
  Binning binning;
  const auto add_zeros = [&] { binning.add(kModeRow, zeros); };
  bool is_added = zeros == 0;
  for (std::uint32_t i = 0, begin = 0; i < list.size && list.key[i] != kMissing; ++i) {
    if (i + 1 < list.size && list.key[i + 1] == list.key[i]) continue;
    if (!is_added && list.key[i] > list.mode) add_zeros(), is_added = true;
    binning.add(tags_.row(list.tag[i]), i + 1 - begin);
    begin = i + 1;
  }
  if (!is_added) add_zeros();
  binning.finish(columns_[j], n_bins_);
  if (list.mode != kNoMode) list.mode = binning.bin(list.mode);
  std::uint32_t listed = 0;
  for (std::uint32_t i = 0; i < list.size; ++i) {
    const std::uint32_t key = list.key[i] == kMissing ? kMissing : binning.bin(list.key[i]);
    if (key == list.mode) continue;  // in the bin of the zeros: left out with them
    list.key[listed] = key;
    list.tag[listed++] = list.tag[i];
  }
  list.size = listed;
  cuts_[j] = binning.cuts();
}

// Leaves the mode out: more than half of the rows, so one of them stands in the middle.
void Lists::settle(std::size_t j, std::uint32_t size) {
  List& list = lists_[j];
  list.size = size;
  if (!may_leave_out_) return;
  const auto [first, last] = std::equal_range(list.key, list.key + size, list.key[size / 2]);
  const auto begin = first - list.key, end = last - list.key;
  if (end - begin <= size / 2) return;
  list.mode = list.key[begin];
  if (columns_[j].cells != CellKind::code) mode_value_[j] = columns_[j].number(tags_.row(list.tag[begin]));
  std::memmove(list.key + begin, list.key + end, (size - end) * sizeof(std::uint32_t));
  std::memmove(list.tag + begin, list.tag + end, (size - end) * sizeof(std::uint32_t));
  list.size = static_cast<std::uint32_t>(size - (end - begin));
}

double Lists::threshold(std::size_t j, std::uint32_t left_key, std::uint32_t left_row, std::uint32_t right_row) const {
  if (n_bins_ > 0) return cuts_[j][left_key];
  const double low = left_row == kModeRow ? mode_value_[j] : columns_[j].cell(left_row);
  const double high = right_row == kModeRow ? mode_value_[j] : columns_[j].cell(right_row);
  return halfway(low, high);
}

}  // namespace margrove::tree
