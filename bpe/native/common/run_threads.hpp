// One piece of work a thread, side by side, once.
#pragma once

#include <exception>
#include <thread>
#include <vector>

namespace bpe {

// Calls work(0) to work(threads - 1), work(0) on this thread; throws what one of them threw, when all have
// ended.
template <class Work> void run_threads(unsigned threads, Work work) {
  std::vector<std::exception_ptr> errors(threads);
  auto guarded = [&](unsigned index) {
    try {
      work(index);
    } catch (...) {
      errors[index] = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  try {
    for (unsigned index = 1; index < threads; index++)
      others.emplace_back(guarded, index);
  } catch (...) { // no thread to be had: those that run must end before the error goes on
    errors[0] = std::current_exception();
  }
  if (!errors[0])
    guarded(0);
  for (std::thread &other : others)
    other.join();
  for (const std::exception_ptr &error : errors)
    if (error)
      std::rethrow_exception(error);
}

} // namespace bpe
