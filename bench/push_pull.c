/*
 * Times pushes and pulls of a key between two processes on loopback: gw_bench_push_pull [REPEATS].
 * Beside them a message of the same size, and a value that the process itself keeps.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/prng.h"
#include "gradwire.h"

enum {
    WORLD = 2,
    REPEATS_MAX = 1000,
    COUNT_MAX = 25000000, /* 100 MB */
};

enum what { PUSH, PULL, SEND };

static float data[COUNT_MAX];

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int by_size(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static int call_once(gradwire *job, enum what what, uint64_t key, size_t count)
{
    if (what == PUSH)
        return gradwire_push(job, key, data, count, GRADWIRE_FLOAT32);
    if (what == PULL)
        return gradwire_pull(job, key, data, count, GRADWIRE_FLOAT32);
    return gradwire_rank(job) == 0 ? gradwire_send(job, data, count * sizeof(data[0]), 1, 0)
                                   : gradwire_receive(job, data, count * sizeof(data[0]), 0, 0);
}

/* Median and quickest of what rank 0 does; the other one takes part if it must. */
static int measure(gradwire *job, enum what what, int owner, size_t count, int repeats)
{
    static const char *const names[] = {"push", "pull", "send"};
    double times[REPEATS_MAX];
    uint64_t key = count;
    while ((int)(gw_mix64(key) % WORLD) != owner)
        key += COUNT_MAX;
    int code = gradwire_barrier(job);
    for (int i = 0; i < repeats && !code && (gradwire_rank(job) == 0 || what == SEND); i++) {
        double begin = seconds();
        code = call_once(job, what, key, count);
        times[i] = seconds() - begin;
    }
    if (code || gradwire_rank(job) != 0)
        return code;
    qsort(times, (size_t)repeats, sizeof(times[0]), by_size);
    double median = times[repeats / 2];
    printf("%s of %9zu bytes, rank %d: %10.1f us, %5.2f GB/s; quickest %10.1f us\n", names[what],
           count * sizeof(data[0]), owner, median * 1e6,
           (double)(count * sizeof(data[0])) / median * 1e-9, times[0] * 1e6);
    return GRADWIRE_OK;
}

static int run_rank(int rank, int repeats)
{
    struct gradwire_options options;
    gradwire *job;
    gradwire_options_init(&options, sizeof(options));
    options.rank = rank;
    options.world = WORLD;
    options.join = options.join ? options.join : "127.0.0.1:4791";
    options.via = GRADWIRE_VIA_RING;
    int code = gradwire_open(&options, &job);
    for (int large = 0; large < 2 && !code; large++) {
        size_t count = large ? COUNT_MAX : 1;
        int times = large ? repeats : REPEATS_MAX;
        for (int what = PUSH; what <= SEND && !code; what++)
            for (int owner = 1; owner >= (what == SEND) && !code; owner--)
                code = measure(job, (enum what)what, owner, count, times);
    }
    if (code)
        fprintf(stderr, "rank %d: %s\n", rank, gradwire_last_error());
    else
        gradwire_close(job);
    return code ? 1 : 0;
}

int main(int argc, char **argv)
{
    int repeats = argc > 1 ? atoi(argv[1]) : 9, status;
    if (repeats < 1 || repeats > REPEATS_MAX) {
        fprintf(stderr, "REPEATS is 1 to %d\n", REPEATS_MAX);
        return 2;
    }
    for (size_t i = 0; i < COUNT_MAX; i++)
        data[i] = 1;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(run_rank(1, repeats));
    int code = run_rank(0, repeats);
    return waitpid(pid, &status, 0) == pid && status == 0 ? code : 1;
}
