// Changes of the core that are selected at load time. TOKENMILL_MUTANT is the number of the active change.
// The file TOKENMILL_MUTANT_REACHED records its execution: "reached", or "invalid" if it does not compile.
// Included before every source (switched_core.py).
//
// An operator keeps its position and precedence: `a < b` becomes `a < less<7>() < b`. Constant expressions
// are not changed. All names are local to a file, since files are compiled for several instruction sets.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>

namespace {
namespace switches {

const int active = [] {
  const char *number = std::getenv("TOKENMILL_MUTANT");
  return number ? std::atoi(number) : -1;
}();

[[gnu::noinline, gnu::cold, maybe_unused]] bool tell(const char *what) {
  static bool told = false;
  const char *path = std::getenv("TOKENMILL_MUTANT_REACHED");
  if (!told && path) {
    told = true;
    if (FILE *file = std::fopen(path, "w")) {
      std::fputs(what, file);
      std::fclose(file);
    }
  }
  return true;
}

template <int number> constexpr bool on(const char *what = "reached") {
  if (std::is_constant_evaluated()) {
    return false;
  }
  return active == number && tell(what);
}

#define TOKENMILL_SWITCH(name, operation, other)                                                             \
  template <int number> struct name {};                                                                      \
  template <class Left, int number> struct name##_begun {                                                    \
    Left left;                                                                                               \
  };                                                                                                         \
  template <class Left, int number>                                                                          \
  [[gnu::always_inline]] constexpr inline name##_begun<Left, number> operator operation(Left &&left,         \
                                                                                        name<number>) {      \
    return {std::forward<Left>(left)};                                                                       \
  }                                                                                                          \
  template <class Left, int number, class Right>                                                             \
  [[gnu::always_inline]] constexpr inline auto operator operation(name##_begun<Left, number> &&begun,        \
                                                                  Right &&right)                             \
      ->decltype(std::forward<Left>(begun.left) operation std::forward<Right>(right)) {                      \
    using Result = decltype(std::forward<Left>(begun.left) operation std::forward<Right>(right));            \
    if constexpr (requires {                                                                                 \
                    static_cast<Result>(std::forward<Left>(begun.left) other std::forward<Right>(right));    \
                  }) {                                                                                       \
      if (on<number>()) {                                                                                    \
        return static_cast<Result>(std::forward<Left>(begun.left) other std::forward<Right>(right));         \
      }                                                                                                      \
    } else {                                                                                                 \
      static_cast<void>(on<number>("invalid"));                                                              \
    }                                                                                                        \
    return std::forward<Left>(begun.left) operation std::forward<Right>(right);                              \
  }

#define TOKENMILL_SWITCH_ASSIGNMENT(name, operation, other)                                                  \
  template <int number> struct name {};                                                                      \
  template <class Right, int number> struct name##_begun {                                                   \
    Right right;                                                                                             \
  };                                                                                                         \
  template <class Right, int number>                                                                         \
  [[gnu::always_inline]] constexpr inline name##_begun<Right, number> operator operation(name<number>,       \
                                                                                         Right &&right) {    \
    return {std::forward<Right>(right)};                                                                     \
  }                                                                                                          \
  template <class Left, int number, class Right>                                                             \
  [[gnu::always_inline]] constexpr inline decltype(auto) operator operation(                                 \
      Left &left, name##_begun<Right, number> &&begun) {                                                     \
    if constexpr (requires { left other std::forward<Right>(begun.right); }) {                               \
      if (on<number>()) {                                                                                    \
        return left other std::forward<Right>(begun.right);                                                  \
      }                                                                                                      \
    } else {                                                                                                 \
      static_cast<void>(on<number>("invalid"));                                                              \
    }                                                                                                        \
    return left operation std::forward<Right>(begun.right);                                                  \
  }

TOKENMILL_SWITCH(less, <, <=)
TOKENMILL_SWITCH(less_or_equal, <=, <)
TOKENMILL_SWITCH(greater, >, >=)
TOKENMILL_SWITCH(greater_or_equal, >=, >)
TOKENMILL_SWITCH(equal, ==, !=)
TOKENMILL_SWITCH(unequal, !=, ==)
TOKENMILL_SWITCH(plus, +, -)
TOKENMILL_SWITCH(minus, -, +)
TOKENMILL_SWITCH(left_shift, <<, >>)
TOKENMILL_SWITCH(right_shift, >>, <<)
TOKENMILL_SWITCH(bit_and, &, |)
TOKENMILL_SWITCH(bit_or, |, &)
TOKENMILL_SWITCH(bit_xor, ^, |)
TOKENMILL_SWITCH_ASSIGNMENT(plus_assign, +=, -=)
TOKENMILL_SWITCH_ASSIGNMENT(minus_assign, -=, +=)

} // namespace switches
} // namespace
