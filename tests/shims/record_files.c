/* Records every change of the files below a directory, in the order in which the changes took effect.
 *
 *   RECORD_FILES_ROOT    the directory, an absolute path without symbolic links
 *   RECORD_FILES_TRACE   the output file; it must exist, outside of the directory
 *   RECORD_FILES_NOTES   a path outside of the directory; what is written to it becomes notes among the records
 *   RECORD_FILES_DELAY   the maximum delay of a sync in microseconds, so that more changes are concurrent
 *   RECORD_FILES_FULL    bytes and milliseconds: once this many bytes were written below store/index* and store/log after
 *                        the note "opened", writes there that need new blocks fail with ENOSPC for this long; the first
 *                        failure below store/index* is noted as "full"
 *   RECORD_FILES_DIRECT  set if system calls that the program makes without the C library are recorded as well
 *
 * A change is made and recorded under one mutex. A sync is recorded when it begins and when it has ended, and is made
 * without the mutex. The note "end" kills the process, while the mutex is held: every change is recorded.
 *
 * Other system calls that bypass the C library are not intercepted. Files opened that way are registered when they are
 * changed; any other change is detected when the records are replayed and compared with the directory.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* The kinds of records, known to trace.rs by the same numbers. */
enum kind {
    OPEN = 1,    /* fd; a: flags; first: path; other: directory's fd */
    CLOSE,       /* fd */
    DUP,         /* fd, other: the new one */
    WRITE,       /* fd; a: offset; first: data */
    TRUNCATE,    /* fd; a: size */
    ALLOCATE,    /* fd; a: offset; b: length; other: mode */
    RENAME,      /* fd, first: from; other, second: to; a: flags */
    LINK,        /* fd, first: from; other, second: to */
    UNLINK,      /* other, first: path */
    MKDIR,       /* other, first: path */
    RMDIR,       /* other, first: path */
    SYNC_BEGIN,  /* fd; a: number; b: 1 for fdatasync */
    SYNC_END,    /* a: number; b: 1 if it succeeded */
    SYNC_RANGE,  /* fd; a: offset; b: length */
    NOTE,        /* first: text */
    UNSUPPORTED, /* first: the name of the call */
};

struct header {
    uint32_t kind;
    int32_t fd;
    int32_t other;
    uint32_t first;
    uint32_t second;
    uint32_t reserved;
    uint64_t a;
    uint64_t b;
};

#define MOST_FDS 65536
/* Stands for the directory itself in place of a directory's fd. */
#define ROOT (-100)

enum state { FOREIGN = 0, TRACKED, NOTES };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned char fds[MOST_FDS];
static char root[PATH_MAX], notes[PATH_MAX];
static size_t root_len;
static int trace = -1;
static long delay;
static uint64_t syncs;
/* The files whose writes can fail with ENOSPC. */
static volatile unsigned char limited[MOST_FDS];
static uint64_t full_after, full_millis, full_since, full_used;
static int full_counts, full_noted;
#define IN_INDEX 2

