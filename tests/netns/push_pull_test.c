/*
 * Pushes and pulls of the public library between real processes on loopback: sums of all shapes and
 * types, beside other calls and in spite of faults, what is refused, and an owner that dies.
 */
#include "ranks_fixture.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/prng.h"

enum {
    BIG = 1000000,
    MANY = 60, /* calls at the same time */
};

static int rank_keeping(uint64_t key)
{
    return (int)(gw_mix64(key) % WORLD);
}

/* The first key from `key` on that this rank keeps. */
static uint64_t key_kept_by(int rank, uint64_t key)
{
    while (rank_keeping(key) != rank)
        key++;
    return key;
}

/* What a rank pushes: integers of which sums are exact in every type. */
static int part_of(int rank, uint64_t key, size_t i)
{
    return (int)(gw_mix64(key * 7919 + i * 31 + (size_t)rank) % 16) - 4 * rank;
}

static int sum_of(uint64_t key, size_t i)
{
    int sum = 0;
    for (int rank = 0; rank < WORLD; rank++)
        sum += part_of(rank, key, i);
    return sum;
}

static uint16_t f16_of(int x)
{
    _Static_assert(sizeof(_Float16) == 2, "binary16");
    _Float16 half = (_Float16)x;
    uint16_t bits;
    memcpy(&bits, &half, sizeof(bits));
    return bits;
}

static uint16_t bf16_of(int x)
{
    float wide = (float)x;
    uint32_t bits;
    memcpy(&bits, &wide, sizeof(bits));
    return (uint16_t)(bits >> 16); /* x is small: nothing is cut off */
}

static void put(void *data, size_t i, enum gradwire_type type, int x)
{
    if (type == GRADWIRE_FLOAT32)
        ((float *)data)[i] = (float)x;
    else if (type == GRADWIRE_INT32)
        ((int32_t *)data)[i] = x;
    else
        ((uint16_t *)data)[i] = type == GRADWIRE_FLOAT16 ? f16_of(x) : bf16_of(x);
}

static bool is(const void *data, size_t i, enum gradwire_type type, int x)
{
    uint32_t right = 0;
    size_t size = type == GRADWIRE_FLOAT16 || type == GRADWIRE_BFLOAT16 ? 2 : 4;
    put(&right, 0, type, x);
    return memcmp((const char *)data + i * size, &right, size) == 0;
}

static const size_t counts[] = {1, 2, 249, 250, 251, 500, 501, 5000, 100003, BIG};
static const enum gradwire_type types[] = {GRADWIRE_FLOAT32, GRADWIRE_FLOAT16, GRADWIRE_BFLOAT16,
                                           GRADWIRE_INT32};

/* All ranks push to keys of every count and type. */
static int sums_of_all(gradwire *job, int rank)
{
    static float x[BIG];
    for (size_t c = 0; c < GW_COUNT_OF(counts); c++)
        for (size_t t = 0; t < GW_COUNT_OF(types); t++) {
            uint64_t key = c * 100 + t;
            for (size_t i = 0; i < counts[c]; i++)
                put(x, i, types[t], part_of(rank, key, i));
            CHECK(gradwire_push(job, key, x, counts[c], types[t]) == 0);
        }
    CHECK(gradwire_barrier(job) == 0);
    for (size_t c = 0; c < GW_COUNT_OF(counts); c++)
        for (size_t t = 0; t < GW_COUNT_OF(types); t++) {
            uint64_t key = c * 100 + t;
            memset(x, 0xee, sizeof(x));
            CHECK(gradwire_pull(job, key, x, counts[c], types[t]) == 0);
            for (size_t i = 0; i < counts[c]; i++)
                CHECK(is(x, i, types[t], sum_of(key, i)));
        }
    return 0;
}

/* Many keys, so that tables grow; each element counts the pushes that were added. */
static int each_push_once(gradwire *job, int rank)
{
    float one = 1, x;
    for (uint64_t round = 0; round < 3; round++)
        for (uint64_t key = 0; key < 500; key++)
            CHECK(gradwire_push(job, key << 40, &one, 1, GRADWIRE_FLOAT32) == 0);
    CHECK(gradwire_barrier(job) == 0);
    for (uint64_t key = 0; key < 500; key++) {
        CHECK(gradwire_pull(job, key << 40, &x, 1, GRADWIRE_FLOAT32) == 0);
        CHECK(x == 3 * WORLD);
    }
    return 0;
}

