#include "boost/booster.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "dispatch.hpp"
#include "index.hpp"
#include "parallel.hpp"

namespace margrove::boost {
namespace {

constexpr double kRoundingOfChance = 1e-12;  // of an error: some 5,000 eps, the rounding of a sum of weights

// Sums are kept in eight parts, by the place of the row: the same on every machine, and all in flight at a time.
constexpr std::size_t kParts = 8;

MARGROVE_INLINE double sum_of(const double (&part)[kParts]) {
  return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
}

// body(row, part) for all rows.
template <class Body>
MARGROVE_INLINE void in_parts(std::size_t n, const Body& body) {
  std::size_t i = 0;
  for (; i + kParts <= n; i += kParts)
    for (std::size_t p = 0; p < kParts; ++p) body(i + p, p);
  for (std::size_t p = 0; i < n; ++i, ++p) body(i, p);
}

// The weight of rows that are given another class than theirs.
MARGROVE_CLONES double weight_of_wrong(const std::int32_t* given, const std::int32_t* label, const double* weight,
                                       std::size_t n) {
  double part[kParts] = {};
  in_parts(n, [&](std::size_t i, std::size_t p) { part[p] += given[i] != label[i] ? weight[i] : 0.0; });
  return sum_of(part);
}

// Multiplies weights by what is due to rows judged rightly or wrongly, and makes them sum to one.
MARGROVE_CLONES void reweigh(const std::int32_t* given, const std::int32_t* label, double right, double wrong,
                             double* weight, std::size_t n) {
  double part[kParts] = {};
  in_parts(n, [&](std::size_t i, std::size_t p) {
    const double w = weight[i] * (given[i] != label[i] ? wrong : right);
    part[p] += weight[i] = w > kLeastWeight ? w : kLeastWeight;
  });
  const double sum = sum_of(part);  // 1 but for rounding
  for (std::size_t i = 0; i < n; ++i) weight[i] /= sum;
}

// Of two classes: adds a vote to what class 1 has more than class 0. The weight of the rows that are judged wrongly by
// that; class 0 is the first of equals.
MARGROVE_CLONES double vote_of_two(const std::int32_t* given, const std::int32_t* label, const double* weight,
                                   double vote, double equal, double* ahead, std::size_t n) {
  double part[kParts] = {};
  in_parts(n, [&](std::size_t i, std::size_t p) {
    ahead[i] += given[i] ? vote : -vote;
    part[p] += (ahead[i] > equal) != (label[i] != 0) ? weight[i] : 0.0;
  });
  return sum_of(part);
}

}  // namespace

Booster::Booster(std::unique_ptr<tree::Growing> grower, std::span<const std::int32_t> label, int n_classes,
                 std::span<const double> weight, std::int64_t n_rounds, double learning_rate, double stop_at_bound)
    : grower_(std::move(grower)),
      label_(label),
      n_classes_(n_classes),
      first_weight_(weight),
      n_rounds_(n_rounds),
      learning_rate_(learning_rate),
      stop_at_bound_(stop_at_bound),
      weight_(weight.begin(), weight.end()),
      votes_(label.size() * (n_classes == 2 ? 1 : n_classes_)),
      judged_(label.size()),
      leading_(n_classes == 2 ? 0 : label.size()) {}

bool Booster::run(double seconds, std::int64_t rounds) {
  const auto until = in_seconds(seconds);
  while (end_ == End::none) {
    if (done_ >= n_rounds_) {
      end_ = End::all_rounds;
      break;
    }
    const auto now = std::chrono::steady_clock::now();
    if (now >= until || done_ >= rounds) return false;
    if (!is_growing_) grower_->restart(weight_);
    is_growing_ = true;
    if (!grower_->run(std::chrono::duration<double>(until - now).count())) return false;
    is_growing_ = false;
    std::vector<tree::Node> tree = grower_->take();
    judge(tree);
    if (finish_round())
      trees_.insert(trees_.end(), std::make_move_iterator(tree.begin()), std::make_move_iterator(tree.end()));
  }
  return true;
}

void Booster::repeat_round(std::span<const std::int32_t> judged) {
  std::copy(judged.begin(), judged.end(), judged_.begin());
  finish_round();
}

// The class that the tree gives each row.
void Booster::judge(std::span<const tree::Node> tree) {
  const std::span<const std::uint32_t> tags = grower_->row_tags();
  const tree::Tags how = tree::tags_for(label_, length(label_), n_classes_);
  for (const tree::Node& node : tree) {
    if (node.column >= 0) continue;
    const auto given =
        static_cast<std::int32_t>(std::max_element(node.value.begin(), node.value.end()) - node.value.begin());
    for (const std::uint32_t tag : tags.subspan(node.first_row, node.rows)) judged_[how.row(tag)] = given;
  }
}

// Returns the weight, at the beginning, of the rows that the votes so far get wrong.
double Booster::cast_votes(double vote) {
  all_votes_ += vote;
  const double equal = kEqualVotes * all_votes_;
  const std::size_t n = label_.size();
  if (n_classes_ == 2)
    return vote_of_two(judged_.data(), label_.data(), first_weight_.data(), vote, equal, votes_.data(), n);
  for (std::size_t i = 0; i < n; ++i) {
    double* of_row = votes_.data() + i * n_classes_;
    const std::int32_t given = judged_[i];
    const double sum = of_row[given] += vote;
    if (leading_[i] == given || sum < of_row[leading_[i]] - 2 * equal) continue;
    const double largest = *std::max_element(of_row, of_row + n_classes_);
    leading_[i] = std::find_if(of_row, of_row + n_classes_, [&](double v) { return v >= largest - equal; }) - of_row;
  }
  return weight_of_wrong(leading_.data(), label_.data(), first_weight_.data(), n);
}

// With `judged_` known. Whether the learner is taken.
bool Booster::finish_round() {
  const double k = n_classes_;
  const double error = weight_of_wrong(judged_.data(), label_.data(), weight_.data(), label_.size());
  if (error >= 1 - 1 / k - kRoundingOfChance) {
    end_ = End::chance;
    return false;
  }
  const double vote = error > 0 ? learning_rate_ * (std::log((1 - error) / error) + std::log(k - 1)) : 1.0;
  rounds_.push_back({error, vote, cast_votes(vote)});
  ++done_;
  const double right = std::exp(-(k - 1) / k * vote), wrong = std::exp(vote / k);
  const double z = (1 - error) * right + error * wrong;
  loss_ *= z;
  if (error <= 0)
    end_ = End::perfect;
  else if (n_classes_ == 2 && loss_ <= stop_at_bound_)
    end_ = End::bound;
  reweigh(judged_.data(), label_.data(), right / z, wrong / z, weight_.data(), label_.size());
  return true;
}

}  // namespace margrove::boost