/* The C library's function of this name. */
#define REAL(result, name, ...)                                          \
    static result (*real_##name)(__VA_ARGS__);                           \
    static result (*get_##name(void))(__VA_ARGS__) {                     \
        if (real_##name == NULL)                                         \
            real_##name = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name); \
        return real_##name;                                              \
    }

REAL(int, open64, const char *, int, ...)
REAL(int, openat64, int, const char *, int, ...)
REAL(int, close, int)
REAL(int, closedir, DIR *)
REAL(int, dup, int)
REAL(int, dup2, int, int)
REAL(int, dup3, int, int, int)
REAL(int, fcntl64, int, int, ...)
REAL(ssize_t, write, int, const void *, size_t)
REAL(ssize_t, writev, int, const struct iovec *, int)
REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t)
REAL(ssize_t, pwritev64, int, const struct iovec *, int, off64_t)
REAL(ssize_t, pwritev64v2, int, const struct iovec *, int, off64_t, int)
REAL(ssize_t, copy_file_range, int, off64_t *, int, off64_t *, size_t, unsigned)
REAL(ssize_t, sendfile64, int, int, off64_t *, size_t)
REAL(ssize_t, splice, int, off64_t *, int, off64_t *, size_t, unsigned)
REAL(int, ftruncate64, int, off64_t)
REAL(int, fallocate64, int, int, off64_t, off64_t)
REAL(int, posix_fallocate64, int, off64_t, off64_t)
REAL(int, renameat2, int, const char *, int, const char *, unsigned)
REAL(int, linkat, int, const char *, int, const char *, int)
REAL(int, symlinkat, const char *, int, const char *)
REAL(int, unlinkat, int, const char *, int)
REAL(int, mkdirat, int, const char *, mode_t)
REAL(int, fsync, int)
REAL(int, fdatasync, int)
REAL(int, sync_file_range, int, off64_t, off64_t, unsigned)

static void die(const char *why) {
    static const char begin[] = "record_files: ";
    int saved = errno;
    char text[32];
    int len = snprintf(text, sizeof text, " (errno %d)\n", saved);
    if (get_write()(2, begin, sizeof begin - 1) < 0 || get_write()(2, why, strlen(why)) < 0 || get_write()(2, text, len) < 0)
        _exit(98);
    _exit(97);
}

static void record_direct_calls(void);

__attribute__((constructor)) static void begin(void) {
    const char *dir = getenv("RECORD_FILES_ROOT"), *to = getenv("RECORD_FILES_TRACE");
    const char *note = getenv("RECORD_FILES_NOTES"), *micros = getenv("RECORD_FILES_DELAY");
    if (dir == NULL || to == NULL) return;
    if (strlen(dir) >= sizeof root || (note != NULL && strlen(note) >= sizeof notes)) die("a path is too long");
    int fd = get_open64()(to, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0) die("the trace cannot be opened");
    /* A high descriptor, since the program expects the lowest ones. */
    trace = get_fcntl64()(fd, F_DUPFD_CLOEXEC, 1000);
    if (trace < 0) die("the trace's fd cannot be moved");
    get_close()(fd);
    if (note != NULL) strcpy(notes, note);
    if (micros != NULL) delay = atol(micros);
    const char *full = getenv("RECORD_FILES_FULL");
    if (full != NULL && sscanf(full, "%lu %lu", &full_after, &full_millis) != 2) die("RECORD_FILES_FULL takes two numbers");
    strcpy(root, dir);
    root_len = strlen(root);
    if (getenv("RECORD_FILES_DIRECT") != NULL) record_direct_calls();
}

static void put(struct header header, const void *first, const void *second) {
    if (header.kind == 0) return;
    struct iovec parts[3] = {
        {&header, sizeof header}, {(void *)first, header.first}, {(void *)second, header.second}};
    struct iovec *part = parts;
    int count = 3;
    while (count > 0) {
        ssize_t written = get_writev()(trace, part, count);
        if (written < 0) die("the trace cannot be written");
        while (count > 0 && (size_t)written >= part->iov_len) {
            written -= part->iov_len;
            part++;
            count--;
        }
        if (count > 0) {
            part->iov_base = (char *)part->iov_base + written;
            part->iov_len -= written;
        }
    }
}

static int lock(void) {
    pthread_mutex_lock(&mutex);
    return errno;
}

static void unlock(int saved) {
    errno = saved;
    pthread_mutex_unlock(&mutex);
}

static enum state state(int fd) { return fd >= 0 && fd < MOST_FDS ? fds[fd] : FOREIGN; }

/* The path itself, or, for one through a descriptor of the program's own (/proc/self/fd/N/...), where that leads. */
static const char *resolved(const char *path) {
    static const char prefix[] = "/proc/self/fd/";
    static __thread char found[2][PATH_MAX];
    static __thread int next;
    if (strncmp(path, prefix, sizeof prefix - 1) != 0) return path;
    size_t len = sizeof prefix - 1 + strspn(path + sizeof prefix - 1, "0123456789");
    char link[64];
    if (len >= sizeof link) return path;
    memcpy(link, path, len);
    link[len] = '\0';
    next = !next;
    ssize_t target = readlink(link, found[next], PATH_MAX - 1);
    if (target <= 0 || strlen(path + len) + target >= PATH_MAX) return path;
    strcpy(found[next] + target, path + len);
    return found[next];
}

/* Resolves a path relative to the directory of an fd, or to ROOT. Returns NULL if it is outside. */
static const char *within(int *dir, const char *path) {
    if (trace < 0 || path == NULL) return NULL;
    path = resolved(path);
    if (path[0] == '/') {
        if (strncmp(path, root, root_len) != 0 || (path[root_len] != '/' && path[root_len] != '\0')) return NULL;
        *dir = ROOT;
        return path + root_len;
    }
    if (*dir == AT_FDCWD) return NULL; /* The workload's own directory is elsewhere. */
    return state(*dir) == TRACKED ? path : NULL;
}

/* True if writes to this path can fail with ENOSPC. */
static int is_limited(int dir, const char *path) {
    if (dir != ROOT) return 0;
    return strncmp(path, "/store/index", 12) == 0 ? IN_INDEX : strncmp(path, "/store/log/", 11) == 0;
}

static uint64_t milliseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* True if a write must fail with ENOSPC. A file without holes already has the blocks within its size. Call with the mutex. */
static int is_full(int fd, off64_t end, size_t len) {
    if (full_after == 0 || !full_counts || !limited[fd]) return 0;
    if (full_since == 0) {
        full_used += len;
        if (full_used < full_after) return 0;
        full_since = milliseconds();
    }
    struct stat64 stat;
    if (milliseconds() - full_since >= full_millis || fstat64(fd, &stat) != 0) return 0;
    if (end <= stat.st_size && stat.st_blocks * 512 >= stat.st_size) return 0;
    if (limited[fd] == IN_INDEX && !full_noted) {
        full_noted = 1;
        struct header header = {.kind = NOTE, .first = 4};
        put(header, "full", NULL);
    }
    errno = ENOSPC;
    return 1;
}

/* Registers a file that was opened without the C library. Call with the mutex. */
static int adopt(int fd) {
    char link[64], path[PATH_MAX];
    if (trace < 0 || fd < 0 || fd >= MOST_FDS || fd == trace) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof path - 1);
    if (len <= 0) return 0;
    path[len] = '\0';
    int dir = ROOT;
    const char *rest = within(&dir, path);
    if (rest == NULL) return 0;
    struct header header = {.kind = OPEN, .fd = fd, .other = ROOT, .first = strlen(rest)};
    put(header, rest, NULL);
    limited[fd] = is_limited(dir, rest);
    fds[fd] = TRACKED;
    return 1;
}

