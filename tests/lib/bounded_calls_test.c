/*
 * Calls that may lose a part, by the public library: ranks are threads of this process, and what
 * they say goes by memory that loses, doubles and delays packets. Whatever is missing, it is within
 * the bound, the masks say where, and all ranks have the same bytes.
 */
#include "lib/thread_ranks.h"

#include <math.h>

#include "base/bits.h"

enum {
    WORLD = 3,
    ELEMENTS = 60001,
    BYTES = 150001,
    ROUNDS = 3,
    MESSAGES = 5,
    NONE = -1, /* no bound is named */
    TAG = 5,
    FRAGMENT = 352 * 4, /* bytes */
    FRAGMENTS = (BYTES + FRAGMENT - 1) / FRAGMENT,
    FRAGMENTS_MAX = WORLD * 256,
};

static const char faults[] = "lose=0.03,duplicate=0.01,delay=0.01,seed=11";

static void run_job(rank_fn *fn, enum gradwire_via via)
{
    struct thread_rank ranks[WORLD];
    for (int i = 0; i < WORLD; i++) {
        ranks[i] = (struct thread_rank){.fn = fn};
        prepare(&ranks[i].options, i, WORLD);
        ranks[i].options.via = via;
        ranks[i].options.largest = 1 << 20;
    }
    run_ranks(ranks, WORLD, faults);
}

/* What a rank is told of a call. */
struct told {
    struct gradwire_parts parts;
    uint64_t arrived[(FRAGMENTS_MAX + 63) / 64];
    uint16_t contributors[FRAGMENTS_MAX];
};

static struct gradwire_call_options bounded(struct told *told, double bound, double bound_pull)
{
    struct gradwire_call_options how;
    gradwire_call_options_init(&how, sizeof(how));
    memset(told, 0xff, sizeof(*told));
    told->parts = (struct gradwire_parts){
        .room = FRAGMENTS_MAX, .arrived = told->arrived, .contributors = told->contributors};
    how.bound = bound;
    how.bound_pull = bound_pull;
    how.parts = &told->parts;
    return how;
}

static size_t count_missing(const struct told *told)
{
    size_t missing = 0;
    for (size_t i = 0; i < told->parts.count; i++)
        missing += !gw_bit_is_set(told->arrived, i);
    return missing;
}

/* Where nothing has arrived the memory is as it was. */
static int check_message(const struct told *told, const unsigned char *data, int rank,
                         unsigned char value, double bound)
{
    CHECK(told->parts.fragment == FRAGMENT && told->parts.count == FRAGMENTS);
    CHECK(told->parts.missing == count_missing(told));
    CHECK((double)told->parts.missing <= bound * FRAGMENTS);
    for (size_t i = 0; i < BYTES; i++)
        CHECK(data[i] == (gw_bit_is_set(told->arrived, i / FRAGMENT) ? value : 0));
    for (size_t i = 0; i < FRAGMENTS; i++)
        CHECK(told->contributors[i] == gw_bit_is_set(told->arrived, i));
    return 0;
}

/* The stricter bound rules, and who names none wants all; several are under way at once. */
static int messages(gradwire *job, int rank)
{
    static const double bounds[MESSAGES][2] = {
        {0.1, 0.3}, {0.3, 0.1}, {0.2, 0}, {NONE, 0.2}, {0.2, NONE}};
    static unsigned char heard[WORLD][MESSAGES][BYTES];
    static struct told told[WORLD][MESSAGES];
    static unsigned char sent[WORLD][BYTES];
    struct told own;
    gradwire_call calls[2 * MESSAGES];
    int to = (rank + 1) % WORLD, from = (rank + WORLD - 1) % WORLD;
    memset(sent[rank], 'a' + rank, BYTES);
    memset(heard[rank], 0, sizeof(heard[rank]));
    for (uint32_t i = 0; i < MESSAGES; i++) {
        struct gradwire_call_options get = bounded(&told[rank][i], bounds[i][1], 0);
        struct gradwire_call_options put = bounded(&own, bounds[i][0], 0);
        put.parts = NULL;
        put.layer = i;
        put.layers = MESSAGES;
        CHECK(gradwire_receive_with(job, heard[rank][i], BYTES, from, TAG + i,
                                    bounds[i][1] < 0 ? NULL : &get, &calls[2 * i]) == 0);
        CHECK(gradwire_send_with(job, sent[rank], BYTES, to, TAG + i,
                                 bounds[i][0] < 0 ? NULL : &put, &calls[2 * i + 1]) == 0);
    }
    for (int i = 0; i < 2 * MESSAGES; i++)
        CHECK(gradwire_wait(job, calls[i]) == 0);
    for (int i = 0; i < MESSAGES; i++) {
        double bound = bounds[i][0] < bounds[i][1] ? bounds[i][0] : bounds[i][1];
        if (bounds[i][1] < 0)
            CHECK(memcmp(heard[rank][i], sent[from], BYTES) == 0);
        else if (check_message(&told[rank][i], heard[rank][i], rank, (unsigned char)('a' + from),
                               bound > 0 ? bound : 0))
            return 1;
    }
    CHECK(gradwire_barrier(job) == 0);
    return 0;
}

