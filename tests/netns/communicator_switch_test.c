/*
 * Jobs without a server whose packets go by `gradwire switch`, as processes: that it adds up where
 * it is to, that switches trim and mark what waits for a slow port and every byte arrives all the
 * same, and that a switch which dies costs a pause, or the job with a line that names it.
 */
#include "netns/processes.h"
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/prng.h"
#include "gradwire.h"

enum {
    WORLD = 4,
    COUNT = 60000, /* elements of a tensor */
    ROUNDS = 5,
    DEADLINE_MS = 20000,
    SHORT_MS = 1500, /* less than a session lasts without a sign of life */
    GUARD_S = 60,
    MESSAGE = 1000003, /* bytes */
    TAG = 7,
};

static struct gw_test_daemon top, leaves[2];
static struct gw_test_worker workers[WORLD];
static uint16_t ports[4]; /* of the switches, then of rank 0 */

static int set_up(void **state)
{
    (void)state;
    gw_test_free_ports(ports, GW_COUNT_OF(ports));
    return 0;
}

static void stop_switches(void)
{
    struct gw_test_daemon *const all[] = {&leaves[0], &leaves[1], &top};
    for (size_t i = 0; i < GW_COUNT_OF(all); i++)
        if (all[i]->pid)
            assert_int_equal(gw_test_daemon_stop(all[i]), 0);
}

/* A number that the switch has counted at its ports. */
static json_int_t counted(const struct gw_test_daemon *daemon, const char *what)
{
    json_t *status = gw_test_daemon_status(daemon);
    const json_t *value = json_object_get(json_object_get(status, "queues"), what);
    assert_true(json_is_integer(value));
    json_int_t count = json_integer_value(value);
    json_decref(status);
    return count;
}

static struct gw_test_worker_cfg worker_cfg(int rank)
{
    return (struct gw_test_worker_cfg){
        .job = "ring",
        .rank = rank,
        .world = WORLD,
        .join = ports[3],
        .switch_ = ports[0],
        .count = COUNT,
        .deadline_ms = DEADLINE_MS,
    };
}

static void start_workers(uint32_t deadline_ms_of_rank_0)
{
    for (int rank = 0; rank < WORLD; rank++) {
        struct gw_test_worker_cfg cfg = worker_cfg(rank);
        if (rank == 0)
            cfg.deadline_ms = deadline_ms_of_rank_0;
        gw_test_worker_start(&workers[rank], &cfg);
    }
    gw_test_workers_await(workers, WORLD, ROUNDS);
}

static void communicator_switch_ring__sums_go_by_the_switch(void **state)
{
    (void)state;
    gw_test_daemon_start(&top, "switch", ports[0], "");
    start_workers(DEADLINE_MS);
    gw_test_workers_stop(workers, WORLD);
    /* Each rank passes on 2 (n-1)/n of the tensor in each round, and all of it comes by here. */
    json_int_t fragments = 2 * (WORLD - 1) * (COUNT / 352);
    assert_true(counted(&top, "packets") > ROUNDS * fragments);
    stop_switches();
}

/* Starts a switch, and two below it. */
static void start_tree(void)
{
    char text[64];
    gw_test_daemon_start(&top, "switch", ports[0], "");
    snprintf(text, sizeof(text), "switch: 127.0.0.1:%u\n", ports[0]);
    for (int i = 0; i < 2; i++) {
        gw_test_daemon_start(&leaves[i], "switch", ports[1 + i], text);
        gw_test_daemon_await(&leaves[i], ": up");
    }
}

static void communicator_switch_ring__sums_go_by_a_tree(void **state)
{
    (void)state;
    start_tree();
    for (int rank = 0; rank < WORLD; rank++) {
        struct gw_test_worker_cfg cfg = worker_cfg(rank);
        cfg.switch_ = ports[1 + rank % 2];
        gw_test_worker_start(&workers[rank], &cfg);
    }
    gw_test_workers_await(workers, WORLD, ROUNDS);
    /* Neighbours in the ring hang on different leaves. */
    assert_true(counted(&top, "packets") > ROUNDS * 2 * (WORLD - 1) * (COUNT / 352));
    gw_test_daemon_crash(&top);
    gw_test_daemon_restart(&top);
    gw_test_workers_await(workers, WORLD, ROUNDS);
    gw_test_workers_stop(workers, WORLD);
    stop_switches();
}