/* True if the file is recorded. */
static int recorded(int fd) {
    if (trace < 0) return 0;
    if (state(fd) == TRACKED) return 1;
    if (state(fd) == NOTES) return 0;
    int saved = errno;
    pthread_mutex_lock(&mutex);
    int found = adopt(fd);
    pthread_mutex_unlock(&mutex);
    errno = saved;
    return found;
}

static void unsupported(const char *what) {
    struct header header = {.kind = UNSUPPORTED, .first = strlen(what)};
    put(header, what, NULL);
}

/* Records the opening of a file. Call with the mutex. */
static void register_open(int fd, int dir, const char *rest, uint64_t flags) {
    if (flags & O_DSYNC) unsupported("a file that is synced by each write");
    if (fd >= MOST_FDS) die("too many open files");
    struct header header = {.kind = OPEN, .fd = fd, .other = dir, .a = flags, .first = strlen(rest)};
    put(header, rest, NULL);
    limited[fd] = is_limited(dir, rest);
    fds[fd] = TRACKED;
}

static int opened(int at, const char *path, int flags, mode_t mode) {
    int dir = at;
    const char *rest = within(&dir, path);
    if (rest == NULL) {
        int fd = get_openat64()(at, path, flags, mode);
        if (fd >= 0 && fd < MOST_FDS) fds[fd] = notes[0] != '\0' && strcmp(path, notes) == 0 ? NOTES : FOREIGN;
        return fd;
    }
    int saved = lock();
    int fd = get_openat64()(at, path, flags, mode);
    if (fd >= 0)
        register_open(fd, dir, rest, flags);
    else
        saved = errno;
    unlock(saved);
    return fd;
}

#define MODE(last)                              \
    mode_t mode = 0;                            \
    if (flags & (O_CREAT | __O_TMPFILE)) {      \
        va_list list;                           \
        va_start(list, last);                   \
        mode = va_arg(list, mode_t);            \
        va_end(list);                           \
    }