/* Each rank's value is a power of two, so that a sum says whose they are. */
static int check_sums(const struct told *told, const float *sums, int rank, bool is_average)
{
    size_t lacks = 0;
    CHECK(told->parts.missing == count_missing(told));
    for (size_t i = 0; i < told->parts.count; i++) {
        size_t first = i * told->parts.fragment;
        bool is_there = gw_bit_is_set(told->arrived, i);
        uint32_t count = told->contributors[i];
        CHECK(count <= WORLD && (count > 0) == is_there);
        float value = is_average ? sums[first] * (float)count : sums[first];
        uint32_t ranks = (uint32_t)(value + 0.5f);
        CHECK((uint32_t)__builtin_popcount(ranks) == count && ranks < 1 << WORLD);
        for (size_t at = first; at < first + told->parts.fragment && at < ELEMENTS; at++)
            CHECK(memcmp(&sums[at], &sums[first], sizeof(*sums)) == 0);
        lacks += WORLD - count;
    }
    /* Of each rank a fifth, and of results as much. */
    CHECK((double)lacks <= (0.2 + 0.2) * WORLD * (double)told->parts.count);
    return 0;
}

static float results[WORLD][ELEMENTS];
static struct told results_told[WORLD];

static int sums(gradwire *job, int rank)
{
    float *x = results[rank];
    struct told *told = &results_told[rank];
    for (int round = 0; round < ROUNDS; round++) {
        bool is_average = round == 1;
        struct gradwire_call_options how = bounded(told, 0.2, 0.2);
        how.importance = GRADWIRE_IMPORTANCE_MEANS;
        for (int i = 0; i < ELEMENTS; i++)
            x[i] = (float)(1 << rank);
        CHECK(gradwire_allreduce_with(job, x, x, ELEMENTS, GRADWIRE_FLOAT32,
                                      is_average ? GRADWIRE_AVERAGE : GRADWIRE_SUM, &how,
                                      NULL) == 0);
        CHECK(told->parts.count ==
              gradwire_fragments(job, ELEMENTS, GRADWIRE_FLOAT32, GRADWIRE_VIA_DEFAULT));
        if (check_sums(told, x, rank, is_average))
            return 1;
        CHECK(gradwire_barrier(job) == 0);
        size_t words = gw_bit_words(told->parts.count);
        CHECK(memcmp(x, results[0], sizeof(results[0])) == 0);
        CHECK(memcmp(told->arrived, results_told[0].arrived, words * sizeof(uint64_t)) == 0);
        CHECK(memcmp(told->contributors, results_told[0].contributors,
                     told->parts.count * sizeof(uint16_t)) == 0);
        CHECK(gradwire_barrier(job) == 0);
    }
    return 0;
}