static json_int_t added_up(const struct gw_test_daemon *daemon)
{
    json_t *status = gw_test_daemon_status(daemon);
    const json_t *sums = json_object_get(status, "aggregation");
    json_int_t count = json_integer_value(json_object_get(sums, "completed"));
    json_decref(status);
    return count;
}

/* The process of rank 0 is the server, and another host to the switch than the rank. */
static void communicator_switch_ina__adds_up_without_another_server(void **state)
{
    (void)state;
    gw_test_daemon_start(&top, "switch", ports[0], "");
    for (int rank = 0; rank < WORLD; rank++) {
        struct gw_test_worker_cfg cfg = worker_cfg(rank);
        cfg.sums_in_switches = true;
        gw_test_worker_start(&workers[rank], &cfg);
    }
    gw_test_workers_await(workers, WORLD, ROUNDS);
    assert_true(added_up(&top) > ROUNDS * (COUNT / 352) / 2);
    gw_test_daemon_crash(&top);
    gw_test_daemon_restart(&top);
    gw_test_workers_await(workers, WORLD, ROUNDS);
    assert_true(added_up(&top) > 0);
    gw_test_workers_stop(workers, WORLD);
    stop_switches();
}

static void communicator_switch_crash__costs_a_pause(void **state)
{
    (void)state;
    gw_test_daemon_start(&top, "switch", ports[0], "");
    start_workers(DEADLINE_MS);
    for (int i = 0; i < 2; i++) {
        gw_test_daemon_crash(&top);
        gw_test_daemon_restart(&top);
        gw_test_workers_await(workers, WORLD, ROUNDS);
    }
    gw_test_workers_stop(workers, WORLD);
    assert_true(counted(&top, "packets") > 0);
    stop_switches();
}

static void all_say(int error, const char *text)
{
    for (int rank = 0; rank < WORLD; rank++) {
        if (!workers[rank].pid)
            continue;
        gw_test_worker_join(&workers[rank]);
        if (workers[rank].error != error || !strstr(workers[rank].text, text))
            fail_msg("rank %d ends with %d: %s", rank, workers[rank].error, workers[rank].text);
    }
}

/* The first whose calls have stalled tells the others, who hear it although the switch is dead. */
static void communicator_switch_crash__for_good_ends_the_job(void **state)
{
    (void)state;
    char text[64];
    gw_test_daemon_start(&top, "switch", ports[0], "");
    start_workers(SHORT_MS);
    gw_test_daemon_crash(&top);
    snprintf(text, sizeof(text), "the switch at 127.0.0.1:%u", ports[0]);
    all_say(GRADWIRE_ERR_TIMED_OUT, text);
}

/* Those who hang on the other leaf, and are well, name it too. */
static void communicator_switch_crash__of_a_leaf_is_named_by_all(void **state)
{
    (void)state;
    char text[64];
    start_tree();
    for (int rank = 0; rank < WORLD; rank++) {
        struct gw_test_worker_cfg cfg = worker_cfg(rank);
        cfg.switch_ = ports[1 + rank % 2];
        cfg.sums_in_switches = true;
        cfg.deadline_ms = SHORT_MS;
        gw_test_worker_start(&workers[rank], &cfg);
    }
    gw_test_workers_await(workers, WORLD, ROUNDS);
    gw_test_daemon_crash(&leaves[1]);
    snprintf(text, sizeof(text), "the switch at 127.0.0.1:%u does not answer", ports[2]);
    all_say(GRADWIRE_ERR_TIMED_OUT, text);
    stop_switches();
}

/* Who knows of a death does not wait for the switch. */
static void communicator_switch_crash__of_a_rank_is_named(void **state)
{
    (void)state;
    gw_test_daemon_start(&top, "switch", ports[0], "");
    start_workers(DEADLINE_MS);
    gw_test_worker_crash(&workers[2]);
    all_say(GRADWIRE_ERR_PEER, "rank 2 is lost");
    stop_switches();
}

