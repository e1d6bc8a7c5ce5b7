/*
 * Whole jobs inside one process: every rank is a thread of this test with an I/O thread of its own,
 * and what they say goes by memory (GRADWIRE_DATAPATH). No socket is open; the rest is what
 * processes do. Packets are lost, doubled and late, unless a case says otherwise.
 */
#include "lib/thread_ranks.h"

#include <dirent.h>
#include <time.h>
#include <unistd.h>

enum {
    WORLD = 4,
    ELEMENTS = 10000,
    JOBS = 2,
    ROUNDS = 2,
    MESSAGE = 30000,
    LOSSY_JOBS = 4,
    TAG = 5,
    MEETINGS = 20,
};

static const char some_faults[] = "lose=0.01,duplicate=0.01,delay=0.01,seed=7";

/* Runs `fn` on all ranks of `jobs` jobs at the same time, each with a rank 0 of its own. */
static void run_jobs(rank_fn *fn, enum gradwire_via via, int jobs, const char *faults)
{
    struct thread_rank ranks[JOBS * WORLD];
    char joins[JOBS][32];
    for (int i = 0; i < jobs; i++)
        snprintf(joins[i], sizeof(joins[i]), "127.0.0.1:%d", 7 + 10 * i);
    for (int i = 0; i < jobs * WORLD; i++) {
        struct gradwire_options *options = &ranks[i].options;
        ranks[i].fn = fn;
        prepare(options, i % WORLD, WORLD);
        options->join = joins[i / WORLD];
        options->via = via;
        options->paths = 1 + (uint32_t)i % 3;
    }
    run_ranks(ranks, jobs * WORLD, faults);
}

/* Sockets that this process has open. */
static int count_sockets(void)
{
    DIR *folder = opendir("/proc/self/fd");
    char target[64];
    int count = 0;
    if (!folder)
        return -1;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        ssize_t size = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);
        target[size > 0 ? size : 0] = '\0';
        count += strncmp(target, "socket:", 7) == 0;
    }
    closedir(folder);
    return count;
}

static int sockets_before;

static int sums(gradwire *job, int rank)
{
    float *x = malloc(ELEMENTS * sizeof(*x));
    int32_t *n = malloc(ELEMENTS * sizeof(*n));
    struct gradwire_stats stats = {.size = sizeof(stats)};
    CHECK(x && n);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < ELEMENTS; i++) {
            x[i] = 0.25f * (float)(rank + round) + (float)(i % 7);
            n[i] = rank * i - round;
        }
        CHECK(gradwire_allreduce(job, x, x, ELEMENTS, GRADWIRE_FLOAT32, GRADWIRE_SUM) == 0);
        CHECK(gradwire_allreduce(job, n, n, ELEMENTS, GRADWIRE_INT32, GRADWIRE_SUM) == 0);
        for (int i = 0; i < ELEMENTS; i++) {
            CHECK(x[i] == 1.5f + (float)round + 4 * (float)(i % 7));
            CHECK(n[i] == 6 * i - 4 * round);
        }
    }
    CHECK(count_sockets() == sockets_before);
    CHECK(gradwire_get_stats(job, &stats) == 0);
    CHECK(stats.datagrams_sent > 0 && stats.datagrams_received > 0);
    CHECK(gradwire_barrier(job) == 0);
    free(x);
    free(n);
    return 0;
}

/* Each rank sends to the next, and hears of the one before. */
static int messages(gradwire *job, int rank)
{
    unsigned char sent[MESSAGE], heard[MESSAGE];
    gradwire_call call;
    memset(sent, 'a' + rank, sizeof(sent));
    int from = (rank + WORLD - 1) % WORLD;
    CHECK(gradwire_receive_start(job, heard, sizeof(heard), from, TAG, &call) == 0);
    CHECK(gradwire_send(job, sent, sizeof(sent), (rank + 1) % WORLD, TAG) == 0);
    CHECK(gradwire_wait(job, call) == 0);
    for (int i = 0; i < MESSAGE; i++)
        CHECK(heard[i] == 'a' + from);
    CHECK(gradwire_barrier(job) == 0);
    return 0;
}