/* Calls to the same key end in their order, so a pull sees our earlier pushes and no later one. */
static int many_at_once(gradwire *job, int rank)
{
    static int32_t big[70000], seen[MANY][3];
    gradwire_call calls[MANY];
    uint64_t ours = UINT64_C(1) << 32 | (unsigned)rank;
    for (int32_t k = 0; k < MANY; k++) {
        static const int32_t ones[3] = {1, 1, 1};
        int code = k % 2 ? gradwire_pull_start(job, ours, seen[k], 3, GRADWIRE_INT32, &calls[k])
                         : gradwire_push_start(job, ours, ones, 3, GRADWIRE_INT32, &calls[k]);
        CHECK(code == 0);
    }
    for (int32_t k = 0; k < MANY; k++) {
        CHECK(gradwire_wait(job, calls[k]) == 0);
        CHECK(k % 2 == 0 || (seen[k][0] == (k + 1) / 2 && seen[k][2] == seen[k][0]));
    }
    for (size_t i = 0; i < GW_COUNT_OF(big); i++)
        big[i] = (int32_t)i;
    for (uint64_t k = 0; k < MANY; k++) /* the same memory to all keys */
        CHECK(gradwire_push_start(job, 1000 + k % 20, big, GW_COUNT_OF(big), GRADWIRE_INT32,
                                  &calls[k]) == 0);
    for (uint64_t k = 0; k < MANY; k++)
        CHECK(gradwire_wait(job, calls[k]) == 0);
    CHECK(gradwire_barrier(job) == 0);
    for (uint64_t k = 0; k < 20; k++) {
        CHECK(gradwire_pull(job, 1000 + k, big, GW_COUNT_OF(big), GRADWIRE_INT32) == 0);
        for (size_t i = 0; i < GW_COUNT_OF(big); i++)
            CHECK(big[i] == (int32_t)i * WORLD * 3);
    }
    return 0;
}

/* A pull gets all of a push or nothing of it. */
static int pulls_are_whole(gradwire *job, int rank)
{
    static float ones[BIG], x[BIG];
    for (size_t i = 0; i < BIG; i++)
        ones[i] = 1;
    CHECK(gradwire_push(job, 5, ones, BIG, GRADWIRE_FLOAT32) == 0);
    for (int k = 0; k < 5; k++) {
        gradwire_call push;
        CHECK(gradwire_push_start(job, 5, ones, BIG, GRADWIRE_FLOAT32, &push) == 0);
        CHECK(gradwire_pull(job, 5, x, BIG, GRADWIRE_FLOAT32) == 0);
        CHECK(x[0] >= 2 + (float)k && x[0] <= 6 * WORLD);
        for (size_t i = 1; i < BIG; i++)
            CHECK(x[i] == x[0]);
        CHECK(gradwire_wait(job, push) == 0);
    }
    return 0;
}

/* Pushes, pulls, all-reduces and messages at the same time. */
static int beside_other_calls(gradwire *job, int rank)
{
    static float pushed[50000], reduced[50000];
    static uint8_t out[30000], in[30000];
    int next = (rank + 1) % WORLD, before = (rank + WORLD - 1) % WORLD;
    for (uint64_t round = 0; round < 10; round++) {
        gradwire_call calls[8];
        for (size_t i = 0; i < GW_COUNT_OF(pushed); i++) {
            pushed[i] = (float)part_of(rank, round, i);
            reduced[i] = (float)part_of(rank, round + 50, i);
        }
        memset(out, rank + (int)round, sizeof(out));
        CHECK(gradwire_receive_start(job, in, sizeof(in), before, 3, &calls[0]) == 0);
        CHECK(gradwire_allreduce_start(job, reduced, reduced, GW_COUNT_OF(reduced),
                                       GRADWIRE_FLOAT32, GRADWIRE_SUM, &calls[1]) == 0);
        for (uint64_t k = 0; k < 4; k++)
            CHECK(gradwire_push_start(job, round * 4 + k, pushed, GW_COUNT_OF(pushed),
                                      GRADWIRE_FLOAT32, &calls[2 + k]) == 0);
        CHECK(gradwire_send_start(job, out, sizeof(out), next, 3, &calls[6]) == 0);
        for (int k = 0; k < 7; k++)
            CHECK(gradwire_wait(job, calls[k]) == 0);
        CHECK(in[0] == (uint8_t)(before + (int)round) && in[29999] == in[0]);
        CHECK(gradwire_barrier(job) == 0);
        for (uint64_t k = 0; k < 4; k++) {
            CHECK(gradwire_pull(job, round * 4 + k, pushed, GW_COUNT_OF(pushed),
                                GRADWIRE_FLOAT32) == 0);
            for (size_t i = 0; i < GW_COUNT_OF(pushed); i++)
                CHECK(pushed[i] == (float)sum_of(round, i));
        }
        for (size_t i = 0; i < GW_COUNT_OF(reduced); i++)
            CHECK(reduced[i] == (float)sum_of(round + 50, i));
    }
    return 0;
}

