#include "json_line.hpp"

#include "common/byte_vector.hpp"
#include "text/utf8.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace corpus {

namespace {

constexpr ptrdiff_t block = 16;
// Two escapes of six bytes each: half a pair is only understood with what follows.
constexpr ptrdiff_t escapes_bytes = 12;
constexpr ptrdiff_t literal_bytes = 9; // "-Infinity"

const uint8_t *behind_space(const uint8_t *p, const uint8_t *end) {
  while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
    ++p;
  return p;
}

bool is_digit(uint8_t c) {
  return c >= '0' && c <= '9';
}

// The literal that begins with the character, null if none does. A number may begin with '-' as well.
const char *literal_of(uint8_t c) {
  switch (c) {
  case 't':
    return "true";
  case 'f':
    return "false";
  case 'n':
    return "null";
  case 'N':
    return "NaN";
  case 'I':
    return "Infinity";
  case '-':
    return "-Infinity";
  default:
    return nullptr;
  }
}

int hex_digit(uint8_t c) {
  if (is_digit(c))
    return c - '0';
  const uint8_t letter = c | 0x20;
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

// How many of the sixteen bytes come before the first quote, backslash or control character.
ptrdiff_t plain_bytes(const uint8_t *p) {
  using bpe::ByteVector;
  const ByteVector bytes = bpe::load_bytes(p);
  const uint32_t mask =
      bpe::mask_of(ByteVector(bytes == '"') | ByteVector(bytes == '\\') | ByteVector(bytes < 0x20));
  return mask == 0 ? block : std::countr_zero(mask);
}

// An index as RFC 6901 has it: decimal without leading zeros. SIZE_MAX: none.
size_t index_of(const std::string &token) {
  if (token.empty() || token.size() > 18 || (token[0] == '0' && token.size() > 1))
    return SIZE_MAX;
  size_t index = 0;
  for (const char c : token) {
    if (!is_digit(static_cast<uint8_t>(c)))
      return SIZE_MAX;
    index = index * 10 + static_cast<size_t>(c - '0');
  }
  return index;
}

} // namespace

JsonLine::JsonLine(std::vector<std::string> path, bool replace_surrogates)
    : path_(std::move(path)), replace_surrogates_(replace_surrogates), levels_(path_.size()) {}

void JsonLine::reset() {
  state_ = State::value;
  nesting_.clear();
  followed_ = 0;
  begun_ = found_ = is_root_followed_ = false;
  wanted_ = true;
  other_kind_ = fault_ = JsonFault::none;
  replaced_ = base_ = 0;
}

JsonLine::Fed JsonLine::feed(const uint8_t *piece, size_t size, bool final, uint8_t *out,
                             const uint8_t *readable) {
  piece_ = piece;
  end_ = piece + size;
  readable_ = readable;
  final_ = final;
  size_t used = size, text_bytes = 0;
  if (state_ != State::stopped) {
    uint8_t *stop = out;
    const uint8_t *const p = run(piece, stop);
    if (p && (!final || finish())) {
      used = static_cast<size_t>(p - piece);
      text_bytes = static_cast<size_t>(stop - out);
    } else {
      state_ = State::stopped;
    }
  }
  base_ += used;
  return {used, text_bytes};
}

// What follows takes a place in the piece and returns where it came to, or null at a fault.

// To the end of the piece, or to an escape or a word that it cuts. A member of an object takes one jump by
// the state, to its kind of value; all else follows on.
const uint8_t *JsonLine::run(const uint8_t *p, uint8_t *&out) {
  const uint8_t *const end = end_;
  for (;;) {
    switch (state_) {
    case State::first_name:
      if ((p = behind_space(p, end)) == end)
        return p;
      if (*p == '}')
        goto container_end;
      [[fallthrough]];
    case State::name:
    name:
      if ((p = behind_space(p, end)) == end)
        return p;
      if (*p != '"')
        return fail(JsonFault::syntax, p);
      begin_name(p);
      ++p;
      [[fallthrough]];
    case State::in_name:
      if (!(p = is_followed() ? followed_name(p, out) : string<false>(p, out, false)))
        return nullptr;
      if (!closed_)
        return p;
      state_ = State::colon;
      [[fallthrough]];
    case State::colon:
      if ((p = behind_space(p, end)) == end)
        return p;
      if (*p != ':')
        return fail(JsonFault::syntax, p);
      ++p;
      wanted_ = false; // an empty list may have left its first item wanted
      if (is_followed() && !end_name())
        return nullptr;
      state_ = State::value;
      goto value;
    case State::first_item:
      if ((p = behind_space(p, end)) == end)
        return p;
      if (*p == ']')
        goto container_end;
      state_ = State::value;
      [[fallthrough]];
    case State::value:
    value:
      if ((p = behind_space(p, end)) == end)
        return p;
      if (!final_ && end - p < literal_bytes && literal_of(*p))
        return p;
      if (!(p = begin_value(p)))
        return nullptr;
      continue;
    case State::in_literal:
      break;
    case State::in_string:
      if (!(p = string<false>(p, out, false)))
        return nullptr;
      if (!closed_)
        return p;
      break;
    case State::in_text:
      if (!(p = string<true>(p, out, true)))
        return nullptr;
      if (!closed_)
        return p;
      break;
    case State::in_number:
      if (!(p = number(p)))
        return nullptr;
      if (p == end)
        return p; // it may go on
      break;
    case State::after:
    after:
      if ((p = behind_space(p, end)) == end)
        return p;
      if (*p == ',') {
        ++p;
        if (nesting_.is_object()) {
          state_ = State::name;
          goto name;
        }
        wanted_ = is_followed() && ++level().item == level().wanted_item;
        state_ = State::value;
        goto value;
      }
      if (*p != (nesting_.is_object() ? '}' : ']'))
        return fail(JsonFault::syntax, p);
    container_end:
      ++p;
      nesting_.pop();
      followed_ = std::min(followed_, nesting_.size());
      break;
    case State::line_end:
      return (p = behind_space(p, end)) == end ? p : fail(JsonFault::trailing, p);
    case State::stopped:
      return nullptr;
    }
    if (!end_value()) // all that breaks out of the switch is at the end of one
      return nullptr;
    if (state_ == State::after)
      goto after;
  }
}

inline void JsonLine::begin_name(const uint8_t *p) {
  name_place_ = place_of(p);
  name_bytes_ = 0;
  name_matches_ = true;
  state_ = State::in_name;
}

// Of a name in an object that the path leads through.
bool JsonLine::end_name() {
  if (!name_matches_)
    return true;
  if (level().seen)
    return fail_there(JsonFault::twice, name_place_);
  wanted_ = level().seen = true;
  return true;
}

inline const uint8_t *JsonLine::begin_value(const uint8_t *p) {
  const uint8_t c = *p;
  bool is_wanted = false;
  if (wanted_) {
    wanted_ = false;
    if (!begun_) {
      begun_ = true;
      start_place_ = place_of(p);
    }
    if (nesting_.size() < path_.size()) {
      is_wanted = true;
    } else if (c == '"') {
      found_ = true;
      state_ = State::in_text;
      return p + 1;
    } else {
      other_kind_ = c == 'n'               ? JsonFault::is_null
                    : c == 't' || c == 'f' ? JsonFault::is_bool
                    : c == '['             ? JsonFault::is_list
                    : c == '{'             ? JsonFault::is_object
                                           : JsonFault::is_number;
      other_depth_ = nesting_.size();
      other_place_ = place_of(p);
    }
  }
  if (c == '"') {
    state_ = State::in_string;
    return p + 1;
  }
  if (c == '{' || c == '[') {
    const size_t item = is_wanted && c == '[' ? index_of(path_[nesting_.size()]) : SIZE_MAX;
    nesting_.push(c == '{');
    state_ = c == '{' ? State::first_name : State::first_item;
    if (is_wanted && (c == '{' || item != SIZE_MAX)) {
      is_root_followed_ = true;
      levels_[followed_++] = {false, 0, item};
      wanted_ = item == 0;
    }
    return p + 1;
  }
  const bool is_infinity = c == '-' && end_ - p > 1 && p[1] == 'I';
  if (is_digit(c) || (c == '-' && !is_infinity)) {
    number_ = c == '-' ? Number::minus : c == '0' ? Number::zero : Number::whole;
    state_ = State::in_number;
    return p + 1;
  }
  const char *word = literal_of(c);
  if (!word)
    return fail(JsonFault::syntax, p);
  for (; *word; ++word, ++p)
    if (p == end_ || *p != static_cast<uint8_t>(*word))
      return fail(JsonFault::syntax, p);
  state_ = State::in_literal;
  return p;
}

// The digits of a number, to its end or the piece's.
const uint8_t *JsonLine::number(const uint8_t *p) {
  for (; p < end_; ++p) {
    const uint8_t c = *p;
    const bool digit = is_digit(c);
    const bool is_e = (c | 0x20) == 'e';
    switch (number_) {
    case Number::minus:
      if (!digit)
        return fail(JsonFault::number, p);
      number_ = c == '0' ? Number::zero : Number::whole;
      continue;
    case Number::zero:
      if (digit)
        return fail(JsonFault::number, p);
      [[fallthrough]];
    case Number::whole:
      if (digit)
        continue;
      if (c == '.' || is_e) {
        number_ = is_e ? Number::exponent : Number::point;
        continue;
      }
      return p;
    case Number::point:
      if (!digit)
        return fail(JsonFault::number, p);
      number_ = Number::fraction;
      continue;
    case Number::fraction:
      if (digit)
        continue;
      if (is_e) {
        number_ = Number::exponent;
        continue;
      }
      return p;
    case Number::exponent:
      if (c == '+' || c == '-') {
        number_ = Number::exponent_sign;
        continue;
      }
      [[fallthrough]];
    case Number::exponent_sign:
      if (!digit)
        return fail(JsonFault::number, p);
      number_ = Number::exponent_digits;
      continue;
    case Number::exponent_digits:
      if (digit)
        continue;
      return p;
    }
  }
  return p;
}

// A string until it is closed, which closed_ tells, or the piece ends; to `out` if `writes`. Plain bytes go
// in blocks as far as whole ones may be read; a block is copied whole, hence json_text_room.
template <bool writes> inline const uint8_t *JsonLine::string(const uint8_t *p, uint8_t *&out, bool is_text) {
  const uint8_t *const end = end_, *const readable = readable_;
  uint8_t *to = out;
  closed_ = false;
  for (;;) {
    while (readable - p >= block) {
      const ptrdiff_t plain = plain_bytes(p);
      if constexpr (writes) {
        std::memcpy(to, p, block);
        to += plain;
      }
      p += plain;
      if (plain < block)
        break;
    }
    if (p >= end)
      break;
    const uint8_t c = *p;
    if (c == '"') {
      closed_ = true;
      ++p;
      break;
    }
    if (c == '\\') {
      if (!final_ && end - p < escapes_bytes)
        break;
      if (!(p = escape(p, writes ? &to : nullptr, is_text)))
        return nullptr;
      continue;
    }
    if (c < 0x20)
      return fail(JsonFault::control, p);
    if constexpr (writes)
      *to++ = c;
    ++p;
  }
  if constexpr (writes)
    out = to;
  return p;
}

// \uXXXX behind the u.
const uint8_t *JsonLine::code_unit(const uint8_t *p, uint32_t &unit) {
  unit = 0;
  for (int i = 0; i < 4; ++i, ++p) {
    const int digit = p < end_ ? hex_digit(*p) : -1;
    if (digit < 0)
      return fail(JsonFault::escape, p);
    unit = unit << 4 | static_cast<uint32_t>(digit);
  }
  return p;
}

// An escape from its backslash on, to *out unless that is null.
const uint8_t *JsonLine::escape(const uint8_t *p, uint8_t **out, bool is_text) {
  const uint8_t *const start = p++;
  if (p == end_)
    return fail(JsonFault::cut, p);
  static constexpr char codes[] = "\"\\/bfnrt", characters[] = "\"\\/\b\f\n\r\t";
  const uint8_t c = *p++;
  if (c != 'u') {
    const void *const known = std::memchr(codes, c, sizeof codes - 1);
    if (!known)
      return fail(JsonFault::escape, start);
    if (out)
      *(*out)++ = static_cast<uint8_t>(characters[static_cast<const char *>(known) - codes]);
    return p;
  }
  uint32_t code, low;
  if (!(p = code_unit(p, code)))
    return nullptr;
  if (code >= 0xD800 && code < 0xDC00 && end_ - p >= 6 && p[0] == '\\' && p[1] == 'u') {
    const uint8_t *const behind = code_unit(p + 2, low);
    if (!behind)
      return nullptr;
    if (low >= 0xDC00 && low < 0xE000) { // else it is an escape of its own
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      p = behind;
    }
  }
  if (code >= 0xD800 && code < 0xE000 && is_text) {
    if (!replace_surrogates_)
      return fail(JsonFault::surrogate, start);
    code = 0xFFFD;
    ++replaced_;
  }
  if (out)
    *out += bpe::write_utf8(code, *out); // of half a pair in a name three bytes that no path has
  return p;
}

// As `string`, and whether it may still be the name that the path wants. `buffer`: for what is read of it.
const uint8_t *JsonLine::followed_name(const uint8_t *p, uint8_t *buffer) {
  const uint8_t *const start = p;
  uint8_t *stop = buffer;
  if (!(p = string<true>(p, stop, false)))
    return nullptr;
  const std::string &wanted = path_[followed_ - 1];
  const size_t more = static_cast<size_t>(stop - buffer), left = wanted.size() - name_bytes_;
  // Without an escape it stands where it was read, too: what was just written in blocks is slow to load.
  const uint8_t *const read = p - start == static_cast<ptrdiff_t>(more) + closed_ ? start : buffer;
  name_matches_ = name_matches_ && (closed_ ? more == left : more <= left) &&
                  std::memcmp(wanted.data() + name_bytes_, read, more) == 0;
  name_bytes_ += name_matches_ ? more : 0;
  return p;
}

inline bool JsonLine::end_value() {
  if (other_kind_ != JsonFault::none && nesting_.size() == other_depth_)
    return fail_there(other_kind_, other_place_);
  state_ = nesting_.size() == 0 ? State::line_end : State::after;
  return true;
}

// The line ends here.
bool JsonLine::finish() {
  const bool is_whole_number = number_ == Number::zero || number_ == Number::whole ||
                               number_ == Number::fraction || number_ == Number::exponent_digits;
  if (state_ == State::in_number && is_whole_number && !end_value())
    return false;
  if (is_blank())
    return true;
  if (state_ != State::line_end)
    return fail_there(JsonFault::cut, place_of(end_));
  if (!is_root_followed_)
    return fail_there(JsonFault::not_object, start_place_);
  return found_ || fail_there(JsonFault::missing, start_place_);
}

const uint8_t *JsonLine::fail(JsonFault fault, const uint8_t *at) {
  fail_there(at >= end_ ? JsonFault::cut : fault, place_of(std::min(at, end_)));
  return nullptr;
}

bool JsonLine::fail_there(JsonFault fault, uint64_t place) {
  fault_ = fault;
  fault_place_ = place;
  return false;
}

} // namespace corpus