int open(const char *path, int flags, ...) { MODE(flags) return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return opened(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE(flags) return opened(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE(flags) return opened(at, path, flags, mode); }
int creat(const char *path, mode_t mode) { return opened(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return opened(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode); }

static void forget(int fd) {
    if (state(fd) == TRACKED) {
        struct header header = {.kind = CLOSE, .fd = fd};
        put(header, NULL, NULL);
    }
    if (fd >= 0 && fd < MOST_FDS) fds[fd] = FOREIGN;
}

int close(int fd) {
    if (fd == trace && trace >= 0) return 0;
    if (state(fd) == FOREIGN) return get_close()(fd);
    int saved = lock();
    forget(fd);
    int result = get_close()(fd);
    unlock(result < 0 ? errno : saved);
    return result;
}

int closedir(DIR *dir) {
    int saved = lock();
    forget(dirfd(dir));
    int result = get_closedir()(dir);
    unlock(result < 0 ? errno : saved);
    return result;
}

static int duplicated(int fd, int new) {
    if (new < 0) return new;
    if (new >= MOST_FDS) die("too many open files");
    if (new != fd) {
        forget(new);
        if (state(fd) == TRACKED) {
            struct header header = {.kind = DUP, .fd = fd, .other = new};
            put(header, NULL, NULL);
        }
        limited[new] = limited[fd];
        fds[new] = state(fd);
    }
    return new;
}

#define DUPLICATE(fd, call)                        \
    int saved = lock();                            \
    int result = duplicated(fd, call);             \
    unlock(result < 0 ? errno : saved);            \
    return result;

int dup(int fd) { DUPLICATE(fd, get_dup()(fd)) }
int dup2(int fd, int new) { DUPLICATE(fd, get_dup2()(fd, new)) }
int dup3(int fd, int new, int flags) { DUPLICATE(fd, get_dup3()(fd, new, flags)) }

static int controlled(int fd, int command, long argument) {
    if (command != F_DUPFD && command != F_DUPFD_CLOEXEC) return get_fcntl64()(fd, command, argument);
    DUPLICATE(fd, get_fcntl64()(fd, command, argument))
}

#define CONTROL(name)                                 \
    int name(int fd, int command, ...) {              \
        va_list list;                                 \
        va_start(list, command);                      \
        long argument = va_arg(list, long);           \
        va_end(list);                                 \
        return controlled(fd, command, argument);     \
    }

CONTROL(fcntl)
CONTROL(fcntl64)

static void note(const char *text, size_t len) {
    int saved = lock();
    struct header header = {.kind = NOTE, .first = len};
    put(header, text, NULL);
    if (len == 6 && memcmp(text, "opened", 6) == 0) full_counts = 1;
    if (len >= 3 && memcmp(text, "end", 3) == 0) kill(getpid(), SIGKILL);
    unlock(saved);
}

static void wrote(int fd, off64_t offset, const struct iovec *parts, int count, ssize_t written) {
    for (int i = 0; i < count && written > 0; i++) {
        size_t len = parts[i].iov_len < (size_t)written ? parts[i].iov_len : (size_t)written;
        if (len == 0) continue;
        struct header header = {.kind = WRITE, .fd = fd, .a = offset, .first = len};
        put(header, parts[i].iov_base, NULL);
        offset += len;
        written -= len;
    }
}

static size_t length(const struct iovec *parts, int count) {
    size_t all = 0;
    for (int i = 0; i < count; i++) all += parts[i].iov_len;
    return all;
}

/* Writes at the file's position and advances it. */
#define SEQUENTIAL(fd, parts, count, call)                                        \
    int saved = lock();                                                           \
    size_t all = length(parts, count);                                            \
    ssize_t result = is_full(fd, lseek64(fd, 0, SEEK_CUR) + all, all) ? -1 : call; \
    if (result > 0) wrote(fd, lseek64(fd, 0, SEEK_CUR) - result, parts, count, result); \
    unlock(result < 0 ? errno : saved);                                           \
    return result;

#define POSITIONED(fd, parts, count, offset, call)                                \
    int saved = lock();                                                           \
    size_t all = length(parts, count);                                            \
    ssize_t result = is_full(fd, offset + all, all) ? -1 : call;                  \
    if (result > 0) wrote(fd, offset, parts, count, result);                      \
    unlock(result < 0 ? errno : saved);                                           \
    return result;

ssize_t write(int fd, const void *data, size_t len) {
    if (state(fd) == NOTES) {
        note(data, len);
        return len;
    }
    if (!recorded(fd)) return get_write()(fd, data, len);
    struct iovec part = {(void *)data, len};
    SEQUENTIAL(fd, &part, 1, get_write()(fd, data, len))
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (!recorded(fd)) return get_writev()(fd, parts, count);
    SEQUENTIAL(fd, parts, count, get_writev()(fd, parts, count))
}

static ssize_t pwritten(int fd, const void *data, size_t len, off64_t offset) {
    if (!recorded(fd)) return get_pwrite64()(fd, data, len, offset);
    struct iovec part = {(void *)data, len};
    POSITIONED(fd, &part, 1, offset, get_pwrite64()(fd, data, len, offset))
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t offset) { return pwritten(fd, data, len, offset); }
ssize_t pwrite64(int fd, const void *data, size_t len, off64_t offset) { return pwritten(fd, data, len, offset); }

static ssize_t pwrittenv(int fd, const struct iovec *parts, int count, off64_t offset) {
    if (!recorded(fd)) return get_pwritev64()(fd, parts, count, offset);
    POSITIONED(fd, parts, count, offset, get_pwritev64()(fd, parts, count, offset))
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) { return pwrittenv(fd, parts, count, offset); }
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset) { return pwrittenv(fd, parts, count, offset); }

static ssize_t pwrittenv2(int fd, const struct iovec *parts, int count, off64_t offset, int flags) {
    if (!recorded(fd)) return get_pwritev64v2()(fd, parts, count, offset, flags);
    if (offset == -1 || (flags & (RWF_DSYNC | RWF_SYNC | RWF_APPEND))) {
        int saved = lock();
        unsupported("pwritev2 at the file's position, or with a sync");
        unlock(saved);
    }
    POSITIONED(fd, parts, count, offset, get_pwritev64v2()(fd, parts, count, offset, flags))
}

ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags) {
    return pwrittenv2(fd, parts, count, offset, flags);
}
ssize_t pwritev64v2(int fd, const struct iovec *parts, int count, off64_t offset, int flags) {
    return pwrittenv2(fd, parts, count, offset, flags);
}

/* Copying within the kernel fails for recorded files, so that the program copies by itself. */
ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t len, unsigned flags) {
    if (!recorded(out)) return get_copy_file_range()(in, from, out, to, len, flags);
    errno = EXDEV;
    return -1;
}

