/* A gate at a server's transaction log, for LD_PRELOAD.
 *
 * A write to a file "log.ZXID" waits for permission, so an unwritten record is not even in the page cache: killing the
 * server then loses it, as a power failure would. The header of a new log file (16 bytes) passes, and so does padding,
 * which is one byte. The node writes with pwrite, and the header of a new file with its first records.
 *
 * While "full" exists in the directory, records and padding fail with ENOSPC, and the header of a new file passes.
 *
 * Protocol, in the directory $DISK_GATE: the n-th write creates "waiting-n" with the bytes to be written, and proceeds
 * when "go-n" or "open" exists. It then removes "waiting-n".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEADER_BYTES 16
#define POLL_MICROSECONDS 2000

typedef ssize_t (*write_function)(int, const void *, size_t);
typedef ssize_t (*positioned_write)(int, const void *, size_t, off64_t);

static atomic_int writes;

static int is_log(int descriptor)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    const char *name = strrchr(path, '/');
    return name && !strncmp(name, "/log.", 5) && name[5] && !strpbrk(name + 5, ".ghijklmnopqrstuvwxyz");
}

static void announce(write_function plain, const char *waiting, const void *bytes, size_t count)
{
    char hidden[4200];
    snprintf(hidden, sizeof hidden, "%s.part", waiting);
    int file = open(hidden, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0)
        return;
    ssize_t written = plain(file, bytes, count);
    close(file);
    if (written == (ssize_t)count)
        rename(hidden, waiting);
}

/* Return when a write to a log may proceed, or fails because the disk is full; at once for any other write. */
static int may_write(write_function plain, int descriptor, const void *bytes, size_t count)
{
    const char *gate = getenv("DISK_GATE");
    if (!gate || count == HEADER_BYTES || !is_log(descriptor))
        return 1;
    char waiting[4100], go[4100], open_mark[4100], full[4100];
    snprintf(full, sizeof full, "%s/full", gate);
    if (count > HEADER_BYTES) {
        int number = atomic_fetch_add(&writes, 1) + 1;
        snprintf(waiting, sizeof waiting, "%s/waiting-%d", gate, number);
        snprintf(go, sizeof go, "%s/go-%d", gate, number);
        snprintf(open_mark, sizeof open_mark, "%s/open", gate);
        if (access(open_mark, F_OK) && access(full, F_OK)) {
            announce(plain, waiting, bytes, count);
            while (access(open_mark, F_OK) && access(go, F_OK) && access(full, F_OK))
                usleep(POLL_MICROSECONDS);
            unlink(waiting);
        }
    }
    if (access(full, F_OK))
        return 1;
    errno = ENOSPC;
    return 0;
}

ssize_t write(int descriptor, const void *bytes, size_t count)
{
    static write_function plain;
    if (!plain)
        plain = (write_function)dlsym(RTLD_NEXT, "write");
    return may_write(plain, descriptor, bytes, count) ? plain(descriptor, bytes, count) : -1;
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t offset)
{
    static positioned_write plain;
    if (!plain)
        plain = (positioned_write)dlsym(RTLD_NEXT, "pwrite64");
    int may = may_write((write_function)dlsym(RTLD_NEXT, "write"), descriptor, bytes, count);
    return may ? plain(descriptor, bytes, count, offset) : -1;
}
