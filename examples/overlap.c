/*
 * Starts everything at once and waits in an event loop: the sums of a model's layers, a broadcast
 * from rank 0, and a message to the next rank, in one job, each as soon as it can.
 *
 *     cc -o overlap overlap.c $(pkg-config --cflags --libs gradwire)
 *     export GRADWIRE_JOIN=127.0.0.1:4790 WORLD_SIZE=2
 *     RANK=0 ./overlap & RANK=1 ./overlap
 */
#include <gradwire.h>
#include <poll.h>
#include <stdio.h>

enum {
    LAYERS = 4,
    COUNT = 100000, /* elements of a layer */
    RATES = 3,      /* numbers that rank 0 decides on */
    WORD = 32,      /* bytes of a message */
    CALLS = LAYERS + 3,
};

static float layers[LAYERS][COUNT];
static double rates[RATES];
static char sent[WORD], heard[WORD];

/* Starts all calls; returns GRADWIRE_OK, or what went wrong. */
static int start_all(gradwire *job, gradwire_call calls[CALLS])
{
    int rank = gradwire_rank(job), world = gradwire_world(job), code = GRADWIRE_OK, i = 0;
    for (; i < LAYERS && !code; i++) /* as a backward pass hands them out: the last one first */
        code = gradwire_allreduce_start(job, layers[LAYERS - 1 - i], layers[LAYERS - 1 - i], COUNT,
                                        GRADWIRE_FLOAT32, GRADWIRE_AVERAGE, &calls[i]);
    if (!code)
        code = gradwire_broadcast_start(job, rates, RATES, GRADWIRE_FLOAT64, 0, &calls[i++]);
    if (world == 1 || code)
        return code;
    snprintf(sent, sizeof(sent), "from rank %d", rank);
    code = gradwire_receive_start(job, heard, WORD, (rank + world - 1) % world, 0, &calls[i++]);
    if (!code)
        code = gradwire_send_start(job, sent, WORD, (rank + 1) % world, 0, &calls[i]);
    return code;
}

/* Waits for all of them, in the order in which they end. */
static int wait_all(gradwire *job, gradwire_call calls[CALLS])
{
    struct pollfd ended = {.fd = gradwire_fd(job), .events = POLLIN};
    int left = 0, code = GRADWIRE_OK;
    for (int i = 0; i < CALLS; i++)
        left += calls[i] != 0;
    while (left && !code) {
        poll(&ended, 1, -1); /* and whatever else the program waits for */
        for (int i = 0; i < CALLS && !code; i++) {
            int done = 0;
            if (calls[i])
                code = gradwire_test(job, calls[i], &done);
            if (done) {
                calls[i] = 0;
                left--;
            }
        }
    }
    return code;
}

int main(void)
{
    struct gradwire_options options;
    gradwire *job;
    gradwire_call calls[CALLS] = {0};
    gradwire_options_init(&options, sizeof(options));
    int error = gradwire_open(&options, &job);
    if (error) {
        fprintf(stderr, "rank %d cannot join: %s\n", options.rank, gradwire_last_error());
        return 1;
    }
    for (int i = 0; i < RATES && gradwire_rank(job) == 0; i++)
        rates[i] = 0.1 * (i + 1);
    error = start_all(job, calls);
    if (!error)
        error = wait_all(job, calls);
    if (error)
        fprintf(stderr, "rank %d: %s\n", options.rank, gradwire_last_error());
    else
        printf("rank %d heard '%s', and the last rate is %g\n", options.rank, heard,
               rates[RATES - 1]);
    gradwire_close(job);
    return error ? 1 : 0;
}
