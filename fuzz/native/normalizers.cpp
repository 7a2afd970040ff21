// Normalizers return valid UTF-8 within the stated length, also in parts that end at boundaries. Normal forms
// are idempotent, and compositions of forms equal one form.
#include "input.hpp"

#include "normalize/normalizer.hpp"

#include <map>

namespace {

using Kind = bpe::Normalizer::Kind;

std::string applied(const bpe::Normalizer &normalizer, std::string_view text,
                    bpe::TextStart start = bpe::TextStart::section) {
  bpe::Normalizer::Scratch scratch;
  const fuzz::Exact own(text);
  return std::string(normalizer.apply(own.view(), scratch, start));
}

std::string formed(const char *name, std::string_view text) {
  static std::map<std::string, std::unique_ptr<bpe::Normalizer>> made;
  std::unique_ptr<bpe::Normalizer> &form = made[name];
  if (!form)
    form = std::make_unique<bpe::Normalizer>(std::vector<Kind>{{name, "", ""}});
  return applied(*form, text);
}

void check_forms(std::string_view text) {
  const std::string nfc = formed("nfc", text), nfd = formed("nfd", text);
  const std::string nfkc = formed("nfkc", text), nfkd = formed("nfkd", text);
  fuzz::expect(formed("nfc", nfc) == nfc && formed("nfd", nfd) == nfd && formed("nfkc", nfkc) == nfkc &&
                   formed("nfkd", nfkd) == nfkd,
               "forms are idempotent");
  fuzz::expect(formed("nfc", nfd) == nfc && formed("nfd", nfc) == nfd,
               "canonical forms convert to each other");
  fuzz::expect(formed("nfkc", nfkd) == nfkc && formed("nfkd", nfkc) == nfkd && formed("nfkd", nfd) == nfkd &&
                   formed("nfkc", nfc) == nfkc && formed("nfc", nfkd) == nfkc && formed("nfd", nfkc) == nfkd,
               "compatibility forms convert to each other");
}

constexpr const char *names[] = {"nfc",
                                 "nfd",
                                 "nfkc",
                                 "nfkd",
                                 "lowercase",
                                 "strip_left",
                                 "strip_right",
                                 "strip_both",
                                 "strip_accents",
                                 "nmt",
                                 "byte_level",
                                 "bert_clean",
                                 "bert_ideographs",
                                 "bert_accents",
                                 "prepend",
                                 "prefix",
                                 "input_prefix",
                                 "replace"};

std::vector<Kind> read_kinds(fuzz::Input &input) {
  std::vector<Kind> kinds;
  for (size_t count = 1 + input.below(3); count > 0; --count) {
    Kind kind{names[input.below(std::size(names))], "", ""};
    if (kind.name == "prepend" || kind.name == "prefix" || kind.name == "input_prefix" ||
        kind.name == "replace")
      kind.first = fuzz::valid_text(input.bytes(1 + input.below(3)));
    if (kind.name == "replace")
      kind.second = fuzz::valid_text(input.bytes(input.below(4)));
    if (kind.first.empty() && kind.name == "replace")
      kind.first = " ";
    if (kind.name.ends_with("prefix")) // prefixes of pre-tokenizers are one character
      kind.first = kind.first.empty()
                       ? " "
                       : kind.first.substr(0, bpe::read_char(bpe::bytes_of(kind.first),
                                                             bpe::bytes_of(kind.first) + kind.first.size())
                                                  .length);
    kinds.push_back(std::move(kind));
  }
  return kinds;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::Input input(data, size);
  const bool of_forms = input.flag();
  if (of_forms) {
    check_forms(fuzz::valid_text(input.repeated_rest(300)));
    return 0;
  }
  const bpe::Normalizer normalizer(read_kinds(input));
  const auto start = static_cast<bpe::TextStart>(1 + input.below(2));
  const fuzz::Exact text(fuzz::valid_text(input.repeated_rest(300)));
  const std::string whole = applied(normalizer, text.view(), start);
  fuzz::expect(bpe::validate_utf8(bpe::bytes_of(whole), whole.size()) == whole.size(), "the output is UTF-8");
  fuzz::expect(whole.size() <= text.size() * normalizer.max_growth(),
               "the output grows by max_growth at most");
  std::string parts;
  bpe::TextStart next = start;
  size_t from = 0;
  const bool may_cut = normalizer.has_borders() && !normalizer.prepends();
  for (size_t at = 1; at <= text.size(); ++at) {
    if (at < text.size() &&
        (bpe::continues_character(text.data()[at]) || !normalizer.is_border(text.view(), at)))
      continue;
    if (at < text.size() && !may_cut)
      continue;
    parts += applied(normalizer, text.view().substr(from, at - from), next);
    next = normalizer.start_behind(next, parts);
    from = at;
  }
  fuzz::expect(parts == whole, "parts between boundaries are normalized like the whole");
  return 0;
}
