/* A gate at a server's threads, for LD_PRELOAD: a thread rests as if no processor were free for it.
 *
 * A thread rests at one of two points, while the file of that name exists in the directory $THREAD_GATE:
 *
 *   hold-NAME     after it has been woken. Its mutex is free meanwhile: a wait may end as late as it likes.
 *   linger-NAME   after it has woken the sync thread; for at most a second after it has woken any other thread, so that
 *                 a sync thread that has just begun can come to its first wait.
 *
 * NAME is the beginning of the thread's name, up to the first character that is not a letter, of at most 15 characters:
 * SyncThread, QuorumPeer, CommitProcessor. While a thread is held, "held-NAME" exists. No function changes errno.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define POLL_MICROSECONDS 2000
#define POLLS_FOR_OTHERS 500
#define SYNC_THREADS 16 /* a server has one, and each server that has ended may have left one */

typedef int (*wait_function)(pthread_cond_t *, pthread_mutex_t *);
typedef int (*timed_wait_function)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
typedef int (*signal_function)(pthread_cond_t *);

static _Atomic(pthread_cond_t *) waits[SYNC_THREADS]; /* the condition variables at which sync threads wait */

/* Condition variables have an older version on x86-64, which dlsym could return. */
static void *next_function(const char *name)
{
    void *found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
    return found ? found : dlsym(RTLD_NEXT, name);
}

static void get_name(char name[17])
{
    memset(name, 0, 17);
    prctl(PR_GET_NAME, name, 0, 0, 0);
    for (int at = 0; at < 16; at++)
        if (!isalpha((unsigned char)name[at]))
            name[at] = 0;
}

static int path_for(const char *kind, char *path, size_t size)
{
    const char *gate = getenv("THREAD_GATE");
    char name[17];
    get_name(name);
    return gate && (size_t)snprintf(path, size, "%s/%s-%s", gate, kind, name) < size;
}

/* Note the wait of a sync thread; the result is its place, or -1. */
static int begin_wait(pthread_cond_t *condition)
{
    char name[17];
    get_name(name);
    for (int place = 0; !strcmp(name, "SyncThread") && place < SYNC_THREADS; place++) {
        pthread_cond_t *none = NULL;
        if (atomic_compare_exchange_strong(&waits[place], &none, condition))
            return place;
    }
    return -1;
}

static int is_sync_thread(pthread_cond_t *condition)
{
    for (int place = 0; place < SYNC_THREADS; place++)
        if (atomic_load(&waits[place]) == condition)
            return 1;
    return 0;
}

static void end_wait(int place, int result, pthread_mutex_t *mutex)
{
    char hold[4096], held[4096];
    if (place >= 0)
        atomic_store(&waits[place], NULL);
    if (!result && path_for("hold", hold, sizeof hold) && path_for("held", held, sizeof held) && !access(hold, F_OK)) {
        pthread_mutex_unlock(mutex);
        close(open(held, O_WRONLY | O_CREAT, 0600));
        while (!access(hold, F_OK))
            usleep(POLL_MICROSECONDS);
        unlink(held);
        pthread_mutex_lock(mutex);
    }
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    static wait_function plain;
    if (!plain)
        plain = (wait_function)next_function("pthread_cond_wait");
    int error = errno, place = begin_wait(condition), result = plain(condition, mutex);
    end_wait(place, result, mutex);
    errno = error;
    return result;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *end)
{
    static timed_wait_function plain;
    if (!plain)
        plain = (timed_wait_function)next_function("pthread_cond_timedwait");
    int error = errno, place = begin_wait(condition), result = plain(condition, mutex, end);
    end_wait(place, result, mutex);
    errno = error;
    return result;
}

int pthread_cond_signal(pthread_cond_t *condition)
{
    static signal_function plain;
    if (!plain)
        plain = (signal_function)next_function("pthread_cond_signal");
    int error = errno, wakes_sync_thread = is_sync_thread(condition), result = plain(condition);
    char linger[4096];
    if (path_for("linger", linger, sizeof linger))
        for (int polls = 0; (wakes_sync_thread || polls < POLLS_FOR_OTHERS) && !access(linger, F_OK); polls++)
            usleep(POLL_MICROSECONDS);
    errno = error;
    return result;
}
