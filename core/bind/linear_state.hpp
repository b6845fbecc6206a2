// What a linear machine has come to, as Python sees it, and why it ended.
#pragma once

#include <type_traits>

#include "bind/arrays.hpp"
#include "linear/svm_set.hpp"

namespace margrove {

// Solvers of their own have endings of their own, with the same numbers; which these are is checked where it is used.
template <class Own>
constexpr LinearEnding linear_ending(Own ending) {
  return static_cast<LinearEnding>(static_cast<int>(ending));
}

// Cheap enough to ask for between slices.
struct LinearProgress {
  LinearEnding ending;
  std::int64_t steps;
  double primal, dual;
};

// B: a number, or an array where one machine has several.
template <class B>
struct LinearState {
  Array<double> w;
  B b;
  Array<double> beta;
  double primal, dual;
  std::int64_t steps;
  LinearEnding ending;
};

template <class B>
void bind_linear_state(nb::module_& m, const char* name) {
  using State = LinearState<B>;
  auto bound = nb::class_<State>(m, name)
                   .def_ro("w", &State::w, kShared)
                   .def_ro("beta", &State::beta, kShared)
                   .def_ro("primal", &State::primal)
                   .def_ro("dual", &State::dual)
                   .def_ro("steps", &State::steps)
                   .def_ro("ending", &State::ending);
  if constexpr (std::is_same_v<B, double>)
    bound.def_ro("b", &State::b);
  else
    bound.def_ro("b", &State::b, kShared);
}

}  // namespace margrove
