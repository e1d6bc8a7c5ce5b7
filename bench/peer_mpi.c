/*
 * MPI: a program that times all-reduces of float32, for any implementation.
 *
 *     peer_mpi BYTES:ITERATIONS...
 *
 * Rank 0 prints a line of JSON for each size: the seconds of each all-reduce, from a barrier to the
 * end of the slowest rank, and the machine's CPU seconds for one. Every rank checks every sum.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WARMUP = 2,
    PERIOD = 1021, /* of the values: small integers, so that each sum is exact */
};

/* One rank's part of an all-reduce. */
struct job {
    int rank, world;
    int elements;
    float *given;  /* what this rank contributes */
    float *wanted; /* the sum over the ranks */
    float *buffer;
};

static void fail(const struct job *job, const char *what)
{
    fprintf(stderr, "rank %d: %s\n", job->rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* CPU seconds of the whole machine since boot, without idle, I/O wait and stolen time. */
static double machine_cpu_s(void)
{
    unsigned long long user, nice, system, idle, iowait, irq, softirq;
    FILE *file = fopen("/proc/stat", "r");
    if (!file || fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system,
                        &idle, &iowait, &irq, &softirq) != 7) {
        fprintf(stderr, "/proc/stat: cannot be read\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    fclose(file);
    return (double)(user + nice + system + irq + softirq) / (double)sysconf(_SC_CLK_TCK);
}

/* Runs `count` times; without `reduce`, all but the all-reduce itself. */
static void rounds(struct job *job, int count, bool reduce, double *times_s)
{
    size_t size = sizeof(float) * (size_t)job->elements;
    for (int i = 0; i < count; i++) {
        memcpy(job->buffer, job->given, size);
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        if (reduce)
            MPI_Allreduce(MPI_IN_PLACE, job->buffer, job->elements, MPI_FLOAT, MPI_SUM,
                          MPI_COMM_WORLD);
        times_s[i] = MPI_Wtime() - begin;
        MPI_Barrier(MPI_COMM_WORLD); /* who checks sooner disturbs those who share a core */
        if (memcmp(job->buffer, reduce ? job->wanted : job->given, size) != 0)
            fail(job, "wrong sum");
    }
}

static void measure(struct job *job, int count)
{
    double *times_s = malloc(sizeof(double) * (size_t)(count + WARMUP)), *spare_s;
    spare_s = malloc(sizeof(double) * (size_t)count);
    if (!times_s || !spare_s)
        fail(job, "out of memory");
    rounds(job, WARMUP, true, times_s);
    double begin_s = machine_cpu_s();
    rounds(job, count, true, times_s);
    double middle_s = machine_cpu_s();
    rounds(job, count, false, spare_s);
    double spent_s = (middle_s - begin_s) - (machine_cpu_s() - middle_s);
    MPI_Reduce(job->rank ? times_s : MPI_IN_PLACE, times_s, count, MPI_DOUBLE, MPI_MAX, 0,
               MPI_COMM_WORLD);
    if (job->rank == 0) {
        printf("{\"bytes\": %zu, \"cpu_s\": %.9f, \"times_s\": [", 4 * (size_t)job->elements,
               spent_s / count);
        for (int i = 0; i < count; i++)
            printf("%s%.9f", i ? ", " : "", times_s[i]);
        printf("]}\n");
        fflush(stdout);
    }
    free(times_s);
    free(spare_s);
}

static void run(struct job *job, const char *size)
{
    long long bytes;
    int count;
    if (sscanf(size, "%lld:%d", &bytes, &count) != 2 || bytes < 4 || count < 1)
        fail(job, "BYTES:ITERATIONS expected");
    job->elements = (int)(bytes / 4);
    float *memory = malloc(3 * sizeof(float) * (size_t)job->elements);
    if (!memory)
        fail(job, "out of memory");
    job->given = memory;
    job->wanted = job->given + job->elements;
    job->buffer = job->wanted + job->elements;
    for (int i = 0; i < job->elements; i++) {
        job->given[i] = (float)(i % PERIOD * (job->rank + 1));
        job->wanted[i] = (float)(i % PERIOD * (job->world * (job->world + 1) / 2));
    }
    measure(job, count);
    free(memory);
}

int main(int argc, char **argv)
{
    struct job job;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.world);
    for (int i = 1; i < argc; i++)
        run(&job, argv[i]);
    MPI_Finalize();
    return 0;
}