/* Of a message that is shorter than the room for it, what is told is of the message. */
static int short_message(gradwire *job, int rank)
{
    enum {
        SHORT = BYTES / 3,
        SHORT_FRAGMENTS = (SHORT + FRAGMENT - 1) / FRAGMENT,
    };
    static unsigned char heard[WORLD][BYTES], sent[SHORT];
    static struct told told[WORLD], own[WORLD];
    struct gradwire_call_options get = bounded(&told[rank], 0.3, 0);
    struct gradwire_call_options put = bounded(&own[rank], 0.3, 0);
    int to = (rank + 1) % WORLD, from = (rank + WORLD - 1) % WORLD;
    gradwire_call receive, again, send;
    CHECK(gradwire_receive_with(job, heard[rank], BYTES, from, TAG, &get, &receive) == 0);
    CHECK(gradwire_receive_start(job, heard[rank], BYTES, from, TAG, &again) == 0);
    CHECK(gradwire_wait(job, again) == GRADWIRE_ERR_INVALID);
    CHECK(strstr(gradwire_last_error(), "another receive with this tag from this rank"));
    CHECK(gradwire_barrier(job) == 0);
    CHECK(gradwire_send_with(job, sent, SHORT, to, TAG, &put, &send) == 0);
    CHECK(gradwire_wait(job, receive) == 0 && gradwire_wait(job, send) == 0);
    CHECK(told[rank].parts.count == SHORT_FRAGMENTS && own[rank].parts.count == SHORT_FRAGMENTS);
    CHECK(told[rank].parts.missing == count_missing(&told[rank]));
    for (size_t i = SHORT_FRAGMENTS; i < FRAGMENTS; i++)
        CHECK(!gw_bit_is_set(told[rank].arrived, i) && told[rank].contributors[i] == 0);
    CHECK(gradwire_barrier(job) == 0);
    return 0;
}

static void bounded_calls__tell_of_the_message_that_was_sent(void **state)
{
    (void)state;
    run_job(short_message, GRADWIRE_VIA_RING);
}

static void bounded_calls__deliver_messages_within_the_stricter_bound(void **state)
{
    (void)state;
    run_job(messages, GRADWIRE_VIA_RING);
}

static void bounded_calls__leave_all_ranks_with_the_same_sums(void **state)
{
    (void)state;
    run_job(sums, GRADWIRE_VIA_RING);
    run_job(sums, GRADWIRE_VIA_PS);
    run_job(sums, GRADWIRE_VIA_INA);
}

/* What ranks have, and which of it are results. */
static int check_kept(const struct told *told, const float *sums, int rank, size_t *kept)
{
    CHECK(told->parts.missing == count_missing(told));
    CHECK((double)told->parts.missing <= 0.2 * (double)told->parts.count);
    *kept += told->parts.missing;
    for (size_t i = 0; i < told->parts.count; i++) {
        size_t first = i * told->parts.fragment;
        size_t end = first + told->parts.fragment;
        bool is_there = gw_bit_is_set(told->arrived, i);
        CHECK(is_there || told->contributors[i] == 1);
        for (size_t at = first; at < end && at < ELEMENTS; at++) {
            CHECK(is_there || sums[at] == (float)(1 << rank));
            CHECK(__builtin_popcount((uint32_t)sums[at]) == told->contributors[i]);
        }
    }
    return 0;
}

/* By the published rule replicas differ where a result is missing, and nowhere else. */
static int kept(gradwire *job, int rank)
{
    float *x = results[rank];
    struct told *told = &results_told[rank];
    const struct told *first = &results_told[0];
    size_t kept = 0, unit = FRAGMENT / sizeof(*x);
    for (int round = 0; round < ROUNDS; round++) {
        struct gradwire_call_options how = bounded(told, 0, 0.2);
        how.keeps_own = 1;
        for (int i = 0; i < ELEMENTS; i++)
            x[i] = (float)(1 << rank);
        CHECK(gradwire_allreduce_with(job, x, x, ELEMENTS, GRADWIRE_FLOAT32, GRADWIRE_SUM, &how,
                                      NULL) == 0);
        if (check_kept(told, x, rank, &kept))
            return 1;
        CHECK(gradwire_barrier(job) == 0);
        for (size_t i = 0; i < ELEMENTS; i++) {
            bool are_results =
                gw_bit_is_set(told->arrived, i / unit) && gw_bit_is_set(first->arrived, i / unit);
            CHECK(rank == 0 || (x[i] == results[0][i]) == are_results);
        }
        CHECK(gradwire_barrier(job) == 0);
    }
    CHECK(kept > 0);
    return 0;
}