/* Memory is ours again when a push has ended, even if the last acknowledgement was lost. */
static int memory_goes_at_once(gradwire *job, int rank)
{
    const size_t count = 4096;
    for (int k = 0; k < 100; k++) {
        float *x = mmap(NULL, count * sizeof(*x), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(x != MAP_FAILED);
        CHECK(gradwire_push(job, 6, x, count, GRADWIRE_FLOAT32) == 0);
        CHECK(mprotect(x, count * sizeof(*x), PROT_NONE) == 0);
    }
    return gradwire_barrier(job) != 0;
}

/* 16-bit floats are rounded once, in the end: each addend alone would vanish. */
static int halves_lose_nothing(gradwire *job, int rank)
{
    uint64_t key = key_kept_by(2, 0);
    uint16_t big = f16_of(2048), one = f16_of(1), x;
    if (rank == 0)
        CHECK(gradwire_push(job, key, &big, 1, GRADWIRE_FLOAT16) == 0);
    CHECK(gradwire_barrier(job) == 0);
    CHECK(gradwire_push(job, key, &one, 1, GRADWIRE_FLOAT16) == 0);
    CHECK(gradwire_barrier(job) == 0);
    CHECK(gradwire_pull(job, key, &x, 1, GRADWIRE_FLOAT16) == 0);
    CHECK(x == f16_of(2052));
    return 0;
}

/* Says so, and the job goes on. */
static int refused_calls(gradwire *job, int rank)
{
    static float x[BIG], y[BIG];
    for (int owner = 0; owner < WORLD; owner++) {
        uint64_t key = key_kept_by(owner, 1000u * (unsigned)(rank + 1));
        char named[128];
        snprintf(named, sizeof(named), "key %llu", (unsigned long long)key);
        for (size_t count = 100; count <= BIG; count *= 100) {
            CHECK(gradwire_pull(job, key, y, count, GRADWIRE_FLOAT32) == GRADWIRE_ERR_INVALID);
            CHECK(strstr(gradwire_last_error(), "nobody has pushed it"));
            CHECK(strstr(gradwire_last_error(), named));
        }
        CHECK(gradwire_push(job, key, x, 10000, GRADWIRE_FLOAT32) == 0);
        for (size_t count = 100; count <= BIG; count *= 100) {
            size_t other = count == 10000 ? count + 1 : count;
            CHECK(gradwire_push(job, key, x, other, GRADWIRE_FLOAT32) == GRADWIRE_ERR_INVALID);
            CHECK(strstr(gradwire_last_error(), "10000 float32"));
            CHECK(gradwire_pull(job, key, y, other, GRADWIRE_FLOAT32) == GRADWIRE_ERR_INVALID);
        }
        CHECK(gradwire_push(job, key, x, 10000, GRADWIRE_BFLOAT16) == GRADWIRE_ERR_INVALID);
        snprintf(named, sizeof(named),
                 "push of key %llu: 10000 bfloat16, but its value at rank %d is 10000 float32",
                 (unsigned long long)key, owner);
        CHECK(strcmp(gradwire_last_error(), named) == 0);
        CHECK(gradwire_pull(job, key, y, 10000, GRADWIRE_FLOAT32) == 0);
    }
    CHECK(gradwire_push(job, 1, NULL, 1, GRADWIRE_FLOAT32) == GRADWIRE_ERR_INVALID);
    CHECK(gradwire_pull(job, 1, x, 0, GRADWIRE_FLOAT32) == GRADWIRE_ERR_INVALID);
    CHECK(gradwire_pull(job, 1, x, 1, (enum gradwire_type)4) == GRADWIRE_ERR_INVALID);
    CHECK(gradwire_push(job, 1, x, SIZE_MAX, GRADWIRE_FLOAT32) == GRADWIRE_ERR_INVALID);
    CHECK(strstr(gradwire_last_error(), "2^36"));
    CHECK(gradwire_barrier(job) == 0);
    return 0;
}

/* An int32 that would not fit leaves the value alone, all of it. */
static int overflow_changes_nothing(gradwire *job, int rank)
{
    static int32_t x[BIG], y[BIG];
    static const size_t sizes[] = {3, BIG};
    for (size_t k = 0; k < GW_COUNT_OF(sizes); k++) {
        uint64_t key = key_kept_by((rank + (int)k) % WORLD, 100u * (unsigned)(rank + 1) + 50 * k);
        size_t last = sizes[k] - 1;
        memset(x, 0, sizeof(x));
        x[0] = 5;
        x[last] = INT32_MAX;
        CHECK(gradwire_push(job, key, x, sizes[k], GRADWIRE_INT32) == 0);
        x[last] = 1;
        CHECK(gradwire_push(job, key, x, sizes[k], GRADWIRE_INT32) == GRADWIRE_ERR_OVERFLOW);
        CHECK(strstr(gradwire_last_error(), "int32"));
        x[last] = INT32_MIN;
        CHECK(gradwire_push(job, key, x, sizes[k], GRADWIRE_INT32) == 0);
        CHECK(gradwire_pull(job, key, y, sizes[k], GRADWIRE_INT32) == 0);
        CHECK(y[0] == 10 && y[last] == -1);
    }
    CHECK(gradwire_barrier(job) == 0);
    return 0;
}

/* Refused while others are in work: the right ones, each with its own line. */
static int refused_among_many(gradwire *job, int rank)
{
    static int32_t x[1000], y[MANY][1000];
    gradwire_call calls[MANY];
    uint64_t base = 100000u * (unsigned)(rank + 1);
    for (uint64_t k = 0; k < MANY; k++)
        CHECK((k % 3 ? gradwire_push_start(job, base + k, x, 1 + 10 * k, GRADWIRE_INT32, &calls[k])
                     : gradwire_pull_start(job, base + k, y[k], 1 + 10 * k, GRADWIRE_INT32,
                                           &calls[k])) == 0);
    for (uint64_t k = 0; k < MANY; k++) {
        char named[64];
        snprintf(named, sizeof(named), "key %llu:", (unsigned long long)(base + k));
        CHECK(gradwire_wait(job, calls[k]) == (k % 3 ? 0 : GRADWIRE_ERR_INVALID));
        CHECK(k % 3 || strstr(gradwire_last_error(), named));
    }
    return 0;
}

#ifndef __SANITIZE_ADDRESS__ /* which itself maps more than rank 1 may have */
/* Rank 1 may not have as much. The data that it refuses is not looked at, so need not be there. */
static int no_memory(gradwire *job, int rank)
{
    float x = 1;
    uint64_t key = key_kept_by(1, 9);
    struct rlimit limit = {.rlim_cur = 1 << 29, .rlim_max = 1 << 29};
    CHECK(rank != 1 || setrlimit(RLIMIT_AS, &limit) == 0);
    CHECK(gradwire_barrier(job) == 0);
    if (rank == 0) {
        CHECK(gradwire_push(job, key, &x, 1 << 28, GRADWIRE_FLOAT32) == GRADWIRE_ERR_NO_MEMORY);
        CHECK(strstr(gradwire_last_error(), "rank 1 has no memory for 1073741824 bytes"));
        CHECK(gradwire_push(job, key, &x, 1, GRADWIRE_FLOAT32) == 0);
    }
    CHECK(gradwire_barrier(job) == 0);
    return 0;
}

static void push__says_that_memory_is_out(void **state)
{
    (void)state;
    run_with(no_memory, NULL);
}
#endif

/* The owner dies in the middle of pushes to it. */
enum {
    VICTIM = 2,
};

static int survivors_name_the_owner(gradwire *job, int rank)
{
    static float x[BIG];
    uint64_t key = key_kept_by(VICTIM, 77);
    for (int k = 0; k < 1000000; k++) {
        if (rank == VICTIM) {
            usleep(300000);
            kill(getpid(), SIGKILL);
        }
        int code = gradwire_push(job, key, x, BIG, GRADWIRE_FLOAT32);
        if (code) {
            CHECK(code == GRADWIRE_ERR_PEER);
            CHECK(strstr(gradwire_last_error(), "rank 2"));
            CHECK(gradwire_pull(job, key, x, BIG, GRADWIRE_FLOAT32) == GRADWIRE_ERR_CLOSED);
            return 0;
        }
    }
    return 1;
}

static void small_packets(struct gradwire_options *options)
{
    options->values = 62;
}

static void many_losses(struct gradwire_options *options)
{
    with_faults(options);
    assert_int_equal(setenv("GRADWIRE_FAULTS", "lose=0.05,duplicate=0.01,delay=0.01,seed=7", 1), 0);
}

static void push__adds_up_all_shapes(void **state)
{
    (void)state;
    run_with(sums_of_all, NULL);
    run_with(sums_of_all, small_packets);
    run_with(each_push_once, NULL);
    run_with(halves_lose_nothing, NULL);
}

static void push__adds_once_in_spite_of_faults(void **state)
{
    (void)state;
    run_with(sums_of_all, with_faults);
    run_with(each_push_once, with_faults);
    run_with(many_at_once, with_faults);
    run_with(beside_other_calls, with_faults);
    run_with(memory_goes_at_once, many_losses);
}

static void push__overlaps(void **state)
{
    (void)state;
    run_with(many_at_once, NULL);
    run_with(pulls_are_whole, NULL);
    run_with(beside_other_calls, NULL);
}

static void push__refuses(void **state)
{
    (void)state;
    run_with(refused_calls, NULL);
    run_with(refused_calls, with_faults);
    run_with(refused_among_many, NULL);
    run_with(overflow_changes_nothing, NULL);
}

static void push__names_the_owner_that_died(void **state)
{
    (void)state;
    pid_t pids[WORLD];
    for (int rank = 0; rank < WORLD; rank++) {
        struct gradwire_options options = options_of(rank);
        options.deadline_ms = 20000;
        pids[rank] = start_rank(&options, survivors_name_the_owner);
    }
    for (int rank = 0; rank < WORLD; rank++) {
        int status;
        assert_int_equal(waitpid(pids[rank], &status, 0), pids[rank]);
        if (rank == VICTIM)
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        else
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

/* A job of one rank keeps everything itself. */
static void push__needs_nobody_else(void **state)
{
    (void)state;
    static int32_t x[BIG], y[BIG];
    gradwire *job;
    struct gradwire_options options = options_of(0);
    options.world = 1;
    assert_int_equal(gradwire_open(&options, &job), 0);
    for (size_t i = 0; i < BIG; i++)
        x[i] = (int32_t)i;
    assert_int_equal(gradwire_pull(job, 1, y, BIG, GRADWIRE_INT32), GRADWIRE_ERR_INVALID);
    for (int k = 0; k < 3; k++)
        assert_int_equal(gradwire_push(job, 1, x, BIG, GRADWIRE_INT32), 0);
    assert_int_equal(gradwire_pull(job, 1, y, BIG, GRADWIRE_INT32), 0);
    for (size_t i = 0; i < BIG; i++)
        assert_int_equal(y[i], 3 * x[i]);
    gradwire_close(job);
}

static int choose(void **state)
{
    (void)state;
    choose_join("127.0.0.1");
    via = GRADWIRE_VIA_RING;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(push__adds_up_all_shapes),
        cmocka_unit_test(push__adds_once_in_spite_of_faults),
        cmocka_unit_test(push__overlaps),
        cmocka_unit_test(push__refuses),
#ifndef __SANITIZE_ADDRESS__
        cmocka_unit_test(push__says_that_memory_is_out),
#endif
        cmocka_unit_test(push__names_the_owner_that_died),
        cmocka_unit_test(push__needs_nobody_else),
    };
    return cmocka_run_group_tests(tests, choose, NULL);
}
