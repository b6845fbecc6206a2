#include "linear/newton.hpp"

namespace margrove {
MARGROVE_NEWTON_ON(DenseRows<float>)
MARGROVE_NEWTON_ON(CsrRows<float>)
}  // namespace margrove
