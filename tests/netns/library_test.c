/*
 * The public library between real processes on loopback: every collective and type, what happens
 * when somebody dies or does not come, and what is refused. The clock guards against hanging only.
 */
#include "ranks_fixture.h"

#include <math.h>
#include <signal.h>

#include "base/prng.h"

enum {
    BIG = 100003,
    LATE_US = 1300000,
};

static float real_of(int rank, size_t i)
{
    return (float)((int32_t)(gw_mix64(i * 977 + (size_t)rank) >> 40) - (1 << 23)) * 0x1.3p-22f;
}

static double real_sum(size_t i)
{
    double sum = 0;
    for (int rank = 0; rank < WORLD; rank++)
        sum += real_of(rank, i);
    return sum;
}

/* Whether a sum (or average) may be: integers in units of 2^-27 for all, or floats, one by one. */
static bool is_near(float found, double right)
{
    double switches = WORLD * 0x1p-28 + fabs(right) * 0x1p-24;
    double ring = (WORLD - 1) * 0x1.1p-24 * WORLD * 2.4;
    return fabs(found - right) <= (via == GRADWIRE_VIA_RING ? ring : switches);
}

static int sums_of_floats(gradwire *job, int rank)
{
    static const size_t counts[] = {1, 351, 352, 353, BIG};
    static float in[BIG], out[BIG];
    for (size_t k = 0; k < GW_COUNT_OF(counts); k++)
        for (int average = 0; average < 2; average++) {
            for (size_t i = 0; i < counts[k]; i++)
                in[i] = real_of(rank, i);
            CHECK(gradwire_allreduce(job, in, out, counts[k], GRADWIRE_FLOAT32,
                                     average ? GRADWIRE_AVERAGE : GRADWIRE_SUM) == 0);
            for (size_t i = 0; i < counts[k]; i++) {
                double right = real_sum(i) / (average ? WORLD : 1);
                CHECK(is_near(out[i], right));
                CHECK(in[i] == real_of(rank, i));
            }
        }
    CHECK(gradwire_allreduce(job, in, in, BIG, GRADWIRE_FLOAT32, GRADWIRE_SUM) == 0);
    for (size_t i = 0; i < BIG; i++)
        CHECK(is_near(in[i], real_sum(i)));
    CHECK(gradwire_rank(job) == rank && gradwire_world(job) == WORLD);
    return 0;
}

static int sums_of_other_types(gradwire *job, int rank)
{
    static int32_t ints[1000];
    uint16_t halves[3], brains[3];
    for (size_t i = 0; i < GW_COUNT_OF(ints); i++)
        ints[i] = (int32_t)i - 500 + rank * 1000;
    CHECK(gradwire_allreduce(job, ints, ints, 1000, GRADWIRE_INT32, GRADWIRE_SUM) == 0);
    for (size_t i = 0; i < GW_COUNT_OF(ints); i++)
        CHECK(ints[i] == WORLD * ((int32_t)i - 500) + 6000);
    halves[0] = halves[1] = halves[2] = 0x3c00; /* 1 */
    brains[0] = brains[1] = brains[2] = 0x3f80;
    CHECK(gradwire_allreduce(job, halves, halves, 3, GRADWIRE_FLOAT16, GRADWIRE_SUM) == 0);
    CHECK(gradwire_allreduce(job, brains, brains, 3, GRADWIRE_BFLOAT16, GRADWIRE_SUM) == 0);
    for (int i = 0; i < 3; i++)
        CHECK(halves[i] == 0x4400 && brains[i] == 0x4080); /* 4 */
    return 0;
}

/* What no integer can hold travels as it is. */
static int special_floats(gradwire *job, int rank)
{
    float x[] = {NAN, INFINITY, 1e30f, -1e30f, 17.0f, 1.0f};
    if (rank != 2)
        x[0] = 1;
    CHECK(gradwire_allreduce(job, x, x, GW_COUNT_OF(x), GRADWIRE_FLOAT32, GRADWIRE_SUM) == 0);
    CHECK(isnan(x[0]) && isinf(x[1]) && x[2] == 4e30f && x[3] == -4e30f);
    CHECK(x[4] == 68.0f && x[5] == 4.0f);
    return 0;
}

