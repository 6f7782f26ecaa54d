/* A disk whose flush takes longer: preloaded, it lets fsync, fdatasync and sync_file_range do their work and then waits
 * as many microseconds as GATEWAY_BENCH_FLUSH_US says. `slow_disk_flushes` counts them, for tests.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

unsigned long slow_disk_flushes;
static long delay_us;

__attribute__((constructor)) static void read_delay(void)
{
    const char *given = getenv("GATEWAY_BENCH_FLUSH_US");
    delay_us = given ? atol(given) : 0;
}

static int after(long result)
{
    int saved = errno;
    struct timespec left = {delay_us / 1000000, delay_us % 1000000 * 1000};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        ;
    __atomic_add_fetch(&slow_disk_flushes, 1, __ATOMIC_RELAXED);
    errno = saved;
    return (int)result;
}

int fsync(int fd) { return after(syscall(SYS_fsync, fd)); }

int fdatasync(int fd) { return after(syscall(SYS_fdatasync, fd)); }

int sync_file_range(int fd, off64_t offset, off64_t count, unsigned int flags)
{
    return after(syscall(SYS_sync_file_range, fd, offset, count, flags));
}