ssize_t sendfile64(int out, int in, off64_t *from, size_t len) {
    if (!recorded(out)) return get_sendfile64()(out, in, from, len);
    errno = EINVAL;
    return -1;
}

ssize_t sendfile(int out, int in, off_t *from, size_t len) { return sendfile64(out, in, from, len); }

ssize_t splice(int in, off64_t *from, int out, off64_t *to, size_t len, unsigned flags) {
    if (!recorded(out)) return get_splice()(in, from, out, to, len, flags);
    errno = EINVAL;
    return -1;
}

static int truncated(int fd, off64_t size) {
    if (!recorded(fd)) return get_ftruncate64()(fd, size);
    int saved = lock();
    int result = get_ftruncate64()(fd, size);
    struct header header = {.kind = result == 0 ? TRUNCATE : 0, .fd = fd, .a = size};
    if (result < 0) saved = errno;
    put(header, NULL, NULL);
    unlock(saved);
    return result;
}

int ftruncate(int fd, off_t size) { return truncated(fd, size); }
int ftruncate64(int fd, off64_t size) { return truncated(fd, size); }

static int truncated_by_name(const char *path, off64_t size) {
    int fd = opened(AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0) return fd;
    int result = truncated(fd, size), saved = errno;
    close(fd);
    errno = saved;
    return result;
}

int truncate(const char *path, off_t size) { return truncated_by_name(path, size); }
int truncate64(const char *path, off64_t size) { return truncated_by_name(path, size); }

static int allocated(int fd, int mode, off64_t offset, off64_t len) {
    if (!recorded(fd)) return get_fallocate64()(fd, mode, offset, len);
    int saved = lock();
    int result = get_fallocate64()(fd, mode, offset, len);
    struct header header = {.kind = result == 0 ? ALLOCATE : 0, .fd = fd, .other = mode, .a = offset, .b = len};
    if (result < 0) saved = errno;
    put(header, NULL, NULL);
    unlock(saved);
    return result;
}

int fallocate(int fd, int mode, off_t offset, off_t len) { return allocated(fd, mode, offset, len); }
int fallocate64(int fd, int mode, off64_t offset, off64_t len) { return allocated(fd, mode, offset, len); }

static int allocated_posix(int fd, off64_t offset, off64_t len) {
    if (!recorded(fd)) return get_posix_fallocate64()(fd, offset, len);
    int saved = lock();
    int result = get_posix_fallocate64()(fd, offset, len);
    struct header header = {.kind = result == 0 ? ALLOCATE : 0, .fd = fd, .a = offset, .b = len};
    put(header, NULL, NULL);
    unlock(saved);
    return result;
}