static void communicator_switch_open__names_a_switch_that_does_not_answer(void **state)
{
    (void)state;
    gradwire *job = NULL;
    char join[32], switch_[32];
    snprintf(join, sizeof(join), "127.0.0.1:%u", ports[3]);
    snprintf(switch_, sizeof(switch_), "127.0.0.1:%u", ports[0]);
    for (int rank = 0; rank < 2; rank++) {
        struct gradwire_options options;
        gradwire_options_init(&options, sizeof(options));
        options.rank = rank;
        options.world = 2;
        options.join = join;
        options.switch_ = switch_;
        options.via = GRADWIRE_VIA_RING;
        options.deadline_ms = 300;
        assert_int_equal(gradwire_open(&options, &job), GRADWIRE_ERR_TIMED_OUT);
        assert_non_null(strstr(gradwire_last_error(), "switch"));
        assert_non_null(strstr(gradwire_last_error(), switch_));
    }
}

/* What the senders of an incast have counted; in memory that all processes share. */
static struct gradwire_stats *counts;

static uint8_t byte_of(int from, size_t at)
{
    return (uint8_t)(gw_mix64(at) + (uint64_t)(7 * from));
}

/* All others send to rank 0 at once. Returns 0. */
static int incast(gradwire *job, int rank, struct gradwire_stats *stats)
{
    static uint8_t data[WORLD][MESSAGE];
    gradwire_call calls[WORLD];
    int code = 0;
    for (int from = 1; from < WORLD && rank == 0 && !code; from++)
        code = gradwire_receive_start(job, data[from], MESSAGE, from, TAG, &calls[from]);
    for (size_t i = 0; i < MESSAGE; i++)
        data[0][i] = byte_of(rank, i);
    if (!code)
        code = gradwire_barrier(job);
    if (!code && rank > 0)
        code = gradwire_send(job, data[0], MESSAGE, 0, TAG);
    for (int from = 1; from < WORLD && rank == 0 && !code; from++) {
        code = gradwire_wait(job, calls[from]);
        for (size_t i = 0; i < MESSAGE && !code; i++)
            code = data[from][i] == byte_of(from, i) ? 0 : 1;
    }
    stats->size = sizeof(*stats);
    return code ? code : gradwire_get_stats(job, stats);
}

static void incast_rank(int rank, const char *cc)
{
    char join[32], switch_[32];
    struct gradwire_options options;
    gradwire *job = NULL;
    alarm(GUARD_S);
    snprintf(join, sizeof(join), "127.0.0.1:%u", ports[3]);
    snprintf(switch_, sizeof(switch_), "127.0.0.1:%u", ports[0]);
    gradwire_options_init(&options, sizeof(options));
    options.rank = rank;
    options.world = WORLD;
    options.join = join;
    options.switch_ = switch_;
    options.via = GRADWIRE_VIA_RING;
    options.cc = cc;
    options.rate_bps = 1000000000; /* windows are for faster links than the switch has */
    int code = gradwire_open(&options, &job);
    if (!code)
        code = incast(job, rank, &counts[rank]);
    if (code)
        fprintf(stderr, "rank %d: %s\n", rank, gradwire_last_error());
    gradwire_close(job);
    _exit(code ? 1 : 0);
}

/* Runs one through a switch of that config; every byte must be right. Returns what all ranks
 * counted. */
