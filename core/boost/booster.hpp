// AdaBoost over trees: src/margrove/boost/problem.py says what is asked. The rows are sorted (or binned) once; each
// round grows a tree with its weights, and knows from the tree's own leaves which rows it gets wrong.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tree/growing.hpp"

namespace margrove::boost {

// Of a row, of one: after hundreds of learners that predict it correctly its weight would become 0. Chosen, not
// measured.
constexpr double kLeastWeight = 1e-100;
// Sums of votes that differ by less, of all votes, are equal: some 5,000 eps, rounding.
constexpr double kEqualVotes = 1e-12;

enum class End { none, all_rounds, perfect, chance, bound };

struct Round {
  double error, vote, training_error;
};

class Booster {
 public:
  // `grower` must keep its order. The spans are looked at for as long as the booster lives; the weights sum to one.
  Booster(std::unique_ptr<tree::Growing> grower, std::span<const std::int32_t> label, int n_classes,
          std::span<const double> weight, std::int64_t n_rounds, double learning_rate, double stop_at_bound);

  // A round that was done before: the class that its learner gives each row. Before any other.
  void repeat_round(std::span<const std::int32_t> judged);
  // Goes on for about so many seconds, or until so many rounds are done in all. True when there will be no more.
  bool run(double seconds, std::int64_t rounds);
  End end() const { return end_; }
  std::int64_t rounds_done() const { return done_; }

  // The rounds since this was asked last, and their trees, one behind the other; each begins with a node without
  // parent.
  std::vector<Round> take_rounds() { return std::exchange(rounds_, {}); }
  std::vector<tree::Node> take_trees() { return std::exchange(trees_, {}); }

 private:
  bool finish_round();
  void judge(std::span<const tree::Node> tree);
  double cast_votes(double vote);

  std::unique_ptr<tree::Growing> grower_;
  std::span<const std::int32_t> label_;
  std::size_t n_classes_;
  std::span<const double> first_weight_;
  std::int64_t n_rounds_, done_ = 0;
  double learning_rate_, stop_at_bound_, loss_ = 1, all_votes_ = 0;
  std::vector<double> weight_;         // of the round under way
  std::vector<double> votes_;          // (n, K); of two classes (n), what class 1 has more than class 0
  std::vector<std::int32_t> judged_;   // the class that this round's tree gives each row
  std::vector<std::int32_t> leading_;  // of more than two classes, that of the largest vote
  bool is_growing_ = false;
  End end_ = End::none;
  std::vector<Round> rounds_;
  std::vector<tree::Node> trees_;
};

}  // namespace margrove::boost
