// One machine, from its start to a solution that double confirms.
//
// Shrinking: most variables end at a bound and never move again. So the problem is solved over an active set, with
// kernel rows as wide as that set alone, and then v of all others follows the changes in one pass whose kernel values
// are used and not kept. The first set is a sample of the rows; each later one is what is free and what violates, with
// a margin. When a set is nearly everything, or the sets do not settle, everything is active.
//
// The check: when the violation is within tol, v is taken again in double from the points as given: for all of them,
// or, where that would cost more than a small part of the solve, for the points that could violate, for those whose v
// may be further off than most (their kernel values are made of larger numbers, or some β near them has moved far), and
// for a sample that tells how far v is off elsewhere. Where double denies what T claims the solve goes on from the
// exact v; where that does not help it ends as imprecise.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "svm/block_smo.hpp"

namespace margrove {

enum class Ending : int { running, converged, imprecise };

template <class T>
class DualSolver {
 public:
  using Clock = typename BlockSmo<T>::Clock;
  using MakeRows = std::function<std::shared_ptr<RowStore<T>>(const Gram<T>&)>;

  // `rows` keeps the rows of the whole kernel matrix if it is given; otherwise the solver makes stores as it goes.
  DualSolver(std::shared_ptr<const Gram<T>> gram, std::shared_ptr<RowStore<T>> rows, MakeRows make_rows, Dual dual,
             DualSettings settings);

  Ending run(std::int64_t max_steps, Clock::time_point until);

  // The same problem with other bounds, after it has ended: from the best point of the ray through α (dual.hpp).
  void restart(const std::vector<double>& upper);

  // α is feasible at any time. Its v may lag behind in the middle of a phase: `settle` takes it in where that is quick.
  void settle();
  const std::vector<double>& alpha() const { return dual_.alpha; }
  // The α of this moment, in the middle of a phase too; nothing is settled and nothing changes.
  std::vector<double> present_alpha() const;
  const std::vector<double>& v() const { return v_; }
  bool is_v_known() const { return is_v_known_; }
  double violation() const;  // relative to the objective for `hulls`; infinite while v is not known
  double objective() const;
  std::int64_t steps() const { return steps_ + (block_ ? block_->steps() : 0); }
  std::int64_t rounds() const { return rounds_ + (block_ ? block_->rounds() : 0); }
  std::int64_t rows_computed() const { return rows_computed_ + (block_ ? block_->rows_computed() : 0); }

 private:
  // Points whose v must follow the change of some β.
  struct Pass {
    std::vector<std::int64_t> changed, points;
    std::vector<double> change, sums;
    std::size_t done = 0;
    bool is_open = false, is_exact = false;
  };

  bool can_shrink() const;
  double unit() const;
  Extremes extremes(const std::vector<std::int64_t>& variables) const;
  std::vector<double> beta() const;
  static void note_changes(const std::vector<double>& before, const std::vector<double>& now, Pass& pass);
  void choose_active();
  void open_phase();
  void close_phase();
  void open_pass();
  void open_check(bool is_full);
  void conclude_check();
  bool advance(Pass& pass, Clock::time_point until);
  void take_in(Pass& pass);  // v follows what the pass has summed
  std::vector<std::int64_t> points_to_check(double margin) const;
  bool find_suspects();
  double rounding_of(std::int64_t i) const;

  std::shared_ptr<const Gram<T>> gram_;
  std::shared_ptr<RowStore<T>> shared_rows_, whole_rows_;
  MakeRows make_rows_;
  Dual dual_;
  DualSettings settings_;
  std::int64_t n_, m_;
  double largest_diagonal_ = 0;
  std::vector<double> v_, known_beta_;  // (m), and (n) the β that v belongs to

  std::vector<std::int64_t> far_out_, suspects_;         // points that every check includes, and that the next one does
  std::vector<double> moved_;                            // (n) how far β has moved since v was last exact
  std::vector<std::int64_t> active_, active_variables_;  // points and variables of the present phase
  bool is_whole_ = false;                                // everything is active, and stays so
  std::unique_ptr<BlockSmo<T>> block_, last_block_;  // of the present phase, and of the last one until there is another
  Pass pass_, check_;
  bool is_check_full_ = false, is_cornered_ = false, started_ = false, is_v_known_ = true;
  double check_error_ = 0, refined_violation_ = 0, accuracy_ = 0;
  Ending ending_ = Ending::running;
  std::int64_t steps_ = 0, rounds_ = 0, rows_computed_ = 0, phases_ = 0, refinements_ = 0;
};

}  // namespace margrove