/* What is no sum, nobody has values of his own of. */
static int kept_memory(gradwire *job, int rank)
{
    static unsigned char data[WORLD][BYTES];
    struct told *told = &results_told[rank];
    for (int root = 0; root < WORLD; root++) {
        struct gradwire_call_options how = bounded(told, 0, 0.2);
        how.keeps_own = 1;
        memset(data[rank], 'a' + rank, BYTES);
        CHECK(gradwire_broadcast_with(job, data[rank], BYTES, GRADWIRE_UINT8, root, &how, NULL) ==
              0);
        for (size_t i = 0; i < BYTES; i++) {
            bool is_there = gw_bit_is_set(told->arrived, i / told->parts.fragment);
            CHECK(data[rank][i] == 'a' + (is_there ? root : rank));
        }
    }
    return gradwire_barrier(job);
}

static void bounded_calls__keep_own_values_if_asked(void **state)
{
    (void)state;
    run_job(kept, GRADWIRE_VIA_PS);
    run_job(kept_memory, GRADWIRE_VIA_PS);
}

/* Of an all-gather and a reduce-scatter each rank's part begins with a fragment. */
static int parts_of_ranks(gradwire *job, int rank)
{
    enum { EACH = 1000, UNITS = 3 };
    float in[WORLD * EACH], out[WORLD * EACH];
    struct told told;
    struct gradwire_call_options how = bounded(&told, 0, 0);
    how.importance = GRADWIRE_IMPORTANCE_MEANS;
    for (int i = 0; i < WORLD * EACH; i++)
        in[i] = (float)(rank + i / EACH);
    CHECK(gradwire_allgather_with(job, in, out, EACH, GRADWIRE_FLOAT32, &how, NULL) == 0);
    CHECK(told.parts.count == WORLD * UNITS && told.parts.missing == 0);
    for (int i = 0; i < WORLD * EACH; i++)
        CHECK(out[i] == (float)(i / EACH));
    for (int i = 0; i < WORLD * UNITS; i++)
        CHECK(told.contributors[i] == 1);
    how = bounded(&told, 0, 0);
    CHECK(gradwire_reduce_scatter_with(job, in, out, EACH, GRADWIRE_FLOAT32, GRADWIRE_SUM, &how,
                                       NULL) == 0);
    CHECK(told.parts.count == UNITS && told.parts.missing == 0);
    for (int i = 0; i < EACH; i++)
        CHECK(out[i] == (float)(WORLD * (WORLD - 1) / 2 + WORLD * rank));
    for (int i = 0; i < UNITS; i++)
        CHECK(told.contributors[i] == WORLD);
    return gradwire_barrier(job);
}

static void bounded_calls__count_fragments_of_each_ranks_part(void **state)
{
    (void)state;
    run_job(parts_of_ranks, GRADWIRE_VIA_RING);
}

/* What the worth function of a call has been asked. */
struct asked {
    const float *data;
    size_t total, next;
    int wrong;
};

static double worth(const void *fragment, size_t count, size_t index, void *context)
{
    struct asked *asked = context;
    size_t each = FRAGMENT / sizeof(float), left = asked->total - index * each;
    asked->wrong += index != asked->next++ || fragment != asked->data + index * each ||
                    count != (left < each ? left : each);
    return (double)(index % 5);
}

static int values(gradwire *job, int rank)
{
    static float data[WORLD][ELEMENTS];
    struct told told;
    struct gradwire_call_options how = bounded(&told, 0, 0);
    struct asked asked = {.data = data[rank], .total = ELEMENTS};
    gradwire_call call;
    for (int i = 0; i < ELEMENTS; i++)
        data[rank][i] = 1;
    how.importance = GRADWIRE_IMPORTANCE_WORTH;
    how.worth = worth;
    how.worth_context = &asked;
    how.important_first = 1;
    CHECK(gradwire_push_with(job, 9, data[rank], ELEMENTS, GRADWIRE_FLOAT32, &how, &call) == 0);
    CHECK(asked.wrong == 0 && asked.next == (ELEMENTS + 351) / 352);
    CHECK(gradwire_wait(job, call) == 0);
    CHECK(gradwire_barrier(job) == 0);
    how = bounded(&told, 0.3, 0);
    memset(data[rank], 0, sizeof(data[rank]));
    CHECK(gradwire_pull_with(job, 9, data[rank], ELEMENTS, GRADWIRE_FLOAT32, &how, NULL) == 0);
    CHECK((double)told.parts.missing <= 0.3 * (double)told.parts.count);
    CHECK(told.parts.missing == count_missing(&told));
    for (size_t i = 0; i < ELEMENTS; i++)
        CHECK(data[rank][i] ==
              (gw_bit_is_set(told.arrived, i / told.parts.fragment) ? (float)WORLD : 0));
    return gradwire_barrier(job);
}

