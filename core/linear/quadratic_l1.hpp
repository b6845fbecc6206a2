// A quadratic with absolute values:
//
//   min  1/2 (x - x0)' (G + R) (x - x0) + g'(x - x0) + sum_j penalty_j |x_j|
//
// G positive semidefinite, held as a matrix, R >= 0 a diagonal. Coordinate descent finds which x_j are 0; where it
// crawls (columns that say nearly the same), a step to the least of the face of the signs present (Lee et al. 2007,
// feature-sign search) ends it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace margrove {

class QuadraticL1 {
 public:
  struct Terms {
    std::span<const double> gram, ridge, penalty;  // (width, width), (width), (width)
  };
  // gradient is g. What the spans look at must outlive this object.
  QuadraticL1(const Terms& terms, std::vector<double> x0, std::vector<double> gradient);

  // One exact step along each coordinate.
  void descend();

  // How far the gradient is from being balanced by the penalty, in the worst coordinate.
  double violation() const;

  // A step towards the least value of the face {x: the signs of x_j are these or 0}, as far as no sign changes. Whether
  // a weight came to 0 on the way, so that there is more to do.
  bool step_in_face();

  std::int64_t face_size() const;
  const std::vector<double>& x() const { return x_; }

 private:
  void set(std::size_t j, double to);
  bool project(const std::vector<std::size_t>& face, const std::vector<double>& step, double least);

  std::span<const double> gram_, ridge_, penalty_;
  std::vector<double> x_, gradient_;  // (width) the gradient of the quadratic part, at x
  std::size_t width_;
};

}  // namespace margrove
