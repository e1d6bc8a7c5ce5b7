/*
 * Sums an array over all ranks of a job, which the environment describes.
 *
 *     cc -o allreduce allreduce.c $(pkg-config --cflags --libs gradwire)
 *     export GRADWIRE_JOIN=127.0.0.1:4790 WORLD_SIZE=2
 *     RANK=0 ./allreduce & RANK=1 ./allreduce
 */
#include <gradwire.h>
#include <stdio.h>

enum {
    COUNT = 1000000,
};

static float gradients[COUNT];

/* Returns GRADWIRE_OK, or what went wrong. */
static int sum_once(gradwire *job)
{
    int rank = gradwire_rank(job), world = gradwire_world(job);
    for (size_t i = 0; i < COUNT; i++)
        gradients[i] = (float)rank + 1;
    int error =
        gradwire_allreduce(job, gradients, gradients, COUNT, GRADWIRE_FLOAT32, GRADWIRE_SUM);
    if (!error)
        printf("rank %d of %d: every sum is %g\n", rank, world, (double)gradients[COUNT - 1]);
    return error;
}

int main(void)
{
    struct gradwire_options options;
    gradwire *job;
    gradwire_options_init(&options, sizeof(options));
    int error = gradwire_open(&options, &job);
    if (!error) {
        error = sum_once(job);
        if (error)
            fprintf(stderr, "rank %d: %s\n", options.rank, gradwire_last_error());
        gradwire_close(job);
    } else
        fprintf(stderr, "rank %d cannot join: %s\n", options.rank, gradwire_last_error());
    return error ? 1 : 0;
}
