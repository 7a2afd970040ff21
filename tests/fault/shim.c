// A library to preload that makes the n-th file operation of a job fail, be cut short, or be its last.
//
// One counter, in a mapped file, is shared by all processes of the job. Only what happens below FAULT_ROOT counts: what
// opens for writing, writes, reads (with FAULT_READS), renames, deletes, makes folders, truncates, syncs. Operations
// that are not hooked are not found; strace shows whether there are any.
//
//   FAULT_COUNTER  the mapped file; 64 zero bytes to begin with
//   FAULT_ROOT     the folder
//   FAULT_AT       which operation, from 1; 0 none
//   FAULT_MODE     kill | killmain | killgroup | errno | sticky (all from that one on) | short
//   FAULT_ERRNO    for errno and sticky
//   FAULT_WHO      all | main | worker: whose operations count; main is the process that came first
//   FAULT_LOG      a file that gets a line an operation
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

typedef struct {
  atomic_long count;
  atomic_int main_pid;
} Shared;

enum { PASS, FAIL, SHORT };

static Shared *shared;
static char root[PATH_MAX];
static size_t root_length;
static long at;
static const char *mode = "";
static int fault_errno, who, reads, log_fd = -1;

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

static int operation(const char *name, const char *path) {
  if (!shared || !below_root(path))
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
  else if (!strcmp(mode, "errno"))
    return FAIL;
  else if (!strcmp(mode, "short"))
    return SHORT;
  return PASS;
}

static int on_path(const char *name, int folder, const char *path) {
  if (!shared || !path)
    return PASS;
  char whole[PATH_MAX];
  resolve(folder, path, whole);
  return operation(name, whole);
}

static int on_descriptor(const char *name, int fd) {
  if (!shared)
    return PASS;
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
  if (length <= 0)
    return PASS;
  path[length] = 0;
  return operation(name, path);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAIL_IF(what)                                                                                        \
  if ((what) == FAIL) {                                                                                      \
    errno = fault_errno;                                                                                     \
    return -1;                                                                                               \
  }

static int changes(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)); }

#define OPEN(name)                                                                                           \
  int name(const char *path, int flags, ...) {                                                               \
    va_list rest;                                                                                            \
    va_start(rest, flags);                                                                                   \
    const mode_t rights = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;                          \
    va_end(rest);                                                                                            \
    if (changes(flags))                                                                                      \
      FAIL_IF(on_path("open", AT_FDCWD, path));                                                              \
    return NEXT(name)(path, flags, rights);                                                                  \
  }
#define OPENAT(name)                                                                                         \
  int name(int folder, const char *path, int flags, ...) {                                                   \
    va_list rest;                                                                                            \
    va_start(rest, flags);                                                                                   \
    const mode_t rights = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;                          \
    va_end(rest);                                                                                            \
    if (changes(flags))                                                                                      \
      FAIL_IF(on_path("open", folder, path));                                                                \
    return NEXT(name)(folder, path, flags, rights);                                                          \
  }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

ssize_t write(int fd, const void *data, size_t size) {
  const int what = on_descriptor("write", fd);
  FAIL_IF(what);
  return NEXT(write)(fd, data, what == SHORT && size > 1 ? size / 2 : size);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) {
  const int what = on_descriptor("write", fd);
  FAIL_IF(what);
  return NEXT(pwrite64)(fd, data, what == SHORT && size > 1 ? size / 2 : size, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
  FAIL_IF(on_descriptor("write", fd));
  return NEXT(writev)(fd, parts, count);
}

ssize_t read(int fd, void *data, size_t size) {
  const int what = reads ? on_descriptor("read", fd) : PASS;
  FAIL_IF(what);
  return NEXT(read)(fd, data, what == SHORT && size > 1 ? size / 2 : size);
}

ssize_t pread64(int fd, void *data, size_t size, off64_t offset) {
  const int what = reads ? on_descriptor("read", fd) : PASS;
  FAIL_IF(what);
  return NEXT(pread64)(fd, data, what == SHORT && size > 1 ? size / 2 : size, offset);
}

int rename(const char *from, const char *to) {
  FAIL_IF(on_path("rename", AT_FDCWD, to));
  return NEXT(rename)(from, to);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
  FAIL_IF(on_path("rename", to_folder, to));
  return NEXT(renameat)(from_folder, from, to_folder, to);
}

int unlink(const char *path) {
  FAIL_IF(on_path("unlink", AT_FDCWD, path));
  return NEXT(unlink)(path);
}

int unlinkat(int folder, const char *path, int flags) {
  FAIL_IF(on_path(flags & AT_REMOVEDIR ? "rmdir" : "unlink", folder, path));
  return NEXT(unlinkat)(folder, path, flags);
}

int rmdir(const char *path) {
  FAIL_IF(on_path("rmdir", AT_FDCWD, path));
  return NEXT(rmdir)(path);
}

int mkdir(const char *path, mode_t rights) {
  FAIL_IF(on_path("mkdir", AT_FDCWD, path));
  return NEXT(mkdir)(path, rights);
}

int mkdirat(int folder, const char *path, mode_t rights) {
  FAIL_IF(on_path("mkdir", folder, path));
  return NEXT(mkdirat)(folder, path, rights);
}

int fsync(int fd) {
  FAIL_IF(on_descriptor("fsync", fd));
  return NEXT(fsync)(fd);
}

int fdatasync(int fd) {
  FAIL_IF(on_descriptor("fsync", fd));
  return NEXT(fdatasync)(fd);
}

int ftruncate64(int fd, off64_t size) {
  FAIL_IF(on_descriptor("truncate", fd));
  return NEXT(ftruncate64)(fd, size);
}

int ftruncate(int fd, off_t size) {
  FAIL_IF(on_descriptor("truncate", fd));
  return NEXT(ftruncate)(fd, size);
}
