// A library to preload that notes what a job does to the files below a folder, with the bytes that it writes: enough to
// do it all again, in part and in other orders (power_loss.py).
//
// An operation is noted once it has succeeded, before its caller goes on; a sync also when it begins: what is noted
// before its beginning is what it made lasting. What is not hooked is not found: who reads the record does it all again
// and compares.
//
//   RECORD_ROOT  the folder
//   RECORD_FILE  the record: an Entry each, then its two paths and its data
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CREATE = 1, WRITE, SIZE, RENAME, LINK, UNLINK, RMDIR, MKDIR, SYNC_BEGINS, SYNC_ENDS };

typedef struct {
  uint32_t kind, thread;
  uint64_t inode;
  int64_t offset; // of a write; the size of a truncation; whether a file was made empty, or all files synced
  uint32_t path_bytes, other_bytes;
  uint64_t data_bytes;
} Entry;

static char root[PATH_MAX];
static size_t root_length;
static int record = -1;

static void __attribute__((constructor)) begin(void) {
  const char *folder = getenv("RECORD_ROOT"), *file = getenv("RECORD_FILE");
  if (!folder || !file || !realpath(folder, root))
    return;
  root_length = strlen(root);
  const int opened = (int)syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  record = (int)syscall(SYS_fcntl, opened, F_DUPFD_CLOEXEC, 900); // out of the way of who closes what it does not know
  syscall(SYS_close, opened);
}

// The absolute path of a name; 0 if it is not below the folder.
static int resolve(int folder, const char *name, char *out) {
  char base[PATH_MAX], link[64];
  ssize_t length = 0;
  if (!name || record < 0)
    return 0;
  if (name[0] != '/') {
    if (folder == AT_FDCWD) {
      length = syscall(SYS_getcwd, base, sizeof base) > 0 ? (ssize_t)strlen(base) : 0;
    } else {
      snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
      length = syscall(SYS_readlinkat, AT_FDCWD, link, base, sizeof base - 1);
    }
    base[length > 0 ? length : 0] = 0;
    snprintf(out, PATH_MAX, "%.2000s/%.2000s", base, name);
  } else {
    snprintf(out, PATH_MAX, "%s", name);
  }
  return !strncmp(out, root, root_length) && (out[root_length] == '/' || out[root_length] == 0);
}

// The inode of what is open; 0 if it does not lie below the folder, or did not.
static uint64_t inode_of(int fd) {
  char link[64], path[PATH_MAX];
  struct stat status;
  if (record < 0 || fd == record)
    return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
  if (length <= 0)
    return 0;
  path[length] = 0;
  if (strncmp(path, root, root_length) || (path[root_length] && path[root_length] != '/'))
    return 0;
  return syscall(SYS_fstat, fd, &status) ? 0 : status.st_ino;
}

static void note(uint32_t kind, uint64_t inode, int64_t offset, const char *path, const char *other, const void *data,
                 size_t size) {
  const int before = errno;
  Entry entry = {kind, (uint32_t)syscall(SYS_gettid), inode, offset, path ? strlen(path) : 0,
                 other ? strlen(other) : 0, size};
  const struct iovec parts[] = {{&entry, sizeof entry},
                                {(void *)path, entry.path_bytes},
                                {(void *)other, entry.other_bytes},
                                {(void *)data, size}};
  if (syscall(SYS_writev, record, parts, 4) < 0)
    abort();
  errno = before;
}

static void note_path(uint32_t kind, int folder, const char *path, int64_t offset) {
  char whole[PATH_MAX];
  struct stat status = {0};
  const int before = errno;
  if (resolve(folder, path, whole)) {
    if (kind == CREATE || kind == MKDIR)
      syscall(SYS_newfstatat, AT_FDCWD, whole, &status, 0);
    note(kind, status.st_ino, offset, whole + root_length, NULL, NULL, 0);
  }
  errno = before;
}

static void note_paths(uint32_t kind, int from_folder, const char *from, int to_folder, const char *to) {
  char first[PATH_MAX], second[PATH_MAX];
  const int is_from = resolve(from_folder, from, first), is_to = resolve(to_folder, to, second);
  if (is_from && is_to)
    note(kind, 0, 0, first + root_length, second + root_length, NULL, 0);
}

// Bytes that were written at an offset; -1: where the file is now.
static void note_write(int fd, const void *data, ssize_t size, off_t offset) {
  const int before = errno;
  const uint64_t inode = size > 0 ? inode_of(fd) : 0;
  if (inode)
    note(WRITE, inode, offset < 0 ? syscall(SYS_lseek, fd, 0, SEEK_CUR) - size : offset, NULL, NULL, data, size);
  errno = before;
}

static void note_parts(int fd, const struct iovec *parts, int count, ssize_t size, off_t offset) {
  if (size > 0 && offset < 0)
    offset = syscall(SYS_lseek, fd, 0, SEEK_CUR) - size;
  for (int i = 0; i < count && size > 0; ++i) {
    const ssize_t own = (ssize_t)parts[i].iov_len < size ? (ssize_t)parts[i].iov_len : size;
    note_write(fd, parts[i].iov_base, own, offset);
    size -= own, offset += own;
  }
}