static void bounded_calls__ask_for_the_worth_of_each_fragment_once(void **state)
{
    (void)state;
    run_job(values, GRADWIRE_VIA_RING);
}

/* One refusal; the job goes on. */
static int refused(gradwire *job, const struct gradwire_call_options *how, size_t bytes,
                   const char *text, int rank)
{
    static char data[4];
    CHECK(gradwire_send_with(job, data, bytes, (rank + 1) % WORLD, TAG, how, NULL) ==
          GRADWIRE_ERR_INVALID);
    CHECK(strstr(gradwire_last_error(), text) != NULL);
    return 0;
}

static int refusals(gradwire *job, int rank)
{
    struct told told;
    struct gradwire_call_options how = bounded(&told, 0.6, 0);
    int failed = refused(job, &how, 4, "bound is 0.6", rank);
    how = bounded(&told, 0.5000001, 0);
    failed |= refused(job, &how, 4, "bound is 0.5000001: ", rank);
    how = bounded(&told, 0.5 + 0x1p-53, 0);
    failed |= refused(job, &how, 4, "bound is 0.5000000000000001: ", rank);
    how = bounded(&told, NAN, 0);
    failed |= refused(job, &how, 4, "bound is nan: ", rank);
    how = bounded(&told, 0, -0.1);
    failed |= refused(job, &how, 4, "bound_pull is -0.1", rank);
    how = bounded(&told, 0.1, 0);
    told.parts.room = 0;
    failed |= refused(job, &how, 4, "room for 0 fragments, the call has 1", rank);
    told.parts.arrived = NULL;
    failed |= refused(job, &how, 4, "room for 0 fragments, the call has 1", rank);
    how = bounded(&told, 0.1, 0);
    failed |= refused(job, &how, (1 << 20) + 1, "`largest`", rank);
    how.layer = how.layers = 3;
    failed |= refused(job, &how, 4, "layer is 3 of 3", rank);
    how = bounded(&told, 0.1, 0);
    how.importance = GRADWIRE_IMPORTANCE_WORTH;
    failed |= refused(job, &how, 4, "worth", rank);
    how.importance = GRADWIRE_IMPORTANCE_MEANS;
    failed |= refused(job, &how, 4, "no magnitude", rank);
    how = bounded(&told, 0.1, 0);
    how.size--;
    failed |= refused(job, &how, 4, "another version", rank);
    how = bounded(&told, 0.1, 0);
    CHECK(gradwire_barrier_with(job, &how, NULL) == GRADWIRE_ERR_INVALID);
    CHECK(strstr(gradwire_last_error(), "barrier") != NULL);
    CHECK(gradwire_barrier(job) == 0);
    return failed;
}

/* Only `missing` is wanted: that needs no room. */
static int without_arrays(gradwire *job, int rank)
{
    static float data[WORLD][ELEMENTS];
    struct gradwire_parts parts = {.room = 0};
    struct gradwire_call_options how;
    gradwire_call_options_init(&how, sizeof(how));
    how.bound = how.bound_pull = 0.2;
    how.parts = &parts;
    CHECK(gradwire_allreduce_with(job, data[rank], data[rank], ELEMENTS, GRADWIRE_FLOAT32,
                                  GRADWIRE_SUM, &how, NULL) == 0);
    CHECK(parts.count == (ELEMENTS + 351) / 352 && parts.missing <= parts.count / 5);
    return gradwire_barrier(job);
}

static void bounded_calls__need_no_room_without_arrays(void **state)
{
    (void)state;
    run_job(without_arrays, GRADWIRE_VIA_RING);
    run_job(without_arrays, GRADWIRE_VIA_PS);
}

