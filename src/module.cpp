// SPDX-License-Identifier: Apache-2.0
// The Python face of the compiled scheduler and simulator; see xinfer_ros/_native.pyi.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>

#include "policies.hpp"
#include "simulation.hpp"

namespace py = pybind11;
using namespace xinfer;

template <typename T>
using Array = py::array_t<T, py::array::c_style | py::array::forcecast>;

static std::array<std::vector<double>, kStages> by_stage(const Array<double>& rates) {
  if (rates.ndim() != 4 || rates.shape(0) != kStages)
    throw std::invalid_argument("rates must be of shape (3, cV + 1, cP + 1, cA + 1)");
  std::array<std::vector<double>, kStages> out;
  const size_t size = rates.size() / kStages;
  for (int s = 0; s < kStages; ++s)
    out[s].assign(rates.data() + s * size, rates.data() + (s + 1) * size);
  return out;
}

static Device make_device(const std::array<double, kStages>& work,
                          const std::array<double, kStages>& overhead, double output,
                          double front_end, const std::array<std::vector<double>, kStages>& batch,
                          const std::vector<double>& infer, const Array<double>& rates) {
  Device d;
  d.work = work;
  d.overhead = overhead;
  d.output = output;
  d.front_end = front_end;
  d.batch = batch;
  if (infer.empty()) throw std::invalid_argument("the times of whole batches are needed");
  d.infer = infer;
  d.rate = by_stage(rates);
  for (int s = 0; s < kStages; ++s) {
    if (batch[s].empty() || batch[s].size() > kMaxBatch)
      throw std::invalid_argument("a batch holds 1 to 8 requests");
    d.bound[s] = static_cast<int>(rates.shape(s + 1)) - 1;
    for (double rate : d.rate[s]) d.inverse[s].push_back(1.0 / rate);
  }
  return d;
}

static std::unique_ptr<Core> make_core(const Device& device, const Counts& limits,
                                       const std::string& name, const py::dict& settings) {
  for (int limit : limits)
    if (limit < 1 || limit > kMaxUnits / kStages)
      throw std::invalid_argument("a lane runs 1 to 21 units at once");
  State state(device, limits, flag(settings, "interference_model"));
  state.learning_rate = number(settings, "learning_rate");
  state.stage_overlap = flag(settings, "stage_overlap");
  state.max_held = settings["max_held"].cast<int>();
  return std::make_unique<Core>(std::move(state), make_policy(name, settings));
}

static py::tuple decision_tuple(const Decision& d) {
  return py::make_tuple(d.time, d.key, d.stage, static_cast<int>(d.verdict), d.against, d.slack,
                        d.cost, d.foreseen, d.protected_at);
}

static py::list take_decisions(Core& core) {
  py::list out;
  for (const Decision& d : core.log) out.append(decision_tuple(d));
  core.log.clear();
  return out;
}

static py::list dispatch(Core& core, int64_t now_ns) {
  core.dispatch(now_ns, core.started);
  py::list out;
  for (const Unit& unit : core.started) {
    py::tuple keys(unit.count);
    for (int m = 0; m < unit.count; ++m)
      keys[m] = py::int_(core.state.requests[unit.members[m]].key);
    out.append(py::make_tuple(unit.number, unit.stage, keys));
  }
  return out;
}

// Of each running unit: its number, and when it was predicted to end as it started [ns].
static py::dict foreseen_ends(const Core& core) {
  py::dict out;
  for (const Unit& unit : core.state.units) out[py::int_(unit.number)] = core.ns(unit.foreseen_end);
  return out;
}

// Of each live request: key, robot, arrival, budget, deadline [ns], stage, its unit or -1.
static py::list live_requests(const Core& core) {
  py::list out;
  for (int place : core.state.live) {
    const Request& r = core.state.requests[place];
    out.append(py::make_tuple(r.key, r.robot, core.ns(r.arrival), std::llround(r.budget * 1e6),
                              core.ns(r.deadline), r.stage,
                              r.unit < 0 ? -1 : core.state.units[r.unit].number));
  }
  return out;
}

// The calls in a journal, each a tuple of its numbers, and the time of the last one.
static py::tuple read_journal(const std::string& bytes, int64_t last_ns) {
  JournalReader reader(bytes, last_ns);
  py::list calls;
  while (!reader.at_end()) calls.append(py::tuple(py::cast(reader.next())));
  return py::make_tuple(calls, reader.last_ns());
}

template <typename Row, typename Number>
static Array<Number> rows(const std::vector<Row>& from, size_t width) {
  static_assert(sizeof(Row) % sizeof(Number) == 0);
  Array<Number> out({from.size(), width});
  std::copy_n(reinterpret_cast<const Number*>(from.data()), from.size() * width,
              out.mutable_data());
  return out;
}

