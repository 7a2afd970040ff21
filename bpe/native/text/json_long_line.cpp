#include "text/json_long_line.hpp"

namespace bpe {

namespace {

// Two escapes of six bytes each: half a pair is only understood with what follows.
constexpr ptrdiff_t escapes_bytes = 12;
constexpr ptrdiff_t literal_bytes = 5; // "false"

bool is_space(uint8_t c) {
  return c == ' ' || c == '\t' || c == '\r';
}

} // namespace

JsonLongLine::JsonLongLine(std::vector<std::string> path, bool replace_surrogates)
    : JsonScanner(replace_surrogates), path_(std::move(path)) {}

JsonLongLine::Fed JsonLongLine::feed(const uint8_t *piece, size_t size, bool final, uint8_t *out) {
  uint8_t *const text = out;
  piece_ = p_ = piece;
  end_ = piece + size;
  if (state_ != State::stopped) {
    if (!run(final, out) || (final && !finish())) {
      if (fault_there_ == JsonFault::none)
        fault_place_ = base_ + static_cast<uint64_t>(JsonScanner::place() - piece);
      state_ = State::stopped;
      out = text;
    }
  }
  const size_t used = state_ == State::stopped ? size : static_cast<size_t>(p_ - piece);
  base_ += used;
  return {used, static_cast<size_t>(out - text)};
}

// Goes on to the end of the piece, or to an escape or a word that it cuts.
bool JsonLongLine::run(bool final, uint8_t *&out) {
  uint8_t *nowhere = nullptr;
  while (p_ < end_) {
    bool closed = false;
    switch (state_) {
    case State::in_text:
    case State::in_string:
      if (!string(final, state_ == State::in_text ? out : nowhere, state_ == State::in_text, closed))
        return false;
      if (!closed)
        return true;
      if (!end_value())
        return false;
      continue;
    case State::in_name:
      if (!name(final, out, closed))
        return false;
      if (!closed)
        return true;
      state_ = State::colon;
      continue;
    case State::in_number:
      if (!number())
        return false;
      continue;
    default:
      break;
    }
    const uint8_t c = *p_;
    if (is_space(c)) {
      ++p_;
      continue;
    }
    switch (state_) {
    case State::first_item:
      if (c == ']') {
        ++p_;
        end_container();
        if (!end_value())
          return false;
        continue;
      }
      state_ = State::value;
      [[fallthrough]];
    case State::value:
      if ((c == 't' || c == 'f' || c == 'n') && !final && end_ - p_ < literal_bytes)
        return true;
      if (!begin_value())
        return false;
      continue;
    case State::first_name:
      if (c == '}') {
        ++p_;
        end_container();
        if (!end_value())
          return false;
        continue;
      }
      [[fallthrough]];
    case State::name:
      if (c != '"')
        return fail(JsonFault::syntax, p_);
      name_place_ = base_ + static_cast<uint64_t>(p_ - piece_);
      name_.clear();
      state_ = State::in_name;
      ++p_;
      continue;
    case State::colon:
      if (c != ':')
        return fail(JsonFault::syntax, p_);
      ++p_;
      wanted_ = is_followed() && name_ == path_[levels_.size() - 1];
      if (wanted_) {
        if (levels_.back().seen)
          return fail_there(JsonFault::twice, name_place_);
        levels_.back().seen = true;
      }
      state_ = State::value;
      continue;
    case State::after:
      if (c == ',') {
        ++p_;
        const bool is_object = nesting_.back();
        wanted_ = !is_object && is_followed() && ++levels_.back().item == levels_.back().wanted_item;
        state_ = is_object ? State::name : State::value;
      } else if (c == (nesting_.back() ? '}' : ']')) {
        ++p_;
        end_container();
        if (!end_value())
          return false;
      } else {
        return fail(JsonFault::syntax, p_);
      }
      continue;
    default: // line_end
      return fail(JsonFault::trailing, p_);
    }
  }
  return true;
}

bool JsonLongLine::begin_value() {
  const uint8_t c = *p_;
  const size_t depth = nesting_.size();
  const uint64_t place = base_ + static_cast<uint64_t>(p_ - piece_);
  if (!begun_) {
    begun_ = true;
    start_place_ = place;
  }
  bool is_wanted = wanted_;
  wanted_ = false;
  if (is_wanted && depth == path_.size()) {
    if (c == '"') {
      ++p_;
      found_ = true;
      state_ = State::in_text;
      return true;
    }
    other_kind_ = c == 'n'               ? JsonFault::is_null
                  : c == 't' || c == 'f' ? JsonFault::is_bool
                  : c == '['             ? JsonFault::is_list
                  : c == '{'             ? JsonFault::is_object
                                         : JsonFault::is_number;
    other_depth_ = depth;
    other_place_ = place;
    is_wanted = false;
  }
  if (c == '{' || c == '[') {
    ++p_;
    nesting_.push_back(c == '{');
    state_ = c == '{' ? State::first_name : State::first_item;
    const size_t item = is_wanted && c == '[' ? json_index_of(path_[depth]) : SIZE_MAX;
    if (is_wanted && (c == '{' || item != SIZE_MAX)) {
      is_root_followed_ = true;
      levels_.push_back({false, 0, item});
      wanted_ = item == 0;
    }
    return true;
  }
  if (c == '"') {
    ++p_;
    state_ = State::in_string;
    return true;
  }
  if (c == '-' || is_json_digit(c)) {
    ++p_;
    number_ = c == '-' ? Number::minus : c == '0' ? Number::zero : Number::whole;
    state_ = State::in_number;
    return true;
  }
  if (c != 't' && c != 'f' && c != 'n')
    return fail(JsonFault::syntax, p_);
  return literal(c == 't' ? "true" : c == 'f' ? "false" : "null") && end_value();
}

// The digits of a number at p_; behind it the next state.
bool JsonLongLine::number() {
  for (; p_ < end_; ++p_) {
    const uint8_t c = *p_;
    const bool digit = is_json_digit(c);
    const bool is_e = (c | 0x20) == 'e';
    switch (number_) {
    case Number::minus:
      if (!digit)
        return fail(JsonFault::number, p_);
      number_ = c == '0' ? Number::zero : Number::whole;
      continue;
    case Number::zero:
      if (digit)
        return fail(JsonFault::number, p_);
      [[fallthrough]];
    case Number::whole:
      if (digit)
        continue;
      if (c == '.' || is_e) {
        number_ = is_e ? Number::exponent : Number::point;
        continue;
      }
      return end_value();
    case Number::point:
      if (!digit)
        return fail(JsonFault::number, p_);
      number_ = Number::fraction;
      continue;
    case Number::fraction:
      if (digit)
        continue;
      if (is_e) {
        number_ = Number::exponent;
        continue;
      }
      return end_value();
    case Number::exponent:
      if (c == '+' || c == '-') {
        number_ = Number::exponent_sign;
        continue;
      }
      [[fallthrough]];
    case Number::exponent_sign:
      if (!digit)
        return fail(JsonFault::number, p_);
      number_ = Number::exponent_digits;
      continue;
    case Number::exponent_digits:
      if (digit)
        continue;
      return end_value();
    }
  }
  return true;
}

// A string from p_ on, to `out` unless that is null, until it is closed or the piece ends.
bool JsonLongLine::string(bool final, uint8_t *&out, bool is_text, bool &closed) {
  while (p_ < end_) {
    plain_blocks(end_, out);
    if (p_ == end_)
      return true;
    const uint8_t c = *p_;
    if (c == '\\') {
      if (!final && end_ - p_ < escapes_bytes)
        return true;
      ++p_;
      if (!escape(out, is_text))
        return false;
      continue;
    }
    if (c < 0x20)
      return fail(JsonFault::control, p_);
    ++p_;
    if (c == '"') {
      closed = true;
      return true;
    }
    if (out)
      *out++ = c;
  }
  return true;
}

// As `string`; it goes to name_ as far as it may still be what the path wants. `room`: for what is read of
// it.
bool JsonLongLine::name(bool final, uint8_t *room, bool &closed) {
  uint8_t *stop = is_followed() ? room : nullptr;
  if (!string(final, stop, false, closed))
    return false;
  if (stop) {
    const size_t longest = path_[levels_.size() - 1].size() + 1;
    const size_t more = std::min(static_cast<size_t>(stop - room), longest - std::min(longest, name_.size()));
    name_.append(reinterpret_cast<const char *>(room), more);
  }
  return true;
}

bool JsonLongLine::end_value() {
  if (other_kind_ != JsonFault::none && nesting_.size() == other_depth_)
    return fail_there(other_kind_, other_place_);
  state_ = nesting_.empty() ? State::line_end : State::after;
  return true;
}

void JsonLongLine::end_container() {
  nesting_.pop_back();
  if (levels_.size() > nesting_.size())
    levels_.pop_back();
}

// The line ends here.
bool JsonLongLine::finish() {
  const bool is_whole_number = number_ == Number::zero || number_ == Number::whole ||
                               number_ == Number::fraction || number_ == Number::exponent_digits;
  if (state_ == State::in_number && is_whole_number && !end_value())
    return false;
  if (is_blank())
    return true;
  if (state_ != State::line_end)
    return fail(JsonFault::cut, end_);
  if (!is_root_followed_)
    return fail_there(JsonFault::not_object, start_place_);
  return found_ || fail_there(JsonFault::missing, start_place_);
}

bool JsonLongLine::fail_there(JsonFault fault, uint64_t place) {
  fault_there_ = fault;
  fault_place_ = place;
  return false;
}

} // namespace bpe
