// Boosted trees: columns of any kind in, the arrays of a grove out.
#include "bind/arrays.hpp"
#include "bind/growing.hpp"
#include "boost/booster.hpp"

using namespace nanobind::literals;

namespace margrove {
namespace {

class BoundBooster {
 public:
  BoundBooster(Columns columns, std::int64_t n, Vector<std::int32_t> label, int n_classes, Vector<double> weight,
               const GivenGrowth& growth, const SortedColumns* sorted, std::int64_t n_rounds, double learning_rate,
               double stop_at_bound, int threads)
      : owners_(nb::make_tuple(columns, label, weight)),
        n_rows_(static_cast<std::size_t>(n)),
        n_classes_(static_cast<std::size_t>(n_classes)) {
    require(n_classes >= 2 && tree::is_of_classes(growth.criterion), "boosting is of classes");
    require(static_cast<std::int64_t>(weight.size()) == n, "weight must be (n)");
    auto grower =
        grower_of(columns, {n, span_of(label), n_classes, {}, span_of(weight), {}, growth, sorted, threads}, true);
    booster_ = std::make_unique<boost::Booster>(std::move(grower), span_of(label), n_classes, span_of(weight), n_rounds,
                                                learning_rate, stop_at_bound);
  }

  void repeat_round(Vector<std::int32_t> judged) {
    require(judged.size() == n_rows_, "judged must be (n)");
    for (std::size_t i = 0; i < judged.size(); ++i)
      require(judged.data()[i] >= 0 && judged.data()[i] < static_cast<std::int32_t>(n_classes_),
              "a label lies beyond the classes");
    booster_->repeat_round(span_of(judged));
  }

  bool run(double seconds, std::int64_t rounds) {
    nb::gil_scoped_release unlocked;
    return booster_->run(seconds, rounds);
  }

  // The rounds since this was asked last: the arrays of their trees, and error, vote and training error of each.
  TreeArrays take() {
    const std::vector<boost::Round> rounds = booster_->take_rounds();
    const std::vector<tree::Node> trees = booster_->take_trees();
    TreeArrays arrays = arrays_of(trees, n_classes_);
    std::vector<std::int64_t> start;
    for (std::size_t i = 0; i < trees.size(); ++i)
      if (trees[i].parent < 0) start.push_back(static_cast<std::int64_t>(i));
    start.push_back(static_cast<std::int64_t>(trees.size()));
    arrays["start"] = to_numpy(start);
    std::vector<double> error, vote, training_error;
    for (const boost::Round& round : rounds) {
      error.push_back(round.error);
      vote.push_back(round.vote);
      training_error.push_back(round.training_error);
    }
    arrays["error"] = to_numpy(error);
    arrays["vote"] = to_numpy(vote);
    arrays["training_error"] = to_numpy(training_error);
    return arrays;
  }

  boost::End end() const { return booster_->end(); }
  std::int64_t rounds_done() const { return booster_->rounds_done(); }

 private:
  nb::tuple owners_;
  std::size_t n_rows_, n_classes_;
  std::unique_ptr<boost::Booster> booster_;
};

}  // namespace

void bind_boost(nb::module_& m) {
  m.attr("LEAST_WEIGHT") = boost::kLeastWeight;
  m.attr("EQUAL_VOTES") = boost::kEqualVotes;
  nb::enum_<boost::End>(m, "BoostEnd")
      .value("none", boost::End::none)
      .value("all_rounds", boost::End::all_rounds)
      .value("perfect", boost::End::perfect)
      .value("chance", boost::End::chance)
      .value("bound", boost::End::bound);
  nb::class_<BoundBooster>(m, "Booster")
      .def(nb::init<Columns, std::int64_t, Vector<std::int32_t>, int, Vector<double>, const GivenGrowth&,
                    const SortedColumns*, std::int64_t, double, double, int>(),
           nb::keep_alive<1, 8>(), "columns"_a, nb::kw_only(), "n"_a, "label"_a, "n_classes"_a, "weight"_a, "growth"_a,
           "sorted"_a.none(), "n_rounds"_a, "learning_rate"_a, "stop_at_bound"_a, "threads"_a)
      .def("repeat_round", &BoundBooster::repeat_round, "judged"_a)
      .def("run", &BoundBooster::run, "seconds"_a, "rounds"_a)
      .def("take", &BoundBooster::take)
      .def("end", &BoundBooster::end)
      .def("rounds_done", &BoundBooster::rounds_done);
}

}  // namespace margrove