static int several_at_once(gradwire *job, int rank)
{
    static float x[40][1000];
    gradwire_call calls[40];
    for (int k = 0; k < 40; k++) {
        for (int i = 0; i < 1000; i++)
            x[k][i] = (float)(rank + k);
        CHECK(gradwire_allreduce_start(job, x[k], x[k], 1000, GRADWIRE_FLOAT32, GRADWIRE_SUM,
                                       &calls[k]) == 0);
    }
    for (int k = 0; k < 40; k += 2)
        CHECK(gradwire_wait(job, calls[k]) == 0);
    for (int k = 1; k < 40; k += 2) {
        int done = 0;
        while (!done)
            CHECK(gradwire_test(job, calls[k], &done) == 0);
    }
    for (int k = 0; k < 40; k++)
        CHECK(x[k][0] == 6.0f + 4.0f * (float)k && x[k][999] == x[k][0]);
    CHECK(gradwire_wait(job, 1000) == GRADWIRE_ERR_INVALID);
    return 0;
}

static int other_collectives(gradwire *job, int rank)
{
    uint16_t bits[5], all[5 * WORLD];
    float x[2 * WORLD], y[2 * WORLD] = {0};
    for (int i = 0; i < 5; i++)
        bits[i] = (uint16_t)(rank == 3 ? 0x8000 + i : 7);
    CHECK(gradwire_broadcast(job, bits, 5, GRADWIRE_FLOAT16, 3) == 0);
    for (int i = 0; i < 5; i++)
        CHECK(bits[i] == 0x8000 + i);
    for (int i = 0; i < 5; i++)
        bits[i] = (uint16_t)(rank * 10000 + i);
    CHECK(gradwire_allgather(job, bits, all, 5, GRADWIRE_FLOAT16) == 0);
    for (int i = 0; i < 5 * WORLD; i++)
        CHECK(all[i] == i / 5 * 10000 + i % 5);
    for (int i = 0; i < 2 * WORLD; i++)
        x[i] = (float)(i + rank);
    CHECK(gradwire_reduce(job, x, y, 2 * WORLD, GRADWIRE_FLOAT32, GRADWIRE_SUM, 1) == 0);
    for (int i = 0; i < 2 * WORLD; i++)
        CHECK(y[i] == (rank == 1 ? (float)(4 * i + 6) : 0.0f));
    CHECK(gradwire_reduce_scatter(job, x, y, 2, GRADWIRE_FLOAT32, GRADWIRE_SUM) == 0);
    CHECK(y[0] == (float)(4 * (2 * rank) + 6) && y[1] == (float)(4 * (2 * rank + 1) + 6));
    CHECK(gradwire_barrier(job) == 0);
    return 0;
}

