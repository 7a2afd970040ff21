// Which stretches of a text may not be in the normal form NFC: a quick check, as Unicode Annex 15 has it.
//
// A character is clean (class 0: it stays as it is and composes with nothing before it, so the text may be
// normalized apart before and after the place where it begins), a mark that stays where it stands if the
// marks before it have no higher combining class (classes 1 to 254), or doubtful (255: it may compose, it is
// never in the form, or it was not assigned when the table was made). A stretch runs from a clean character
// to the next and is told of if it holds a doubtful one or marks out of order; all else is in the form for
// certain. Doubtful is not wrong: Bengali vowels are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bpe {

// Starts and stops of the doubtful stretches, ascending and apart. Valid UTF-8. About 1 GB/s, ASCII 8 GB/s.
std::vector<uint64_t> doubtful_for_nfc(const uint8_t *text, size_t size);

struct NfcRun {
  uint32_t start; // code points from here to the next run
  uint8_t number; // their class
};
extern const NfcRun nfc_runs[];
extern const size_t nfc_run_count;

} // namespace bpe