static py::tuple simulate(Core& core, const Array<int64_t>& start_ns, const Array<int64_t>& quota,
                          const Array<int64_t>& budget_ns, const Array<double>& draws,
                          const Array<double>& true_rates, const py::dict& timing,
                          bool keep_transitions, const std::optional<py::dict>& robot_time) {
  Scenario s;
  s.robots = static_cast<int>(budget_ns.shape(0));
  s.requests = static_cast<int>(budget_ns.shape(1));
  if (start_ns.size() != s.robots || quota.size() != s.robots ||
      draws.size() != static_cast<py::ssize_t>(s.robots) * s.requests * kDraws)
    throw std::invalid_argument("arrays of a scenario must be of one number of robots");
  s.start_ns = start_ns.data();
  s.quota = quota.data();
  s.budget_ns = budget_ns.data();
  s.draws = draws.data();
  s.true_rate = by_stage(true_rates);
  const auto ns = [&](const char* key) { return timing[key].cast<int64_t>(); };
  s.end_ns = ns("end_ns");
  s.period_ns = ns("period_ns");
  s.reserved_ns = ns("reserved_ns");
  s.output_ns = ns("output_ns");
  s.observation_ns = ns("observation_ns");
  s.tick_ns = ns("tick_ns");
  Array<int64_t> execution_steps;
  if (robot_time) {
    execution_steps = (*robot_time)["execution_steps"].cast<Array<int64_t>>();
    if (execution_steps.size() != s.robots)
      throw std::invalid_argument("arrays of a scenario must be of one number of robots");
    s.execution_steps = execution_steps.data();
    s.spacing_ns = (*robot_time)["spacing_ns"].cast<int64_t>();
    s.count_from_ns = (*robot_time)["count_from_ns"].cast<int64_t>();
    if (s.spacing_ns <= 0) throw std::invalid_argument("rows must be spaced");
  }
  Simulation simulation(core, s);
  simulation.keep_transitions = keep_transitions;
  {
    py::gil_scoped_release release;
    simulation.run();
  }
  return py::make_tuple(rows<Response, int64_t>(simulation.responses, 5),
                        rows<Transition, int64_t>(simulation.transitions, 5),
                        rows<RobotTime, double>(simulation.robot_time, 7), simulation.events);
}

PYBIND11_MODULE(_native, m) {
  m.doc() = "The compiled scheduler and simulator.";
  py::class_<Device>(m, "Device")
      .def(py::init(&make_device), py::kw_only(), py::arg("work_ms"), py::arg("overhead_ms"),
           py::arg("output_ms"), py::arg("front_end_ms"), py::arg("batch_work"),
           py::arg("infer_ms"), py::arg("rates"));
  py::class_<Core>(m, "Core")
      .def(py::init(&make_core), py::arg("device"), py::arg("limits"), py::arg("policy"),
           py::arg("settings"))
      .def("announce", &Core::announce, py::kw_only(), py::arg("now_ns"), py::arg("robot"),
           py::arg("arrival_ns"), py::arg("budget_ns"), py::arg("period_ns"))
      .def("observe",
           [](Core& core, int64_t now_ns, int robot, int64_t executed_steps, int64_t leftover_steps,
              int64_t horizon_steps, int64_t spacing_ns) {
             core.observe(now_ns, robot,
                          {static_cast<double>(executed_steps), static_cast<double>(leftover_steps),
                           static_cast<double>(horizon_steps), spacing_ns * 1e-6});
           },
           py::kw_only(), py::arg("now_ns"), py::arg("robot"), py::arg("executed_steps"),
           py::arg("leftover_steps"), py::arg("horizon_steps"), py::arg("spacing_ns"))
      .def("release",
           [](Core& core, int64_t now_ns) {
             std::vector<int64_t> finished;
             core.release(now_ns, finished);
             return finished;
           },
           py::arg("now_ns"))
      .def("submit", &Core::submit, py::kw_only(), py::arg("now_ns"), py::arg("key"),
           py::arg("robot"), py::arg("arrival_ns"), py::arg("budget_ns"), py::arg("reserved_ns"),
           py::arg("period_ns"))
      .def("dispatch", &dispatch, py::arg("now_ns"))
      .def("complete",
           [](Core& core, int64_t now_ns, int64_t number) {
             std::vector<int64_t> finished;
             core.complete(now_ns, number, finished);
             return finished;
           },
           py::arg("now_ns"), py::arg("number"))
      .def("pace_ns", &Core::pace_ns, py::arg("robot"))
      .def("cancel", &Core::cancel, py::arg("now_ns"), py::arg("key"))
      .def("withdraw", &Core::withdraw, py::arg("now_ns"), py::arg("number"))
      .def("set_budget", &Core::set_budget, py::arg("key"), py::arg("budget_ns"))
      .def("num_protected", &Core::num_protected)
      .def("live_requests", &live_requests)
      .def("slack_ms", &Core::slack, py::arg("key"))
      .def("foreseen_ends_ns", &foreseen_ends)
      .def("counters",
           [](const Core& core) {
             return py::make_tuple(py::tuple(py::cast(core.policy->verdicts)),
                                   std::llround(core.prediction_error * 1e6), core.predictions);
           })
      .def("keep_journal", [](Core& core, bool keep) { core.journal.keeps = keep; },
           py::arg("keep"))
      .def("take_journal", [](Core& core) { return py::bytes(core.journal.take()); })
      .def("snapshot", [](Core& core) { return py::bytes(core.snapshot()); })
      .def("restore", [](Core& core, const py::bytes& state) { core.restore(state); },
           py::arg("state"))
      .def("keep_log", &Core::keep_log, py::arg("keep"))
      .def("take_decisions", &take_decisions)
      .def_property_readonly("mirror_error",
                             [](const Core& core) { return core.state.mirror_error(); })
      .def_property_readonly("correction", [](const Core& core) { return core.state.correction; });
  m.def("read_journal", &read_journal, py::arg("journal"), py::arg("last_ns"));
  m.def("simulate", &simulate, py::kw_only(), py::arg("core"), py::arg("start_ns"),
        py::arg("quota"), py::arg("budget_ns"), py::arg("draws"), py::arg("true_rates"),
        py::arg("timing"), py::arg("keep_transitions"), py::arg("robot_time"));
}
