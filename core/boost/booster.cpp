#include "boost/booster.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "parallel.hpp"

namespace margrove::boost {

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
    finish_round();
  }
  return true;
}

// The class that each row is given, and the weight of the rows given another than theirs.
double Booster::judge(std::span<const tree::Node> tree) {
  const std::span<const std::uint32_t> tags = grower_->row_tags();
  const tree::Tags how = tree::tags_for(label_, static_cast<std::int64_t>(label_.size()), static_cast<int>(n_classes_));
  double error = 0;
  for (const tree::Node& node : tree) {
    if (node.column >= 0) continue;
    const auto given =
        static_cast<std::int32_t>(std::max_element(node.value.begin(), node.value.end()) - node.value.begin());
    for (const std::uint32_t tag : tags.subspan(node.first_row, static_cast<std::size_t>(node.rows))) {
      const std::uint32_t row = how.row(tag);
      judged_[row] = given;
      if (label_[row] != given) error += weight_[row];
    }
  }
  return error;
}

// Returns the weight, at the beginning, of the rows that the votes so far get wrong.
double Booster::cast_votes(double vote) {
  double wrong = 0;
  for (std::size_t i = 0; i < label_.size(); ++i) {
    double* of_row = votes_.data() + i * n_classes_;
    const std::int32_t given = judged_[i];
    std::int32_t& leading = leading_[i];
    const double sum = of_row[given] += vote;
    const bool is_ahead = sum > of_row[leading] || (sum == of_row[leading] && given < leading);
    leading = is_ahead ? given : leading;
    wrong += leading != label_[i] ? first_weight_[i] : 0.0;
  }
  return wrong;
}

void Booster::finish_round() {
  std::vector<tree::Node> tree = grower_->take();
  const double error = judge(tree), k = static_cast<double>(n_classes_);
  if (error >= 1 - 1 / k) {
    end_ = End::chance;
    return;
  }
  const double vote = error > 0 ? learning_rate_ * (std::log((1 - error) / error) + std::log(k - 1)) : 1.0;
  rounds_.push_back({error, vote, cast_votes(vote)});
  trees_.insert(trees_.end(), std::make_move_iterator(tree.begin()), std::make_move_iterator(tree.end()));
  ++done_;
  if (error <= 0) {
    end_ = End::perfect;
    return;
  }
  loss_ *= (1 - error) * std::exp(-(k - 1) / k * vote) + error * std::exp(vote / k);
  if (n_classes_ == 2 && loss_ <= stop_at_bound_) {
    end_ = End::bound;
    return;
  }
  const double factor[2] = {1.0, std::exp(vote)};
  double sum = 0;
  for (std::size_t i = 0; i < label_.size(); ++i) sum += weight_[i] *= factor[judged_[i] != label_[i]];
  for (double& w : weight_) w /= sum;
}

}  // namespace margrove::boost