/* What comes for nobody is counted: here, before it is awaited. */
static int early_message(gradwire *job, int rank)
{
    struct gradwire_stats stats = {.size = sizeof(stats)};
    char byte = 'x';
    gradwire_call call;
    if (rank == 0)
        CHECK(gradwire_send_start(job, &byte, 1, 1, TAG, &call) == 0);
    for (int i = 0; i < MEETINGS; i++) { /* counters are brought up to date by the end of a call */
        usleep(5000);
        CHECK(gradwire_barrier(job) == 0);
    }
    CHECK(gradwire_get_stats(job, &stats) == 0);
    CHECK(rank != 1 || stats.packets_refused > 0);
    CHECK(rank != 1 || gradwire_receive(job, &byte, 1, 0, TAG) == 0);
    CHECK(rank != 0 || gradwire_wait(job, call) == 0);
    return 0;
}

static void memory_jobs__count_what_they_refuse(void **state)
{
    (void)state;
    run_jobs(early_message, GRADWIRE_VIA_RING, 1, "");
}

static void memory_jobs__add_up_in_a_switch(void **state)
{
    (void)state;
    run_jobs(sums, GRADWIRE_VIA_INA, 1, some_faults);
}

static void memory_jobs__add_up_at_a_server(void **state)
{
    (void)state;
    run_jobs(sums, GRADWIRE_VIA_PS, 1, some_faults);
}

static void memory_jobs__add_up_around_a_ring(void **state)
{
    (void)state;
    run_jobs(sums, GRADWIRE_VIA_RING, 1, some_faults);
    run_jobs(messages, GRADWIRE_VIA_RING, 1, some_faults);
}

static void memory_jobs__run_beside_each_other(void **state)
{
    (void)state;
    run_jobs(sums, GRADWIRE_VIA_INA, JOBS, "");
    run_jobs(sums, GRADWIRE_VIA_RING, JOBS, "");
}

static int one_sum(gradwire *job, int rank)
{
    float x = (float)rank;
    CHECK(gradwire_allreduce(job, &x, &x, 1, GRADWIRE_FLOAT32, GRADWIRE_SUM) == 0);
    CHECK(x == 6);
    return 0;
}

/* Who leaves, and whose answer is lost with the server that gave it last of all, need not wait. */
static void memory_jobs__end_with_their_server(void **state)
{
    (void)state;
    for (int i = 0; i < LOSSY_JOBS; i++) {
        time_t began = time(NULL);
        run_jobs(one_sum, GRADWIRE_VIA_PS, 1, "lose=0.33,seed=7");
        assert_true(time(NULL) - began < DEADLINE_MS / 1000);
    }
}

/* Two ranks 0 at one address, as with sockets. */
static void memory_jobs__need_an_address_each(void **state)
{
    (void)state;
    struct gradwire_options options;
    gradwire *first = NULL, *second = NULL;
    assert_int_equal(setenv("GRADWIRE_FAULTS", "", 1), 0);
    prepare(&options, 0, 1);
    assert_int_equal(gradwire_open(&options, &first), 0);
    assert_int_equal(gradwire_open(&options, &second), GRADWIRE_ERR_SYSTEM);
    assert_non_null(strstr(gradwire_last_error(), ":7 "));
    assert_null(second);
    gradwire_close(first);
    assert_int_equal(gradwire_open(&options, &second), 0);
    gradwire_close(second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_jobs__add_up_in_a_switch),
        cmocka_unit_test(memory_jobs__add_up_at_a_server),
        cmocka_unit_test(memory_jobs__add_up_around_a_ring),
        cmocka_unit_test(memory_jobs__run_beside_each_other),
        cmocka_unit_test(memory_jobs__count_what_they_refuse),
        cmocka_unit_test(memory_jobs__end_with_their_server),
        cmocka_unit_test(memory_jobs__need_an_address_each),
    };
    sockets_before = count_sockets();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
