/* Makes each sync of a file cost some microseconds more. Loaded by LD_PRELOAD; SLOW_SYNC_US has the microseconds.
 *
 * The delay comes after the sync and in the calling thread, as with a slower disk. sync_file_range is left alone: it makes nothing durable.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

static void wait_more(void)
{
    const char *text = getenv("SLOW_SYNC_US");
    long us = text ? atol(text) : 0;
    struct timespec left = {us / 1000000, us % 1000000 * 1000};
    int kept = errno;
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
    errno = kept;
}

int fsync(int descriptor)
{
    static int (*next)(int);
    if (next == NULL)
        next = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    int result = next(descriptor);
    wait_more();
    return result;
}

int fdatasync(int descriptor)
{
    static int (*next)(int);
    if (next == NULL)
        next = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    int result = next(descriptor);
    wait_more();
    return result;
}
