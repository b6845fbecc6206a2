#include "forest/column_draw.hpp"

#include "dispatch.hpp"

namespace margrove::forest {
namespace {

MARGROVE_CLONES void mix_all(std::uint64_t path, const std::uint32_t* column, std::size_t size,
                             const std::uint64_t* key, std::uint64_t* place) {
  for (std::size_t i = 0; i < size; ++i) place[i] = tree::mixed(path ^ key[column[i]]);
}

}  // namespace

void ColumnDraw::find_places(std::uint64_t path, std::span<const std::uint32_t> columns,
                             std::span<const std::uint64_t> key, std::uint64_t* place) {
  mix_all(path, columns.data(), columns.size(), key.data(), place);
}

}  // namespace margrove::forest
