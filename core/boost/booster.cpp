#include "boost/booster.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "parallel.hpp"

namespace margrove::boost {
namespace {

constexpr double kLeastWeight = 1e-100;      // LEAST_WEIGHT of problem.py
constexpr double kEqualVotes = 1e-12;        // EQUAL_VOTES
constexpr double kRoundingOfChance = 1e-12;  // of an error

}  // namespace

Booster::Booster(std::unique_ptr<tree::Growing> grower, std::span<const std::int32_t> label, int n_classes,
                 std::span<const double> weight, std::int64_t n_rounds, double learning_rate, double stop_at_bound)
    : grower_(std::move(grower)),
      label_(label),
      n_classes_(static_cast<std::size_t>(n_classes)),
      first_weight_(weight),
      n_rounds_(n_rounds),
      learning_rate_(learning_rate),
      stop_at_bound_(stop_at_bound),
      weight_(weight.begin(), weight.end()),
      votes_(label.size() * n_classes_),
      judged_(label.size()),
      leading_(label.size(), 0) {}

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
  const tree::Tags how = tree::tags_for(label_, static_cast<std::int64_t>(label_.size()), static_cast<int>(n_classes_));
  for (const tree::Node& node : tree) {
    if (node.column >= 0) continue;
    const auto given =
        static_cast<std::int32_t>(std::max_element(node.value.begin(), node.value.end()) - node.value.begin());
    for (const std::uint32_t tag : tags.subspan(node.first_row, static_cast<std::size_t>(node.rows)))
      judged_[how.row(tag)] = given;
  }
}

// Returns the weight, at the beginning, of the rows that the votes so far get wrong.
double Booster::cast_votes(double vote) {
  double wrong[4] = {};
  all_votes_ += vote;
  const double equal = kEqualVotes * all_votes_;
  for (std::size_t i = 0; i < label_.size(); ++i) {
    double* of_row = votes_.data() + i * n_classes_;
    const std::int32_t given = judged_[i];
    const double sum = of_row[given] += vote;
    if (leading_[i] != given && sum >= of_row[leading_[i]] - 2 * equal) {
      const double largest = *std::max_element(of_row, of_row + n_classes_);
      leading_[i] = static_cast<std::int32_t>(
          std::find_if(of_row, of_row + n_classes_, [&](double v) { return v >= largest - equal; }) - of_row);
    }
    wrong[i & 3] += leading_[i] != label_[i] ? first_weight_[i] : 0.0;
  }
  return wrong[0] + wrong[1] + wrong[2] + wrong[3];
}

// With `judged_` known. Whether the learner is taken.
bool Booster::finish_round() {
  const double k = static_cast<double>(n_classes_);
  double parts[4] = {};  // side by side: each would wait for the last addition to it
  for (std::size_t i = 0; i < label_.size(); ++i) parts[i & 3] += judged_[i] != label_[i] ? weight_[i] : 0.0;
  const double error = parts[0] + parts[1] + parts[2] + parts[3];
  if (error >= 1 - 1 / k - kRoundingOfChance) {
    end_ = End::chance;
    return false;
  }
  const double vote = error > 0 ? learning_rate_ * (std::log((1 - error) / error) + std::log(k - 1)) : 1.0;
  rounds_.push_back({error, vote, cast_votes(vote)});
  ++done_;
  const double right = std::exp(-(k - 1) / k * vote), wrong = std::exp(vote / k);
  const double z = (1 - error) * right + error * wrong, factor[2] = {right / z, wrong / z};
  loss_ *= z;
  if (error <= 0)
    end_ = End::perfect;
  else if (n_classes_ == 2 && loss_ <= stop_at_bound_)
    end_ = End::bound;
  double sums[4] = {};
  for (std::size_t i = 0; i < label_.size(); ++i)
    sums[i & 3] += weight_[i] = std::max(weight_[i] * factor[judged_[i] != label_[i]], kLeastWeight);
  const double sum = sums[0] + sums[1] + sums[2] + sums[3];  // 1 but for rounding
  for (double& w : weight_) w /= sum;
  return true;
}

}  // namespace margrove::boost
