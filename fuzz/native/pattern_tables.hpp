// Reads pattern tables, which write_tables.py generates, in programs without Python.
#pragma once

#include "pretokenize/automaton.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

struct Pattern {
  std::string name;
  std::shared_ptr<const bpe::Automaton> automaton;
};

// Reads the output of write_tables.py. Throws std::invalid_argument for malformed tables.
inline std::vector<Pattern> read_tables(const char *path) {
  std::ifstream file(path);
  const auto number = [&] {
    unsigned value = 0;
    file >> value;
    return value;
  };
  const auto each = [&](const auto &take) {
    for (unsigned left = number(); left > 0 && file; --left)
      take();
  };
  const auto start = [&] {
    const auto age = static_cast<uint8_t>(number()), reg = static_cast<uint8_t>(number());
    return bpe::Automaton::Start{age, reg, static_cast<uint8_t>(number())};
  };
  std::vector<Pattern> patterns;
  for (std::string name; file >> name;) {
    auto made = std::make_shared<bpe::Automaton>();
    each([&] { made->then.push_back(static_cast<uint8_t>(number())); });
    made->initial = static_cast<uint8_t>(number());
    for (unsigned *end : {&made->before_end, &made->both_end, &made->here_end, &made->silent_end})
      *end = number();
    made->drops = false;
    const auto add_starts = [&](bpe::Automaton::Actions &actions) {
      each([&] {
        actions.starts[actions.start_count++] = start();
        made->drops |= actions.starts[actions.start_count - 1].drops != 0;
      });
    };
    each([&] {
      bpe::Automaton::Actions &actions = made->actions.emplace_back();
      add_starts(actions);
      each([&] {
        const auto reg = static_cast<uint8_t>(number());
        actions.moves[actions.move_count++] = {reg, start()};
      });
    });
    each([&] { add_starts(made->at_end.emplace_back()); });
    for (size_t state = 0; state < made->at_end.size(); ++state) {
      bpe::Automaton::Start &oldest = made->oldest_pending.emplace_back();
      oldest = {0, bpe::Automaton::nothing, 0};
      each([&] { oldest = start(); });
    }
    std::vector<uint8_t> borders, pages;
    each([&] { borders.push_back(static_cast<uint8_t>(number())); });
    const size_t class_count = made->then.size() / bpe::Automaton::row - 1; // classes per row of borders
    made->borders.resize(made->then.size());
    for (size_t place = 0; place < borders.size(); ++place)
      made->borders[place / class_count * bpe::Automaton::row + place % class_count] = borders[place];
    each([&] { made->classes.page_of.push_back(static_cast<uint16_t>(number())); });
    each([&] { pages.push_back(static_cast<uint8_t>(number())); });
    made->classes.pages.resize(pages.size() / 64);
    for (size_t page = 0; page < made->classes.pages.size(); ++page)
      std::copy_n(pages.data() + 64 * page, 64, made->classes.pages[page].begin());
    bpe::TwoWay &back = made->two_way;
    back.rights = number();
    if (back.rights != 0) {
      back.end = static_cast<uint16_t>(number());
      each([&] { back.settled.push_back(static_cast<uint16_t>(number())); });
      each([&] { back.row_of.push_back(static_cast<uint32_t>(number() * back.rights)); });
      each([&] {
        back.before.push_back(static_cast<uint16_t>(number()));
        made->drops |= (back.before.back() & bpe::TwoWay::drops) != 0;
      });
    }
    made->complete(made->then.size() / bpe::Automaton::row);
    patterns.push_back({name, std::move(made)});
  }
  return patterns;
}
