// A thread pool: run() calls the work once on each thread and returns when all calls have returned. The work
// distributes its own tasks, since there may be fewer threads than requested.
//
// Threads sleep between runs, because spinning threads are worse than none when another process needs a core.
// A run costs tens of microseconds and should be used for at least ten times that much work.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace bpe {

class ThreadTeam {
public:
  // The thread that calls run() is one of the threads. There may be fewer if the system refuses more.
  explicit ThreadTeam(unsigned threads) {
    try {
      for (unsigned index = 1; index < threads; index++)
        others_.emplace_back([this, index] { serve(index); });
    } catch (const std::exception &) { // no thread or memory available: use the threads that started
    }
  }
  ~ThreadTeam() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread &other : others_)
      other.join();
  }
  ThreadTeam(const ThreadTeam &) = delete;
  ThreadTeam &operator=(const ThreadTeam &) = delete;

  unsigned size() const { return static_cast<unsigned>(others_.size()) + 1; }

  // Call work(0) to work(size() - 1) in parallel, with work(0) on this thread. Rethrows one of their
  // exceptions.
  void run(const std::function<void(unsigned)> &work) {
    {
      std::lock_guard lock(mutex_);
      work_ = &work;
      error_ = nullptr;
      busy_ = others_.size();
      round_++;
    }
    wake_.notify_all();
    guarded(work, 0);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
    if (error_)
      std::rethrow_exception(error_);
  }

private:
  void guarded(const std::function<void(unsigned)> &work, unsigned index) {
    try {
      work(index);
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!error_)
        error_ = std::current_exception();
    }
  }

  void serve(unsigned index) {
    std::unique_lock lock(mutex_);
    for (uint64_t seen = 0;;) {
      wake_.wait(lock, [&] { return stopping_ || round_ != seen; });
      if (stopping_)
        return;
      seen = round_;
      const auto *work = work_;
      lock.unlock();
      guarded(*work, index);
      lock.lock();
      if (--busy_ == 0)
        done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(unsigned)> *work_ = nullptr;
  std::exception_ptr error_;
  size_t busy_ = 0;
  uint64_t round_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> others_;
};

} // namespace bpe