static struct gradwire_stats run_incast(const char *config, const char *cc)
{
    pid_t pids[WORLD];
    struct gradwire_stats sum = {.size = sizeof(sum)};
    set_up(NULL); /* what comes late for an earlier job finds nobody */
    gw_test_daemon_start(&top, "switch", ports[0], config);
    counts = mmap(NULL, WORLD * sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                  -1, 0);
    assert_true(counts != MAP_FAILED);
    fflush(NULL);
    for (int rank = 0; rank < WORLD; rank++) {
        pids[rank] = fork();
        if (pids[rank] == 0)
            incast_rank(rank, cc);
        assert_true(pids[rank] > 0);
    }
    for (int rank = 0; rank < WORLD; rank++) {
        int status;
        assert_int_equal(waitpid(pids[rank], &status, 0), pids[rank]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        sum.retransmits += counts[rank].retransmits;
        sum.timeouts += counts[rank].timeouts;
    }
    munmap(counts, WORLD * sizeof(*counts));
    return sum;
}

static void communicator_switch_incast__trims_and_repairs(void **state)
{
    (void)state;
    struct gradwire_stats sum =
        run_incast("rate: 200Mbps\nqueue: {kind: trim, capacity: 64KiB}\n", NULL);
    uint64_t trims = (uint64_t)counted(&top, "trims");
    print_message("%llu trimmed, %llu sent again, %llu after a timeout\n",
                  (unsigned long long)trims, (unsigned long long)sum.retransmits,
                  (unsigned long long)sum.timeouts);
    assert_true(trims > 0);
    /* What was trimmed has not arrived, and was sent again, mostly because trimming told of it. */
    assert_true(sum.retransmits >= trims);
    assert_true(sum.timeouts < trims);
    stop_switches();
}

/* All that messages carry is important: it is marked where unimportant packets would be dropped. */
static void communicator_switch_incast__sheds_nothing_important(void **state)
{
    (void)state;
    run_incast("rate: 200Mbps\nqueue: {kind: dlcp, thresholds: [16KB], capacity: 1MiB}\n", NULL);
    json_t *status = gw_test_daemon_status(&top);
    const json_t *losses = json_object_get(json_object_get(status, "queues"), "losses");
    assert_int_equal(json_array_size(json_object_get(losses, "shed")), 8);
    for (size_t i = 0; i < 8; i++) {
        json_int_t shed = json_integer_value(json_array_get(json_object_get(losses, "shed"), i));
        assert_int_equal(shed, 0);
    }
    json_decref(status);
    assert_true(counted(&top, "marks") > 0);
    stop_switches();
}

/* Senders whose windows do not move are marked more often than those that react, and nobody is
 * where the queue's parameters say so. */
static void communicator_switch_incast__marks_and_windows_react(void **state)
{
    (void)state;
    static const char *const ccs[] = {"smartt", "fixed", "fixed"};
    static const char *const configs[] = {
        "rate: 200Mbps\nqueue: {kind: red, capacity: 512KiB}\n",
        "rate: 200Mbps\nqueue: {kind: red, capacity: 512KiB}\n",
        "rate: 200Mbps\nqueue: {kind: red, capacity: 512KiB, mark: off}\n",
    };
    json_int_t marks[GW_COUNT_OF(ccs)];
    for (size_t i = 0; i < GW_COUNT_OF(ccs); i++) {
        struct gradwire_stats sum = run_incast(configs[i], ccs[i]);
        marks[i] = counted(&top, "marks");
        assert_int_equal(counted(&top, "trims"), 0);
        print_message("%s: %lld marks, %llu sent again\n", ccs[i], (long long)marks[i],
                      (unsigned long long)sum.retransmits);
        stop_switches();
    }
    assert_true(marks[0] > 0);
    assert_true(marks[0] < marks[1]);
    assert_int_equal(marks[2], 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, gw_test_end_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(communicator_switch_ring__sums_go_by_the_switch),
        CASE(communicator_switch_ring__sums_go_by_a_tree),
        CASE(communicator_switch_ina__adds_up_without_another_server),
        CASE(communicator_switch_crash__costs_a_pause),
        CASE(communicator_switch_crash__for_good_ends_the_job),
        CASE(communicator_switch_crash__of_a_leaf_is_named_by_all),
        CASE(communicator_switch_crash__of_a_rank_is_named),
        CASE(communicator_switch_open__names_a_switch_that_does_not_answer),
        CASE(communicator_switch_incast__trims_and_repairs),
        CASE(communicator_switch_incast__sheds_nothing_important),
        CASE(communicator_switch_incast__marks_and_windows_react),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