int posix_fallocate(int fd, off_t offset, off_t len) { return allocated_posix(fd, offset, len); }
int posix_fallocate64(int fd, off64_t offset, off64_t len) { return allocated_posix(fd, offset, len); }

/* A change of one name. */
#define NAMED(at, path, record, call)                                                            \
    int dir = at;                                                                                \
    const char *rest = within(&dir, path);                                                       \
    if (rest == NULL) return call;                                                               \
    int saved = lock();                                                                          \
    int result = call;                                                                           \
    struct header header = {.kind = result == 0 ? record : 0, .other = dir, .first = strlen(rest)}; \
    if (result < 0) saved = errno;                                                               \
    put(header, rest, NULL);                                                                     \
    unlock(saved);                                                                               \
    return result;

int unlinkat(int at, const char *path, int flags) {
    NAMED(at, path, flags & AT_REMOVEDIR ? RMDIR : UNLINK, get_unlinkat()(at, path, flags))
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char *path) {
    int result = unlink(path);
    return result < 0 && errno == EISDIR ? rmdir(path) : result;
}
int mkdirat(int at, const char *path, mode_t mode) { NAMED(at, path, MKDIR, get_mkdirat()(at, path, mode)) }
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int symlinkat(const char *target, int at, const char *path) {
    int dir = at;
    if (within(&dir, path) != NULL) {
        int saved = lock();
        unsupported("a symbolic link");
        unlock(saved);
    }
    return get_symlinkat()(target, at, path);
}
int symlink(const char *target, const char *path) { return symlinkat(target, AT_FDCWD, path); }

/* A change of two names, either both within the directory or neither. */
#define NAMED_TWICE(record, what, call)                                                          \
    int from_dir = from_at, to_dir = to_at;                                                      \
    const char *first = within(&from_dir, from), *second = within(&to_dir, to);                  \
    if (first == NULL && second == NULL) return call;                                            \
    int saved = lock();                                                                          \
    int result = call;                                                                           \
    if (result < 0) {                                                                            \
        saved = errno;                                                                           \
    } else if (first == NULL || second == NULL) {                                                \
        unsupported(what);                                                                       \
    } else {                                                                                     \
        struct header header = {.kind = record, .fd = from_dir, .other = to_dir, .a = flags,     \
                                .first = strlen(first), .second = strlen(second)};               \
        put(header, first, second);                                                              \
    }                                                                                            \
    unlock(saved);                                                                               \
    return result;

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    NAMED_TWICE(RENAME, "renaming into or out of the directory", get_renameat2()(from_at, from, to_at, to, flags))
}
int renameat(int from_at, const char *from, int to_at, const char *to) { return renameat2(from_at, from, to_at, to, 0); }
int rename(const char *from, const char *to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }

int linkat(int from_at, const char *from, int to_at, const char *to, int flags) {
    NAMED_TWICE(LINK, "linking into or out of the directory", get_linkat()(from_at, from, to_at, to, flags))
}
int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

static int synced(int fd, int data, int (*call)(int)) {
    if (!recorded(fd)) return call(fd);
    int saved = lock();
    uint64_t number = ++syncs;
    struct header header = {.kind = SYNC_BEGIN, .fd = fd, .a = number, .b = data};
    put(header, NULL, NULL);
    unlock(saved);
    int result = call(fd), error = errno;
    if (delay > 0) {
        /* Any pseudo-random numbers suffice. */
        uint64_t mixed = (number * 0x9e3779b97f4a7c15u) >> 40;
        struct timespec time = {0, (long)(mixed % (uint64_t)(delay * 1000))};
        nanosleep(&time, NULL);
    }
    lock();
    header = (struct header){.kind = SYNC_END, .fd = fd, .a = number, .b = result == 0};
    put(header, NULL, NULL);
    unlock(result < 0 ? error : saved);
    return result;
}

int fsync(int fd) { return synced(fd, 0, get_fsync()); }
int fdatasync(int fd) { return synced(fd, 1, get_fdatasync()); }

int sync_file_range(int fd, off64_t offset, off64_t len, unsigned flags) {
    if (!recorded(fd)) return get_sync_file_range()(fd, offset, len, flags);
    int saved = lock();
    struct header header = {.kind = SYNC_RANGE, .fd = fd, .a = offset, .b = len};
    put(header, NULL, NULL);
    unlock(saved);
    return get_sync_file_range()(fd, offset, len, flags);
}

#include "direct_calls.h"
