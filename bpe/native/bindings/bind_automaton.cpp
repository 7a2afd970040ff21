// Python bindings of the tables of a pre-tokenizer.
#include "bindings/bindings.hpp"
#include "pretokenize/automaton.hpp"
#include "pretokenize/later_phases.hpp"
#include "pretokenize/safe_cut.hpp"
#include "pretokenize/text_window.hpp"
#include "text/utf8.hpp"

#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <tuple>

namespace bpe::python {

namespace {

using Bytes = nb::ndarray<const uint8_t, nb::ndim<2>, nb::c_contig>;
using Pages = nb::ndarray<const uint16_t, nb::ndim<1>, nb::c_contig>;
using Rows = nb::ndarray<const uint16_t, nb::ndim<2>, nb::c_contig>;
using RowNumbers = nb::ndarray<const uint32_t, nb::ndim<2>, nb::c_contig>;
// Rows, the row index per class and state, settled right contexts by state, the right context at the end.
using Back = std::tuple<Rows, RowNumbers, Pages, unsigned>;
using Start = std::tuple<unsigned, unsigned, bool>;
using Due = std::pair<std::vector<Start>, std::vector<std::pair<unsigned, Start>>>;

Automaton::Start start_of(const Start &start) {
  const auto [age, reg, drops] = start;
  return {static_cast<uint8_t>(age), static_cast<uint8_t>(reg), drops};
}

Automaton::Actions actions_of(const Due &due) {
  Automaton::Actions actions{};
  for (const Start &start : due.first)
    actions.starts[actions.start_count++] = start_of(start);
  for (const auto &[reg, start] : due.second)
    actions.moves[actions.move_count++] = {start_of({0, reg, false}).reg, start_of(start)};
  return actions;
}

TwoWay two_way_of(const Back &back) {
  const auto &[rows, row_of, settled, end] = back;
  TwoWay made;
  made.rights = rows.shape(1);
  made.end = static_cast<uint16_t>(end);
  made.settled.assign(settled.data(), settled.data() + settled.size());
  for (size_t place = 0; place < row_of.size(); ++place)
    made.row_of.push_back(static_cast<uint32_t>(row_of.data()[place] * made.rights));
  made.before.assign(rows.data(), rows.data() + rows.size());
  return made;
}

std::shared_ptr<Automaton> automaton_of(Bytes then, unsigned initial, const std::vector<unsigned> &group_ends,
                                        const std::vector<Due> &actions,
                                        const std::vector<std::vector<Start>> &at_end,
                                        const std::vector<std::optional<Start>> &oldest_pending,
                                        Bytes borders, Pages page_of, Bytes pages,
                                        const std::optional<Back> &back) {
  auto made = std::make_shared<Automaton>();
  made->then.assign(then.data(), then.data() + then.size());
  made->initial = static_cast<uint8_t>(initial);
  made->before_end = group_ends.at(0);
  made->both_end = group_ends.at(1);
  made->here_end = group_ends.at(2);
  made->silent_end = group_ends.at(3);
  for (const Due &due : actions)
    made->actions.push_back(actions_of(due));
  for (const std::vector<Start> &starts : at_end)
    made->at_end.push_back(actions_of({starts, {}}));
  for (const std::optional<Start> &start : oldest_pending)
    made->oldest_pending.push_back(start ? start_of(*start) : Automaton::Start{0, Automaton::nothing, false});
  const auto drops = [](const Automaton::Actions &due) {
    return std::any_of(due.starts, due.starts + due.start_count,
                       [](Automaton::Start start) { return start.drops; });
  };
  made->drops = std::any_of(made->actions.begin(), made->actions.end(), drops) ||
                std::any_of(made->at_end.begin(), made->at_end.end(), drops);
  made->borders.resize(then.shape(0) * Automaton::row);
  for (size_t left = 0; left < std::min(borders.shape(0), then.shape(0)); ++left)
    for (size_t right = 0; right < std::min(borders.shape(1), Automaton::row); ++right)
      made->borders[left * Automaton::row + right] = borders(left, right);
  made->classes.page_of.assign(page_of.data(), page_of.data() + page_of.size());
  made->classes.pages.resize(pages.shape(0));
  for (size_t page = 0; page < pages.shape(0); ++page)
    std::copy_n(pages.data() + 64 * page, 64, made->classes.pages[page].begin());
  if (back)
    made->two_way = two_way_of(*back);
  made->drops |= std::any_of(made->two_way.before.begin(), made->two_way.before.end(),
                             [](uint16_t before) { return (before & TwoWay::drops) != 0; });
  made->complete(then.shape(0));
  return made;
}

// The same with later phases: (change or None, automaton) each. stays: bytes that form a piece unchanged.
std::shared_ptr<Automaton> followed_by(const Automaton &first, const Items<nb::tuple> &phases,
                                       bool from_alphabet, bool asks_for_input, nb::bytes stays) {
  auto later = std::make_shared<LaterPhases>();
  for (const nb::tuple &phase : phases)
    later->phases.push_back(
        {shared(nb::cast<const bpe::Normalizer *>(phase[0])), shared(nb::cast<const Automaton *>(phase[1]))});
  later->from_alphabet = from_alphabet;
  later->asks_for_input = asks_for_input;
  for (size_t i = 0; i < stays.size(); ++i)
    later->stays[static_cast<uint8_t>(stays.c_str()[i])] = true;
  auto made = std::make_shared<Automaton>(first);
  made->later = std::move(later);
  return made;
}

// Return the pretokens of one text, concatenated, and their ends.
nb::tuple pretokens(const Automaton &automaton, nb::object buffer) {
  const BufferView text(buffer);
  require_utf8(text);
  std::string_view made;
  std::vector<uint64_t> ends;
  LaterPhases all = *automaton.later;
  all.phases.insert(all.phases.begin(), {nullptr, {std::shared_ptr<const Automaton>(), &automaton}});
  LaterPieces pieces(all);
  {
    nb::gil_scoped_release unlocked;
    const uint8_t *const stop = text.data() + text.size();
    const size_t first_bytes = text.size() > 0 ? read_char(text.data(), stop).length : 0;
    pieces.cut({reinterpret_cast<const char *>(text.data()), text.size()}, stop, first_bytes);
    made = {reinterpret_cast<const char *>(pieces.text().data()), pieces.text().size()};
    ends.assign(pieces.ends().begin(), pieces.ends().end());
  }
  return nb::make_tuple(nb::bytes(made.data(), made.size()), owned_array(std::move(ends)));
}

} // namespace

void bind_automaton(nb::module_ &m) {
  nb::class_<Automaton>(m, "Automaton")
      .def(nb::new_(&automaton_of), nb::arg("then"), nb::arg("initial"), nb::arg("group_ends"),
           nb::arg("actions"), nb::arg("at_end"), nb::arg("oldest_pending"), nb::arg("borders"),
           nb::arg("page_of"), nb::arg("pages"), nb::arg("back") = nb::none())
      .def_ro("drops", &Automaton::drops)
      .def("followed_by", &followed_by, nb::arg("phases"), nb::arg("from_alphabet"),
           nb::arg("asks_for_input"), nb::arg("stays"))
      .def_prop_ro("has_later_phases", [](const Automaton &automaton) { return automaton.later != nullptr; });
  m.def("pretokens", &pretokens, nb::arg("automaton"), nb::arg("buffer"));
  m.def(
      "pieces",
      [](const Automaton &automaton, nb::object buffer) {
        const BufferView text(buffer);
        require_utf8(text);
        std::vector<uint64_t> starts;
        std::vector<uint64_t> dropped;
        {
          nb::gil_scoped_release unlocked;
          const auto window = std::make_unique<TextWindow>(automaton);
          window->for_each_piece(text.data(), text.size(), text.data() + text.size(),
                                 [&](size_t start, size_t, bool drops) {
                                   starts.push_back(start);
                                   dropped.push_back(drops);
                                 });
        }
        return nb::make_tuple(owned_array(std::move(starts)), owned_array(std::move(dropped)));
      },
      nb::arg("automaton"), nb::arg("buffer"));
  m.def(
      "last_safe_cut",
      [](const Automaton &automaton, nb::object buffer) {
        const BufferView text(buffer);
        nb::gil_scoped_release unlocked;
        return last_safe_cut(automaton, text.data(), text.size());
      },
      nb::arg("automaton"), nb::arg("buffer"));
}

} // namespace bpe::python