// What the kernel put there by itself.
static void note_copied(int fd, ssize_t size) {
  const int before = errno;
  char link[64];
  if (size <= 0 || !inode_of(fd))
    return;
  const off_t offset = syscall(SYS_lseek, fd, 0, SEEK_CUR) - size;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const int copy = (int)syscall(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC, 0);
  char *data = malloc(size);
  if (copy < 0 || !data || syscall(SYS_pread64, copy, data, size, offset) != size)
    abort();
  note_write(fd, data, size, offset);
  free(data);
  syscall(SYS_close, copy);
  errno = before;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int opened(int fd, int folder, const char *path, int flags) {
  if (fd >= 0 && (flags & (O_CREAT | O_TRUNC)) && (flags & O_TMPFILE) != O_TMPFILE)
    note_path(CREATE, folder, path, (flags & O_TRUNC) != 0);
  return fd;
}

#define RIGHTS(last)                                                                                                   \
  va_list rest;                                                                                                        \
  va_start(rest, last);                                                                                                \
  const mode_t rights = last & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;                                       \
  va_end(rest)
#define OPEN(name)                                                                                                     \
  int name(const char *path, int flags, ...) {                                                                         \
    RIGHTS(flags);                                                                                                     \
    return opened(NEXT(name)(path, flags, rights), AT_FDCWD, path, flags);                                             \
  }
#define OPENAT(name)                                                                                                   \
  int name(int folder, const char *path, int flags, ...) {                                                             \
    RIGHTS(flags);                                                                                                     \
    return opened(NEXT(name)(folder, path, flags, rights), folder, path, flags);                                       \
  }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

ssize_t write(int fd, const void *data, size_t size) {
  const ssize_t done = NEXT(write)(fd, data, size);
  note_write(fd, data, done, -1);
  return done;
}

#define PWRITE(name)                                                                                                   \
  ssize_t name(int fd, const void *data, size_t size, off_t offset) {                                                  \
    const ssize_t done = NEXT(name)(fd, data, size, offset);                                                           \
    note_write(fd, data, done, offset);                                                                                \
    return done;                                                                                                       \
  }
PWRITE(pwrite)
PWRITE(pwrite64)

ssize_t writev(int fd, const struct iovec *parts, int count) {
  const ssize_t done = NEXT(writev)(fd, parts, count);
  note_parts(fd, parts, count, done, -1);
  return done;
}

ssize_t pwritev64v2(int fd, const struct iovec *parts, int count, off_t offset, int flags) {
  const ssize_t done = NEXT(pwritev64v2)(fd, parts, count, offset, flags);
  note_parts(fd, parts, count, done, offset);
  return done;
}

#define SENDFILE(name)                                                                                                 \
  ssize_t name(int to, int from, off_t *offset, size_t size) {                                                         \
    const ssize_t done = NEXT(name)(to, from, offset, size);                                                           \
    note_copied(to, done);                                                                                             \
    return done;                                                                                                       \
  }
SENDFILE(sendfile)
SENDFILE(sendfile64)

ssize_t copy_file_range(int from, off_t *from_offset, int to, off_t *to_offset, size_t size, unsigned flags) {
  const ssize_t done = NEXT(copy_file_range)(from, from_offset, to, to_offset, size, flags);
  note_copied(to, done);
  return done;
}

static int resized(int fd, off_t size, int failed) {
  const uint64_t inode = failed ? 0 : inode_of(fd);
  if (inode)
    note(SIZE, inode, size, NULL, NULL, NULL, 0);
  return failed;
}
int ftruncate(int fd, off_t size) { return resized(fd, size, NEXT(ftruncate)(fd, size)); }
int ftruncate64(int fd, off_t size) { return resized(fd, size, NEXT(ftruncate64)(fd, size)); }

#define SYNC(name, whole)                                                                                              \
  int name(int fd) {                                                                                                   \
    const uint64_t inode = inode_of(fd);                                                                               \
    if (inode)                                                                                                         \
      note(SYNC_BEGINS, inode, whole, NULL, NULL, NULL, 0);                                                            \
    const int failed = NEXT(name)(fd);                                                                                 \
    if (inode && !failed)                                                                                              \
      note(SYNC_ENDS, inode, whole, NULL, NULL, NULL, 0);                                                              \
    return failed;                                                                                                     \
  }
SYNC(fsync, 0)
SYNC(fdatasync, 0)
SYNC(syncfs, 1)

int rename(const char *from, const char *to) {
  const int failed = NEXT(rename)(from, to);
  if (!failed)
    note_paths(RENAME, AT_FDCWD, from, AT_FDCWD, to);
  return failed;
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
  const int failed = NEXT(renameat)(from_folder, from, to_folder, to);
  if (!failed)
    note_paths(RENAME, from_folder, from, to_folder, to);
  return failed;
}

int link(const char *from, const char *to) {
  const int failed = NEXT(link)(from, to);
  if (!failed)
    note_paths(LINK, AT_FDCWD, from, AT_FDCWD, to);
  return failed;
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
  const int failed = NEXT(linkat)(from_folder, from, to_folder, to, flags);
  if (!failed)
    note_paths(LINK, from_folder, from, to_folder, to);
  return failed;
}

int unlink(const char *path) {
  const int failed = NEXT(unlink)(path);
  if (!failed)
    note_path(UNLINK, AT_FDCWD, path, 0);
  return failed;
}

int unlinkat(int folder, const char *path, int flags) {
  const int failed = NEXT(unlinkat)(folder, path, flags);
  if (!failed)
    note_path(flags & AT_REMOVEDIR ? RMDIR : UNLINK, folder, path, 0);
  return failed;
}

int rmdir(const char *path) {
  const int failed = NEXT(rmdir)(path);
  if (!failed)
    note_path(RMDIR, AT_FDCWD, path, 0);
  return failed;
}

int mkdir(const char *path, mode_t rights) {
  const int failed = NEXT(mkdir)(path, rights);
  if (!failed)
    note_path(MKDIR, AT_FDCWD, path, 0);
  return failed;
}

int mkdirat(int folder, const char *path, mode_t rights) {
  const int failed = NEXT(mkdirat)(folder, path, rights);
  if (!failed)
    note_path(MKDIR, folder, path, 0);
  return failed;
}
