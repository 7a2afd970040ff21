// A library to preload that makes the n-th file operation of a job fail, be cut short, or be its last, and that delays
// operations at random, so that processes and threads get ahead of each other in orders that are rare otherwise.
//
// One counter, in a mapped file, is shared by all processes of the job. Only what happens below FAULT_ROOT counts: what
// opens for writing, writes, reads (with FAULT_READS), renames, deletes, makes folders, truncates, syncs. Delayed are
// all these, what opens for reading and asks for a status, and messages in pipes and sockets. Operations that are not
// hooked are not found; strace shows whether there are any.
//
//   FAULT_COUNTER  the mapped file; 64 zero bytes to begin with
//   FAULT_ROOT     the folder
//   FAULT_AT       which operation, from 1; 0 none
//   FAULT_MODE     kill | killmain | killgroup | interruptmain | errno | sticky (all from that one on) | short |
//                  repeat (it is done, and says what a second request for the same would: ENOENT or EEXIST)
//   FAULT_ONLY     names: what makes, renames, links and removes names alone counts, of files those that must not exist
//                  before; close: of files that are written to alone, and the bytes of one whose close fails are lost;
//                  locks and folders: flock and syncs of folders alone
//   FAULT_ERRNO    for errno and sticky
//   FAULT_WHO      all | main | worker: whose operations count; main is the process that came first
//   FAULT_LOG      a file that gets a line an operation
//   DELAY_RATE     how many of a million operations are delayed; 0 none
//   DELAY_MICROSECONDS  half of the delays are as long, a quarter twice, an eighth four times, up to half a second;
//                  each thread has a pace of its own, from an eighth of that to eight times as much, the first one
//                  up to that
//   DELAY_ONLY     open | write | read | stat | rename | unlink | fsync | truncate: these operations alone are delayed
//   DELAY_SEED     of the choice; each thread draws its own numbers, by the order in which threads come
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

typedef struct {
  atomic_long count;
  atomic_int main_pid;
  atomic_long threads;
} Shared;

enum { PASS, FAIL, SHORT, REPEAT };
// The values of FAULT_ONLY with which an operation counts.
enum { NEVER, ALWAYS = 1, NAMES = 2, CLOSES = 4, LOCKS = 8, FOLDERS = 16 };

static Shared *shared;
static char root[PATH_MAX];
static size_t root_length;
static long at;
static const char *mode = "";
static int fault_errno, who, reads, only, log_fd = -1;
static const char *delay_only = "";
static uint64_t delay_rate, delay_microseconds, delay_seed;

