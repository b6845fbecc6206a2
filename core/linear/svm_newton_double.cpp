#include "linear/newton.hpp"

namespace margrove {
MARGROVE_NEWTON_ON(DenseRows<double>)
MARGROVE_NEWTON_ON(CsrRows<double>)
}  // namespace margrove