static int refused_arguments(gradwire *job, int rank)
{
    float x = 1;
    CHECK(gradwire_allreduce(job, &x, NULL, 1, GRADWIRE_FLOAT32, GRADWIRE_SUM) ==
          GRADWIRE_ERR_INVALID);
    CHECK(gradwire_allreduce(job, &x, &x, 1, GRADWIRE_INT32, GRADWIRE_AVERAGE) ==
          GRADWIRE_ERR_INVALID);
    CHECK(gradwire_allreduce(job, &x, &x, 1, (enum gradwire_type)9, GRADWIRE_SUM) ==
          GRADWIRE_ERR_INVALID);
    CHECK(gradwire_allreduce(NULL, &x, &x, 1, GRADWIRE_FLOAT32, GRADWIRE_SUM) ==
          GRADWIRE_ERR_INVALID);
    CHECK(gradwire_allreduce(job, &x, &x, 0, GRADWIRE_FLOAT32, GRADWIRE_SUM) == 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(gradwire_barrier(job) == GRADWIRE_ERR_FORKED ? 0 : 1);
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(gradwire_allreduce(job, &x, &x, 1, GRADWIRE_FLOAT32, GRADWIRE_SUM) == 0);
    CHECK(x == WORLD);
    return 0;
}

static int overflow_fails_everywhere(gradwire *job, int rank)
{
    int32_t x = 1 << 30;
    int code = gradwire_barrier(job); /* all have opened it */
    if (code == 0)
        code = gradwire_allreduce(job, &x, &x, 1, GRADWIRE_INT32, GRADWIRE_SUM);
    CHECK(code == GRADWIRE_ERR_OVERFLOW); /* in the barrier: another rank was faster */
    CHECK(strstr(gradwire_last_error(), "int32"));
    CHECK(gradwire_barrier(job) != 0); /* the job is over */
    return 0;
}

/* One dies without a word; the others learn it, and whom they lost. */
static int victim;

static int survivors_name_the_dead(gradwire *job, int rank)
{
    static float x[BIG];
    for (int k = 0; k < 1000000; k++) {
        if (rank == victim && k == 5)
            kill(getpid(), SIGKILL);
        int code = gradwire_allreduce(job, x, x, BIG, GRADWIRE_FLOAT32, GRADWIRE_SUM);
        if (code) {
            CHECK(code == GRADWIRE_ERR_PEER);
            char name[16];
            snprintf(name, sizeof(name), "rank %d", victim);
            CHECK(strstr(gradwire_last_error(), name));
            return 0;
        }
    }
    return 1;
}

/* Byte `at` of the message from one rank to another. */
static uint8_t byte_of(int from, int to, size_t at)
{
    return (uint8_t)(gw_mix64(at) + (uint64_t)(7 * from + to));
}

/* Everybody to everybody, of several sizes; whoever receives is late now and then. */
static int messages_between_all(gradwire *job, int rank)
{
    static const size_t sizes[] = {1, 1000, 300007};
    static uint8_t out[WORLD][300007], in[WORLD][300007];
    gradwire_call sends[WORLD], receives[WORLD];
    for (uint32_t k = 0; k < GW_COUNT_OF(sizes); k++) {
        for (int r = 0; r < WORLD; r++) {
            if (r == rank)
                continue;
            for (size_t i = 0; i < sizes[k]; i++)
                out[r][i] = byte_of(rank, r, i);
            CHECK(gradwire_send_start(job, out[r], sizes[k], r, k % 2 ? 0xffffff : 0, &sends[r]) ==
                  0);
        }
        if (rank % 2)
            usleep(20000);
        for (int r = 0; r < WORLD; r++)
            if (r != rank)
                CHECK(gradwire_receive_start(job, in[r], sizeof(in[r]), r, k % 2 ? 0xffffff : 0,
                                             &receives[r]) == 0);
        for (int r = 0; r < WORLD; r++) {
            if (r == rank)
                continue;
            CHECK(gradwire_wait(job, receives[r]) == 0);
            CHECK(gradwire_wait(job, sends[r]) == 0);
            for (size_t i = 0; i < sizes[k]; i++)
                CHECK(in[r][i] == byte_of(r, rank, i));
        }
    }
    return 0;
}

static int refused_messages(gradwire *job, int rank)
{
    uint8_t byte = 0;
    int other = (rank + 1) % WORLD;
    CHECK(gradwire_send(job, NULL, 1, other, 0) == GRADWIRE_ERR_INVALID);
    CHECK(gradwire_send(job, &byte, 0, other, 0) == GRADWIRE_ERR_INVALID);
    CHECK(gradwire_send(job, &byte, 1, rank, 0) == GRADWIRE_ERR_INVALID);
    CHECK(gradwire_send(job, &byte, 1, WORLD, 0) == GRADWIRE_ERR_INVALID);
    CHECK(strstr(gradwire_last_error(), "0 to 3"));
    CHECK(gradwire_receive(job, &byte, 1, -1, 0) == GRADWIRE_ERR_INVALID);
    CHECK(gradwire_receive(job, &byte, 1, other, 1 << 24) == GRADWIRE_ERR_INVALID);
    CHECK(gradwire_barrier(job) == 0); /* no harm is done */
    return 0;
}

/* Rank 3 expects what nobody sends. */
static int message_that_does_not_come(gradwire *job, int rank)
{
    uint8_t byte;
    int code = rank == 3 ? gradwire_receive(job, &byte, 1, 1, 5) : gradwire_barrier(job);
    CHECK(code == GRADWIRE_ERR_TIMED_OUT || code == GRADWIRE_ERR_PEER);
    CHECK(strstr(gradwire_last_error(), "rank "));
    return 0;
}

/* Nothing comes from rank 1, though much comes from others: the receive fails all the same. */
static int message_that_does_not_come_among_others(gradwire *job, int rank)
{
    uint8_t byte = 0;
    int code = 0;
    for (uint32_t i = 0; rank >= 2 && !code; i++)
        code = rank == 2 ? gradwire_send(job, &byte, 1, 3, i % 100)
                         : gradwire_receive(job, &byte, 1, 2, i % 100);
    if (rank == 0)
        code = gradwire_receive(job, &byte, 1, 1, 5);
    if (rank == 1)
        code = gradwire_receive(job, &byte, 1, 0, 5);
    CHECK(code == GRADWIRE_ERR_TIMED_OUT);
    char own[64]; /* said to one of the two by the other, who was first to find it */
    snprintf(own, sizeof(own), "rank %d, which is this one, was waited for", rank);
    CHECK(strstr(gradwire_last_error(), "nothing came from rank 0") ||
          strstr(gradwire_last_error(), "nothing came from rank 1") ||
          (rank < 2 && strstr(gradwire_last_error(), own)));
    return 0;
}

/* Rank 1 closes with calls in work: they end at once, and its memory is its own again. */
static int close_with_calls(gradwire *job, int rank)
{
    static uint8_t bytes[1000], *message = bytes;
    gradwire_call call;
    int code = gradwire_barrier(job); /* all have opened it; rank 1 may leave it first */
    if (rank == 1)
        return code ? code : gradwire_receive_start(job, message, sizeof(bytes), 2, 5, &call);
    if (!code)
        code = gradwire_receive(job, message, sizeof(bytes), 1, 5);
    CHECK(code == GRADWIRE_ERR_PEER);
    CHECK(strstr(gradwire_last_error(), "rank 1 is lost"));
    return 0;
}

static int tensors_of_different_sizes(gradwire *job, int rank)
{
    float x[100] = {0};
    size_t count = rank == 2 ? 90 : 100;
    int code = gradwire_barrier(job); /* all have opened it; whoever leaves it first may fail */
    if (!code)
        code = gradwire_allreduce(job, x, x, count, GRADWIRE_FLOAT32, GRADWIRE_SUM);
    CHECK(code == GRADWIRE_ERR_PEER);
    CHECK(strstr(gradwire_last_error(), "another size"));
    return 0;
}

/* At once, also where those with a bound go from rank to rank and the other by the server. The rank
 * that finds out leaves the job, and others may hear of that first; communicator_mismatch_test has
 * what each of them says where none leaves. */
static int bound_at_some_ranks_alone(gradwire *job, int rank)
{
    static float x[10000];
    struct gradwire_call_options how;
    gradwire_call_options_init(&how, sizeof(how));
    how.bound = 0.1;
    int code = gradwire_barrier(job);
    if (!code)
        code = gradwire_allreduce_with(job, x, x, 10000, GRADWIRE_FLOAT32, GRADWIRE_SUM,
                                       rank == 2 ? NULL : &how, NULL);
    CHECK(code == GRADWIRE_ERR_PEER);
    CHECK(strstr(gradwire_last_error(), "is of another size, kind, via or bound") ||
          strstr(gradwire_last_error(), "is lost"));
    return 0;
}

static void with_eight_paths(struct gradwire_options *options)
{
    options->paths = 8;
    options->lb = "spray";
    options->cc = "fixed";
}

static void over_slow_links(struct gradwire_options *options)
{
    options->rate_bps = 1000000; /* so that one packet is under way */
}

static void over_fast_links(struct gradwire_options *options)
{
    options->rate_bps = 400000000000;
    options->cc = "eqds+smartt";
}

static void via_ps(struct gradwire_options *options)
{
    options->via = GRADWIRE_VIA_PS;
}

static void small_fragments(struct gradwire_options *options)
{
    options->values = 62;
    options->window = 64;
}

static void library__sums_floats(void **state)
{
    (void)state;
    choose_join("127.0.0.1");
    run_with(sums_of_floats, NULL);
    run_with(sums_of_floats, via_ps);
    run_with(sums_of_floats, small_fragments);
}

static void sum_over_ipv6(void)
{
    struct gw_sock_addr addr;
    char error[GW_NET_ERROR_MAX];
    int fd;
    assert_int_equal(gw_sock_addr_parse("::1", 0, &addr), 0);
    if (gw_sock_open_row(&addr, 1, 0, &fd, error) != 0) {
        assert_non_null(strstr(error, "::1")); /* a machine without IPv6 is told so */
        return;
    }
    gw_sock_close_row(&fd, 1);
    choose_join("::1");
    run_with(sums_of_floats, NULL);
}

static void library__sums_over_ipv6(void **state)
{
    (void)state;
    sum_over_ipv6();
}

static void library__sums_in_spite_of_faults(void **state)
{
    (void)state;
    choose_join("127.0.0.1");
    run_with(sums_of_floats, with_faults);
}

static void run_all(void)
{
    choose_join("127.0.0.1");
    run_with(sums_of_other_types, NULL);
    run_with(special_floats, NULL);
    run_with(several_at_once, NULL);
    run_with(other_collectives, NULL);
    run_with(refused_arguments, NULL);
    run_with(overflow_fails_everywhere, NULL);
}

static void library__has_all_types_and_collectives(void **state)
{
    (void)state;
    run_all();
}

static pid_t start_patient(int rank, rank_fn *fn)
{
    struct gradwire_options options = options_of(rank);
    options.deadline_ms = 20000;
    return start_rank(&options, fn);
}

/* All but one rank, of which one may stand still, and then that one: after longer than it takes to
 * doubt that a rank lives that is not heard. */
static void begins_when_one_comes_late(int late, int stopped)
{
    pid_t pids[WORLD];
    choose_join("127.0.0.1");
    for (int turn = 1; turn <= WORLD; turn++) {
        int rank = (late + turn) % WORLD;
        if (rank == late && stopped != late) {
            usleep(LATE_US);
            assert_int_equal(kill(pids[stopped], SIGSTOP), 0);
        }
        if (rank == late)
            usleep(LATE_US);
        pids[rank] = start_patient(rank, sums_of_other_types);
    }
    if (stopped != late)
        assert_int_equal(kill(pids[stopped], SIGCONT), 0);
    await_ranks(pids);
}

static void library__begins_when_one_comes_late(void **state)
{
    (void)state;
    begins_when_one_comes_late(3, 3);
    begins_when_one_comes_late(0, 0); /* where the others come to */
    begins_when_one_comes_late(3, 1);
}

/* And when each of them is started again as soon as it has ended, they are a job again: also the
 * victim, though the others have not missed it yet. */
static void names_the_dead(int rank_of_victim)
{
    pid_t pids[WORLD], again[WORLD];
    int status;
    victim = rank_of_victim;
    choose_join("127.0.0.1");
    for (int rank = 0; rank < WORLD; rank++)
        pids[rank] = start_patient(rank, survivors_name_the_dead);
    for (int i = 0; i < WORLD; i++) {
        int rank = (victim + i) % WORLD;
        assert_int_equal(waitpid(pids[rank], &status, 0), pids[rank]);
        if (rank == victim)
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        else
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        again[rank] = start_patient(rank, sums_of_other_types);
    }
    await_ranks(again);
}

static void library__names_the_rank_that_died(void **state)
{
    (void)state;
    names_the_dead(2);
    names_the_dead(0); /* the server, too */
}

static void library_ring__does_what_a_server_does(void **state)
{
    (void)state;
    via = GRADWIRE_VIA_RING;
    run_all();
    run_with(sums_of_floats, NULL);
    run_with(sums_of_floats, small_fragments);
    run_with(sums_of_floats, with_eight_paths);
    run_with(sums_of_floats, over_slow_links);
    run_with(sums_of_floats, over_fast_links);
    run_with(sums_of_floats, with_faults);
    sum_over_ipv6();
    via = GRADWIRE_VIA_INA;
}

static void library_ring__names_the_rank_that_died(void **state)
{
    (void)state;
    via = GRADWIRE_VIA_RING;
    names_the_dead(2);
    names_the_dead(0);
    via = GRADWIRE_VIA_INA;
}

static void library_ring__carries_messages(void **state)
{
    (void)state;
    choose_join("127.0.0.1");
    run_with(messages_between_all, NULL); /* with a server, too */
    via = GRADWIRE_VIA_RING;
    run_with(messages_between_all, NULL);
    run_with(messages_between_all, with_faults);
    run_with(refused_messages, NULL);
    via = GRADWIRE_VIA_INA;
}

static void library_ring__fails_on_all_ranks(void **state)
{
    (void)state;
    choose_join("127.0.0.1");
    via = GRADWIRE_VIA_RING;
    run_with(message_that_does_not_come, NULL);
    run_with(message_that_does_not_come_among_others, NULL);
    run_with(close_with_calls, NULL);
    run_with(tensors_of_different_sizes, NULL);
    run_with(bound_at_some_ranks_alone, NULL);
    run_with(bound_at_some_ranks_alone, via_ps);
    via = GRADWIRE_VIA_INA;
}

static void library__says_that_no_threshold_follows(void **state)
{
    (void)state;
    gradwire *job = NULL;
    choose_join("127.0.0.1");
    struct gradwire_options options = options_of(0);
    options.world = 1;
    options.announce = "1/1";
    options.rate_bps = 400000000000; /* bursts need more room than a notice can ask for */
    assert_int_equal(gradwire_open(&options, &job), GRADWIRE_ERR_PEER);
    assert_string_equal(gradwire_last_error(), "no threshold of at most 75 packets follows from "
                                               "the path of the job's bursts");
}

/* One rank of two, and nobody else. */
static void does_not_wait_for_ever(void)
{
    gradwire *job = NULL;
    choose_join("127.0.0.1");
    struct gradwire_options options = options_of(1);
    options.deadline_ms = 300;
    assert_int_equal(gradwire_open(&options, &job), GRADWIRE_ERR_TIMED_OUT);
    assert_non_null(strstr(gradwire_last_error(), join)); /* nobody is there */
    options.rank = 0;
    assert_int_equal(gradwire_open(&options, &job), GRADWIRE_ERR_TIMED_OUT);
    assert_non_null(strstr(gradwire_last_error(), via == GRADWIRE_VIA_RING ? "rank 1" : "4 ranks"));
    assert_null(job);
}

static void library__does_not_wait_for_ever(void **state)
{
    (void)state;
    does_not_wait_for_ever();
}

static void library_ring__does_not_wait_for_ever(void **state)
{
    (void)state;
    via = GRADWIRE_VIA_RING;
    does_not_wait_for_ever();
    via = GRADWIRE_VIA_INA;
}

static void library__refuses_what_cannot_work(void **state)
{
    (void)state;
    gradwire *job = NULL;
    choose_join("127.0.0.1");
#define REFUSES(field, value, word)                                                                \
    do {                                                                                           \
        struct gradwire_options options = options_of(0);                                           \
        options.field = value;                                                                     \
        assert_int_equal(gradwire_open(&options, &job), GRADWIRE_ERR_INVALID);                     \
        assert_non_null(strstr(gradwire_last_error(), word));                                      \
    } while (0)
    REFUSES(rank, 4, "rank");
    REFUSES(rank, -1, "rank");
    REFUSES(world, 0, "world");
    REFUSES(world, 5000, "world");
    REFUSES(window, 100, "window");
    REFUSES(values, 1, "values");
    REFUSES(deadline_ms, 1, "deadline_ms");
    REFUSES(join, NULL, "join");
    REFUSES(join, "nonsense", "nonsense");
    REFUSES(server, "127.0.0.1:1,127.0.0.1:1", "twice");
    REFUSES(server, "127.0.0.1:1,", "commas");
    REFUSES(key_file, "/nonexistent/key", "/nonexistent/key");
    REFUSES(size, 3, "version");
    REFUSES(cc, "cubik", "cubik");
    REFUSES(lb, "luck", "luck");
    REFUSES(lb, "round-robin", "switches");
    REFUSES(paths, 257, "paths");
    REFUSES(spin_us, 1000001, "spin_us");
    REFUSES(threads, 17, "threads is 17: 1 to 16");
    REFUSES(rate_bps, 1000, "rate_bps is 1000");
    REFUSES(rate_bps, UINT64_C(400000000001), "rate_bps");
    REFUSES(bind, "not-an-address", "not-an-address");
#undef REFUSES
    assert_null(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(library__sums_floats),
        cmocka_unit_test(library__sums_over_ipv6),
        cmocka_unit_test(library__sums_in_spite_of_faults),
        cmocka_unit_test(library__has_all_types_and_collectives),
        cmocka_unit_test(library__begins_when_one_comes_late),
        cmocka_unit_test(library__names_the_rank_that_died),
        cmocka_unit_test(library__does_not_wait_for_ever),
        cmocka_unit_test(library__says_that_no_threshold_follows),
        cmocka_unit_test(library__refuses_what_cannot_work),
        cmocka_unit_test(library_ring__does_what_a_server_does),
        cmocka_unit_test(library_ring__names_the_rank_that_died),
        cmocka_unit_test(library_ring__carries_messages),
        cmocka_unit_test(library_ring__fails_on_all_ranks),
        cmocka_unit_test(library_ring__does_not_wait_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