static void __attribute__((constructor)) begin(void) {
  const char *counter = getenv("FAULT_COUNTER"), *folder = getenv("FAULT_ROOT");
  if (!counter || !folder || !realpath(folder, root))
    return;
  root_length = strlen(root);
  const char *value = getenv("FAULT_AT");
  at = value ? atol(value) : 0;
  mode = getenv("FAULT_MODE") ? getenv("FAULT_MODE") : "";
  fault_errno = getenv("FAULT_ERRNO") ? atoi(getenv("FAULT_ERRNO")) : EIO;
  reads = getenv("FAULT_READS") != NULL;
  value = getenv("FAULT_WHO");
  who = !value || !strcmp(value, "all") ? 0 : !strcmp(value, "main") ? 1 : 2;
  value = getenv("FAULT_ONLY") ? getenv("FAULT_ONLY") : "";
  only = !strcmp(value, "names")     ? NAMES
         : !strcmp(value, "close")   ? CLOSES
         : !strcmp(value, "locks")   ? LOCKS
         : !strcmp(value, "folders") ? FOLDERS
                                     : ALWAYS | NAMES;
  delay_rate = getenv("DELAY_RATE") ? strtoull(getenv("DELAY_RATE"), NULL, 10) : 0;
  delay_microseconds = getenv("DELAY_MICROSECONDS") ? strtoull(getenv("DELAY_MICROSECONDS"), NULL, 10) : 0;
  delay_only = getenv("DELAY_ONLY") ? getenv("DELAY_ONLY") : "";
  delay_seed = getenv("DELAY_SEED") ? strtoull(getenv("DELAY_SEED"), NULL, 10) : 0;
  int fd = (int)syscall(SYS_openat, AT_FDCWD, counter, O_RDWR | O_CLOEXEC, 0);
  if (fd < 0)
    return;
  void *memory = mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  syscall(SYS_close, fd);
  if (memory == MAP_FAILED)
    return;
  shared = memory;
  int none = 0;
  atomic_compare_exchange_strong(&shared->main_pid, &none, getpid());
  if (getenv("FAULT_LOG"))
    log_fd = (int)syscall(SYS_openat, AT_FDCWD, getenv("FAULT_LOG"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
}

static int below_root(const char *path) {
  return !strncmp(path, root, root_length) && (path[root_length] == '/' || path[root_length] == 0);
}

// The absolute path of a name in a folder; the name itself if that can't be found out.
static void resolve(int folder, const char *name, char *out) {
  if (name[0] == '/') {
    snprintf(out, PATH_MAX, "%s", name);
    return;
  }
  char base[PATH_MAX], link[64];
  ssize_t length;
  if (folder == AT_FDCWD) {
    length = syscall(SYS_getcwd, base, sizeof base) > 0 ? (ssize_t)strlen(base) : -1;
  } else {
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    length = syscall(SYS_readlinkat, AT_FDCWD, link, base, sizeof base - 1);
  }
  if (length < 0)
    length = 0;
  base[length] = 0;
  snprintf(out, PATH_MAX, "%.2000s/%.2000s", base, name);
}

// SplitMix64.
static uint64_t next_number(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

static void delay(void) {
  static _Thread_local uint64_t state, microseconds;
  static _Thread_local pid_t owner; // a forked process begins with a copy of its parent's state
  if (owner != getpid()) {
    owner = getpid();
    const uint64_t number = (uint64_t)atomic_fetch_add(&shared->threads, 1);
    state = delay_seed + (number << 32);
    // The first is the one that others wait for: were it the slowest, they would wait and never meet.
    microseconds = (delay_microseconds << next_number(&state) % (number ? 7 : 4)) / 8;
  }
  if (next_number(&state) % 1000000 >= delay_rate)
    return;
  uint64_t length = microseconds << __builtin_ctzll(next_number(&state) | 1 << 10);
  length = length < 500000 ? length : 500000;
  const struct timespec pause = {.tv_nsec = (long)length * 1000};
  const int before = errno;
  nanosleep(&pause, NULL);
  errno = before;
}

static int is_message(const char *path) { return !strncmp(path, "pipe:", 5) || !strncmp(path, "socket:", 7); }

// counts: whether it is one of those that FAULT_AT numbers, or is delayed only.
static int operation(const char *name, const char *path, int counts) {
  if (!shared)
    return PASS;
  if (delay_rate && (!*delay_only || !strcmp(delay_only, name)) && (below_root(path) || is_message(path)))
    delay();
  if (!(counts & only) || !below_root(path))
    return PASS;
  const int is_main = getpid() == atomic_load(&shared->main_pid);
  if ((who == 1 && !is_main) || (who == 2 && is_main))
    return PASS;
  const long number = atomic_fetch_add(&shared->count, 1) + 1;
  if (log_fd >= 0) {
    char line[PATH_MAX + 100];
    const int length = snprintf(line, sizeof line, "%ld %s %s %s\n", number, is_main ? "main" : "worker", name,
                                path + root_length);
    syscall(SYS_write, log_fd, line, length);
  }
  if (at == 0 || number < at)
    return PASS;
  if (!strcmp(mode, "sticky"))
    return FAIL;
  if (number > at)
    return PASS;
  if (!strcmp(mode, "kill"))
    kill(getpid(), SIGKILL);
  else if (!strcmp(mode, "killmain"))
    kill(atomic_load(&shared->main_pid), SIGKILL);
  else if (!strcmp(mode, "killgroup"))
    kill(0, SIGKILL);
  else if (!strcmp(mode, "interruptmain"))
    kill(atomic_load(&shared->main_pid), SIGINT);
  else if (!strcmp(mode, "errno"))
    return FAIL;
  else if (!strcmp(mode, "repeat"))
    return REPEAT;
  else if (!strcmp(mode, "short"))
    return SHORT;
  return PASS;
}

static int on_path(const char *name, int folder, const char *path, int counts) {
  if (!shared || !path || !(counts || delay_rate))
    return PASS;
  char whole[PATH_MAX];
  resolve(folder, path, whole);
  return operation(name, whole, counts);
}

static int on_descriptor(const char *name, int fd, int counts) {
  if (!shared || !(counts || delay_rate))
    return PASS;
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
  if (length <= 0)
    return PASS;
  path[length] = 0;
  return operation(name, path, counts);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAIL_IF(what)                                                                                        \
  if ((what) == FAIL) {                                                                                      \
    errno = fault_errno;                                                                                     \
    return -1;                                                                                               \
  }

// What a call on names gave, or what a second one would say.
static int answer(int what, int done, int second) {
  if (what != REPEAT || done < 0)
    return done;
  errno = second;
  return -1;
}

static int opened(int what, int fd) {
  if (what != REPEAT || fd < 0)
    return fd;
  syscall(SYS_close, fd);
  errno = EEXIST;
  return -1;
}

static int opens(int flags) {
  const int is_new = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
  return is_new ? NAMES : (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) ? ALWAYS : NEVER;
}

#define OPEN(name)                                                                                           \
  int name(const char *path, int flags, ...) {                                                               \
    va_list rest;                                                                                            \
    va_start(rest, flags);                                                                                   \
    const mode_t rights = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;                          \
    va_end(rest);                                                                                            \
    const int what = on_path("open", AT_FDCWD, path, opens(flags));                                          \
    FAIL_IF(what);                                                                                           \
    return opened(what, NEXT(name)(path, flags, rights));                                                    \
  }
#define OPENAT(name)                                                                                         \
  int name(int folder, const char *path, int flags, ...) {                                                   \
    va_list rest;                                                                                            \
    va_start(rest, flags);                                                                                   \
    const mode_t rights = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;                          \
    va_end(rest);                                                                                            \
    const int what = on_path("open", folder, path, opens(flags));                                            \
    FAIL_IF(what);                                                                                           \
    return opened(what, NEXT(name)(folder, path, flags, rights));                                            \
  }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

ssize_t write(int fd, const void *data, size_t size) {
  const int what = on_descriptor("write", fd, 1);
  FAIL_IF(what);
  return NEXT(write)(fd, data, what == SHORT && size > 1 ? size / 2 : size);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) {
  const int what = on_descriptor("write", fd, 1);
  FAIL_IF(what);
  return NEXT(pwrite64)(fd, data, what == SHORT && size > 1 ? size / 2 : size, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
  FAIL_IF(on_descriptor("write", fd, 1));
  return NEXT(writev)(fd, parts, count);
}

ssize_t read(int fd, void *data, size_t size) {
  const int what = on_descriptor("read", fd, reads);
  FAIL_IF(what);
  return NEXT(read)(fd, data, what == SHORT && size > 1 ? size / 2 : size);
}

ssize_t pread64(int fd, void *data, size_t size, off64_t offset) {
  const int what = on_descriptor("read", fd, reads);
  FAIL_IF(what);
  return NEXT(pread64)(fd, data, what == SHORT && size > 1 ? size / 2 : size, offset);
}

ssize_t preadv64v2(int fd, const struct iovec *parts, int count, off64_t offset, int flags) {
  const int what = on_descriptor("read", fd, reads);
  FAIL_IF(what);
  struct iovec first = parts[0];
  if (what != SHORT || count != 1 || first.iov_len < 2) {
    return NEXT(preadv64v2)(fd, parts, count, offset, flags);
  }
  first.iov_len /= 2;
  return NEXT(preadv64v2)(fd, &first, 1, offset, flags);
}

int rename(const char *from, const char *to) {
  const int what = on_path("rename", AT_FDCWD, to, NAMES);
  FAIL_IF(what);
  return answer(what, NEXT(rename)(from, to), ENOENT);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
  const int what = on_path("rename", to_folder, to, NAMES);
  FAIL_IF(what);
  return answer(what, NEXT(renameat)(from_folder, from, to_folder, to), ENOENT);
}

int link(const char *from, const char *to) {
  const int what = on_path("link", AT_FDCWD, to, NAMES);
  FAIL_IF(what);
  return answer(what, NEXT(link)(from, to), EEXIST);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
  const int what = on_path("link", to_folder, to, NAMES);
  FAIL_IF(what);
  return answer(what, NEXT(linkat)(from_folder, from, to_folder, to, flags), EEXIST);
}

int unlink(const char *path) {
  const int what = on_path("unlink", AT_FDCWD, path, NAMES);
  FAIL_IF(what);
  return answer(what, NEXT(unlink)(path), ENOENT);
}

int unlinkat(int folder, const char *path, int flags) {
  const int what = on_path(flags & AT_REMOVEDIR ? "rmdir" : "unlink", folder, path, NAMES);
  FAIL_IF(what);
  return answer(what, NEXT(unlinkat)(folder, path, flags), ENOENT);
}

int rmdir(const char *path) {
  const int what = on_path("rmdir", AT_FDCWD, path, NAMES);
  FAIL_IF(what);
  return answer(what, NEXT(rmdir)(path), ENOENT);
}

int mkdir(const char *path, mode_t rights) {
  const int what = on_path("mkdir", AT_FDCWD, path, NAMES);
  FAIL_IF(what);
  return answer(what, NEXT(mkdir)(path, rights), EEXIST);
}

int mkdirat(int folder, const char *path, mode_t rights) {
  const int what = on_path("mkdir", folder, path, NAMES);
  FAIL_IF(what);
  return answer(what, NEXT(mkdirat)(folder, path, rights), EEXIST);
}

int close(int fd) {
  const int writes = only == CLOSES && (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
  const int what = writes ? on_descriptor("close", fd, CLOSES) : PASS;
  if (what == FAIL)
    syscall(SYS_ftruncate, fd, 0);
  const int done = NEXT(close)(fd);
  FAIL_IF(what);
  return done;
}

int flock(int fd, int operation) {
  FAIL_IF(on_descriptor("flock", fd, LOCKS));
  return NEXT(flock)(fd, operation);
}

int fsync(int fd) {
  struct stat status;
  const int is_folder = only == FOLDERS && !fstat(fd, &status) && S_ISDIR(status.st_mode);
  FAIL_IF(on_descriptor("fsync", fd, is_folder ? ALWAYS | FOLDERS : ALWAYS));
  return NEXT(fsync)(fd);
}

int fdatasync(int fd) {
  FAIL_IF(on_descriptor("fsync", fd, 1));
  return NEXT(fdatasync)(fd);
}

int syncfs(int fd) {
  FAIL_IF(on_descriptor("fsync", fd, 1));
  return NEXT(syncfs)(fd);
}

int ftruncate64(int fd, off64_t size) {
  FAIL_IF(on_descriptor("truncate", fd, 1));
  return NEXT(ftruncate64)(fd, size);
}

int ftruncate(int fd, off_t size) {
  FAIL_IF(on_descriptor("truncate", fd, 1));
  return NEXT(ftruncate)(fd, size);
}

ssize_t readv(int fd, const struct iovec *parts, int count) {
  FAIL_IF(on_descriptor("read", fd, reads));
  return NEXT(readv)(fd, parts, count);
}

int stat64(const char *path, struct stat64 *status) {
  FAIL_IF(on_path("stat", AT_FDCWD, path, 0));
  return NEXT(stat64)(path, status);
}

int fstat64(int fd, struct stat64 *status) {
  FAIL_IF(on_descriptor("stat", fd, 0));
  return NEXT(fstat64)(fd, status);
}

int fstatat64(int folder, const char *path, struct stat64 *status, int flags) {
  FAIL_IF(on_path("stat", folder, path, 0));
  return NEXT(fstatat64)(folder, path, status, flags);
}