/* What one call is told nobody else may write before it was waited for. */
static int overlapping(gradwire *job, int rank)
{
    struct told told, other;
    struct gradwire_call_options get = bounded(&told, 0.1, 0), put = bounded(&other, 0.1, 0);
    char heard[2], word = 'x';
    int to = (rank + 1) % WORLD, from = (rank + WORLD - 1) % WORLD;
    gradwire_call receive;
    CHECK(gradwire_receive_with(job, &heard[0], 1, from, TAG, &get, &receive) == 0);
    int failed = refused(job, &get, 1, "parts, or an array of it, is of call 1, which was", rank);
    other.parts.arrived = told.arrived;
    failed |= refused(job, &put, 1, "is of call 1", rank);
    other.parts.arrived = NULL;
    other.parts.contributors = told.contributors;
    failed |= refused(job, &put, 1, "is of call 1", rank);
    CHECK(gradwire_allreduce_with(job, &word, &word, 0, GRADWIRE_UINT8, GRADWIRE_SUM, &get, NULL) ==
          GRADWIRE_ERR_INVALID);
    other.parts.contributors = NULL;
    CHECK(gradwire_send_with(job, &word, 1, to, TAG, &put, NULL) == 0);
    CHECK(gradwire_wait(job, receive) == 0);
    CHECK(told.parts.count == 1 && told.parts.missing == 0 && heard[0] == word);
    CHECK(gradwire_receive_with(job, &heard[1], 1, from, TAG, &get, &receive) == 0);
    CHECK(gradwire_send_with(job, &word, 1, to, TAG, &put, NULL) == 0);
    CHECK(gradwire_wait(job, receive) == 0);
    CHECK(gradwire_barrier(job) == 0);
    return failed;
}

static void bounded_calls__that_overlap_are_told_apart(void **state)
{
    (void)state;
    run_job(overlapping, GRADWIRE_VIA_RING);
}

/* A call without elements is none that has no options. */
static int empty_calls(gradwire *job, int rank)
{
    struct told told;
    float x = 1;
    struct gradwire_call_options how = bounded(&told, 0.1, 0.1);
    told.parts.fragment = told.parts.count = told.parts.missing = 77;
    how.importance = GRADWIRE_IMPORTANCE_WORTH;
    how.worth = worth;
    CHECK(gradwire_allreduce_with(job, &x, &x, 0, GRADWIRE_FLOAT32, GRADWIRE_SUM, &how, NULL) == 0);
    CHECK(told.parts.fragment == FRAGMENT / sizeof(x));
    CHECK(told.parts.count == 0 && told.parts.missing == 0);
    how = bounded(&told, 0.6, 0);
    CHECK(gradwire_allreduce_with(job, &x, &x, 0, GRADWIRE_FLOAT32, GRADWIRE_SUM, &how, NULL) ==
          GRADWIRE_ERR_INVALID);
    CHECK(strstr(gradwire_last_error(), "bound is 0.6") != NULL);
    how.size--;
    CHECK(gradwire_broadcast_with(job, &x, 0, GRADWIRE_FLOAT32, 0, &how, NULL) ==
          GRADWIRE_ERR_INVALID);
    CHECK(strstr(gradwire_last_error(), "another version") != NULL);
    return gradwire_barrier(job);
}

static void bounded_calls__without_elements_have_no_fragments(void **state)
{
    (void)state;
    run_job(empty_calls, GRADWIRE_VIA_RING);
}

static void bounded_calls__refuse_what_they_cannot_do(void **state)
{
    (void)state;
    run_job(refusals, GRADWIRE_VIA_RING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounded_calls__deliver_messages_within_the_stricter_bound),
        cmocka_unit_test(bounded_calls__tell_of_the_message_that_was_sent),
        cmocka_unit_test(bounded_calls__leave_all_ranks_with_the_same_sums),
        cmocka_unit_test(bounded_calls__keep_own_values_if_asked),
        cmocka_unit_test(bounded_calls__count_fragments_of_each_ranks_part),
        cmocka_unit_test(bounded_calls__ask_for_the_worth_of_each_fragment_once),
        cmocka_unit_test(bounded_calls__need_no_room_without_arrays),
        cmocka_unit_test(bounded_calls__that_overlap_are_told_apart),
        cmocka_unit_test(bounded_calls__without_elements_have_no_fragments),
        cmocka_unit_test(bounded_calls__refuse_what_they_cannot_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
